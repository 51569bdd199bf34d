// Batch plans against brute force, published examples of other tools, and the figures measured on the stand-in distribution.
#include "shardpack/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "base/rng.h"
#include "core/batching/steps.h"
#include "core/predictions.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/xnli_stand_in.h"

using namespace shardpack;

namespace {

BatchOptions options_of(std::string_view strategy, std::int64_t batch_size) {
  BatchOptions options;
  options.strategy = parse_batch_strategy(strategy);
  options.batch_size = options.strategy.has_budget() ? 0 : batch_size;
  return options;
}

/// In no order: mixed by a fixed seed.
std::vector<Length> mixed(std::vector<Length> lengths) {
  RandomStream(7, RandomPurpose::sample).shuffle(std::span(lengths));
  return lengths;
}

std::vector<Length> random_lengths(std::uint64_t seed, std::size_t count, Length least, Length most) {
  const RandomStream stream(seed, RandomPurpose::sample);
  std::vector<Length> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    lengths.push_back(least + static_cast<Length>(stream.bounded(i, static_cast<std::uint64_t>(most - least + 1))));
  }
  return lengths;
}

/// What the error says; empty when there is none.
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

/// The batches as sets of items.
std::set<std::set<std::uint32_t>> as_sets(const BatchEpoch& epoch) {
  std::set<std::set<std::uint32_t>> sets;
  for (std::int64_t b = 0; b < epoch.batches(); ++b) {
    const auto begin = epoch.items.begin() + epoch.begin[static_cast<std::size_t>(b)];
    sets.insert(std::set<std::uint32_t>(begin, begin + epoch.size(b)));
  }
  return sets;
}

/// Every rule that holds for any plan, told from the plan alone.
void check_epoch(const BatchItems& items, const BatchOptions& options, const BatchEpoch& epoch) {
  REQUIRE(epoch.batches() % options.group_size() == 0);
  REQUIRE(epoch.begin.size() == epoch.pad_length.size() + 1);
  std::vector<int> seen(items.size(), 0);
  BatchTotals repeated, counted;
  for (std::int64_t b = 0; b < epoch.batches(); ++b) {
    REQUIRE(epoch.size(b) > 0);
    Length longest = 0;
    for (std::int64_t i = epoch.begin[static_cast<std::size_t>(b)]; i < epoch.begin[static_cast<std::size_t>(b) + 1]; ++i) {
      const std::uint32_t item = epoch.items[static_cast<std::size_t>(i)];
      longest = std::max(longest, items.lengths.at(item));
      const bool counts = epoch.weights.empty() || epoch.weights[static_cast<std::size_t>(i)] > 0;
      if (seen[item]++ > 0) {
        ++repeated.items;
        repeated.tokens += items.lengths[item];
        REQUIRE(counts == (options.tail == BatchTail::repeat));
      } else {
        ++counted.items;
        counted.tokens += items.lengths[item];
        REQUIRE(counts);
      }
    }
    const std::int64_t pad = epoch.pad_length[static_cast<std::size_t>(b)], size = epoch.size(b);
    if (options.strategy.kind == BatchKind::fixed) {
      longest = std::max(options.fixed_length, *std::max_element(items.lengths.begin(), items.lengths.end()));
    }
    if (options.pad.shapes.empty()) {
      REQUIRE(pad % options.pad.multiple == 0);
      REQUIRE((pad >= longest && pad < longest + options.pad.multiple));
    } else {
      REQUIRE(pad == *std::find_if(options.pad.shapes.begin(), options.pad.shapes.end(), [&](Length s) { return s >= longest; }));
    }
    if (options.strategy.kind == BatchKind::tokens) REQUIRE(size * pad <= options.strategy.amount);
    if (options.strategy.kind == BatchKind::quad) {
      REQUIRE(size * (pad * options.strategy.quadratic + pad * pad) <= options.strategy.amount * options.strategy.quadratic);
    }
    if (options.strategy.has_budget()) {
      if (options.max_batch > 0) REQUIRE(size <= options.max_batch);
    } else {
      REQUIRE(size <= options.batch_size);
    }
  }
  CHECK(repeated.items == epoch.repeated.items);
  CHECK(repeated.tokens == epoch.repeated.tokens);
  const std::int64_t tokens = std::accumulate(items.lengths.begin(), items.lengths.end(), std::int64_t{0});
  CHECK(counted.items + epoch.dropped.items == static_cast<std::int64_t>(items.size()));
  CHECK(counted.tokens + epoch.dropped.tokens == tokens);
  if (options.tail != BatchTail::drop) CHECK(epoch.dropped.items == 0);
}

const std::vector<std::string> kStrategies{"fixed",  "dynamic",      "sorted",         "gist",       "mega:3",
                                           "pool:4", "buckets:8,20", "buckets:auto:3", "tokens:200", "quad:200:40"};

}  // namespace

TEST_CASE("batching strategies as they are typed") {
  for (const std::string& text : kStrategies) CHECK(to_text(parse_batch_strategy(text)) == text);
  CHECK(parse_batch_strategy("quad:8192:512").quadratic == 512);
  CHECK(parse_batch_strategy("buckets:3,5").boundaries == std::vector<Length>{3, 5});
  for (const char* wrong :
       {"", "sort", "sorted:3", "mega", "mega:0", "mega:x", "tokens", "tokens:-5", "quad:5", "buckets", "buckets:", "buckets:5,3",
        "buckets:5,5", "buckets:auto", "buckets:auto:0", "tokens:1:2", "tokens:99999999999999999999"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_batch_strategy(wrong), Error);
  }
  CHECK(refusal([] { parse_batch_strategy("sortd"); }) == "unknown batching strategy 'sortd'; did you mean sorted?");
}

TEST_CASE("options that contradict each other are refused") {
  const auto refused = [](const BatchOptions& options) { CHECK_THROWS_AS(check_batch_options(options), Error); };
  refused(options_of("sorted", 0));
  BatchOptions options = options_of("tokens:100", 0);
  check_batch_options(options);
  options.batch_size = 8;
  refused(options);
  options = options_of("sorted", 10);
  options.size_multiple = 4;
  refused(options);
  options = options_of("sorted", 8);
  options.max_batch = 3;
  refused(options);
  options = options_of("sorted", 8);
  options.pad = {.multiple = 8, .shapes = {64}};
  refused(options);
}

TEST_CASE("greedy cuts equal the slow reference over fairseq's sweep") {
  // The rule, written as slowly as possible: try every end, measure the whole slice each time.
  const auto reference = [](const std::vector<Length>& lengths, std::int64_t tokens, std::int64_t sentences,
                            std::int64_t multiple) {
    std::vector<BatchRange> batches;
    const auto fits = [&](std::size_t begin, std::size_t end) {
      const std::int64_t longest = *std::max_element(lengths.begin() + static_cast<std::ptrdiff_t>(begin),
                                                     lengths.begin() + static_cast<std::ptrdiff_t>(end));
      const auto count = static_cast<std::int64_t>(end - begin);
      return (tokens == 0 || count * longest <= tokens) && (sentences == 0 || count <= sentences);
    };
    for (std::size_t begin = 0; begin < lengths.size();) {
      std::size_t end = begin + 1;
      while (end < lengths.size() && fits(begin, end + 1)) ++end;
      auto count = static_cast<std::int64_t>(end - begin);
      if (count > multiple) count -= count % multiple;
      batches.push_back({static_cast<std::int64_t>(begin), count});
      begin += static_cast<std::size_t>(count);
    }
    return batches;
  };
  std::int64_t compared = 0;
  for (std::size_t count : {10U, 11U}) {
    for (std::int64_t sentences = 0; sentences <= 12; ++sentences) {
      for (std::int64_t tokens = 0; tokens <= 9; ++tokens) {
        for (std::int64_t multiple = 1; multiple <= 12; ++multiple) {
          for (std::uint64_t draw = 0; draw < 5; ++draw) {
            const std::vector<Length> lengths = random_lengths(
                1000 * draw + static_cast<std::uint64_t>(100 * sentences + 10 * tokens), count, 0, static_cast<Length>(tokens));
            BatchOptions options;
            options.strategy = {.kind = BatchKind::tokens, .amount = tokens == 0 ? std::int64_t{1} << 30 : tokens};
            options.max_batch = sentences;
            options.size_multiple = multiple;
            const auto cut = cut_greedy(static_cast<std::int64_t>(count), options,
                                        [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; });
            REQUIRE(cut == reference(lengths, tokens, sentences, multiple));
            ++compared;
          }
        }
      }
    }
  }
  CHECK(compared == 2 * 13 * 10 * 12 * 5);
}

TEST_CASE("buckets: the example of tf.data's documentation") {
  const BatchItems items{.lengths = {1, 4, 3, 5, 8, 2}, .costs = {}, .tokens = {}};
  const BatchEpoch epoch = plan_batches(items, options_of("buckets:3,5", 2), 0);
  CHECK(as_sets(epoch) == std::set<std::set<std::uint32_t>>{{1, 2}, {3, 4}, {0, 5}});
}

TEST_CASE("buckets of equal tokens, and the quadratic budget: lhotse's test vectors") {
  std::vector<Length> lengths(5, 1);
  lengths.resize(10, 2);
  CHECK(equal_token_boundaries(mixed(lengths), 2) == std::vector<Length>{2});
  lengths.resize(15, 3);
  lengths.resize(20, 4);
  CHECK(equal_token_boundaries(mixed(lengths), 4) == std::vector<Length>{2, 3, 4});
  CHECK(equal_token_boundaries(std::vector<Length>(), 4).empty());
  CHECK(equal_token_boundaries(std::vector<Length>(9, 7), 3).empty());

  std::vector<Length> seconds(5, 5);
  seconds.resize(10, 30);
  CHECK(plan_batches({.lengths = mixed(seconds), .costs = {}, .tokens = {}}, options_of("quad:61:30", 0), 0).batches() == 6);
  CHECK(plan_batches({.lengths = mixed(seconds), .costs = {}, .tokens = {}}, options_of("tokens:61", 0), 0).batches() == 4);
}

TEST_CASE("mega-batches are a permutation that opens with the longest, and pad as much as measured") {
  const BatchItems small{.lengths = random_lengths(3, 1000, 1, 90), .costs = {}, .tokens = {}};
  const BatchOptions small_options = options_of("mega:5", 8);
  const BatchOrder order = order_items(small, small_options, {}, 0);
  CHECK(std::set<std::uint32_t>(order.items.begin(), order.items.end()).size() == 1000);
  CHECK(small.lengths[order.items[0]] == *std::max_element(small.lengths.begin(), small.lengths.end()));
  // Descending inside chunks of 40, but for the two places of the exchange.
  std::int64_t rises = 0;
  for (std::size_t i = 1; i < 1000; ++i) {
    rises += i % 40 != 0 && small.lengths[order.items[i]] > small.lengths[order.items[i - 1]];
  }
  CHECK(rises <= 1);

  for (const auto& [cap, size, padding, tolerance] :
       {std::tuple<Length, std::int64_t, double, double>{128, 64, 0.023, 0.003}, {493, 8, 0.050, 0.005}}) {
    const BatchItems items{.lengths = mixed(xnli_stand_in(cap)), .costs = {}, .tokens = {}};
    const BatchOptions options = options_of("mega:50", size);
    CHECK(std::abs(batch_stats(items, options, plan_batches(items, options, 0)).padding() - padding) <= tolerance);
  }
}

TEST_CASE("sorted: no other partition into batches of that size has less padding") {
  // All ways to choose ceil(n / B) batches of B, one of them shorter: by the smallest item left and who joins it.
  std::function<std::int64_t(std::vector<Length>, std::int64_t, bool)> least = [&](std::vector<Length> left, std::int64_t size,
                                                                                   bool short_one_left) -> std::int64_t {
    const auto count = static_cast<std::int64_t>(left.size());
    if (count == 0) return 0;
    std::int64_t best = std::int64_t{1} << 40;
    const auto join = [&](std::int64_t members, bool still_short) {
      for (std::uint32_t mask = 0; mask < (1U << (count - 1)); ++mask) {
        if (__builtin_popcount(mask) != members - 1) continue;
        Length longest = left[0];
        std::vector<Length> others;
        for (std::size_t i = 1; i < left.size(); ++i) {
          if ((mask >> (i - 1) & 1) != 0) {
            longest = std::max(longest, left[i]);
          } else {
            others.push_back(left[i]);
          }
        }
        best = std::min(best, members * longest + least(others, size, still_short));
      }
    };
    const std::int64_t rest = count % size;
    if (!(short_one_left && rest == 0)) {
      if (count >= size) join(size, short_one_left);
      if (short_one_left && rest > 0) join(rest, false);
    } else {
      join(size, false);
    }
    return best;
  };
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    const std::size_t count = 3 + draw % 8;  // to 10
    const BatchItems items{.lengths = random_lengths(draw, count, 1, 12), .costs = {}, .tokens = {}};
    for (std::int64_t size : {2, 3, 4}) {
      const BatchOptions options = options_of("sorted", size);
      const BatchEpoch epoch = plan_batches(items, options, 0);
      check_epoch(items, options, epoch);
      CHECK(batch_stats(items, options, epoch).padded_tokens ==
            least(items.lengths, size, static_cast<std::int64_t>(count) % size != 0));
    }
  }
}

TEST_CASE("dynamic: the expected longest of a batch, within 0.2 %") {
  for (const auto& [cap, size] : {std::pair<Length, std::int64_t>{128, 64}, {493, 8}}) {
    const BatchItems items{.lengths = mixed(xnli_stand_in(cap)), .costs = {}, .tokens = {}};
    LengthHistogram histogram;
    for (const Length length : items.lengths) histogram.add(length);
    const BatchOptions options = options_of("dynamic", size);
    const auto planned = static_cast<double>(batch_stats(items, options, plan_batches(items, options, 0)).padded_tokens);
    CHECK(std::abs(planned / static_cast<double>(expected_dynamic_slots(histogram, size)) - 1) < 0.002);
  }
}

TEST_CASE("every strategy covers every item once an epoch, on ranks of equal count") {
  for (const std::string& strategy : kStrategies) {
    for (const BatchTail tail : {BatchTail::short_step, BatchTail::repeat, BatchTail::drop}) {
      for (const auto& [world, accumulation] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1}, {4, 2}, {7, 3}}) {
        for (const std::size_t count : {0U, 1U, 5U, 97U, 336U, 1000U}) {
          INFO(strategy << ", tail " << static_cast<int>(tail) << ", " << world << " x " << accumulation << ", " << count);
          const BatchItems items{.lengths = random_lengths(count, count, 1, 40), .costs = {}, .tokens = {}};
          BatchOptions options = options_of(strategy, 8);
          options.tail = tail;
          options.world = world;
          options.accumulation = accumulation;
          options.pad.multiple = 1 + static_cast<Length>(count % 4);
          options.oom_first = count % 2 == 0;
          options.seed = count;
          const BatchEpoch first = plan_batches(items, options, 0), second = plan_batches(items, options, 1);
          check_epoch(items, options, first);
          check_epoch(items, options, second);
          CHECK(first.batches() == second.batches());
          const BatchEpoch again = plan_batches(items, options, 0);
          CHECK((again.items == first.items && again.begin == first.begin && again.pad_length == first.pad_length));
          if (tail == BatchTail::repeat && !options.strategy.has_budget() && options.strategy.kind != BatchKind::buckets) {
            for (std::int64_t b = 0; b < first.batches(); ++b) CHECK(first.size(b) == 8);
          }
        }
      }
    }
  }
}

TEST_CASE("the short last step is spread evenly, and a rank without items repeats one that counts for nothing") {
  BatchOptions options = options_of("sorted", 8);
  options.world = 4;
  BatchItems items{.lengths = random_lengths(1, 32 + 10, 1, 30), .costs = {}, .tokens = {}};
  BatchEpoch epoch = plan_batches(items, options, 0);
  REQUIRE(epoch.batches() == 8);
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 4; b < 8; ++b) sizes.push_back(epoch.size(b));
  std::sort(sizes.begin(), sizes.end());
  CHECK(sizes == std::vector<std::int64_t>{2, 2, 3, 3});
  CHECK(epoch.weights.empty());

  items.lengths.resize(32 + 3);
  epoch = plan_batches(items, options, 0);
  REQUIRE(epoch.batches() == 8);
  CHECK(epoch.repeated.items == 1);
  REQUIRE(epoch.weights.size() == 36);
  CHECK(std::count(epoch.weights.begin(), epoch.weights.end(), 0.0F) == 1);
  CHECK(epoch.weights.back() == 0);
}

TEST_CASE("a budget holds after rounding, also in a last step with few long items") {
  BatchOptions options = options_of("tokens:1000", 0);
  options.world = 3;
  options.pad.multiple = 8;
  // One batch of 100 short items and one of 10 long ones would go to three ranks: 37 a rank would be 37 x 104 tokens.
  std::vector<Length> lengths(100, 8);
  lengths.resize(109, 97);
  const BatchItems items{.lengths = mixed(lengths), .costs = {}, .tokens = {}};
  const BatchEpoch epoch = plan_batches(items, options, 0);
  CHECK(epoch.batches() == 3);
  check_epoch(items, options, epoch);
}

TEST_CASE("an item that no batch can hold is named") {
  const BatchItems items{.lengths = {5, 90, 7}, .costs = {}, .tokens = {}};
  const std::string message = refusal([&] { plan_batches(items, options_of("tokens:80", 0), 0); });
  CHECK(message.starts_with("90 tokens, padded to 90, are over the budget of --strategy tokens:80 alone"));
  CHECK(message.find("--max-length") != std::string::npos);
  BatchOptions options = options_of("sorted", 2);
  options.pad.shapes = {16, 64};
  CHECK(refusal([&] { plan_batches(items, options, 0); }) == "90 tokens do not fit the largest of --shapes, 64");
}

TEST_CASE("which sequences are batched, and how much of each") {
  const std::vector<std::int64_t> lengths{0, 5, 90, 2, 128, 129, 0};
  const BatchSelection all = select_batch_items(lengths, {});
  CHECK(all.sequences == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  CHECK(all.removed[static_cast<std::size_t>(RemovalCause::empty)].sequences == 2);
  CHECK(all.tokens == 354);
  CHECK_FALSE(all.cut);

  LengthPolicy policy;
  policy.row_tokens = 100;
  policy.overlong = Overlong::truncate;
  policy.min_tokens = 3;
  const BatchSelection cut = select_batch_items(lengths, policy);
  CHECK(cut.sequences == std::vector<std::int64_t>{1, 2, 4, 5});
  CHECK(cut.items.lengths == std::vector<Length>{5, 90, 100, 100});
  CHECK(cut.removed[static_cast<std::size_t>(RemovalCause::truncated)].tokens == 57);
  CHECK(cut.removed[static_cast<std::size_t>(RemovalCause::too_short)].tokens == 2);
  CHECK(cut.cut);

  policy.overlong = Overlong::drop;
  const BatchSelection dropped = select_batch_items(lengths, policy);
  CHECK(dropped.items.lengths == std::vector<Length>{5, 90});
  CHECK(dropped.removed[static_cast<std::size_t>(RemovalCause::dropped)].tokens == 257);
  CHECK_FALSE(dropped.cut);

  policy.overlong = Overlong::error;
  CHECK(
      refusal([&] { select_batch_items(lengths, policy); }) ==
      "2 of 7 sequences are longer than 100 tokens (longest 129); choose --overlong truncate (cuts 57 tokens) or drop (loses 257 "
      "tokens), or raise --max-length");
  policy.overlong = Overlong::split;
  CHECK_THROWS_AS(select_batch_items(lengths, policy), Error);
}

TEST_CASE("shapes: batches have few padded lengths") {
  const BatchItems items{.lengths = random_lengths(1, 500, 1, 128), .costs = {}, .tokens = {}};
  BatchOptions options = options_of("sorted", 10);
  options.pad.shapes = {32, 64, 128};
  const BatchEpoch epoch = plan_batches(items, options, 0);
  check_epoch(items, options, epoch);
  CHECK(batch_stats(items, options, epoch).shapes == 3);
}

TEST_CASE("with oom-first the costliest batch is in the first step") {
  for (const std::string& strategy : kStrategies) {
    const BatchItems items{.lengths = random_lengths(2, 999, 1, 40), .costs = {}, .tokens = {}};
    BatchOptions options = options_of(strategy, 8);
    options.world = 2;
    options.oom_first = true;
    const BatchEpoch epoch = plan_batches(items, options, 0);
    CHECK(std::max(epoch.pad_length[0], epoch.pad_length[1]) ==
          *std::max_element(epoch.pad_length.begin(), epoch.pad_length.end()));
  }
}

TEST_CASE("packed rows are batched by the cost of their segments") {
  BatchItems items{.lengths = std::vector<Length>(4000, 512), .costs = {}, .tokens = {}};
  for (const Length cost : random_lengths(5, 4000, 20'000, 262'144)) items.costs.push_back(cost);
  BatchOptions options = options_of("sorted", 4);
  options.world = 8;
  const BatchEpoch epoch = plan_batches(items, options, 0);
  check_epoch(items, options, epoch);
  const BatchStats stats = batch_stats(items, options, epoch);
  CHECK(stats.imbalance < 1.01);
  CHECK(stats.free_imbalance > 1.5);
  CHECK(stats.padding() == 0);
}

// Ten million take less than a second of one core (bench/micro/batching.cpp); a tenth of them has ten times as long here, so that
// a slow machine and a sanitizer pass, and a sort or a search for each item do not.
TEST_CASE("a million sequences are planned in a moment") {
  const BatchItems items{.lengths = mixed(xnli_stand_in(493, 1'000'000)), .costs = {}, .tokens = {}};
  BatchOptions options = options_of("sorted", 64);
  options.world = 8;
  const std::clock_t begin = std::clock();  // processor time, whatever else runs
  const BatchEpoch epoch = plan_batches(items, options, 0);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(epoch.items.size() == items.size());
  CHECK(seconds < 1);
}

TEST_CASE("table of strategies on the stand-in distribution") {
  struct Measured {
    const char* strategy;
    double padding, repeats, free_imbalance;  // 0: not stated, or too small to compare
  };
  // Padding, repeat probability and 8-rank critical path as the reference measured them on a drawn stand-in.
  const auto check = [](Length cap, std::int64_t size, const std::vector<Measured>& table) {
    const BatchItems items{.lengths = mixed(xnli_stand_in(cap)), .costs = {}, .tokens = {}};
    for (const Measured& row : table) {
      INFO(row.strategy << " at " << cap);
      BatchOptions options = options_of(row.strategy, size);
      options.world = 8;
      const BatchEpoch first = plan_batches(items, options, 0), second = plan_batches(items, options, 1);
      const BatchStats stats = batch_stats(items, options, first);
      const double repeats = repeat_share(first, second, items.size());
      CHECK(stats.padding() == Approx(row.padding).epsilon(0.1).margin(0.0008));
      if (options.strategy.kind == BatchKind::sorted) CHECK(stats.padding() <= 0.0003);
      if (row.repeats > 0) CHECK(repeats == Approx(row.repeats).epsilon(0.35));
      CHECK(stats.imbalance <= 1.01);
      if (row.free_imbalance > 0) CHECK(stats.free_imbalance == Approx(row.free_imbalance).epsilon(0.05));
    }
  };
  check(128, 64,
        {{"fixed", 0.618, 0, 1.0},
         {"dynamic", 0.613, 0, 1.01},
         {"sorted", 0.0002, 0.019, 1.95},
         {"mega:50", 0.023, 0.005, 0},
         {"pool:100", 0.012, 0.007, 0},
         {"mega:10", 0.104, 0.001, 0},
         {"gist", 0.002, 0.45, 0}});
  check(493, 8,
        {{"fixed", 0.899, 0, 1.0},
         {"dynamic", 0.522, 0, 1.68},
         {"sorted", 0.0001, 0.005, 2.09},
         {"mega:50", 0.050, 0, 0},
         {"pool:100", 0.029, 0, 0},
         {"mega:10", 0.164, 0, 0},
         {"gist", 0.0006, 0.40, 0}});
}
