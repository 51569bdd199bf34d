// Any histogram: a sweep does not depend on threads or memory, and what it says obeys the bounds.
#include <rapidcheck.h>

#include "report/sweep_report.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::string swept(const std::string& input, const SweepOptions& options, int threads, std::int64_t memory) {
  ThreadPool pool(threads);
  NoProgress progress;
  NoDiagnostics diagnostics;
  SweepResult result =
      sweep({input}, {}, options,
            {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .memory_bytes = memory, .temp_dir = {}});
  for (SweepCell& cell : result.cells) {
    cell.seconds = 0;
    RC_ASSERT(cell.problem.empty() == (cell.sequences > 0 || cell.tokens == 0));
    RC_ASSERT(cell.rows >= cell.bound.rows);
    RC_ASSERT(cell.rows * cell.row_tokens >= cell.tokens);
    RC_ASSERT(cell.segments >= cell.sequences);
  }
  return sweep_to_text(result, true) + sweep_to_csv(result) + sweep_to_json(result, 0);
}

}  // namespace

TEST_CASE("any number of threads and any memory give the same table") {
  const TempFolder folder;
  CHECK(rc::check([&] {
    std::string csv = "length,count\n";
    for (const auto& [length, count] :
         *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(rc::gen::inRange(0, 90), rc::gen::inRange(1, 40)))) {
      csv += std::to_string(length) + "," + std::to_string(count) + "\n";
    }
    const std::string input = folder.write("lengths.csv", csv);
    SweepOptions options;
    options.row_tokens = {16, 40, 64};
    options.overlong = *rc::gen::element(std::vector{Overlong::split}, std::vector{Overlong::drop, Overlong::truncate});
    options.max_segments = {0, 2};
    options.policy.append_eos = *rc::gen::arbitrary<bool>();
    options.seed = *rc::gen::inRange<std::uint64_t>(0, 3);
    const std::string alone = swept(input, options, 1, 0);
    RC_ASSERT(swept(input, options, 2, 1 << 20) == alone);
    RC_ASSERT(swept(input, options, 5, 1 << 30) == alone);
  }));
}
