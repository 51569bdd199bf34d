#include "jobs/given_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "io/file.h"
#include "io/group_key_text.h"
#include "jobs/pack_options.h"
#include "jobs/verify_plan.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message) { throw Error(ErrorCode::bad_data, message, path); }

GivenPlan read_one(const std::string& path) {
  GivenPlan given{path, plan_from_json(read_small_file(path), path)};
  IssueList issues;
  check_plan(given.file, path, issues);
  if (!issues.empty())
    fail(path, fmt::format("the plan does not hold: {}; shardpack verify tells all", issues.take().front().message));
  const std::span<const PackerInfo> all = packers();
  const bool in_order =
      std::ranges::any_of(all, [&](const PackerInfo& info) { return info.input_order && info.name == given.file.plan.packer; });
  if (in_order) {
    fail(path, fmt::format("the plan keeps the order of the input, which lengths and counts do not tell; pack with --packer {} "
                           "instead of --plan",
                           given.file.plan.packer));
  }
  return given;
}

/// \param expected  what is asked for
void compare(const GivenPlan& given, std::string_view field, const std::string& found, const std::string& expected) {
  if (found == expected) return;
  fail(given.path, fmt::format("{} is {} in the plan and {} here; give the options that it was made with, or make it again",
                               field, found, expected));
}

void compare_items(const GivenPlan& given, const std::string& whose, const LengthHistogram& planned,
                   const LengthHistogram& found) {
  const std::vector<LengthCount> expected = planned.counts(), counts = found.counts();
  const auto [p, f] = std::ranges::mismatch(expected, counts);
  if (p == expected.end() && f == counts.end()) return;
  const std::int64_t length = std::min(p == expected.end() ? f->length : p->length, f == counts.end() ? p->length : f->length);
  const std::int64_t items = planned.count(length);
  fail(given.path,
       fmt::format("{}the plan has {} {} of {} slots, the data have {}; it was made for other data, or for other options", whose,
                   with_commas(items), items == 1 ? "item" : "items", with_commas(length), with_commas(found.count(length))));
}

}  // namespace

std::vector<GivenPlan> read_given_plans(const std::string& path) {
  std::vector<GivenPlan> plans;
  for (const std::string& file : plan_files_in(path)) plans.push_back(read_one(file));
  return plans;
}

void adopt(PackOptions& options, const std::vector<GivenPlan>& plans) {
  const PackingPlan& first = plans.front().file.plan;
  if (options.policy.row_tokens == 0) options.policy.row_tokens = options.packing.row_tokens = first.row_tokens;
  const std::vector<RecordedOption> expected = recorded_policy(options.policy);
  for (const GivenPlan& given : plans) {
    const PackingPlan& plan = given.file.plan;
    compare(given, "row_tokens", with_commas(plan.row_tokens), with_commas(options.policy.row_tokens));
    const std::vector<RecordedOption> found = recorded_policy(plan.policy);
    for (std::size_t i = 0; i < found.size(); ++i) compare(given, found[i].first, found[i].second, expected[i].second);
    if (options.packer != "auto") compare(given, "packer", plan.packer, options.packer);
    const std::int32_t limit = options.packing.max_segments > 0 ? options.packing.max_segments : first.max_segments;
    compare(given, "max_segments", std::to_string(plan.max_segments), std::to_string(limit));
  }
}

void check_plan_count(const std::vector<GivenPlan>& plans, const std::string& path, std::size_t partitions) {
  if (plans.size() == partitions) return;
  fail(path, fmt::format("{} for {}; were --partition-tokens, --limit or the inputs others when it was made?",
                         plans.size() == 1 ? "one plan" : fmt::format("{} plans", plans.size()),
                         partitions == 1 ? "one partition" : fmt::format("{} partitions", partitions)));
}

PartitionPlan plan_for(const GivenPlan& given, const LengthHistogram& items, const std::vector<GroupLengths>& groups) {
  const std::vector<GroupPlan>& planned = given.file.groups;
  if (planned.empty() && groups.empty()) {
    compare_items(given, "", given.file.items, items);
    return {.plan = given.file.plan, .groups = {}};
  }
  if (groups.empty() && !items.counts().empty()) {
    fail(given.path, fmt::format("the plan was made with --group-column {}; give it here too", given.file.group_column));
  }
  if (planned.empty() && given.file.plan.rows() > 0) {
    fail(given.path, "the plan was made without --group-column; leave it out here, or make the plan with it");
  }
  const auto [p, f] = std::ranges::mismatch(planned, groups, {}, &GroupPlan::key, &GroupLengths::key);
  if (p != planned.end() || f != groups.end()) {
    fail(given.path, fmt::format("the plan has {}, the data {}; is --group-column the one that it was made with?",
                                 p == planned.end() ? "no more groups" : "the group " + group_text(p->key),
                                 f == groups.end() ? "have no more" : "have " + group_text(f->key)));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    compare_items(given, fmt::format("group {}: ", group_text(groups[g].key)), planned[g].items, groups[g].lengths);
  }
  return {.plan = given.file.plan, .groups = planned};
}

}  // namespace shardpack
