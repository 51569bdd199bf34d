#include "io/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "io/file.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Rows of one length, one after the other: `bytes` has `row_tokens` ids of each.
ListValues rows_of_ids(std::int64_t rows, Length row_tokens, ByteBuffer bytes) {
  ListValues list{{}, std::move(bytes)};
  for (std::int64_t row = 0; row <= rows; ++row) list.begin.push_back(static_cast<std::int32_t>(row * row_tokens));
  return list;
}

class NativeRows final : public RowReader {
 public:
  NativeRows(const OutputRules& rules, IdType id_type, PackedArray ids) : rules_(rules), ids_(std::move(ids)) {
    if (ids_.row_elements() != rules.row_tokens || info(ids_.type()).name != info(id_type).name)
      throw Error(ErrorCode::bad_data, "not of the shape and type that the manifest says; shardpack verify tells more",
                  ids_.path());
  }

  std::int64_t rows() const override { return ids_.rows(); }

  std::vector<ListValues> read(std::int64_t first, std::int64_t count) const override {
    check_row_range(first, count, rows(), ids_.path());
    ByteBuffer bytes(static_cast<std::size_t>(count * ids_.row_elements() * info(ids_.type()).bytes));
    ids_.read_bytes(first, bytes);
    return {rows_of_ids(count, rules_.row_tokens, std::move(bytes))};
  }

 private:
  const OutputRules& rules_;
  const PackedArray ids_;
};

/// NumPy arrays, one a column.
class NpyRows final : public RowReader {
 public:
  NpyRows(const OutputRules& rules, std::vector<PackedArray> arrays) : arrays_(std::move(arrays)) {
    for (std::size_t c = 0; c < arrays_.size(); ++c) {
      const bool fits = arrays_[c].type() == rules.columns[c].type && arrays_[c].rows() == arrays_.front().rows() &&
                        arrays_[c].shape().size() == 2 && arrays_[c].row_elements() == rules.width(rules.columns[c].source);
      if (!fits)
        throw Error(ErrorCode::bad_data, "not of the shape and type that its rows have by the manifest", arrays_[c].path());
    }
  }

  std::int64_t rows() const override { return arrays_.front().rows(); }

  std::vector<ListValues> read(std::int64_t first, std::int64_t count) const override {
    check_row_range(first, count, rows(), arrays_.front().path());
    std::vector<ListValues> columns;
    for (const PackedArray& array : arrays_) {
      ByteBuffer bytes(static_cast<std::size_t>(count * array.row_elements() * info(array.type()).bytes));
      array.read_bytes(first, bytes);
      columns.push_back(rows_of_ids(count, static_cast<Length>(array.row_elements()), std::move(bytes)));
    }
    return columns;
  }

 private:
  const std::vector<PackedArray> arrays_;
};

/// An index of Megatron's in which every row is one sequence and one document, the rows back to back.
class MegatronIndex {
 public:
  /// \throws Error{bad_data} for an index that says anything else of rows of this length and type
  MegatronIndex(const std::string& path, Length row_tokens, ValueType type)
      : file_(path, File::Mode::read), row_tokens_(row_tokens), row_bytes_(std::int64_t{row_tokens} * info(type).bytes) {
    constexpr std::uint8_t kCodeOfI32 = 4, kCodeOfU16 = 8;
    constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
    constexpr std::int64_t kRowBytes = 4 + 8 + 8;
    if (file_.size() < kHeadBytes + 8) fail("too short for an index");
    expect<char>("magic", 0, 9, [&](std::int64_t i) { return kMagic[static_cast<std::size_t>(i)]; });
    expect<std::uint64_t>("version", 9, 1, [](std::int64_t) { return 1; });
    expect<std::uint8_t>("dtype", 17, 1, [&](std::int64_t) { return type == ValueType::u16 ? kCodeOfU16 : kCodeOfI32; });
    rows_ = read<std::int64_t>(18, 1).front();
    if (rows_ != (file_.size() - kHeadBytes - 8) / kRowBytes || file_.size() != kHeadBytes + 8 + rows_ * kRowBytes)
      fail(fmt::format("{} bytes and {} sequences do not fit together", with_commas(file_.size()), with_commas(rows_)));
    expect<std::int64_t>("documents", 26, 1, [this](std::int64_t) { return rows_ + 1; });
    expect<std::int32_t>("length", kHeadBytes, rows_, [this](std::int64_t) { return row_tokens_; });
    expect<std::int64_t>("pointer", kHeadBytes + 4 * rows_, rows_, [this](std::int64_t row) { return row * row_bytes_; });
    expect<std::int64_t>("document", kHeadBytes + 12 * rows_, rows_ + 1, [](std::int64_t row) { return row; });
  }

  std::int64_t rows() const { return rows_; }

 private:
  static constexpr std::int64_t kHeadBytes = 34;

  [[noreturn]] void fail(const std::string& message, const std::string& place = "") const {
    throw Error(ErrorCode::bad_data, message, file_.shown(), place);
  }

  template <class T>
  std::vector<T> read(std::int64_t at, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    file_.read_at(at, std::as_writable_bytes(std::span(values)));
    return values;
  }

  template <class T, class Expected>
  void expect(std::string_view what, std::int64_t at, std::int64_t count, Expected expected) const {
    constexpr std::int64_t kPiece = 1 << 16;
    for (std::int64_t first = 0; first < count; first += kPiece) {
      const std::vector<T> values = read<T>(at + first * static_cast<std::int64_t>(sizeof(T)), std::min(kPiece, count - first));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t number = first + static_cast<std::int64_t>(i);
        if (values[i] == static_cast<T>(expected(number))) continue;
        fail(fmt::format("{} is {}, expected {}", what, +values[i], +static_cast<T>(expected(number))),
             at >= kHeadBytes ? fmt::format("row {}", with_commas(number)) : "");
      }
    }
  }

  const File file_;
  const Length row_tokens_;
  const std::int64_t row_bytes_;
  std::int64_t rows_ = -1;
};

class MegatronRows final : public RowReader {
 public:
  /// \param path  of the .bin
  MegatronRows(const OutputRules& rules, const std::string& path, const std::string& idx_path)
      : rules_(rules),
        rows_(MegatronIndex(idx_path, rules.row_tokens, rules.columns.front().type).rows()),
        row_bytes_(std::int64_t{rules.row_tokens} * info(rules.columns.front().type).bytes),
        bin_(path, File::Mode::read) {
    if (bin_.size() / row_bytes_ != rows_ || bin_.size() % row_bytes_ != 0) {
      throw Error(
          ErrorCode::bad_data,
          fmt::format("{} bytes, expected {} rows of {}", with_commas(bin_.size()), with_commas(rows_), with_commas(row_bytes_)),
          path);
    }
  }

  std::int64_t rows() const override { return rows_; }

  std::vector<ListValues> read(std::int64_t first, std::int64_t count) const override {
    check_row_range(first, count, rows_, bin_.shown());
    ByteBuffer bytes(static_cast<std::size_t>(count * row_bytes_));
    bin_.read_at(first * row_bytes_, bytes);
    return {rows_of_ids(count, rules_.row_tokens, std::move(bytes))};
  }

 private:
  const OutputRules& rules_;
  const std::int64_t rows_, row_bytes_;
  const File bin_;
};

}  // namespace

void check_row_range(std::int64_t first, std::int64_t count, std::int64_t rows, const std::string& shown) {
  if (first >= 0 && count >= 0 && first <= rows && count <= rows - first) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("rows {} to {} are asked for, and {} are there", with_commas(first), with_commas(first + count),
                          with_commas(rows)),
              shown);
}

OutputRules rules_of(const Manifest& manifest, const std::string& shown) {
  const Preset* const preset = try_preset(manifest.preset);
  const std::span<const ContainerInfo> all = containers();
  const auto container =
      std::find_if(all.begin(), all.end(), [&](const ContainerInfo& known) { return known.name == manifest.container; });
  const bool fits =
      preset != nullptr && container != all.end() &&
      std::find(preset->containers.begin(), preset->containers.end(), container->container) != preset->containers.end();
  if (!fits) {
    throw Error(ErrorCode::bad_data,
                fmt::format("preset '{}' as '{}', which this version does not know", printable(manifest.preset),
                            printable(manifest.container)),
                shown);
  }
  OutputRules rules;
  try {
    rules = output_rules(*preset, container->container, manifest.columns, manifest.id_type);
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_data, error.message(), shown);
  }
  rules.row_tokens = manifest.row_tokens;
  rules.position_start = static_cast<std::uint32_t>(manifest.position_start);
  rules.eos_id = static_cast<std::uint32_t>(manifest.eos_id.value_or(0));
  rules.entry_width = manifest.entry_width;
  rules.segment_width = manifest.segment_width;
  return rules;
}

namespace {

/// The array of each column: PREFIX.COLUMN.npy.
std::vector<PackedArray> open_arrays(const PackedDataset& dataset, const ManifestShard& shard, const OutputRules& rules) {
  std::vector<PackedArray> arrays;
  for (const OutputColumn& column : rules.columns) {
    const std::string suffix = fmt::format(".{}.npy", column.name);
    const auto file = std::find_if(shard.trainer_files.begin(), shard.trainer_files.end(),
                                   [&](const ManifestFile& listed) { return listed.name.ends_with(suffix); });
    if (file == shard.trainer_files.end())
      throw Error(ErrorCode::bad_data, fmt::format("the manifest lists no file with its {}", column.name),
                  dataset.folder() + "/" + shard.folder);
    arrays.emplace_back(dataset.trainer_path(file->name));
  }
  return arrays;
}

}  // namespace

std::unique_ptr<RowReader> open_rows(const PackedDataset& dataset, const ManifestShard& shard, const OutputRules& rules) {
  check_container(rules.container);
  if (rules.native())
    return std::make_unique<NativeRows>(rules, dataset.manifest().id_type, dataset.open_array(shard, "input_ids"));
  if (shard.trainer_files.empty()) {
    throw Error(ErrorCode::bad_data, "the manifest lists no file with its rows", dataset.folder() + "/" + shard.folder);
  }
  if (rules.container == Container::npy) return std::make_unique<NpyRows>(rules, open_arrays(dataset, shard, rules));
  const std::string path = dataset.trainer_path(shard.trainer_files.front().name);  // of Megatron's the .bin
  if (rules.container == Container::arrow) return open_arrow_rows(rules, path);
  if (rules.container == Container::parquet) return open_parquet_rows(rules, path);
  const auto idx =
      std::ranges::find_if(shard.trainer_files, [](const ManifestFile& file) { return file.name.ends_with(".idx"); });
  if (idx == shard.trainer_files.end()) throw Error(ErrorCode::bad_data, "the manifest lists no .idx for its rows", path);
  return std::make_unique<MegatronRows>(rules, path, dataset.trainer_path(idx->name));
}

}  // namespace shardpack
