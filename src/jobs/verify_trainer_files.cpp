#include "jobs/verify_trainer_files.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/hf_json.h"
#include "io/json.h"
#include "io/row_reader.h"
#include "jobs/verify_shard.h"

namespace shardpack {

namespace {

/// What packed_metadata.jsonl must say of rows like these. All lengths are in slots.
std::vector<std::pair<std::string_view, std::int64_t>> packed_metadata(const Manifest& manifest, const RowFacts& rows) {
  return {{"dataset_max_seqlen", rows.longest_segment},
          {"max_samples_per_bin", rows.max_segments},
          {"min_packed_seqlen", rows.rows > 0 ? rows.least_slots : 0},
          {"pack_size", manifest.row_tokens}};
}

class TrainerFilesCheck {
 public:
  TrainerFilesCheck(const PackedDataset& dataset, const OutputRules& output, const RowFacts* rows, IssueList& issues)
      : dataset_(dataset), manifest_(dataset.manifest()), output_(output), rows_(rows), issues_(issues) {}

  std::int64_t run(const std::set<std::string, std::less<>>& whole) {
    std::int64_t bytes = 0;
    bool all_there = true;
    for (const ManifestFile& file : manifest_.trainer_files) {
      all_there = all_there && whole.contains(file.name);
      if (!whole.contains(file.name)) continue;
      bytes += file.bytes;
      check(file);
    }
    if (!output_.native() && manifest_.shards.empty() && all_there) check_no_rows();
    return bytes;
  }

 private:
  void check(const ManifestFile& file) {
    const File content(dataset_.trainer_path(file.name), File::Mode::read, file.name);
    if (hash_file(content) != file.hash) issues_.add("checksum", file.name, std::string(kDamagedBytes));
    if (file.name == "dataset_info.json") compare_text(file, dataset_info_json(output_.columns));
    if (file.name == "state.json") compare_text(file, hf_state_json(data_files()));
    if (file.name == "packed_metadata.jsonl" && rows_ != nullptr) compare_metadata(file);
  }

  /// Files with rows in the order in which a trainer reads them.
  std::vector<ManifestFile> data_files() const {
    std::vector<ManifestFile> files;
    for (const ManifestFile& file : manifest_.trainer_files) {
      if (!file.name.ends_with(".json") && !file.name.ends_with(".jsonl")) files.push_back(file);
    }
    for (const ManifestShard& shard : manifest_.shards)
      files.insert(files.end(), shard.trainer_files.begin(), shard.trainer_files.end());
    return files;
  }

  void compare_text(const ManifestFile& file, const std::string& expected) {
    if (read_small_file(dataset_.trainer_path(file.name)) == expected) return;
    issues_.add("metadata", file.name, fmt::format("not what the columns and files of the dataset make it: {}", expected));
  }

  void compare_metadata(const ManifestFile& file) {
    try {
      const Json list = Json::parse(read_small_file(dataset_.trainer_path(file.name)), file.name);
      if (!list.is_array() || list.size() != 1) list.fail("expected a list of one object");
      for (const auto& [key, expected] : packed_metadata(manifest_, *rows_)) {
        const std::int64_t found = list.at(0).at(key).as_int();
        if (found != expected)
          issues_.add("metadata", file.name,
                      fmt::format("{} is {}, the rows give {}", key, with_commas(found), with_commas(expected)));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      issues_.add("metadata", file.name, without_path(error));
    }
  }

  /// Where there is no shard, a file without rows shows the columns.
  void check_no_rows() {
    ManifestShard shard;
    shard.trainer_files = data_files();
    const std::string name = shard.trainer_files.empty() ? std::string(kManifestName) : shard.trainer_files.front().name;
    try {
      if (const std::int64_t rows = open_rows(dataset_, shard, output_)->rows(); rows != 0)
        issues_.add("header", name, fmt::format("{} rows, expected none", with_commas(rows)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      issues_.add("header", name, without_path(error));
    }
  }

  const PackedDataset& dataset_;
  const Manifest& manifest_;
  const OutputRules& output_;
  const RowFacts* const rows_;
  IssueList& issues_;
};

}  // namespace

std::int64_t check_trainer_files(const PackedDataset& dataset, const OutputRules& output, const RowFacts* rows,
                                 const std::set<std::string, std::less<>>& whole, IssueList& issues) {
  return TrainerFilesCheck(dataset, output, rows, issues).run(whole);
}

}  // namespace shardpack
