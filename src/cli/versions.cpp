#include "cli/versions.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/linked_versions.h"  // made by CMake: kLinkedVersions
#include "io/json.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

constexpr int kPackedFormatVersion = 1, kPlanFormatVersion = 1;

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

std::string version_line() { return fmt::format("shardpack {}\n", kVersion); }

std::string versions_text() {
  std::string text = version_line();
  text += fmt::format("  {:<14} {}\n", "compiler", compiler());
  for (const auto& [name, version] : kLinkedVersions) text += fmt::format("  {:<14} {}\n", name, version);
  text += fmt::format("  {:<14} packed {}, plan {}\n", "formats", kPackedFormatVersion, kPlanFormatVersion);
  return text;
}

std::string versions_json() {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "version").member("version", kVersion).member("compiler", compiler());
  json.key("libraries").begin_object();
  for (const auto& [name, version] : kLinkedVersions) json.member(name, version);
  json.end_object();
  json.key("formats").begin_object(true);
  json.member("packed", kPackedFormatVersion).member("plan", kPlanFormatVersion);
  json.end_object();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
