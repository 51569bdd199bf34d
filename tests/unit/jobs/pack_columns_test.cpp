// The same sequences with labels, a mask and a score in every format that holds them: equal packed bytes.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/progress.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

/// Sequences of 1 to 40 tokens, over-long ones among them, and what belongs to them.
struct Corpus {
  Corpus() {
    for (std::uint32_t i = 0; i < 90; ++i) {
      std::vector<std::uint32_t> ids;
      for (std::uint32_t t = 0; t < 1 + i * 7919 % 40; ++t) {
        ids.push_back(1 + (i * 31 + t * 17) % 5000);
        labels.push_back((i + t) % 3 == 0 ? -100 : static_cast<std::int32_t>(ids.back()));
        mask.push_back((i + t) % 3 == 0 ? 0 : 1);
      }
      sequences.push_back(ids);
      scores.push_back(0.25 * i - 3);
    }
  }
  std::int64_t tokens() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t count() const { return static_cast<std::int64_t>(sequences.size()); }

  std::string jsonl() const {
    const auto list = [](auto begin, auto end) {
      std::string text;
      for (auto at = begin; at != end; ++at) text += (text.empty() ? "" : ", ") + std::to_string(*at);
      return "[" + text + "]";
    };
    std::string lines;
    std::size_t at = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto begin = static_cast<std::ptrdiff_t>(at), end = begin + static_cast<std::ptrdiff_t>(sequences[i].size());
      lines += "{\"input_ids\": " + list(sequences[i].begin(), sequences[i].end()) +
               ", \"labels\": " + list(labels.begin() + begin, labels.begin() + end) +
               ", \"loss_mask\": " + list(mask.begin() + begin, mask.begin() + end) +
               ", \"score\": " + std::to_string(scores[i]) + "}\n";
      at += sequences[i].size();
    }
    return lines;
  }

  /// As files beside NAME, in types that differ from those of the others.
  void write_columns(const TempFolder& folder, const std::string& name, bool wide) const {
    if (wide) {
      folder.write(name + ".labels.npy", npy_file("<i8", {tokens()}, std::vector<std::int64_t>(labels.begin(), labels.end())));
      folder.write(name + ".loss_mask.npy", npy_file("<f4", {tokens()}, std::vector<float>(mask.begin(), mask.end())));
      folder.write(name + ".score.npy", npy_file("<f4", {count()}, std::vector<float>(scores.begin(), scores.end())));
    } else {
      folder.write(name + ".labels.npy", npy_file("<i4", {tokens()}, labels));
      folder.write(name + ".loss_mask.npy", npy_file("|b1", {tokens()}, mask));
      folder.write(name + ".score.npy", npy_file("<f8", {count()}, scores));
    }
  }
  void write_lengths(const TempFolder& folder, const std::string& name) const {
    std::vector<std::int32_t> lengths;
    for (const auto& sequence : sequences) lengths.push_back(static_cast<std::int32_t>(sequence.size()));
    folder.write(name + ".lengths.npy", npy_file("<i4", {count()}, lengths));
  }

  Sequences sequences;
  std::vector<std::int32_t> labels;
  std::vector<std::uint8_t> mask;
  std::vector<double> scores;
};

struct Packed {
  std::map<std::string, std::string> arrays;  // of all shards
  Manifest manifest;
};

Packed pack_all(const std::string& input, const std::string& out, ReadOptions read, std::int64_t shard_bytes = 8 << 10) {
  PackOptions options;
  options.read = std::move(read);
  options.policy.row_tokens = options.packing.row_tokens = 32;
  options.policy.overlong = Overlong::split;
  options.shard_bytes = shard_bytes;
  ThreadPool pool(2);
  NoProgress progress;
  NoDiagnostics quiet;
  Packed packed;
  packed.manifest =
      pack({input}, out, options, {.pool = pool, .stop = {}, .progress = progress, .diagnostics = quiet, .temp_dir = {}})
          .manifest;
  for (const auto& [name, bytes] : folder_bytes(out)) {
    if (name.ends_with(".npy")) packed.arrays[name] = bytes;
  }
  return packed;
}

TEST_CASE("shards are of one size but for a row") {
  const TempFolder folder;
  for (const std::int64_t rows : {1, 6, 7, 43, 145}) {
    std::string lines;
    for (std::int64_t row = 0; row < rows; ++row)
      lines += R"({"input_ids":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]})"
               "\n";
    constexpr std::int64_t kRowBytes = 32 * 6;
    const Packed packed = pack_all(folder.write("a.jsonl", lines), folder.path("out-" + std::to_string(rows)), {}, 6 * kRowBytes);
    REQUIRE(packed.manifest.rows == rows);
    CHECK(std::ssize(packed.manifest.shards) == (rows + 5) / 6);
    const auto [least, most] = std::ranges::minmax_element(packed.manifest.shards, {}, &ManifestShard::rows);
    CHECK(most->rows - least->rows <= 1);
  }
}

TEST_CASE("a preset does not leave out what it has a place for") {
  const TempFolder folder;
  const std::string lines = folder.write(
      "a.jsonl", R"({"input_ids":[1,2,3],"next_sentence_labels":[1],"masked_lm_positions":[0,2],"masked_lm_ids":[4,5]})"
                 "\n");
  PackOptions options;
  options.preset = "bert";
  options.policy.row_tokens = options.packing.row_tokens = 32;
  ThreadPool pool(1);
  NoProgress progress;
  NoDiagnostics quiet;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = quiet, .temp_dir = {}};
  try {
    pack({lines}, folder.path("out"), options, context);
    FAIL("next_sentence_labels is a list");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(error.message().find("next_sentence_labels is not one number for each sequence") != std::string::npos);
  }
}

TEST_CASE("labels, masks and scores give equal packed bytes in JSON lines and beside flat files") {
  const TempFolder folder;
  const Corpus corpus;
  const Packed expected = pack_all(folder.write("j/a.jsonl", corpus.jsonl()), folder.path("out-j"), {});
  REQUIRE(expected.arrays.contains("shard-00000-00001/score.npy"));
  CHECK(expected.manifest.loss_column == "labels");

  const std::string ids = ids_of<std::uint16_t>(corpus.sequences);
  corpus.write_lengths(folder, "n/a");
  corpus.write_columns(folder, "n/a", false);
  folder.write("n/a.npy", npy_file("<u2", {corpus.tokens()}, flat<std::uint16_t>(corpus.sequences)));
  corpus.write_columns(folder, "m/a", false);
  folder.write("m/a.idx", MegatronIndex(corpus.sequences).bytes());
  folder.write("m/a.bin", ids);
  corpus.write_lengths(folder, "r/a");
  corpus.write_columns(folder, "r/a", false);
  folder.write("r/a.tok", ids);
  for (const char* name : {"n", "m", "r"}) {
    INFO(name);
    ReadOptions read;
    if (name[0] == 'r') read.dtype = IdType::u16;
    const Packed found = pack_all(folder.path(name), folder.path(std::string("out-") + name), read);
    CHECK((found.arrays == expected.arrays));
    CHECK(found.manifest.source_fingerprint == expected.manifest.source_fingerprint);
    CHECK(found.manifest.loss_tokens == expected.manifest.loss_tokens);
    CHECK(found.manifest.not_carried.empty());
  }

  // Wider types, and a mask stored as fractions, which then is one.
  corpus.write_columns(folder, "n/a", true);
  const Packed wide = pack_all(folder.path("n"), folder.path("out-w"), {}, 1 << 20);
  const Packed one_shard = pack_all(folder.path("j"), folder.path("out-o"), {}, 1 << 20);
  CHECK(one_shard.arrays.size() == wide.arrays.size());
  for (const auto& [name, bytes] : one_shard.arrays) {
    if (!name.ends_with("loss_mask.npy")) CHECK((wide.arrays.at(name) == bytes));
  }
  CHECK(wide.manifest.columns[1].type == ValueType::f32);
}

TEST_CASE("an OLMo labels mask and datatrove's loss are the loss mask") {
  const TempFolder folder;
  const Corpus corpus;
  const std::string ids = ids_of<std::uint16_t>(corpus.sequences);
  std::string csv;
  std::vector<std::uint64_t> ends;
  for (const auto& sequence : corpus.sequences) {
    const std::uint64_t begin = ends.empty() ? 0 : ends.back();
    ends.push_back(begin + sequence.size());
    csv += std::to_string(begin) + "," + std::to_string(ends.back()) + "\n";
  }
  folder.write("o/token_ids_part_0000.npy", ids);
  folder.write("o/token_ids_part_0000.csv.gz", gzip_member(csv));
  folder.write("o/labels_mask_part_0000.npy", bytes_of(corpus.mask));
  folder.write("d/a.ds", ids);
  folder.write("d/a.ds.index", bytes_of(ends));
  folder.write("d/a.ds.loss", bytes_of(corpus.mask));
  ReadOptions only_mask;
  only_mask.columns = {.which = ColumnChoice::Which::named, .names = {{"loss_mask", {}, {}}}};
  const Packed expected = pack_all(folder.write("j/a.jsonl", corpus.jsonl()), folder.path("out-j"), only_mask);
  for (const char* name : {"o", "d"}) {
    const Packed found = pack_all(folder.path(name), folder.path(std::string("out-") + name), {});
    CHECK((found.arrays == expected.arrays));
    CHECK(found.manifest.loss_tokens == expected.manifest.loss_tokens);
    CHECK(found.manifest.loss_column == "loss_mask");
  }
}

}  // namespace
}  // namespace shardpack
