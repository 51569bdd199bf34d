// All that is in a folder, to be compared with another one or with itself at another time.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "io/file.h"

namespace shardpack {

/// Bytes of every file by its name relative to `folder`; a folder in it is there with a slash behind and no bytes. Empty when
/// there is no such folder.
inline std::map<std::string, std::string> folder_bytes(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> bytes;
  if (!fs::exists(folder)) return bytes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_directory()) {
      bytes[name + "/"] = "";
    } else {
      bytes[name] = read_small_file(entry.path().string());
    }
  }
  return bytes;
}

}  // namespace shardpack
