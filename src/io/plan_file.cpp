#include "io/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

#include "base/checked.h"
#include "io/group_key_text.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"
#include "shardpack/packer.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

constexpr std::string_view kFormat = "shardpack-plan";
constexpr std::int64_t kFormatVersion = 1;
constexpr bool kOnOneLine = true;
constexpr std::int64_t kMaxLength = std::numeric_limits<Length>::max();
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

// Names by enumerator.
constexpr std::array<std::string_view, 4> kOverlong{"error", "truncate", "split", "drop"};
constexpr std::array<std::string_view, 2> kTruncateSides{"end", "start"};

void write_policy(JsonWriter& json, const LengthPolicy& policy) {
  json.key("policy").begin_object(kOnOneLine);
  json.member("overlong", kOverlong[static_cast<std::size_t>(policy.overlong)]);
  json.member("append_eos", policy.append_eos);
  json.member("prepend_bos", policy.prepend_bos);
  json.member("slot_rule", kSlotRules[static_cast<std::size_t>(policy.slot_rule)]);
  json.member("keep_together", policy.keep_together);
  json.member("truncate_side", kTruncateSides[static_cast<std::size_t>(policy.truncate_side)]);
  json.member("split_min_tokens", policy.split_min_tokens);
  json.member("min_tokens", policy.min_tokens);
  if (policy.drop_unlabeled) json.member("drop_unlabeled", true);
  json.end_object();
}

/// The enumerator that `value` names.
template <class Enum, std::size_t N>
Enum named(const Json& value, const std::array<std::string_view, N>& names) {
  const std::string text = value.as_string();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) value.fail(fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), text));
  return static_cast<Enum>(found - names.begin());
}

LengthPolicy read_policy(const Json& json) {
  LengthPolicy policy;
  policy.overlong = named<Overlong>(json.at("overlong"), kOverlong);
  policy.append_eos = json.at("append_eos").as_bool();
  policy.prepend_bos = json.at("prepend_bos").as_bool();
  policy.slot_rule = named<SlotRule>(json.at("slot_rule"), kSlotRules);
  policy.keep_together = static_cast<std::int32_t>(json.at("keep_together").as_int(1, kMaxLength));
  policy.truncate_side = named<TruncateSide>(json.at("truncate_side"), kTruncateSides);
  policy.split_min_tokens = static_cast<Length>(json.at("split_min_tokens").as_int(0, kMaxLength));
  policy.min_tokens = static_cast<Length>(json.at("min_tokens").as_int(0, kMaxLength));
  policy.drop_unlabeled = json.has("drop_unlabeled") && json.at("drop_unlabeled").as_bool();
  return policy;
}

/// Pairs of length and count, longest first, each length once.
LengthHistogram read_histogram(const Json& list, Length row_tokens) {
  std::vector<LengthCount> counts(list.size());
  std::int64_t length_before = std::int64_t{row_tokens} + 1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Json pair = list.at(i);
    if (pair.size() != 2) pair.fail(fmt::format("expected a length and a count, found {} entries", pair.size()));
    counts[i] = {pair.at(0).as_int(1, length_before - 1), pair.at(1).as_int(1, kMaxCount)};
    length_before = counts[i].length;
  }
  try {
    return LengthHistogram(counts);
  } catch (const Error& error) {  // totals above 2^63
    list.fail(error.message());
  }
}

void read_entries(const Json& list, PackingPlan& plan) {
  std::vector<Length> lengths;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json entry = list.at(i);
    const Json members = entry.at("lengths");
    lengths.resize(members.size());
    if (lengths.empty()) members.fail("expected at least one length");
    Length highest = plan.row_tokens;
    for (std::size_t j = 0; j < lengths.size(); ++j) {
      highest = lengths[j] = static_cast<Length>(members.at(j).as_int(1, highest));
    }
    plan.add(lengths, entry.at("count").as_int(1, kMaxCount));
  }
}

void write_certificate(JsonWriter& json, const Certificate& certificate) {
  json.key("certificate").begin_object();
  json.member("scale", certificate.scale);
  json.member("granularity", certificate.granularity);
  json.key("prices").begin_array();
  for (const auto& [length, price] : certificate.prices) json.begin_array(kOnOneLine).value(length).value(price).end_array();
  json.end_array().end_object();
}

/// Types and ranges; check_certificate() looks at what it says.
Certificate read_certificate(const Json& json, Length row_tokens) {
  Certificate certificate;
  certificate.scale = json.at("scale").as_int(1, Certificate::kMaxScale);
  certificate.granularity = static_cast<std::int32_t>(json.at("granularity").as_int(1, row_tokens));
  const Json prices = json.at("prices");
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Json pair = prices.at(i);
    if (pair.size() != 2) pair.fail(fmt::format("expected a length and a price, found {} entries", pair.size()));
    certificate.prices.emplace_back(static_cast<Length>(pair.at(0).as_int(1, row_tokens)),
                                    pair.at(1).as_int(1, certificate.scale));
  }
  return certificate;
}

void begin_file(JsonWriter& json) {
  json.begin_object();
  json.member("format", kFormat);
  json.member("format_version", kFormatVersion);
  json.member("tool_version", kVersion);
}

/// What says how rows are filled: of the whole, or of a group.
void write_plan(JsonWriter& json, const PackingPlan& plan, const LengthHistogram& items) {
  json.member("packer", plan.packer);
  json.member("row_tokens", plan.row_tokens);
  json.member("max_segments", plan.max_segments);
  json.member("segment_multiple", plan.policy.segment_multiple);
  write_policy(json, plan.policy);
  json.key("histogram").begin_array();
  const std::vector<LengthCount> counts = items.counts();
  for (auto entry = counts.rbegin(); entry != counts.rend(); ++entry) {
    if (entry->length == 0) continue;  // empty sequences take no place
    json.begin_array(kOnOneLine).value(entry->length).value(entry->count).end_array();
  }
  json.end_array();
  json.member("rows", plan.rows());
  json.member("bound", plan.bound.rows);
  json.member("bound_kind", name(plan.bound.kind));
  json.key("entries").begin_array();
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    json.begin_object(kOnOneLine).key("lengths").begin_array();
    for (const Length length : plan.strategy(s)) json.value(length);
    json.end_array().member("count", plan.count[static_cast<std::size_t>(s)]).end_object();
  }
  json.end_array();
  if (plan.certificate.scale > 0) write_certificate(json, plan.certificate);
}

/// A packer's name, perhaps with "+refill" behind it.
std::string read_packer(const Json& json) {
  const std::string text = json.as_string();
  const std::string_view name = std::string_view(text).substr(0, text.find('+'));
  const std::string_view rest = std::string_view(text).substr(name.size());
  const bool known =
      std::any_of(packers().begin(), packers().end(), [&](const PackerInfo& packer) { return packer.name == name; });
  if (!known || (!rest.empty() && rest != "+refill")) json.fail("there is no packer of this name");
  return text;
}

void read_plan(const Json& json, PackingPlan& plan, LengthHistogram& items) {
  plan.packer = read_packer(json.at("packer"));
  plan.row_tokens = static_cast<Length>(json.at("row_tokens").as_int(1, kMaxLength));
  plan.max_segments = static_cast<std::int32_t>(json.at("max_segments").as_int(0, std::numeric_limits<std::int32_t>::max()));
  plan.policy = read_policy(json.at("policy"));
  plan.policy.row_tokens = plan.row_tokens;
  if (plan.max_segments > 0 && plan.max_segments < plan.policy.keep_together) {
    json.at("max_segments")
        .fail(fmt::format("{} are fewer than the {} that are kept together", plan.max_segments, plan.policy.keep_together));
  }
  plan.policy.segment_multiple = static_cast<Length>(json.at("segment_multiple").as_int(1, plan.row_tokens));
  items = read_histogram(json.at("histogram"), plan.row_tokens);
  read_entries(json.at("entries"), plan);
  const Json rows = json.at("rows");
  std::int64_t expected_rows = 0;
  for (const std::int64_t count : plan.count) {
    if (__builtin_add_overflow(expected_rows, count, &expected_rows)) rows.fail("the counts of the entries exceed 2^63 - 1");
  }
  if (rows.as_int() != expected_rows) {
    rows.fail(fmt::format("expected {}, the sum of the entries' counts, found {}", expected_rows, rows.as_int()));
  }
  plan.bound.rows = json.at("bound").as_int(0, kMaxCount);
  const std::array bound_kinds{name(BoundKind::l1), name(BoundKind::l2), name(BoundKind::cardinality), name(BoundKind::lp)};
  plan.bound.kind = named<BoundKind>(json.at("bound_kind"), bound_kinds);
  if (json.has("certificate")) plan.certificate = read_certificate(json.at("certificate"), plan.row_tokens);
}

/// \throws Error{bad_data} unless keys ascend and every group's plan is of one row length, limit and policy
void read_groups(const Json& list, PlanFile& file) {
  if (list.size() == 0) list.fail("expected at least one group");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json json = list.at(i);
    GroupPlan group;
    group.key = read_group(json.at("key"));
    read_plan(json, group.plan, group.items);
    if (i > 0) {
      const GroupPlan& before = file.groups.back();
      if (!(before.key < group.key)) json.at("key").fail(fmt::format("expected a key above {}", group_text(before.key)));
      if (before.plan.row_tokens != group.plan.row_tokens || before.plan.max_segments != group.plan.max_segments ||
          !(before.plan.policy == group.plan.policy)) {
        json.fail("its row_tokens, max_segments or policy differ from those of the group before");
      }
    }
    file.groups.push_back(std::move(group));
  }
  try {
    file.plan = merge_plans(file.groups);
    static_cast<void>(file.plan.rows());
    for (const GroupPlan& group : file.groups) file.items.merge(group.items);
  } catch (const Error& error) {  // totals above 2^63
    list.fail(error.message());
  }
}

}  // namespace

std::string to_json(const PackingPlan& plan, const LengthHistogram& items) {
  JsonWriter json;
  begin_file(json);
  write_plan(json, plan, items);
  json.end_object();
  return json.take() + "\n";
}

std::string to_json(const std::string& group_column, const std::vector<GroupPlan>& groups) {
  JsonWriter json;
  begin_file(json);
  json.member("group_column", group_column);
  json.key("groups").begin_array();
  for (const GroupPlan& group : groups) {
    json.begin_object().key("key").raw(group_text(group.key));
    write_plan(json, group.plan, group.items);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

PlanFile plan_from_json(const std::string& text, const std::string& path) {
  const auto refuse = [&] {
    throw Error(ErrorCode::bad_data, "not a plan; make one: shardpack plan INPUT... -L N -o plan.json", path);
  };
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{') refuse();
  const Json json = Json::parse(text, path);
  if (!json.has("format")) refuse();
  if (json.at("format").as_string() != kFormat) json.at("format").fail(fmt::format("expected \"{}\"", kFormat));
  if (json.at("format_version").as_int() != kFormatVersion) {
    json.at("format_version").fail(fmt::format("this version of shardpack reads format version {} only", kFormatVersion));
  }

  PlanFile file;
  file.tool_version = json.at("tool_version").as_string();
  if (json.has("groups")) {
    file.group_column = json.at("group_column").as_string();
    read_groups(json.at("groups"), file);
  } else {
    read_plan(json, file.plan, file.items);
  }
  return file;
}

std::string plan_file_name(std::size_t number) { return fmt::format("plan-{:05}.json", number); }

std::vector<std::string> plan_files_in(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(given, error)) return {given};
  const std::optional<FoundManifest> found = find_manifest(given);
  const std::string path = found ? found->folder : given;  // plans lie beside it
  std::size_t plans = 0;
  std::string other;  // a plan that was given a name of its own
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("plan-") || !name.ends_with(".json")) continue;
    ++plans;
    const bool numbered = name.find_first_not_of("0123456789", 5) == name.size() - 5;
    if (!numbered && (other.empty() || name < other)) other = name;
  }
  if (error) throw Error(ErrorCode::io, "cannot list: " + error.message(), path);
  if (plans == 0) throw Error(ErrorCode::bad_data, fmt::format("no {} in it", plan_file_name(0)), path);
  std::vector<std::string> files;
  for (std::size_t number = 0; number < plans; ++number) {
    files.push_back((fs::path(path) / plan_file_name(number)).string());
    if (!fs::exists(files.back(), error)) {
      throw Error(
          ErrorCode::bad_data,
          fmt::format("{} {} in it, and {} is not among them{}", plans, plans == 1 ? "plan" : "plans", plan_file_name(number),
                      other.empty() ? "" : fmt::format("; give {} itself", (fs::path(path) / other).string())),
          path);
    }
  }
  return files;
}

}  // namespace shardpack
