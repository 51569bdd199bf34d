// Certificates made by hand: those that hold, and every way in which one can be false.
#include "shardpack/certificate.h"

#include <string>
#include <utility>
#include <vector>

#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
using Prices = std::vector<std::pair<Length, std::int64_t>>;

/// What the check finds, the message of the one issue; "" = it holds.
std::string found(Length row_tokens, std::int32_t max_segments, std::int64_t scale, const Prices& prices,
                  const std::vector<LengthCount>& items = {}, std::int64_t claimed = 0, std::int32_t granularity = 1) {
  PackingPlan plan;
  plan.row_tokens = row_tokens;
  plan.max_segments = max_segments;
  plan.certificate = {scale, granularity, prices};
  plan.bound = {claimed, BoundKind::lp};
  const std::vector<Issue> issues = check_certificate(plan, LengthHistogram(items));
  REQUIRE(issues.size() <= 1);
  if (!issues.empty()) CHECK(issues.front().kind == "bound");
  return issues.empty() ? "" : issues.front().message;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("the bound is the items' prices in rows, rounded up") {
  const LengthHistogram items(std::vector<LengthCount>{{4, 5}, {6, 3}, {7, 100}});
  CHECK(bound_of({}, items) == 0);
  CHECK(bound_of({2, 1, {{6, 1}, {4, 1}}}, items) == 4);
  CHECK(bound_of({3, 1, {{6, 1}, {4, 1}}}, items) == 3);
  CHECK(bound_of({2, 1, {{9, 2}}}, items) == 0);  // there are none of length 9

  const std::int64_t many = 1'000'000'000'000, scale = std::int64_t{1} << 53;
  CHECK(bound_of({scale, 1, {{4, scale}}}, LengthHistogram(std::vector<LengthCount>{{4, many}})) == many);
  CHECK(bound_of({scale, 1, {{4, scale - 1}}}, LengthHistogram(std::vector<LengthCount>{{4, many}})) == many);  // rounded up
}

TEST_CASE("prices hold when no row is worth more than the scale") {
  CHECK(found(10, 0, 2, {{6, 1}, {5, 1}}, {{5, 4}, {6, 3}}, 4).empty());
  CHECK(says(found(10, 0, 2, {{6, 1}, {3, 1}}), "a row can be worth more than its scale, 2"));  // 3 3 3
  CHECK(found(10, 2, 2, {{6, 1}, {3, 1}}, {{3, 2}}, 1).empty());                                // but not with two segments
  CHECK(found(10, 3, 3, {{6, 1}, {3, 1}}, {{3, 2}}, 1).empty());
  CHECK(says(found(10, 3, 2, {{6, 1}, {3, 1}}), "can be worth more"));
  CHECK(found(10, 0, 10, {{10, 10}, {5, 5}, {1, 1}}, {{5, 3}}, 2).empty());
  CHECK(says(found(10, 0, 10, {{10, 10}, {5, 6}, {1, 1}}), "can be worth more"));
  CHECK(found(1, 0, 1, {{1, 1}}, {{1, 7}}, 7).empty());
  CHECK(found(10, 0, 1, {}, {{1, 7}}, 0).empty());  // proves nothing, and claims nothing
}

TEST_CASE("a limit of segments counts those of every item") {
  // Pairs: at most five segments are two items.
  PackingPlan plan;
  plan.row_tokens = 10;
  plan.max_segments = 5;
  plan.policy.keep_together = 2;
  plan.certificate = {2, 1, {{6, 1}, {3, 1}}};
  plan.bound = {1, BoundKind::lp};
  const LengthHistogram items(std::vector<LengthCount>{{3, 2}});
  CHECK(check_certificate(plan, items).empty());
  plan.policy.keep_together = 1;  // 3 3 3
  CHECK_FALSE(check_certificate(plan, items).empty());
}

TEST_CASE("one price raised by the least possible is found out") {
  // 512 slots, prices proportional to length: exact to the last unit.
  const std::int64_t scale = std::int64_t{512} << 40;
  Prices prices;
  for (Length length = 512; length >= 1; --length) prices.emplace_back(length, std::int64_t{length} << 40);
  CHECK(found(512, 0, scale, prices, {{512, 3}, {100, 1}}, 4).empty());
  for (const std::size_t at : {0u, 100u, 256u, 511u}) {
    Prices raised = prices;
    raised[at].second += 1;
    if (raised[at].second > scale) {
      CHECK(says(found(512, 0, scale, raised), "its price of length"));
    } else {
      CHECK(says(found(512, 0, scale, raised), "can be worth more"));
    }
  }
  CHECK(says(found(512, 0, scale - 1, {prices.begin() + 1, prices.end()}), "can be worth more"));
}

TEST_CASE("worth beyond 63 bits does not wrap around") {
  const std::int64_t scale = std::int64_t{1} << 53;
  CHECK(says(found(4096, 0, scale, {{1, scale}}), "can be worth more"));  // 2^65 in a row
  CHECK(says(found(4096, 4095, scale, {{1, scale}}), "can be worth more"));
}

TEST_CASE("a claimed bound must be the one that is proven") {
  CHECK(says(found(10, 0, 2, {{6, 1}, {5, 1}}, {{5, 4}, {6, 3}}, 5), "the bound is 5 (lp), the certificate proves 4"));
  CHECK(says(found(10, 0, 2, {{6, 1}, {5, 1}}, {{5, 4}, {6, 3}}, 3), "the bound is 3 (lp), the certificate proves 4"));

  PackingPlan plan;
  plan.row_tokens = 10;
  CHECK(check_certificate(plan, {}).empty());  // nothing claimed, nothing to prove
  plan.bound.kind = BoundKind::lp;
  REQUIRE(check_certificate(plan, {}).size() == 1);
  CHECK(says(check_certificate(plan, {}).front().message, "there is no certificate"));
}

TEST_CASE("a coarse certificate is checked in coarse slots") {
  // Rows of 10 in fours are 2 coarse slots: 4..7 take one, 8..10 two.
  CHECK(found(10, 0, 2, {{9, 2}, {7, 1}, {4, 1}}, {{9, 1}, {7, 2}}, 2, 4).empty());
  CHECK(says(found(10, 0, 2, {{9, 2}, {7, 2}, {4, 1}}, {}, 0, 4), "can be worth more"));
  CHECK(found(10, 1, 2, {{9, 2}, {7, 2}, {4, 1}}, {{7, 2}}, 2, 4).empty());
  CHECK(says(found(10, 0, 2, {{9, 2}, {3, 1}}, {}, 0, 4), "below its granularity"));
}

TEST_CASE("malformed certificates are refused") {
  CHECK(says(found(10, 0, -1, {{6, 1}}), "scale"));
  CHECK(says(found(10, 0, 0, {{6, 1}}), "scale"));
  CHECK(says(found(10, 0, (std::int64_t{1} << 53) + 1, {{6, 1}}), "scale"));
  CHECK(says(found(10, 0, 2, {{6, 1}}, {}, 0, 0), "granularity"));
  CHECK(says(found(10, 0, 2, {{6, 1}}, {}, 0, 11), "granularity"));
  CHECK(says(found(10, 0, 2, {{5, 1}, {6, 1}}), "out of order"));
  CHECK(says(found(10, 0, 2, {{6, 1}, {6, 1}}), "out of order"));
  CHECK(says(found(10, 0, 2, {{11, 1}}), "out of order"));
  CHECK(says(found(10, 0, 2, {{0, 1}}), "out of order"));
  CHECK(says(found(10, 0, 2, {{6, 0}}), "price"));
  CHECK(says(found(10, 0, 2, {{6, -3}}), "price"));
  CHECK(says(found(10, 0, 2, {{6, 3}}), "price"));
  CHECK(says(found(2'000'000'000, 0, 2, {{6, 1}}), "too long to check"));
}
