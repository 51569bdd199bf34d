// The schedule in whole numbers against the released scheduler's arithmetic in doubles.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "shardpack/ltd_schedule.h"
#include "support/catch.h"

using namespace shardpack;

TEST_CASE("kept lengths equal the released scheduler's") {
  CHECK(rc::check("int64 = double", [] {
    KeptGrowth growth;
    growth.granularity = *rc::gen::inRange<std::int64_t>(1, 65);
    growth.start = *rc::gen::inRange<std::int64_t>(1, 1000);
    growth.max = growth.start + *rc::gen::inRange<std::int64_t>(0, 8192);
    growth.ramp_steps = *rc::gen::inRange<std::int64_t>(1, 3'000'000);
    const auto some = *rc::gen::inRange<std::int64_t>(0, growth.ramp_steps + 100);
    for (std::int64_t step = some; step < some + 50; ++step) {
      const double part = std::pow(static_cast<double>(step) / static_cast<double>(growth.ramp_steps), 1.0 / 1);
      auto value = static_cast<std::int64_t>(
          std::floor(part * static_cast<double>(growth.max - growth.start) + static_cast<double>(growth.start)));
      value -= value % growth.granularity;
      RC_ASSERT(kept_at(growth, step) == std::min(value, growth.max));
    }
  }));
}
