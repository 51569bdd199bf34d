#include "io/file_stamp.h"

#include <fmt/format.h>

#include "base/units.h"
#include "io/file.h"
#include "shardpack/error.h"

namespace shardpack {

FileStamp stamp_of(const std::string& path, const std::string& shown) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno("open", shown);
  return {path, shown, status.st_size, status.st_mtim};
}

void check_stamp(const FileStamp& stamp) {
  const FileStamp now = stamp_of(stamp.path, stamp.shown);
  if (now.bytes == stamp.bytes && now.modified.tv_sec == stamp.modified.tv_sec &&
      now.modified.tv_nsec == stamp.modified.tv_nsec) {
    return;
  }
  const std::string what = now.bytes == stamp.bytes
                               ? "its modification time is another"
                               : fmt::format("it had {} bytes and has {}", with_commas(stamp.bytes), with_commas(now.bytes));
  throw Error(ErrorCode::bad_data, fmt::format("the file changed while it was in use: {}; run again when it is complete", what),
              stamp.shown);
}

}  // namespace shardpack
