// Is a file still the one that was opened?
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace shardpack {

struct FileStamp {
  std::string path, shown;  ///< shown: how errors name it
  std::int64_t bytes = 0;
  timespec modified{};
};

/// \throws Error{io} when the file is not there.
FileStamp stamp_of(const std::string& path, const std::string& shown);

/// \throws Error{bad_data} when size or modification time are not the stamp's any more: what was read may be a mixture. Error{io}
/// when the file is not there any more.
void check_stamp(const FileStamp& stamp);

}  // namespace shardpack
