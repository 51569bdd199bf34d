// The manifest's bytes, and what its reader refuses.
#include "shardpack/manifest.h"

#include <array>
#include <string>
#include <vector>

#include "base/hash.h"
#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

const std::string kHash = "0123456789abcdef0123456789abcdef";

Manifest sample() {
  Manifest manifest;
  manifest.tool_version = "0.1.0";
  manifest.row_tokens = 100;
  manifest.rows = 13;
  manifest.source_sequences = 22;
  manifest.source_tokens = 990;
  manifest.sequences = 20;
  manifest.segments = 21;
  manifest.tokens = 950;
  manifest.padding_tokens = 50;
  manifest.max_segments_in_row = 4;
  manifest.plan = {"bfd", "l1", 0, 1, 10, 9};
  manifest.id_type = IdType::u32;
  manifest.id_min = 3;
  manifest.id_max = 70'000;
  manifest.eos_id = 2;
  manifest.columns = {{"labels", ColumnKind::token, ValueType::i32, Alignment::minus100},
                      {"score", ColumnKind::sequence, ValueType::f64, Alignment::plain}};
  manifest.not_carried = {"text", "url"};
  manifest.loss_column = "labels";
  manifest.source_loss_tokens = 600;
  manifest.loss_tokens = 570;
  manifest.options = {{"seed", "18446744073709551615"}, {"overlong", "\"truncate\""}, {"limit", "null"}, {"derived", "true"}};
  manifest.sources = {{"train/a.bin", "megatron", 2000, 22, 990, kHash}};
  manifest.source_fingerprint = {1, 2};
  manifest.packed_fingerprint = {3, 4};
  manifest.removed[2] = {1, 40, 30};
  manifest.added_eos = 5;
  manifest.repeated_rows = 2;
  manifest.repeated_sequences = 3;
  manifest.repeated_tokens = 190;
  manifest.fill_rows = 1;
  manifest.partitions = {{SequenceRanges(0, 22), 10, 9, "plan-00000.json", {"shard-00000-00000"}, {}}};
  manifest.shards = {
      {"shard-00000-00000", 13, 950, 21, Fingerprint{5, 6}, {{"input_ids.npy", 5328, kHash}, {"seq_lengths.npy", 212, kHash}}}};
  manifest.files = {{"plan-00000.json", 700, kHash}};
  return manifest;
}

/// `text` with its first `from` turned into `to` and the checksum made right again.
std::string forge(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  text.resize(text.rfind("  \"checksum\""));
  return text + "  \"checksum\": \"" + hash_hex(text) + "\"\n}\n";
}

std::string refusal(const std::string& text) {
  try {
    manifest_from_json(text, "packed/manifest.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(error.path() == "packed/manifest.json");
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a manifest's bytes are these") {
  const std::string before =
      R"({
  "format": "shardpack-packed",
  "format_version": 1,
  "tool_version": "0.1.0",
  "solver": null,
  "preset": "native",
  "container": "npy",
  "row_tokens": 100,
  "rows": 13,
  "source_sequences": 22,
  "source_tokens": 990,
  "sequences": 20,
  "segments": 21,
  "tokens": 950,
  "padding_tokens": 50,
  "efficiency": 0.950000,
  "packing_factor": 2.0000,
  "max_segments_in_row": 4,
  "plan": { "packer": "bfd", "max_segments": 0, "segment_multiple": 1, "rows": 10, "bound": 9, "bound_kind": "l1", "gap": 1 },
  "ids": { "dtype": "u32", "min": 3, "max": 70000, "pad_id": 0, "eos_id": 2, "bos_id": null },
  "position_start": 0,
  "derived": true,
  "compress": "",
  "columns": [
    { "name": "labels", "dtype": "i32", "alignment": "minus100", "per": "token" },
    { "name": "score", "dtype": "f64", "alignment": "plain", "per": "sequence" }
  ],
  "not_carried": ["text", "url"],
  "loss": { "column": "labels", "source_tokens": 600, "tokens": 570 },
  "options": {
    "seed": 18446744073709551615,
    "overlong": "truncate",
    "limit": null,
    "derived": true
  },
  "sources": [
    { "name": "train/a.bin", "format": "megatron", "bytes": 2000, "sequences": 22, "tokens": 990, "xxh3_128": "0123456789abcdef0123456789abcdef" }
  ],
  "fingerprint": {
    "source": "00000000000000020000000000000001",
    "packed": "00000000000000040000000000000003",
    "removed": "00000000000000000000000000000000"
  },
  "removed": {
    "empty": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "null": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "truncated": { "sequences": 1, "tokens": 40, "loss_tokens": 30 },
    "dropped": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "short": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "unlabeled": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "tail": { "sequences": 0, "tokens": 0, "loss_tokens": 0 },
    "padding": { "sequences": 0, "tokens": 0, "loss_tokens": 0 }
  },
  "added": { "eos": 5, "bos": 0 },
  "hidden_labels": 0,
  "repeated": { "rows": 2, "sequences": 3, "tokens": 190 },
  "fill_rows": 1,
  "partitions": [
    { "first_sequence": 0, "sequences": 22, "rows": 10, "bound": 9, "plan": "plan-00000.json", "shards": ["shard-00000-00000"] }
  ],
  "shards": [
    {
      "folder": "shard-00000-00000",
      "rows": 13,
      "tokens": 950,
      "segments": 21,
      "fingerprint": "00000000000000060000000000000005",
      "files": [
        { "name": "input_ids.npy", "bytes": 5328, "xxh3_128": "0123456789abcdef0123456789abcdef" },
        { "name": "seq_lengths.npy", "bytes": 212, "xxh3_128": "0123456789abcdef0123456789abcdef" }
      ]
    }
  ],
  "files": [
    { "name": "plan-00000.json", "bytes": 700, "xxh3_128": "0123456789abcdef0123456789abcdef" }
  ],
)";
  CHECK(to_json(sample()) == before + "  \"checksum\": \"" + hash_hex(before) + "\"\n}\n");
}

TEST_CASE("a manifest of rows for a trainer lists the trainer's files, and names none of them twice") {
  Manifest manifest = sample();
  manifest.preset = "hf";
  manifest.container = "arrow";
  manifest.hidden_labels = 7;
  manifest.shards[0].hidden_labels = 7;
  manifest.shards[0].trainer_files = {{"data-00000-of-00001.arrow", 900, "0123456789abcdef0123456789abcdef"}};
  manifest.trainer_files = {{"state.json", 90, "0123456789abcdef0123456789abcdef"}};
  const std::string text = to_json(manifest);
  const Manifest again = manifest_from_json(text, "manifest.json");
  CHECK(to_json(again) == text);
  CHECK(again.preset == "hf");
  CHECK(again.hidden_labels == 7);
  REQUIRE(again.shards[0].trainer_files.size() == 1);
  CHECK(again.shards[0].trainer_files[0].name == "data-00000-of-00001.arrow");
  REQUIRE(again.trainer_files.size() == 1);
  CHECK(again.trainer_files[0].bytes == 90);
  CHECK(refusal(forge(text, "\"state.json\"", "\"data-00000-of-00001.arrow\"")).find("listed twice") != std::string::npos);
  CHECK(refusal(forge(text, "\"state.json\"", "\"../state.json\"")).find("expected the name") != std::string::npos);
}

TEST_CASE("a manifest is read back whole, and so is one of nothing") {
  for (const Manifest& manifest : {sample(), [] {
                                     Manifest empty;
                                     empty.row_tokens = 8;
                                     empty.solver = "Clp 1.17.6";
                                     empty.id_max = -1;
                                     return empty;
                                   }()}) {
    const std::string text = to_json(manifest);
    const Manifest read = manifest_from_json(text, "m");
    CHECK(to_json(read) == text);
    CHECK(read.options == manifest.options);
    CHECK(read.efficiency() == manifest.efficiency());
    CHECK(read.planned_rows() == manifest.planned_rows());
    CHECK(read.eos_id == manifest.eos_id);
  }
  CHECK(Manifest{}.efficiency() == 1);
  CHECK(Manifest{}.packing_factor() == 0);
}

TEST_CASE("any changed, lost or additional byte is refused") {
  const std::string text = to_json(sample());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int bit : {0, 1, 5, 7}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      REQUIRE(refusal(damaged) != "none");
    }
  }
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) REQUIRE(refusal(text.substr(0, bytes)) != "none");
  CHECK(refusal(text + "\n") != "none");
  CHECK(refusal(" " + text) != "none");
}

TEST_CASE("what a right checksum does not make right is named by its key") {
  const std::string text = to_json(sample());
  CHECK(refusal(text) == "none");
  CHECK(refusal(forge(text, "\"rows\": 13", "\"rows\": 13")) == "none");
  const std::vector<std::array<std::string, 3>> cases{
      {"\"shardpack-packed\"", "\"shardpack-plan\"", "format: expected \"shardpack-packed\""},
      {"\"format_version\": 1", "\"format_version\": 2", "format_version: this version of shardpack reads format version 1 only"},
      {"\"row_tokens\": 100", "\"row_tokens\": 0", "row_tokens: expected a whole number from 1"},
      {"\"row_tokens\": 100", "\"row_tokens\": 2147483648", "row_tokens: "},
      {"\"rows\": 13", "\"rows\": -1", "rows: expected a whole number from 0"},
      {"\"rows\": 13", "\"rows\": 1.5", "rows: expected a whole number"},
      {"\"rows\": 13", "\"lines\": 13", "the key 'rows' is missing"},
      {"\"efficiency\": 0.950000", "\"efficiency\": 0.990000", "efficiency: expected 0.950000"},
      {"\"packing_factor\": 2.0000", "\"packing_factor\": 2.1", "packing_factor: expected 2.0000"},
      {"\"gap\": 1", "\"gap\": 0", "plan.gap: expected 1"},
      {"\"u32\"", "\"i64\"", "ids.dtype: expected u16 or u32, found 'i64'"},
      {"\"max\": 70000", "\"max\": 4294967296", "ids.max: "},
      {"\"eos_id\": 2", "\"eos_id\": -2", "ids.eos_id: "},
      {"\"dtype\": \"i32\"", "\"dtype\": \"u16\"", "columns[0].dtype: expected one of u8, i32, i64, f32, f64, found 'u16'"},
      {"\"name\": \"score\"", "\"name\": \"labels\"", "columns[1].name: 'labels' is listed twice"},
      {"\"name\": \"score\"", "\"name\": \"../x\"", "columns[1].name: "},
      {"\"minus100\"", "\"minus99\"", "columns[0].alignment: expected one of plain, minus100, target-shifted"},
      {"\"per\": \"token\"", "\"per\": \"row\"", "columns[0].per: expected one of token, sequence, list, text"},
      {"\"column\": \"labels\"", "\"column\": \"score\"", "loss.column: 'score' is no column with a value for each token"},
      {"\"hidden_labels\": 0", "\"hidden_labels\": 1", "hidden_labels: expected 0"},
      {"\"train/a.bin\"", "\"/etc/passwd\"", "sources[0].name: expected a relative path"},
      {"\"train/a.bin\"", "\"train/../../a.bin\"", "sources[0].name: "},
      {"\"00000000000000020000000000000001\"", "\"0000000000000002000000000000000\"", "fingerprint.source: expected 32"},
      {"\"00000000000000020000000000000001\"", "\"0000000000000002000000000000000G\"", "fingerprint.source: expected 32"},
      {"\"sequences\": 1, \"tokens\": 40", "\"sequences\": 1", "removed.truncated: the key 'tokens' is missing"},
      {"\"fill_rows\": 1", "\"fill_rows\": 12", "fill_rows: expected a whole number from 0 to 11"},
      {"\"repeated\": { \"rows\": 2", "\"repeated\": { \"rows\": 14", "repeated.rows: expected a whole number from 0 to 13"},
      {"\"folder\": \"shard-00000-00000\"", "\"folder\": \"../shard\"", "shards[0].folder: expected the name"},
      {"\"folder\": \"shard-00000-00000\"", "\"folder\": \"plan-00000.json\"",
       "files[0].name: 'plan-00000.json' is listed twice"},
      {"\"name\": \"input_ids.npy\"", "\"name\": \"a/input_ids.npy\"", "shards[0].files[0].name: "},
      {"\"name\": \"input_ids.npy\"", "\"name\": \"..\"", "shards[0].files[0].name: "},
      {"\"name\": \"input_ids.npy\"", "\"name\": \"seq_lengths.npy\"",
       "shards[0].files[1].name: 'seq_lengths.npy' is listed twice"},
      {"\"bytes\": 5328", "\"bytes\": -1", "shards[0].files[0].bytes: "},
      {"\"bytes\": 5328", "\"bytes\": \"5328\"", "shards[0].files[0].bytes: expected a whole number"},
      {"\"bytes\": 5328", "\"bytes\": 9223372036854775807", "its counts add up to more than 2^63"},
  };
  for (const auto& [from, to, says] : cases) {
    const std::string found = refusal(forge(text, from, to));
    INFO(found);
    CHECK(found.find(says) != std::string::npos);
  }
}
