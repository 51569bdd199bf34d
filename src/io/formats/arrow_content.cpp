#include "io/formats/arrow_content.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

namespace shardpack {

namespace {

template <class T>
std::optional<T> load(std::string_view bytes, std::int64_t at) {
  if (at < 0 || at + static_cast<std::int64_t>(sizeof(T)) > static_cast<std::int64_t>(bytes.size())) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Is `message` the beginning of a FlatBuffers table whose field 1, the kind of the header, says schema? Field places lie in the
/// table's vtable: its own size, the table's size, then 16 bits a field.
bool is_schema_message(std::string_view message) {
  constexpr std::uint8_t kSchema = 1;
  const auto root = load<std::uint32_t>(message, 0);
  if (!root) return false;
  const auto to_vtable = load<std::int32_t>(message, *root);
  if (!to_vtable) return false;
  const std::int64_t vtable = std::int64_t{*root} - *to_vtable;
  const auto vtable_bytes = load<std::uint16_t>(message, vtable);
  const auto kind_at = load<std::uint16_t>(message, vtable + 6);
  if (!vtable_bytes || *vtable_bytes < 8 || *vtable_bytes > 64 || !kind_at || *kind_at == 0) return false;
  return load<std::uint8_t>(message, std::int64_t{*root} + *kind_at) == kSchema;
}

bool has_suffix(const FormatProbe& probe, std::string_view suffix) { return probe.file.path.ends_with(suffix); }

}  // namespace

bool begins_arrow_stream(std::string_view head) {
  constexpr std::uint32_t kContinuation = 0xFFFFFFFF;
  constexpr std::uint32_t kMaxBytes = 1u << 28;
  std::int64_t at = 0;
  auto bytes = load<std::uint32_t>(head, at);
  at += 4;
  if (bytes == kContinuation) {
    bytes = load<std::uint32_t>(head, at);
    at += 4;
  }
  return bytes && *bytes > 0 && *bytes < kMaxBytes && is_schema_message(head.substr(static_cast<std::size_t>(at)));
}

bool matches_hf(const FormatProbe& probe) {
  std::error_code ignored;
  const std::filesystem::path path(probe.file.path), folder = path.parent_path();
  if (path.filename() == "state.json") return probe.head.find("\"_indices_data_files\"") != std::string_view::npos;
  return matches_arrow(probe) && std::filesystem::exists(folder / "state.json", ignored);
}

// By name too where the content tells nothing: what is cut short is then told to be so.
bool matches_arrow(const FormatProbe& probe) {
  return probe.head.starts_with(kArrowFileMagic) || begins_arrow_stream(probe.head) || has_suffix(probe, ".arrow") ||
         has_suffix(probe, ".feather");
}

bool matches_parquet(const FormatProbe& probe) { return probe.head.starts_with(kParquetMagic) || has_suffix(probe, ".parquet"); }

}  // namespace shardpack
