// The packers, in one table: each turns a histogram into an exact cover.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "shardpack/length_histogram.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

enum class NnlsWeights : std::uint8_t { paper, tokens };

/// How much work `optimal` may do (a twentieth, or twenty times as much), and up to which size of problem `auto` turns to it.
/// Counted, never timed: equal problems get equal plans on any machine.
enum class PlanEffort : std::uint8_t { fast, normal, thorough };

struct PackerOptions {
  Length row_tokens = 0;          ///< slots in a row, at least 1
  std::int32_t max_segments = 0;  ///< 0 = no limit (nnlshp: depth 3)
  NnlsWeights nnls_weights = NnlsWeights::paper;
  PlanEffort effort = PlanEffort::normal;
};

/// A row of the table. `plan` sees lengths 1..row_tokens only (no empty ones) and returns strategies and counts; bound, packer
/// name and the cover check are added by plan_packs(). Pure; equal histograms give equal plans.
struct PackerInfo {
  std::string_view name;
  std::string_view summary;       ///< one line, for help
  std::int32_t default_segments;  ///< what max_segments 0 stands for; 0 = no limit
  bool input_order;               ///< makes an assignment straight from the items (order_packers.h); `plan` is null then
  PackingPlan (*plan)(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
};

std::span<const PackerInfo> packers();

/// The segments a row may have: `max_segments`, or the packer's default where that is 0.
constexpr std::int32_t segment_limit(const PackerInfo& packer, std::int32_t max_segments) {
  return max_segments > 0 ? max_segments : packer.default_segments;
}

/// Name and version of the linear programming solver that `optimal` uses: "Clp 1.17.6". With another version it may choose other
/// strategies.
std::string lp_solver();

/// The row named `name`; Error{usage} with the nearest name otherwise.
const PackerInfo& find_packer(std::string_view name);

/// Choose rows so that every item counted in `items` is placed exactly once.
/// \param items  in slots; length 0 is ignored; a length over options.row_tokens is Error{usage}
/// \return canonical strategies with the best bound; satisfies check_exact_cover() and check_certificate() (checked here,
///   Error{internal} otherwise)
/// \throws Error{cancelled} on stop, Error{usage} for an input-order packer: it needs the items
/// Pure: callable from any thread; time depends on distinct lengths and strategies, never on the number of items.
PackingPlan plan_packs(const LengthHistogram& items, std::string_view packer, const PackerOptions& options,
                       std::stop_token stop = {});

}  // namespace shardpack
