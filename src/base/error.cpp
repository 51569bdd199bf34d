#include "shardpack/error.h"

namespace shardpack {

namespace {
std::string compose(std::string_view message, std::string_view path, std::string_view position) {
  std::string line;
  for (std::string_view part : {path, position}) {
    if (!part.empty()) line.append(part).append(": ");
  }
  return line.append(message);
}
}  // namespace

Error::Error(ErrorCode code, std::string_view message, std::string_view path, std::string_view position)
    : std::runtime_error(compose(message, path, position)), code_(code), message_(message), path_(path), position_(position) {}

}  // namespace shardpack
