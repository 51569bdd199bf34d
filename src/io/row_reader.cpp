#include "io/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
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
  NativeRows(const OutputRules& rules, PackedArray ids) : rules_(rules), ids_(std::move(ids)) {}

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

class MegatronRows final : public RowReader {
 public:
  MegatronRows(const OutputRules& rules, std::int64_t rows, const std::string& path)
      : rules_(rules),
        rows_(rows),
        row_bytes_(std::int64_t{rules.row_tokens} * info(rules.columns.front().type).bytes),
        bin_(path, File::Mode::read) {
    if (bin_.size() != rows_ * row_bytes_) {
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
  return rules;
}

std::unique_ptr<RowReader> open_rows(const PackedDataset& dataset, const ManifestShard& shard, const OutputRules& rules) {
  check_container(rules.container);
  if (rules.native()) return std::make_unique<NativeRows>(rules, dataset.open_array(shard, "input_ids"));
  if (shard.trainer_files.empty()) {
    throw Error(ErrorCode::bad_data, "the manifest lists no file with its rows", dataset.folder() + "/" + shard.folder);
  }
  const std::string path = dataset.trainer_path(shard.trainer_files.front().name);  // of Megatron's the .bin
  if (rules.container == Container::arrow) return open_arrow_rows(rules, path);
  if (rules.container == Container::parquet) return open_parquet_rows(rules, path);
  return std::make_unique<MegatronRows>(rules, shard.rows, path);
}

}  // namespace shardpack
