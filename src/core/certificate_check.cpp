// The proof of a bound, checked in whole numbers by a knapsack program of its own: it shares nothing with the solver that found
// the prices, so a fault there cannot hide here. A plan may come from a file that anyone could have edited.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/units.h"
#include "base/wide.h"
#include "shardpack/certificate.h"
#include "shardpack/packing_plan.h"

namespace shardpack {
namespace {

/// Steps of the check, about 1 ns each, and numbers that it holds: beyond these it is refused, for a plan may be made to hold
/// things up. `optimal` makes none that comes near.
constexpr Int128 kMaxSteps = 20'000'000'000;
constexpr std::int64_t kMaxSlots = std::int64_t{1} << 22;

/// A certificate in coarse slots.
struct CoarsePrices {
  std::vector<std::pair<std::int64_t, std::int64_t>> prices;  // (coarse slots, the best price of their lengths), ascending
  std::int64_t slots = 0;                                     // in a row
  std::int64_t segments = 0;                                  // that can be in a row and are worth something; 0 = no limit needed
};

/// What is wrong with the form of a certificate; empty = nothing.
std::string fault_of_form(const Certificate& certificate, const PackingPlan& plan) {
  if (certificate.scale < 1 || certificate.scale > Certificate::kMaxScale) {
    return "its scale is " + with_commas(certificate.scale) + ", not 1 to 2^53";
  }
  if (plan.row_tokens < 1 || certificate.granularity < 1 || certificate.granularity > plan.row_tokens) {
    return "its granularity is " + with_commas(certificate.granularity) + " in rows of " + with_commas(plan.row_tokens);
  }
  std::int64_t before = std::int64_t{plan.row_tokens} + 1;
  for (const auto& [length, price] : certificate.prices) {
    if (length < 1 || length >= before) return "its length " + with_commas(length) + " is out of order";
    if (price < 1 || price > certificate.scale) return "its price of length " + with_commas(length) + " is " + with_commas(price);
    if (length < certificate.granularity) return "its length " + with_commas(length) + " is below its granularity";
    before = length;
  }
  return {};
}

CoarsePrices coarse(const Certificate& certificate, const PackingPlan& plan) {
  CoarsePrices result;
  result.slots = plan.row_tokens / certificate.granularity;
  for (auto entry = certificate.prices.rbegin(); entry != certificate.prices.rend(); ++entry) {
    const std::int64_t slots = entry->first / certificate.granularity;
    if (result.prices.empty() || result.prices.back().first != slots) result.prices.emplace_back(slots, 0);
    result.prices.back().second = std::max(result.prices.back().second, entry->second);
  }
  const std::int64_t fitting = result.prices.empty() ? 0 : result.slots / result.prices.front().first;
  if (plan.max_segments > 0 && plan.item_limit() < fitting) result.segments = plan.item_limit();
  return result;
}

/// Is any row worth more than `scale`? By trying, for every number of slots, each length as the last one that is put in.
bool any_row_is_worth_more(const CoarsePrices& coarse, std::int64_t scale) {
  const auto slots = static_cast<std::size_t>(coarse.slots);
  std::vector<std::int64_t> most(slots + 1, 0);  // in so many slots; with a limit, of one segment less than `now`
  std::vector<std::int64_t> now(slots + 1, 0);
  const std::int64_t passes = std::max<std::int64_t>(coarse.segments, 1);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::vector<std::int64_t>& fewer = coarse.segments > 0 ? most : now;
    for (std::size_t s = 1; s <= slots; ++s) {
      std::int64_t best = now[s - 1];
      for (const auto& [length, price] : coarse.prices) {
        if (length > static_cast<std::int64_t>(s)) break;
        best = std::max(best, fewer[s - static_cast<std::size_t>(length)] + price);
      }
      if (best > scale) return true;
      now[s] = best;
    }
    most = now;
  }
  return false;
}

}  // namespace

std::int64_t bound_of(const Certificate& certificate, const LengthHistogram& items) {
  if (certificate.scale < 1) return 0;
  Int128 worth = 0;
  for (const auto& [length, price] : certificate.prices) worth += Int128{items.count(length)} * price;
  return static_cast<std::int64_t>((worth + certificate.scale - 1) / certificate.scale);
}

std::vector<Issue> check_certificate(const PackingPlan& plan, const LengthHistogram& items) {
  const Certificate& certificate = plan.certificate;
  const auto issue = [](std::string what) { return std::vector<Issue>{{"bound", "", -1, std::move(what)}}; };
  if (certificate.scale == 0 && certificate.prices.empty()) {
    if (plan.bound.kind != BoundKind::lp) return {};
    return issue("the bound is of kind lp and there is no certificate, so it cannot be checked");
  }
  if (std::string fault = fault_of_form(certificate, plan); !fault.empty())
    return issue("the certificate does not hold: " + fault);

  const CoarsePrices prices = coarse(certificate, plan);
  const Int128 steps = Int128{prices.slots} * std::ssize(prices.prices) * std::max<std::int64_t>(prices.segments, 1);
  if (steps > kMaxSteps || prices.slots > kMaxSlots)
    return issue("the certificate takes too long to check: use a larger granularity");
  if (any_row_is_worth_more(prices, certificate.scale)) {
    return issue("the certificate does not hold: a row can be worth more than its scale, " + with_commas(certificate.scale));
  }
  const std::int64_t proven = bound_of(certificate, items);
  if (plan.bound.kind == BoundKind::lp && plan.bound.rows != proven) {
    return issue("the bound is " + with_commas(plan.bound.rows) + " (lp), the certificate proves " + with_commas(proven));
  }
  return {};
}

}  // namespace shardpack
