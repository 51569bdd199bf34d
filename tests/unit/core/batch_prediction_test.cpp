// Predictions from a histogram against plans of the same lengths, and the published times against those predicted from the
// stand-in.
#include "shardpack/batch_prediction.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/xnli_stand_in.h"

using namespace shardpack;

namespace {

LengthHistogram histogram_of(const std::vector<Length>& lengths) {
  LengthHistogram histogram;
  for (const Length length : lengths) histogram.add(length);
  return histogram;
}

BatchOptions options_of(std::string_view strategy, std::int64_t batch_size) {
  BatchOptions options;
  options.strategy = parse_batch_strategy(strategy);
  options.batch_size = options.strategy.has_budget() ? 0 : batch_size;
  return options;
}

std::vector<Length> random_lengths(std::uint64_t seed, std::size_t count, Length most) {
  const RandomStream stream(seed, RandomPurpose::sample);
  std::vector<Length> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<Length>(stream.bounded(i, static_cast<std::uint64_t>(most)));
    lengths.push_back(1 + length * length / most);
  }
  return lengths;
}

}  // namespace

TEST_CASE("sorted and budgeted strategies: the prediction is the plan's total, exactly") {
  std::int64_t compared = 0;
  for (const char* strategy : {"fixed", "sorted", "tokens:300", "quad:300:60", "tokens:90"}) {
    for (const BatchTail tail : {BatchTail::short_step, BatchTail::repeat}) {
      for (const auto& [world, accumulation] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1}, {4, 2}}) {
        for (const std::size_t count : {1U, 7U, 64U, 333U, 1000U}) {
          for (const Length multiple : {1, 8}) {
            BatchOptions options = options_of(strategy, 7);
            options.tail = tail;
            options.world = world;
            options.accumulation = accumulation;
            options.pad.multiple = multiple;
            if (options.strategy.has_budget()) options.size_multiple = 1 + static_cast<std::int64_t>(count % 3);
            if (options.strategy.has_budget() && count == 64) options.max_batch = 5;
            const BatchItems items{.lengths = random_lengths(count, count, 80), .costs = {}, .tokens = {}};
            INFO(strategy << ", tail " << static_cast<int>(tail) << ", " << world << " x " << accumulation << ", " << count
                          << " sequences, multiple " << multiple);
            const BatchStats planned = batch_stats(items, options, plan_batches(items, options, 0));
            const BatchPrediction predicted = predict_batches(histogram_of(items.lengths), options);
            if (!predicted.exact) {
              CHECK(options.strategy.kind == BatchKind::fixed);
              continue;
            }
            CHECK(predicted.padded_tokens == static_cast<double>(planned.padded_tokens));
            CHECK(predicted.padded_squares == planned.padded_squares);
            CHECK(predicted.batches == static_cast<double>(planned.batches));
            CHECK(predicted.real_tokens == static_cast<double>(planned.real_tokens));
            CHECK(predicted.shapes == static_cast<double>(planned.shapes));
            ++compared;
          }
        }
      }
    }
  }
  CHECK(compared > 200);
}

TEST_CASE("the published setting: padding of sorted from the histogram, equal to the plan's") {
  for (const auto& [cap, size] : {std::pair<Length, std::int64_t>{128, 64}, {493, 8}}) {
    const BatchItems items{.lengths = xnli_stand_in(cap), .costs = {}, .tokens = {}};
    for (std::int64_t world : {1, 8}) {
      BatchOptions options = options_of("sorted", size);
      options.world = world;
      const BatchPrediction predicted = predict_batches(histogram_of(items.lengths), options);
      const BatchStats planned = batch_stats(items, options, plan_batches(items, options, 0));
      CHECK(predicted.exact);
      CHECK(predicted.padded_tokens == static_cast<double>(planned.padded_tokens));
      CHECK(predicted.padding() <= 0.0003);
      CHECK(predicted.imbalance == Approx(planned.imbalance).margin(0.002));
      CHECK(predicted.free_imbalance == Approx(planned.free_imbalance).epsilon(0.02));
    }
  }
}

TEST_CASE("random strategies: expected padding, waiting and repeats close to a plan's") {
  for (const auto& [cap, size] : {std::pair<Length, std::int64_t>{128, 64}, {493, 8}}) {
    std::vector<Length> lengths = xnli_stand_in(cap);
    RandomStream(7, RandomPurpose::sample).shuffle(std::span(lengths));
    const BatchItems items{.lengths = lengths, .costs = {}, .tokens = {}};
    for (const char* strategy :
         {"dynamic", "mega:50", "mega:10", "pool:100", "buckets:32,64,96", "buckets:auto:8", "gist", "tokens:8192"}) {
      INFO(strategy << " at " << cap);
      BatchOptions options = options_of(strategy, size);
      options.world = 8;
      const BatchEpoch first = plan_batches(items, options, 0), second = plan_batches(items, options, 1);
      const BatchStats planned = batch_stats(items, options, first);
      const BatchPrediction predicted = predict_batches(histogram_of(lengths), options);
      CHECK(predicted.padded_tokens == Approx(static_cast<double>(planned.padded_tokens)).epsilon(0.003));
      CHECK(predicted.padded_squares == Approx(planned.padded_squares).epsilon(0.005));
      CHECK(predicted.batches == Approx(static_cast<double>(planned.batches)).epsilon(0.002));
      CHECK(predicted.imbalance == Approx(planned.imbalance).margin(0.01));
      CHECK(predicted.free_imbalance == Approx(planned.free_imbalance).epsilon(0.03));
      CHECK(predicted.repeat_share == Approx(repeat_share(first, second, items.size())).epsilon(0.5).margin(0.001));
    }
  }
}

TEST_CASE("nothing to batch, and what no batch can hold") {
  CHECK(predict_batches({}, options_of("sorted", 8)).batches == 0);
  LengthHistogram histogram;
  histogram.add(0, 5);
  histogram.add(90);
  CHECK(predict_batches(histogram, options_of("sorted", 8)).batches == 1);
  CHECK_THROWS_AS(predict_batches(histogram, options_of("tokens:80", 0)), Error);
}

// ---- times ------------------------------------------------------------------------------------------------------------------

namespace {

/// What the published work did: sequences sorted by characters, which tell tokens to 8 %, then cut at random places.
BatchWork sorted_by_characters(Length cap, std::int64_t batch_size) {
  BatchItems items{.lengths = xnli_stand_in(cap), .costs = {}, .tokens = {}};
  const RandomStream stream(11, RandomPurpose::sample);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto [u, v] = stream.pair(i);
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(u >> 11) + 0.5) * 0x1p-53));
    const double normal = radius * std::cos(2 * 3.14159265358979 * (static_cast<double>(v >> 11) * 0x1p-53));
    items.costs.push_back(std::llround(1000 * items.lengths[i] * std::exp(0.08 * normal)));  // costs are what is sorted by
  }
  const BatchOptions options = options_of("gist", batch_size);
  const BatchStats stats = batch_stats(items, options, plan_batches(items, options, 0));
  return {static_cast<double>(stats.padded_tokens), stats.padded_squares, static_cast<double>(stats.batches)};
}

struct Published {
  Length cap;
  std::int64_t batch_size;
  const char* padding;   // as published: none, dynamic, smart
  double single, mixed;  // minutes; 0 = not published
};
constexpr Published kPublished[] = {{128, 64, "none", 56, 26},  {128, 64, "dynamic", 48, 0}, {128, 64, "smart", 30, 17},
                                    {493, 8, "none", 278, 170}, {493, 8, "dynamic", 60, 0},  {493, 8, "smart", 52, 61}};

BatchWork work_of(const Published& run) {
  if (std::string(run.padding) == "smart") return sorted_by_characters(run.cap, run.batch_size);
  BatchOptions options = options_of(std::string(run.padding) == "none" ? "fixed" : "dynamic", run.batch_size);
  options.fixed_length = run.cap;
  return predict_batches(histogram_of(xnli_stand_in(run.cap)), options).work();
}

}  // namespace

TEST_CASE("the published times from the stand-in, within 20 %, in their order, and as documented") {
  std::vector<TimedWork> single, mixed;
  std::string table;
  double longer = 0;
  for (const Published& run : kPublished) {
    INFO(run.padding << " at " << run.cap);
    const BatchWork work = work_of(run);
    const double in_single = published_cost_model().minutes(work), in_mixed = published_mixed_precision_model().minutes(work);
    CHECK(in_single == Approx(run.single).epsilon(0.2));
    if (run.mixed > 0) CHECK(in_mixed == Approx(run.mixed).epsilon(0.2));
    if (std::string(run.padding) != "none") CHECK(in_single < longer);
    longer = in_single;
    single.push_back({work, run.single});
    if (run.mixed > 0) mixed.push_back({work, run.mixed});

    BatchOptions options = options_of("sorted", run.batch_size);
    const BatchWork by_tokens = predict_batches(histogram_of(xnli_stand_in(run.cap)), options).work();
    const auto row = [&](const char* padding, double a, double published_a, double b, double published_b) {
      const auto minutes = [](double value) { return value > 0 ? fmt::format("{:g}", value) : std::string("-"); };
      table += fmt::format("| {} x {} | {} | {:.1f} | {} | {:.1f} | {} |\n", run.cap, run.batch_size, padding, a,
                           minutes(published_a), b, minutes(published_b));
    };
    row(run.padding, in_single, run.single, in_mixed, run.mixed);
    if (std::string(run.padding) == "smart") {
      row("`sorted`", published_cost_model().minutes(by_tokens), 0, published_mixed_precision_model().minutes(by_tokens), 0);
    }
  }

  // The constants are those that the solver finds.
  const auto check_fit = [](const CostModel& stated, const CostModel& fitted) {
    INFO(fmt::format("{:.5g}, {:.5g}, {:.5g}", fitted.minutes_per_token, fitted.minutes_per_square, fitted.minutes_per_batch));
    CHECK(stated.minutes_per_token == Approx(fitted.minutes_per_token).epsilon(0.01));
    CHECK(stated.minutes_per_square == Approx(fitted.minutes_per_square).epsilon(0.01));
    CHECK(stated.minutes_per_batch == Approx(fitted.minutes_per_batch).epsilon(0.01));
  };
  check_fit(published_cost_model(), fit_cost_model(single));
  check_fit(published_mixed_precision_model(), fit_cost_model(mixed));

  INFO("docs/batching.md should hold:\n" << table);
  std::ifstream file(std::string(SHARDPACK_SOURCE_DIR) + "/docs/batching.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  CHECK(document.find(table) != std::string::npos);
}

TEST_CASE("a cost model is found again from times that follow it") {
  const CostModel truth{"", 2e-6, 3e-9, 5e-4};
  std::vector<TimedWork> times;
  for (const double size : {1.0, 8.0, 64.0}) {
    for (const double length : {32.0, 128.0, 512.0}) {
      const BatchWork work{size * length * 100, size * length * length * 100, 100};
      times.push_back({work, truth.minutes(work)});
    }
  }
  const CostModel found = fit_cost_model(times);
  CHECK(found.minutes_per_token == Approx(truth.minutes_per_token).epsilon(1e-6));
  CHECK(found.minutes_per_square == Approx(truth.minutes_per_square).epsilon(1e-6));
  CHECK(found.minutes_per_batch == Approx(truth.minutes_per_batch).epsilon(1e-6));
  CHECK(found.name == "calibrated");

  // Time that falls with length would need a negative constant: it becomes 0, never less.
  for (TimedWork& run : times) run.minutes = 1 / run.work.padded_tokens;
  const CostModel odd = fit_cost_model(times);
  CHECK((odd.minutes_per_token >= 0 && odd.minutes_per_square >= 0 && odd.minutes_per_batch >= 0));
  CHECK_THROWS_AS(fit_cost_model({}), Error);
  times[0].minutes = 0;
  CHECK_THROWS_AS(fit_cost_model(times), Error);
}
