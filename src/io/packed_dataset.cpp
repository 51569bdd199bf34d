#include "io/packed_dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "base/wide.h"
#include "io/file.h"
#include "io/safe_name.h"
#include "io/zstd_seekable.h"
#include "shardpack/error.h"
#include "shardpack/presets.h"

namespace shardpack {

struct PackedArray::State {
  explicit State(const std::string& path_) : path(path_), plain(path_, File::Mode::read) {
    if (std::string_view(path).ends_with(".zst")) compressed.emplace(std::move(plain));
    // Ours are 128 bytes; version 1 headers, which alone we write, end before 64 KiB.
    constexpr std::int64_t kMaxHeaderBytes = 10 + 0xffff;
    const std::int64_t bytes = compressed ? compressed->size() : plain.size();
    std::string head(static_cast<std::size_t>(std::min(bytes, kMaxHeaderBytes)), '\0');
    read_at(0, std::as_writable_bytes(std::span(head)));
    header = parse_npy_header(head, bytes, path);
    bool big_endian = false;
    type = value_type(header, path, big_endian);
    if (big_endian || header.fortran_order || header.shape.empty()) {
      throw Error(ErrorCode::bad_data, "not an array of rows in C order and little-endian", path);
    }
    // Only an array without rows can claim more than the file holds; what is computed from this must not overflow for it either.
    constexpr std::int64_t kMaxRowElements = std::int64_t{1} << 40;
    for (std::size_t i = 1; i < header.shape.size(); ++i) {
      if (header.shape[i] > kMaxRowElements / std::max<std::int64_t>(row_elements, 1)) {
        throw Error(ErrorCode::bad_data, "an array of impossible shape", path);
      }
      row_elements *= header.shape[i];
    }
  }

  void read_at(std::int64_t offset, std::span<std::byte> out) const {
    if (compressed) {
      compressed->read_at(offset, out);
    } else {
      plain.read_at(offset, out);
    }
  }

  std::string path;
  File plain;
  std::optional<ZstdSeekableReader> compressed;
  NpyHeader header;
  ValueType type = ValueType::u16;
  std::int64_t row_elements = 1;
};

PackedArray::PackedArray(const std::string& path) : state_(std::make_unique<State>(path)) {}
PackedArray::~PackedArray() = default;
PackedArray::PackedArray(PackedArray&&) noexcept = default;
PackedArray& PackedArray::operator=(PackedArray&&) noexcept = default;

const std::string& PackedArray::path() const { return state_->path; }
ValueType PackedArray::type() const { return state_->type; }
const std::vector<std::int64_t>& PackedArray::shape() const { return state_->header.shape; }
std::int64_t PackedArray::rows() const { return state_->header.shape.front(); }
std::int64_t PackedArray::row_elements() const { return state_->row_elements; }

void PackedArray::read_bytes(std::int64_t first_row, std::span<std::byte> out) const {
  // The header was checked against the size of the file, so no product of what is in range can overflow.
  const std::int64_t row_bytes = row_elements() * info(type()).bytes;
  const auto bytes = static_cast<std::int64_t>(out.size());
  ensure(row_bytes > 0 ? bytes % row_bytes == 0 : bytes == 0, "an array is read in whole rows");
  const std::int64_t count = row_bytes > 0 ? bytes / row_bytes : 0;
  if (first_row < 0 || first_row > rows() || count > rows() - first_row) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} rows are asked for and {} are there", with_commas(count), with_commas(rows())), path(),
                fmt::format("row {}", with_commas(first_row)));
  }
  state_->read_at(state_->header.data_begin + first_row * row_bytes, out);
}

namespace {

/// Stored values of type From to `out`; false when one does not fit.
template <class From, class T>
bool convert(std::span<const std::byte> stored, std::span<T> out) {
  const auto* const from = reinterpret_cast<const From*>(stored.data());
  bool all_fit = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<T>(from[i]);
    all_fit &= std::in_range<T>(from[i]);
  }
  return all_fit;
}

template <class T>
bool convert(ValueType type, std::span<const std::byte> stored, std::span<T> out) {
  switch (type) {
    case ValueType::u8:
      return convert<std::uint8_t>(stored, out);
    case ValueType::i8:
      return convert<std::int8_t>(stored, out);
    case ValueType::u16:
      return convert<std::uint16_t>(stored, out);
    case ValueType::i16:
      return convert<std::int16_t>(stored, out);
    case ValueType::u32:
      return convert<std::uint32_t>(stored, out);
    case ValueType::i32:
      return convert<std::int32_t>(stored, out);
    case ValueType::u64:
      return convert<std::uint64_t>(stored, out);
    case ValueType::i64:
      return convert<std::int64_t>(stored, out);
    case ValueType::f16:
    case ValueType::f32:
    case ValueType::f64:
      break;
  }
  return false;
}

template <class T>
bool is_stored_as(ValueType type) {
  return type <= ValueType::i64 && info(type).bytes == sizeof(T) && (info(type).name.front() == 'i') == std::is_signed_v<T>;
}

}  // namespace

template <class T>
void PackedArray::read(std::int64_t first_row, std::span<T> out) const {
  if (is_stored_as<T>(type())) return read_bytes(first_row, std::as_writable_bytes(out));
  std::vector<std::byte> stored(out.size() * static_cast<std::size_t>(info(type()).bytes));
  read_bytes(first_row, stored);
  if (!convert(type(), std::span<const std::byte>(stored), out)) {
    throw Error(ErrorCode::bad_data,
                fmt::format("a value of type {} that does not fit {} {} bits", info(type()).name,
                            std::is_signed_v<T> ? "signed" : "unsigned", 8 * sizeof(T)),
                path(), fmt::format("rows from {}", with_commas(first_row)));
  }
}

template <class T>
std::vector<T> PackedArray::read(std::int64_t first_row, std::int64_t count) const {
  // Before memory is taken for them.
  if (count < 0 || count > rows()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} rows are asked for and {} are there", with_commas(count), with_commas(rows())), path(),
                fmt::format("row {}", with_commas(first_row)));
  }
  std::vector<T> values(static_cast<std::size_t>(count * row_elements()));
  read(first_row, std::span(values));
  return values;
}

template void PackedArray::read(std::int64_t, std::span<std::uint8_t>) const;
template void PackedArray::read(std::int64_t, std::span<std::uint16_t>) const;
template void PackedArray::read(std::int64_t, std::span<std::uint32_t>) const;
template void PackedArray::read(std::int64_t, std::span<std::int32_t>) const;
template void PackedArray::read(std::int64_t, std::span<std::int64_t>) const;
template std::vector<std::uint8_t> PackedArray::read(std::int64_t, std::int64_t) const;
template std::vector<std::uint16_t> PackedArray::read(std::int64_t, std::int64_t) const;
template std::vector<std::uint32_t> PackedArray::read(std::int64_t, std::int64_t) const;
template std::vector<std::int32_t> PackedArray::read(std::int64_t, std::int64_t) const;
template std::vector<std::int64_t> PackedArray::read(std::int64_t, std::int64_t) const;

namespace {

/// Where a dataset's manifest is, or would be.
FoundManifest dataset_place(const std::string& path) {
  if (std::optional<FoundManifest> found = find_manifest(path)) return *found;
  const std::filesystem::path given(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(given, error);
  if (!std::filesystem::exists(status)) throw Error(ErrorCode::io, "there is no such file or folder", path);
  std::string folder = path;
  if (!std::filesystem::is_directory(status)) {
    if (given.filename() != kManifestName) throw Error(ErrorCode::bad_data, "not the folder of a packed dataset", path);
    folder = given.has_parent_path() ? given.parent_path().string() : ".";
  }
  const std::string manifest = fmt::format("{}/{}", folder, kManifestName);
  if (!std::filesystem::exists(manifest, error)) {
    throw Error(ErrorCode::bad_data, fmt::format("not a packed dataset: there is no {} in it", kManifestName), folder);
  }
  return {.path = manifest, .folder = folder, .output = folder, .format = {}};
}

}  // namespace

PackedDataset::PackedDataset(const std::string& path) {
  const FoundManifest place = dataset_place(path);
  folder_ = place.folder;
  trainer_folder_ = place.output;
  manifest_ = manifest_from_json(read_small_file(place.path), place.path);
}

namespace {

/// The file of `stem` in the manifest's list; null when there is none.
const ManifestFile* find_array(const ManifestShard& shard, std::string_view stem) {
  const auto found = std::find_if(shard.files.begin(), shard.files.end(), [&](const ManifestFile& file) {
    std::string_view name = file.name;
    if (!name.starts_with(stem)) return false;
    name.remove_prefix(stem.size());
    return name == ".npy" || name == ".npy.zst";
  });
  return found == shard.files.end() ? nullptr : &*found;
}

}  // namespace

bool PackedDataset::has_array(const ManifestShard& shard, std::string_view stem) const {
  return find_array(shard, stem) != nullptr;
}

PackedArray PackedDataset::open_array(const ManifestShard& shard, std::string_view stem) const {
  const ManifestFile* const file = find_array(shard, stem);
  if (file == nullptr) {
    throw Error(ErrorCode::bad_data, fmt::format("the manifest lists no {}.npy for it", stem), folder_ + "/" + shard.folder);
  }
  return PackedArray(file_path(shard.folder, file->name));
}

std::string PackedDataset::file_path(std::string_view shard_folder, std::string_view name) const {
  const std::string path =
      shard_folder.empty() ? fmt::format("{}/{}", folder_, name) : fmt::format("{}/{}/{}", folder_, shard_folder, name);
  return path_inside(folder_, path, is_plain_name(name) && (shard_folder.empty() || is_plain_name(shard_folder)));
}

std::string PackedDataset::trainer_path(std::string_view name) const {
  return path_inside(trainer_folder_, fmt::format("{}/{}", trainer_folder_, name), is_plain_name(name));
}

/// `path`, if it leads to what is in `folder`. `plain`: its names are.
std::string PackedDataset::path_inside(const std::string& folder, const std::string& path, bool plain) const {
  bool inside = plain;
  if (inside) {
    std::error_code error;
    const std::filesystem::path real_folder = std::filesystem::canonical(folder, error);
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) throw Error(ErrorCode::io, fmt::format("cannot open: {}", error.message()), path);
    inside = std::mismatch(real_folder.begin(), real_folder.end(), real.begin(), real.end()).first == real_folder.end();
  }
  if (!inside) throw Error(ErrorCode::bad_data, "the name leads out of the dataset's folder", path);
  return path;
}

std::vector<std::int64_t> read_offsets(const PackedArray& array, std::int64_t things, std::int64_t last) {
  std::vector<std::int64_t> offsets = array.read_all<std::int64_t>();
  const bool sound = static_cast<std::int64_t>(offsets.size()) == Int128{things} + 1 && offsets.front() == 0 &&
                     offsets.back() == last && std::is_sorted(offsets.begin(), offsets.end());
  if (!sound) throw Error(ErrorCode::bad_data, "the offsets do not fit the manifest; shardpack verify tells more", array.path());
  return offsets;
}

RowLengths read_row_lengths(const PackedDataset& dataset, const ManifestShard& shard) {
  const PackedArray lengths = dataset.open_array(shard, "seq_lengths");
  RowLengths rows{read_offsets(dataset.open_array(shard, "row_offsets"), shard.rows, shard.segments),
                  lengths.read_all<std::int32_t>()};
  if (static_cast<std::int64_t>(rows.tokens.size()) != shard.segments)
    throw Error(ErrorCode::bad_data, "not a length for each segment; shardpack verify tells more", lengths.path());
  const Preset* const preset = try_preset(dataset.manifest().preset);
  const std::int64_t unslotted = preset == nullptr ? 0 : unslotted_tokens(preset->slot_rule);
  for (std::size_t row = 0; row + 1 < rows.begin.size(); ++row) {
    std::int64_t left = dataset.manifest().row_tokens;
    for (auto s = static_cast<std::size_t>(rows.begin[row]); s < static_cast<std::size_t>(rows.begin[row + 1]); ++s) {
      const std::int64_t slots = rows.tokens[s] - unslotted;
      if (rows.tokens[s] < 0 || slots > left) {
        throw Error(ErrorCode::bad_data, "its segments do not fit the row; shardpack verify tells more", lengths.path(),
                    fmt::format("row {}", with_commas(static_cast<std::int64_t>(row))));
      }
      left -= std::max<std::int64_t>(slots, 0);
    }
  }
  return rows;
}

}  // namespace shardpack
