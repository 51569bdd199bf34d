// Rows that are balanced after they are planned: still no wider than what is made for them.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "io/arrow_support.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

/// JSON lines of these lengths, packed for a trainer of which a row of k segments has k tokens more than slots. Verified against
/// them. \return the most segments of a row, as the manifest has them
std::int64_t most_segments(const std::vector<int>& lengths, Length row_tokens, std::int32_t limit, const std::string& packer,
                           bool balance) {
  TempFolder folder;
  std::string lines;
  for (const int length : lengths) {
    lines += "{\"input_ids\":[7";
    for (int i = 1; i < length; ++i) lines += ",7";
    lines += "]}\n";
  }
  const std::vector<std::string> inputs{folder.write("in.jsonl", lines)};
  PackOptions options;
  options.preset = "bridge";
  options.read.eos_id = 1;
  options.packer = packer;
  options.policy.row_tokens = options.packing.row_tokens = row_tokens;
  options.packing.max_segments = limit;
  options.balance_attention = balance;
  ThreadPool pool(1);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  const PackResult packed = pack(inputs, folder.path("out"), options, context);
  CHECK(verify(folder.path("out"), {.against = inputs}, context).issues.empty());
  return packed.manifest.max_segments_in_row;
}

}  // namespace

TEST_CASE("balancing gives no row more segments than the plan has room for, whatever -K allows") {
  if (!has_arrow()) return;
  // Two rows, 25 + 9 and 13 + 13 tokens in 32 and 24 slots; an exchange would give the second one three segments.
  CHECK(most_segments({25, 9, 13, 13}, 32, 3, "bfd", false) == 2);
  CHECK(most_segments({25, 9, 13, 13}, 32, 3, "bfd", true) == 2);
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<int> lengths(3 + random() % 50);
    for (int& length : lengths) length = static_cast<int>(random() % 2 == 0 ? 2 + random() % 3 : 2 + random() % 31);
    const auto limit = static_cast<std::int32_t>(2 + random() % 10);
    const std::string packer = round % 2 == 0 ? "bfd" : "auto";
    CAPTURE(round, limit);
    CHECK(most_segments(lengths, 32, limit, packer, true) <= most_segments(lengths, 32, limit, packer, false));
  }
}

}  // namespace shardpack
