// Written against the plan's definition alone, so that no packer's mistake is repeated here. A plan may come from a file that
// anyone could have edited: nothing about it is taken for granted.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/units.h"
#include "base/wide.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

namespace {
constexpr std::size_t kMaxIssues = 20;  // enough to see a pattern; the last one counts the rest

/// Findings, the first kMaxIssues of them in words.
class Findings {
 public:
  void add(std::string kind, std::string message) {
    if (issues_.size() < kMaxIssues) {
      issues_.push_back({std::move(kind), "", -1, std::move(message)});
    } else {
      ++unlisted_;
    }
  }
  std::vector<Issue> take() {
    if (unlisted_ > 0) issues_.push_back({"cover", "", -1, "and " + with_commas(unlisted_) + " more findings of these kinds"});
    return std::move(issues_);
  }

 private:
  std::vector<Issue> issues_;
  std::int64_t unlisted_ = 0;
};

/// Places by length: an array for ordinary lengths, a map for the very long, as in LengthHistogram. 128-bit sums.
class PlaceCounts {
 public:
  explicit PlaceCounts(Length max_length)
      : dense_(static_cast<std::size_t>(std::min<std::int64_t>(std::int64_t{max_length} + 1, LengthHistogram::kDenseLengths))) {}

  Int128& operator[](Length length) {
    const auto at = static_cast<std::size_t>(length);
    return at < dense_.size() ? dense_[at] : sparse_[length];
  }
  template <class Function>
  void for_each(Function&& function) const {
    for (std::size_t length = 0; length < dense_.size(); ++length) {
      if (dense_[length] != 0) function(static_cast<std::int64_t>(length), dense_[length]);
    }
    for (const auto& [length, places] : sparse_) {
      if (places != 0) function(std::int64_t{length}, places);
    }
  }

 private:
  std::vector<Int128> dense_;
  std::map<Length, Int128> sparse_;
};

bool well_formed(const PackingPlan& plan) {
  return plan.row_tokens >= 1 && plan.max_segments >= 0 && plan.policy.keep_together >= 1 &&
         plan.begin.size() == plan.count.size() + 1 && plan.begin.front() == 0 &&
         plan.begin.back() == static_cast<std::int64_t>(plan.lengths.size()) &&
         std::is_sorted(plan.begin.begin(), plan.begin.end());
}

std::string words(Int128 number) {
  // A sum beyond 63 bits can only be a damaged plan's: its exact value is no help.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return number > kMost ? "over " + with_commas(kMost) : with_commas(static_cast<std::int64_t>(number));
}

/// One strategy against the row length and the segment limit; its places are added to `places`.
void check_strategy(const PackingPlan& plan, std::int64_t s, PlaceCounts& places, Findings& findings) {
  const std::span<const Length> strategy = plan.strategy(s);
  const auto items = static_cast<std::int64_t>(strategy.size());
  const std::int64_t rows = plan.count[static_cast<std::size_t>(s)];
  const auto found = [&](const std::string& what) { findings.add("strategy", "strategy " + with_commas(s) + ": " + what); };

  if (rows < 1) found("used in " + std::to_string(rows) + " rows, expected at least 1");
  if (items == 0) found("places nothing");
  if (!std::is_sorted(strategy.rbegin(), strategy.rend())) found("its lengths do not descend");
  if (plan.max_segments > 0 && items > plan.max_segments / plan.policy.keep_together) {
    found(with_commas(items * plan.policy.keep_together) + " segments in a row, at most " + with_commas(plan.max_segments) +
          " allowed");
  }
  Int128 slots = 0;
  for (const Length length : strategy) {
    if (length < 1 || length > plan.row_tokens) {
      found("a length of " + std::to_string(length) + ", expected 1 to " + with_commas(plan.row_tokens));
      continue;
    }
    slots += length;
    places[length] += rows;
  }
  if (slots > plan.row_tokens) found(words(slots) + " slots in a row of " + with_commas(plan.row_tokens));
}
}  // namespace

std::vector<Issue> check_exact_cover(const PackingPlan& plan, const LengthHistogram& items) {
  Findings findings;
  if (!well_formed(plan)) {
    findings.add("plan", "its row length, segment limit, strategies and counts do not fit together");
    return findings.take();
  }
  PlaceCounts places(plan.row_tokens);
  for (std::int64_t s = 0; s < plan.strategies(); ++s) check_strategy(plan, s, places, findings);

  const auto found = [&](std::int64_t length, Int128 planned, std::int64_t expected) {
    findings.add("cover", "length " + with_commas(length) + ": " + words(planned) + " places planned for " +
                              with_commas(expected) + (expected == 1 ? " item" : " items"));
  };
  for (const LengthCount& entry : items.counts()) {
    if (entry.length == 0) continue;
    if (entry.length > plan.row_tokens) {
      found(entry.length, 0, entry.count);
      continue;
    }
    Int128& planned = places[static_cast<Length>(entry.length)];
    if (planned != entry.count) found(entry.length, planned, entry.count);
    planned = 0;
  }
  places.for_each([&](std::int64_t length, Int128 planned) { found(length, planned, 0); });
  return findings.take();
}

}  // namespace shardpack
