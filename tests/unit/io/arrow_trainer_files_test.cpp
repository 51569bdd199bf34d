// Shards as trainers read them, through the sinks and back: what a reader gets is what the conversion gave, however the rows came
// in blocks and are read in blocks.
#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "io/file.h"
#include "io/packed_dataset.h"
#include "io/row_reader.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/packed_sample.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

constexpr SampleOptions kOptions{};
constexpr std::int64_t kRows = 300;

SequenceIndex sample_index() {
  std::vector<SourceFile> files(4);
  for (SourceFile& file : files) {
    file.name = "a.jsonl";
    file.record_begin = {0, 1};
  }
  return SequenceIndex(files);
}

OutputRules sample_rules(const Preset& preset, Container container) {
  OutputRules rules = output_rules(preset, container, {}, IdType::u16);
  rules.row_tokens = kOptions.row_tokens;
  return rules;
}

/// Writes the sample and returns the shard's entry.
ManifestShard write_rows(const OutputRules& rules, const SampleRows& rows, const std::string& folder, std::size_t block_rows) {
  const SequenceIndex index = sample_index();
  std::filesystem::create_directory(folder + "/.shardpack");
  ManifestShard shard{.folder = "shard-00000-00000", .rows = kRows, .files = {}, .trainer_files = {}};
  const ShardPlan plan = sample_plan(folder + "/.shardpack/" + shard.folder, rows, kOptions);
  const auto sink = make_trainer_sink(plan, rules, index, folder, trainer_file_name(rules, 0, 1));
  for (std::size_t first = 0; first < rows.size(); first += block_rows) {
    const std::size_t count = std::min(block_rows, rows.size() - first);
    sink->write(sink->encode(sample_block(rows, first, count, plan.row_tokens, plan.id_type)));
  }
  shard.files = sink->finish();
  shard.trainer_files = sink->trainer_files();
  return shard;
}

bool same(const ListValues& found, const ListValues& all, std::size_t first, std::size_t width) {
  const std::int32_t base = all.begin[first];
  for (std::size_t r = 0; r < found.begin.size(); ++r) {
    if (found.begin[r] != all.begin[first + r] - base) return false;
  }
  return std::equal(found.values.begin(), found.values.end(),
                    all.values.begin() + static_cast<std::ptrdiff_t>(base * static_cast<std::int64_t>(width)));
}

std::unique_ptr<RowReader> open_file(const OutputRules& rules, const std::string& path) {
  return rules.container == Container::arrow ? open_arrow_rows(rules, path) : open_parquet_rows(rules, path);
}

TEST_CASE("every preset's Arrow and Parquet files give back what was put in") {
  const SampleRows rows = sample_rows(kRows, kOptions);
  for (const Preset& preset : presets()) {
    if (!preset.positions_column.empty()) continue;  // needs columns of the sources: tests/interop/bert_test.py
    for (const Container container : preset.containers) {
      if (container != Container::arrow && container != Container::parquet) continue;
      INFO(preset.name << " as " << info(container).name);
      const OutputRules rules = sample_rules(preset, container);
      RowBlock whole = sample_block(rows, 0, rows.size(), kOptions.row_tokens, IdType::u16);
      const TrainerRows expected = trainer_rows(whole, rules, {}, sample_index());
      const TempFolder folder;
      const ManifestShard shard = write_rows(rules, rows, folder.path(), 37);
      REQUIRE(shard.trainer_files.size() == 1);
      const std::string path = folder.path(shard.trainer_files[0].name);
      const File file(path, File::Mode::read);
      CHECK(file.size() == shard.trainer_files[0].bytes);
      CHECK(hash_file(file) == shard.trainer_files[0].hash);

      const auto reader = open_file(rules, path);
      REQUIRE(reader->rows() == kRows);
      bool all_same = true;
      for (std::int64_t first = 0; first < kRows; first += 53) {
        const std::int64_t count = std::min<std::int64_t>(53, kRows - first);
        const std::vector<ListValues> found = reader->read(first, count);
        for (std::size_t c = 0; c < found.size(); ++c) {
          all_same = all_same && same(found[c], expected.columns[c], static_cast<std::size_t>(first),
                                      static_cast<std::size_t>(info(rules.columns[c].type).bytes));
        }
      }
      CHECK(all_same);
      CHECK(reader->read(kRows, 0).front().values.empty());
      CHECK_THROWS_AS(reader->read(kRows - 1, 2), Error);
    }
  }
}

TEST_CASE("files of another preset are refused, and so are damaged ones") {
  const SampleRows rows = sample_rows(kRows, kOptions);
  for (const Container container : {Container::arrow, Container::parquet}) {
    INFO(info(container).name);
    const OutputRules hf = sample_rules(find_preset("hf"), container), trl = sample_rules(find_preset("trl"), container);
    const TempFolder folder;
    const std::string path = folder.path(write_rows(hf, rows, folder.path(), 100).trainer_files[0].name);
    CHECK_THROWS_AS(open_file(trl, path), Error);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    CHECK_THROWS_AS(open_file(hf, path)->read(0, kRows), Error);
  }
}

}  // namespace
}  // namespace shardpack
