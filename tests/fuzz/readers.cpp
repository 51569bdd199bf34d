// Any bytes as a shard of any format, with its sidecars: read whole or refused.
//
// Input: a byte that chooses the files, two bytes (little-endian) of length for each file but the last, then the files' bytes.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz.h"
#include "io/source.h"

using namespace shardpack;

namespace {

struct Files {
  std::vector<std::string> names;  ///< the data file first
  ReadOptions options;
};

// seeds.py names these by their place in the list.
const std::vector<Files>& kinds() {
  static const std::vector<Files> kKinds = [] {
    ReadOptions raw;
    raw.format = "raw";
    raw.dtype = IdType::u16;
    raw.eos_id = 7;
    ReadOptions with_columns;
    with_columns.columns.which = ColumnChoice::Which::all;
    with_columns.null_row = NullRow::drop;
    ReadOptions with_positions = with_columns;
    with_positions.positions_columns = {"at_places"};
    return std::vector<Files>{
        {{"x.bin", "x.idx"}, {}},
        {{"x.jsonl"}, {}},
        {{"x.jsonl.gz"}, {}},
        {{"x.jsonl.zst"}, {}},
        {{"x.npy"}, {}},
        {{"x.npy", "x.lengths.npy"}, {}},
        {{"x.npy", "x.offsets.npy"}, {}},
        {{"x.npy", "x.csv.gz"}, {}},
        {{"x.bin"}, {}},  // llm.c
        {{"x.ds", "x.ds.index", "x.ds.metadata"}, {}},
        {{"x.raw"}, raw},
        {{"x.jsonl"}, with_columns},
        {{"x.npy", "x.lengths.npy", "x.labels.npy"}, with_columns},
        {{"x.arrow"}, with_columns},
        {{"x.parquet"}, with_columns},
        {{"state.json", "data.arrow", "indices.arrow"}, with_columns},  // the folder of save_to_disk
        {{"x.npy", "x.attention_mask.npy", "x.at_places.npy", "x.at_values.npy"}, with_positions},
    };
  }();
  return kKinds;
}

/// All that a sequence has.
void read_sequence(const SequenceSource& source, SequenceId sequence, std::int64_t tokens) {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
  std::vector<TokenRequest> requests{{.sequence = sequence, .first_token = 0, .tokens = tokens, .destination = 0}};
  source.read_block(requests, IdType::u32, ids.data());
  for (std::size_t c = 0; c < source.columns().size(); ++c) {
    const Column& column = source.columns()[c];
    if (column.kind == ColumnKind::token) {
      std::vector<std::byte> values(static_cast<std::size_t>(tokens * info(column.type).bytes));
      source.read_tokens(c, requests, values.data());
    } else {
      source.read_values(c, {&sequence, 1});
    }
  }
}

/// Read every token of what can be opened, and every column's values.
void read_all(const std::string& path, const ReadOptions& options) {
  // Compressed files by several threads and with room for frames that are decoded ahead.
  const bool compressed = path.ends_with(".gz") || path.ends_with(".zst");
  FuzzRun run(compressed ? 2 : 1, std::int64_t{compressed ? 128 : 16} << 20);
  const ScannedSource scanned = open_source({path}, options, {}, run.context());
  const SequenceIndex& index = scanned.source->index();
  for (SequenceId sequence = 0; sequence < index.sequences(); ++sequence) {
    const std::int64_t tokens = index.place(sequence).tokens;
    if (tokens > 0) read_sequence(*scanned.source, sequence, tokens);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Files& files = kinds()[data[0] % kinds().size()];
  const auto parts = parts_of({reinterpret_cast<const char*>(data) + 1, size - 1}, files.names.size());
  if (parts.size() < files.names.size()) return 0;
  for (std::size_t i = 0; i < parts.size(); ++i) write_input(fuzz_folder() / files.names[i], parts[i]);
  const bool is_folder = files.names[0] == "state.json";
  only_blames_the_input([&] { read_all(is_folder ? fuzz_folder() : fuzz_folder() / files.names[0], files.options); });
  for (const std::string& name : files.names) std::filesystem::remove(fuzz_folder() / name);
  return 0;
}
