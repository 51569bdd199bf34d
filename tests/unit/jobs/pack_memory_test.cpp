// --memory: what cannot be kept to is refused with the number that would do, and that number does.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

TEST_CASE("a memory budget that cannot be kept to is refused with the number that would do") {
  const TempFolder folder;
  const std::vector<std::string> inputs{write_npy<std::uint16_t>(folder, "a", "<u2", Sequences(3000, {1, 2, 3}))};
  PackOptions options;
  options.policy.row_tokens = options.packing.row_tokens = 64;
  options.order = GENERATE(RowOrder::shuffled, RowOrder::windowed);
  ThreadPool pool(2);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  context.memory_bytes = std::int64_t{256} << 20;
  context.memory_limit = std::int64_t{33} << 20;
  std::string refusal;
  try {
    pack(inputs, folder.path("out"), options, context);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::limit);
    refusal = error.what();
  }
  const std::size_t number = refusal.find("need --memory ");
  INFO(refusal);
  REQUIRE(number != std::string::npos);
  const std::int64_t enough = std::atoll(refusal.c_str() + number + 14);
  context.memory_limit = (enough - 1) << 20;
  CHECK_THROWS_AS(pack(inputs, folder.path("out"), options, context), Error);
  CHECK(!std::filesystem::exists(folder.path("out.partial")));
  context.memory_limit = enough << 20;
  CHECK(pack(inputs, folder.path("out"), options, context).verified);

  // The index alone is too much for this one, which is told before anything is planned.
  context.memory_limit = std::int64_t{32} << 20;
  CHECK_THROWS_AS(pack(inputs, folder.path("other"), options, context), Error);
}

}  // namespace
}  // namespace shardpack
