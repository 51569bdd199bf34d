// Every packer's entry, for the table in packer_table.cpp. See packer.h for the contract.
#pragma once

#include <stop_token>

#include "shardpack/packer.h"

namespace shardpack {

PackingPlan plan_none(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_sorted_greedy(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_ffd(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_bfd(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_spfhp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_lpfhp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_optimal(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);
PackingPlan plan_nnlshp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);

/// What plan_optimal() does after it has a first plan.
PackingPlan optimize(PackingPlan first, const LengthHistogram& items, const PackerOptions& options, const std::stop_token& stop);
/// The same in coarse lengths, so that the problem has at most `largest_table` entries: PackingProblem::table().
PackingPlan optimize_coarsely(PackingPlan first, const LengthHistogram& items, const PackerOptions& options,
                              std::int64_t largest_table, const std::stop_token& stop);
PackingPlan plan_auto(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop);

}  // namespace shardpack
