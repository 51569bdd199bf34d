#include "jobs/scan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "io/json.h"
#include "jobs/verify_against.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

std::string json_text(std::string_view text) { return JsonWriter().value(text).take(); }

/// The flag that sets a recorded option.
std::string flag_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

const std::string& value_of(const std::vector<RecordedOption>& options, std::string_view name) {
  static const std::string none = "null";
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const RecordedOption& option) { return option.first == name; });
  return found == options.end() ? none : found->second;
}

PartitionCut cut_of(const PackOptions& options) {
  return {.tokens = options.partition_tokens, .order = options.partition_order, .seed = options.seed};
}

/// From the scan's record. \throws Error{bad_data}
PartitionCut recorded_cut(const std::vector<RecordedOption>& options, const std::string& path) {
  PartitionCut cut;
  cut.tokens = Json::parse(value_of(options, "partition_tokens"), path).as_int(1, std::numeric_limits<std::int64_t>::max());
  const Json order = Json::parse(value_of(options, "partition_order"), path);
  const auto known = std::find(kPartitionOrders.begin(), kPartitionOrders.end(), order.as_string());
  if (known == kPartitionOrders.end()) order.fail("this version does not know this order of partitions");
  cut.order = static_cast<PartitionOrder>(known - kPartitionOrders.begin());
  return cut;
}

}  // namespace

std::vector<RecordedOption> recorded_scan_options(const ReadOptions& read, const PartitionCut& cut) {
  std::vector<RecordedOption> recorded = recorded_read_options(read);
  recorded.emplace_back("partition_tokens", std::to_string(cut.tokens));
  recorded.emplace_back("partition_order", json_text(kPartitionOrders[static_cast<std::size_t>(cut.order)]));
  // The seed deals blocks to partitions, and does nothing where there are none.
  recorded.emplace_back("seed", cut.order == PartitionOrder::shuffled ? std::to_string(cut.seed) : "null");
  return recorded;
}

void adopt(PackOptions& options, const SavedScan& scan) {
  const std::vector<RecordedOption> asked = recorded_scan_options(options.read, cut_of(options));
  const std::vector<RecordedOption> standard = recorded_scan_options({}, {});
  const PartitionCut cut = recorded_cut(scan.options, options.scan);
  for (const auto& [name, value] : asked) {
    const std::string& scanned = value_of(scan.options, name);
    if (value == scanned || (name != "seed" && value == value_of(standard, name))) continue;
    if (name == "seed" && cut.order == PartitionOrder::input) continue;
    if (name == "seed" && value == "null" && std::to_string(options.seed) == scanned) continue;  // the order is adopted
    throw Error(ErrorCode::usage,
                fmt::format("{} is {} here and {} in the scan; give what it was made with, or scan again", flag_of(name),
                            name == "seed" ? std::to_string(options.seed) : value, scanned),
                options.scan);
  }
  const bool repeats = options.read.allow_repeats;
  options.read = recorded_read_options(scan.options);
  options.read.allow_repeats = repeats;
  options.partition_tokens = cut.tokens;
  options.partition_order = cut.order;
  if (options.container && !info(*options.container).holds_tokens && !scan.columns.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("--as {} proves the token ids alone, and the scan's fingerprint takes {} in; scan again with "
                            "--columns none",
                            info(*options.container).name, scan.columns.front().name),
                options.scan);
  }
}

void check_scan_serves(const SavedScan& scan, const LengthPolicy& policy) {
  if ((policy.append_eos || policy.prepend_bos) && !scan.has_ends) {
    throw Error(
        ErrorCode::usage,
        "--append-eos and --prepend-bos ask which sequences have theirs already, and the scan did not look; scan again with "
        "--eos-id or --bos-id");
  }
  const LossSide side = loss_side(policy);
  if (side != LossSide::none && side != scan.loss_side) {
    throw Error(ErrorCode::usage, fmt::format("--drop-unlabeled asks where each sequence's loss lies, and the scan did not look; "
                                              "scan again with --drop-unlabeled{}",
                                              side == LossSide::end ? " --truncate-side start" : ""));
  }
}

}  // namespace shardpack
