// A partition that is prepared while the one before is written is the same partition: in every order and with every tail the
// bytes are those of one thread, which prepares none ahead, and of a run under a limit of memory, which does not either.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

/// Sequences of two groups in five partitions or more, with over-long ones.
struct Corpus {
  explicit Corpus(bool grouped) {
    std::string lines;
    for (std::uint32_t i = 0; i < 300; ++i) {
      std::string ids;
      for (std::uint32_t t = 0; t < 1 + i * 7919 % 90; ++t) ids += (t > 0 ? "," : "") + std::to_string(1 + (i * 31 + t) % 5000);
      lines += "{\"input_ids\":[" + ids + "],\"topic\":" + std::to_string(i % 2) + "}\n";
    }
    inputs = {folder.write("in.jsonl", lines)};
    if (grouped) options.read.group_column = "topic";
    options.policy.row_tokens = options.packing.row_tokens = 64;
    options.policy.overlong = Overlong::split;
    options.policy.split_min_tokens = 5;
    options.shard_bytes = 8 << 10;
    options.partition_tokens = 2500;
    options.rows_multiple = 7;
    options.shape = {2, 2, 1};
  }

  PackResult pack(const std::string& name, int threads, std::int64_t memory_limit = 0) {
    ThreadPool pool(threads);
    NoProgress progress;
    RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
    context.memory_limit = context.memory_bytes = memory_limit;
    return shardpack::pack(inputs, folder.path(name), options, context);
  }
  std::map<std::string, std::string> bytes(const std::string& name) const { return folder_bytes(folder.path(name)); }

  TempFolder folder;
  std::vector<std::string> inputs;
  PackOptions options;
  KeptDiagnostics diagnostics;
};

TEST_CASE("partitions that are prepared ahead are those that are not") {
  Corpus corpus(GENERATE(false, true));
  const auto order = GENERATE(RowOrder::shuffled, RowOrder::windowed, RowOrder::by_strategy, RowOrder::input, RowOrder::balanced);
  const Tail tail = GENERATE(Tail::repeat, Tail::fill, Tail::drop);
  corpus.options.order = order;
  corpus.options.tail = tail;
  corpus.options.balance_attention = GENERATE(false, true);
  INFO("order " << static_cast<int>(order) << ", tail " << static_cast<int>(tail) << ", balanced rows "
                << corpus.options.balance_attention);
  const PackResult one = corpus.pack("one", 1);
  REQUIRE(one.partitions >= 5);
  REQUIRE(one.manifest.rows % 7 == 0);
  const auto expected = corpus.bytes("one");
  const auto check = [&](const std::string& name, const PackResult& found) {
    INFO(name);
    CHECK(corpus.bytes(name) == expected);
    CHECK(found.steps->imbalance == one.steps->imbalance);
  };
  check("two", corpus.pack("two", 2));
  check("three", corpus.pack("three", 3));
  check("limited", corpus.pack("limited", 2, std::int64_t{1} << 30));
}

}  // namespace
}  // namespace shardpack
