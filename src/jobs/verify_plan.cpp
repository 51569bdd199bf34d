#include "jobs/verify_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "base/hash.h"
#include "base/units.h"
#include "base/wide.h"
#include "io/group_key_text.h"
#include "shardpack/bounds.h"

namespace shardpack {

namespace {

std::uint64_t hash_of(std::span<const Length> lengths) {
  return hash64({reinterpret_cast<const char*>(lengths.data()), lengths.size_bytes()});
}

/// \return what is wrong with one strategy; empty when it fits
std::string misfit(const PackingPlan& plan, std::span<const Length> lengths) {
  if (lengths.empty()) return "has no lengths";
  const std::int64_t segments = std::ssize(lengths) * plan.policy.keep_together;
  if (plan.max_segments > 0 && segments > plan.max_segments) {
    return fmt::format("has {} segments, the limit is {}", segments, plan.max_segments);
  }
  std::int64_t slots = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1) return fmt::format("has the length {}", lengths[i]);
    if (i > 0 && lengths[i] > lengths[i - 1]) return "is not in descending order";
    if (lengths[i] % plan.policy.segment_multiple != 0) {
      return fmt::format("has the length {}, not a multiple of {}", lengths[i], plan.policy.segment_multiple);
    }
    slots += lengths[i];
  }
  if (slots > plan.row_tokens) return fmt::format("takes {} slots, a row has {}", with_commas(slots), plan.row_tokens);
  return {};
}

void check_cover(const PackingPlan& plan, const LengthHistogram& histogram, const std::string& name, IssueList& issues) {
  std::map<std::int64_t, Int128> open;  // items without a place, by length; negative = places without an item
  for (const LengthCount& items : histogram.counts()) {
    if (items.length > 0) open[items.length] += items.count;
  }
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    for (const Length length : plan.strategy(s)) open[length] -= plan.count[static_cast<std::size_t>(s)];
  }
  for (const auto& [length, items] : open) {
    if (items == 0) continue;
    const bool missing = items > 0;
    issues.add("cover", name,
               fmt::format("length {}: {} {} in the plan's histogram", length,
                           with_commas(static_cast<std::int64_t>(missing ? items : -items)),
                           missing ? "items without a place" : "places more than there are items"));
  }
}

void check_bound(const PackingPlan& plan, const LengthHistogram& histogram, const std::string& name, IssueList& issues) {
  for (const Issue& issue : check_certificate(plan, histogram)) issues.add(issue.kind, name, issue.message);
  if (plan.bound.kind == BoundKind::lp) return;
  const LowerBound found = lower_bound(histogram, plan.row_tokens, plan.item_limit());
  if (plan.bound.rows != found.rows || plan.bound.kind != found.kind) {
    issues.add("bound", name,
               fmt::format("bound is {} ({}), the histogram gives {} ({})", with_commas(plan.bound.rows),
                           shardpack::name(plan.bound.kind), with_commas(found.rows), shardpack::name(found.kind)));
  }
}

}  // namespace

std::string show_lengths(std::span<const Length> lengths) {
  constexpr std::size_t kShown = 8;
  const std::span<const Length> shown = lengths.first(std::min(kShown, lengths.size()));
  return fmt::format("[{}{}]", fmt::join(shown, ", "),
                     lengths.size() > kShown ? fmt::format(", ... {} in all", lengths.size()) : std::string());
}

namespace {

/// Of the whole, or of one group.
void check_one_plan(const PackingPlan& plan, const LengthHistogram& histogram, const std::string& name, IssueList& issues) {
  if (plan.row_tokens < 1 || plan.policy.segment_multiple < 1 || plan.row_tokens % plan.policy.segment_multiple != 0) {
    issues.add(
        "plan", name,
        fmt::format("row_tokens {} and segment_multiple {} do not fit together", plan.row_tokens, plan.policy.segment_multiple));
    return;
  }
  if (histogram.max_length() > plan.row_tokens) {
    issues.add("plan", name,
               fmt::format("the histogram has the length {}, a row has {}", histogram.max_length(), plan.row_tokens));
    return;
  }
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    const std::span<const Length> lengths = plan.strategy(s);
    std::string fault = misfit(plan, lengths);
    if (fault.empty() && plan.count[static_cast<std::size_t>(s)] < 1) fault = "is used by no row";
    if (fault.empty() && s > 0 && !std::ranges::lexicographical_compare(lengths, plan.strategy(s - 1))) {
      fault = "is not in its place: strategies are in descending order, each once";
    }
    if (!fault.empty()) issues.add("plan", name, fmt::format("strategy {} {} {}", s, show_lengths(lengths), fault));
  }
  check_cover(plan, histogram, name, issues);
  check_bound(plan, histogram, name, issues);
  if (plan.bound.rows > plan.rows()) {
    issues.add("bound", name,
               fmt::format("bound {} is above the plan's {} rows", with_commas(plan.bound.rows), with_commas(plan.rows())));
  }
}

}  // namespace

void check_plan(const PlanFile& file, const std::string& name, IssueList& issues) {
  if (file.groups.empty()) return check_one_plan(file.plan, file.items, name, issues);
  for (const GroupPlan& group : file.groups) {
    IssueList found;
    check_one_plan(group.plan, group.items, name, found);
    for (const Issue& issue : found.take()) {
      issues.add(issue.kind, issue.file, fmt::format("group {}: {}", group_text(group.key), issue.message));
    }
  }
}

PlanRealisation::PlanRealisation(PackingPlan plan) : plan_(std::move(plan)), rows_(plan_.count.size()) {
  by_hash_.reserve(plan_.count.size());
  for (std::int64_t s = 0; s < plan_.strategies(); ++s) by_hash_.emplace_back(hash_of(plan_.strategy(s)), s);
  std::ranges::sort(by_hash_);
}

std::int64_t PlanRealisation::find(std::span<const Length> lengths) const {
  const std::uint64_t hash = hash_of(lengths);
  for (auto at = std::ranges::lower_bound(by_hash_, std::pair(hash, std::int64_t{0})); at != by_hash_.end() && at->first == hash;
       ++at) {
    if (std::ranges::equal(plan_.strategy(at->second), lengths)) return at->second;
  }
  return -1;
}

std::int64_t PlanRealisation::finish(const std::string& file, IssueList& issues) const {
  std::int64_t missing = 0;
  for (std::size_t s = 0; s < rows_.size(); ++s) {
    if (rows_[s] > plan_.count[s]) {
      issues.add("cover", file,
                 fmt::format("{} rows hold {}, the plan has {}", with_commas(rows_[s]),
                             show_lengths(plan_.strategy(static_cast<std::int64_t>(s))), with_commas(plan_.count[s])));
    } else {
      missing += plan_.count[s] - rows_[s];
    }
  }
  return missing;
}

}  // namespace shardpack
