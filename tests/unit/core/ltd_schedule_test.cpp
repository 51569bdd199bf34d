#include "shardpack/ltd_schedule.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

LtdSchedule schedule_of(KeptGrowth growth, std::int64_t layers, std::int64_t ltd_layers, std::int64_t micro_batch,
                        std::int64_t accumulation, std::int64_t seq_length) {
  LtdSchedule schedule;
  schedule.growth = growth;
  schedule.layers = layers;
  schedule.ltd_layers = ltd_layers;
  schedule.micro_batch = micro_batch;
  schedule.accumulation = accumulation;
  schedule.seq_length = seq_length;
  return schedule;
}
LtdSchedule cifar() { return schedule_of({32, 197, 8, 3910}, 12, 10, 32, 1, 197); }
LtdSchedule gpt2(std::int64_t layers) { return schedule_of({128, 1024, 8, 400}, layers, layers - 2, 2, 2, 1024); }
LtdSchedule gpt3(std::int64_t ramp_steps = 200'000) { return schedule_of({128, 2048, 16, ramp_steps}, 24, 22, 512, 1, 2048); }

LtdTable table_of(const LtdSchedule& schedule, const Budget& budget, const LearningRate& rate = {}) {
  return make_ltd_table(schedule, budget, rate, nullptr);
}

std::vector<std::int64_t> lengths(const Curriculum& curriculum, std::int64_t last) {
  std::vector<std::int64_t> result;
  for (std::int64_t count = 1; count <= last; ++count) result.push_back(curriculum_length(curriculum, count));
  return result;
}

}  // namespace

TEST_CASE("published: CIFAR, 5,474 steps") {
  const LtdTable table = table_of(cifar(), {BudgetKind::steps, 5474});
  CHECK(table.layer_tokens == 305'784'192);
  CHECK(table.dense_layer_tokens == 414'097'152);
  CHECK(table.steps.back().kept == 197);
  CHECK(table.saving() == Approx(0.2616).margin(5e-5));
  CHECK(table.plateaus.size() == 22);  // 32 to 192, and 197
}

TEST_CASE("published: GPT-2 base and medium end inside their budgets") {
  const Budget tokens{BudgetKind::tokens, 524 * 4096};
  const LtdTable base = table_of(gpt2(12), tokens), medium = table_of(gpt2(24), tokens);
  CHECK(base.budget.micro_step == 1344);
  CHECK(base.budget.tokens == 2'148'032);
  CHECK(base.budget.optimizer_step == 672);
  CHECK(base.steps.size() == 672);
  CHECK(base.effective_tokens == 2'148'032);
  CHECK(medium.budget.micro_step == 1373);
  CHECK(medium.budget.tokens == 2'147'024);
  CHECK(medium.budget.optimizer_step == 686);
  CHECK(medium.steps.size() == 687);
  CHECK(medium.effective_tokens == 2'149'072);
}

TEST_CASE("published: GPT-3 1.3B by tokens") {
  struct Run {
    std::int64_t tokens, ramp_steps, steps;
  };
  for (const Run& run : {Run{300, 200'000, 372'789}, Run{200, 133'333, 248'526}, Run{150, 100'000, 186'395}}) {
    const auto begin = std::chrono::steady_clock::now();
    const LtdTable table = table_of(gpt3(run.ramp_steps), {BudgetKind::tokens, run.tokens * 1'000'000'000});
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
    CHECK(static_cast<std::int64_t>(table.steps.size()) == run.steps);
    if (run.tokens != 300) continue;
    CHECK(table.layer_tokens == 7'200'824'754'176);
    CHECK(table.plateaus.size() == 121);
    CHECK(table.saving() == Approx(0.2324).margin(5e-5));
  }
}

TEST_CASE("published: BERT-large by tokens") {
  const LtdSchedule bert = schedule_of({128, 512, 16, 2'000'000}, 24, 22, 1024, 1, 512);
  const LtdTable table = table_of(bert, {BudgetKind::tokens, std::int64_t{2'000'000} * 1024 * 512});
  CHECK(table.steps.size() == 2'717'449);
  CHECK(table.saving() == Approx(0.2635).margin(6e-5));
}

TEST_CASE("a third of the LayerTokens is saved by the ramp that the paper's figures imply") {
  const auto steps = 171'661;
  const LtdSchedule schedule = gpt3(static_cast<std::int64_t>(0.7694 * steps));
  const LtdTable table = table_of(schedule, {BudgetKind::steps, steps});
  CHECK(table.saving() == Approx(1.0 / 3).margin(5e-4));
  const LtdAttention attention = ltd_attention(schedule, table, KeptMode::uniform, nullptr);
  CHECK(flop_saving(table, attention, 2048) == Approx(0.351).margin(5e-4));
}

TEST_CASE("a budget of LayerTokens ends where one of the same tokens does") {
  const LtdTable table = table_of(gpt2(12), {BudgetKind::layer_tokens, 305'784'192});
  CHECK(table.layer_tokens >= 305'784'192);
  CHECK(table.steps[table.steps.size() - 2].cumulative < 305'784'192);
  CHECK(table.budget.layer_tokens >= 305'784'192);
  CHECK(table.budget.layer_tokens <= table.layer_tokens);
  CHECK((table.budget.micro_step + 1) / 2 == static_cast<std::int64_t>(table.steps.size()));
}

TEST_CASE("kept tokens grow, in multiples, up to the maximum") {
  for (const LtdSchedule& schedule : {cifar(), gpt2(12), gpt3(777)}) {
    const LtdTable table = table_of(schedule, {BudgetKind::steps, 6000});
    const KeptGrowth& growth = schedule.growth;
    std::int64_t before = growth.granularity;
    for (const LtdStep& step : table.steps) {
      REQUIRE(step.kept >= before);
      REQUIRE((step.kept % growth.granularity == 0 || step.kept == growth.max));
      before = step.kept;
    }
    CHECK(before == growth.max);
  }
}

TEST_CASE("the released curriculum scheduler's vectors") {
  Curriculum linear{.kind = CurriculumKind::fixed_linear, .start = 2, .max = 10, .granularity = 2, .ramp_steps = 8};
  CHECK(lengths(linear, 10) == std::vector<std::int64_t>{2, 4, 4, 6, 6, 8, 8, 10, 10, 10});
  Curriculum discrete{.kind = CurriculumKind::fixed_discrete, .lengths = {1, 2, 3, 4, 5}, .until = {2, 4, 6, 8}};
  CHECK(lengths(discrete, 10) == std::vector<std::int64_t>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  Curriculum root{
      .kind = CurriculumKind::fixed_root, .start = 8, .max = 108, .granularity = 4, .ramp_steps = 100, .root_degree = 2};
  CHECK(curriculum_length(root, 25) == 56);  // 8 + 100 / 2 = 58
  CHECK(curriculum_length(root, 100) == 108);
  CHECK(curriculum_length(root, std::int64_t{1} << 60) == 108);
  root.root_degree = 1;
  linear = root;
  linear.kind = CurriculumKind::fixed_linear;
  CHECK(lengths(root, 150) == lengths(linear, 150));
}

TEST_CASE("a curriculum composes with the dropping") {
  LtdSchedule schedule = schedule_of({16, 64, 8, 10}, 6, 4, 3, 1, 64);
  schedule.curriculum = {.kind = CurriculumKind::fixed_discrete, .lengths = {16, 24, 64}, .until = {1, 3}};
  const auto shape = [&](std::int64_t step) { return shape_at(schedule, step); };
  CHECK(shape(0) == StepShape{16, 1, 16});  // nothing to drop
  CHECK(shape(1) == StepShape{24, 1, 16});
  CHECK(shape(2) == StepShape{24, 1, 24});  // 25.6 is 24
  CHECK(shape(3) == StepShape{64, 1, 24});
  schedule.curriculum.use = CurriculumUse::reshape;
  CHECK(shape(1) == StepShape{24, 2, 16});  // 16 tokens of the row are left over
  CHECK(shape(0) == StepShape{16, 4, 16});

  const LtdTable table = table_of(schedule, {BudgetKind::steps, 2});
  CHECK(table.steps[0].layer_tokens == 3 * 4 * 6 * 16);
  CHECK(table.steps[1].layer_tokens == 3 * 2 * (2 * 24 + 4 * 16));
  CHECK(table.steps[1].effective_tokens == 3 * 4 * 16 + 3 * 2 * ((2 * 24 + 4 * 16) / 6));
  CHECK(table.dense_layer_tokens == 3 * 4 * 6 * 16 + 3 * 2 * 6 * 24);
}

TEST_CASE("rows of their own lengths cost what they hold") {
  // Three steps of two rows, one of two segments: the sum of B ((L - K) P + K min(r, P)), by hand.
  LtdSchedule schedule = schedule_of({4, 16, 4, 3}, 5, 3, 2, 1, 16);
  LtdRowTable rows;
  const std::vector<std::vector<RowPart>> parts{{{0, 10}}, {{0, 3}, {3, 4}}, {{0, 16}}};
  for (const auto& row : parts) rows.add(row);
  rows.read_in_turn(16);
  const LtdTable table = make_ltd_table(schedule, {BudgetKind::steps, 3}, {}, &rows);
  const std::vector<std::vector<std::int64_t>> read{{10, 7}, {16, 10}, {7, 16}};
  std::int64_t total = 0, dense = 0, effective = 0;
  for (std::size_t step = 0; step < read.size(); ++step) {
    const std::int64_t kept = 4 + 4 * static_cast<std::int64_t>(step);
    CHECK(table.steps[step].kept == kept);
    for (const std::int64_t tokens : read[step]) {
      total += 2 * tokens + 3 * std::min(kept, tokens);
      dense += 5 * tokens;
      effective += (2 * tokens + 3 * std::min(kept, tokens)) / 5;
    }
    CHECK(table.steps[step].cumulative == total);
  }
  CHECK(table.layer_tokens == total);
  CHECK(table.dense_layer_tokens == dense);
  CHECK(table.effective_tokens == effective);
  CHECK(table.padded.layer_tokens == 2 * (2 * 3 * 16 + 3 * (4 + 8 + 12)));
  CHECK(table.padded.dense_layer_tokens == 3 * 2 * 5 * 16);
  schedule.count = TokenCount::padded;
  CHECK(make_ltd_table(schedule, {BudgetKind::steps, 3}, {}, &rows).layer_tokens == table.padded.layer_tokens);
}

TEST_CASE("batches padded to their own lengths: a plan of three steps by hand") {
  // Five layers, three of which drop; two ranks of one micro-step; kept 4, 8, 12. Batches: {2 rows padded to 6, 1 to 3},
  // {2 to 9, 2 to 9}, {1 to 14, 1 to 16}. A second row of the last batch stands in with weight 0.
  LtdSchedule schedule = schedule_of({4, 16, 4, 3}, 5, 3, 2, 1, 16);
  schedule.world = 2;
  LtdRowTable rows;
  const std::vector<Length> lengths{6, 4, 3, 9, 7, 8, 8, 14, 15};
  for (const Length length : lengths) {
    const RowPart whole{0, length};
    rows.add({&whole, 1});
  }
  LtdBatches batches;
  batches.begin = {0, 2, 3, 5, 7, 8, 10};
  batches.rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 0};
  batches.counts = {true, true, true, true, true, true, true, true, true, false};
  batches.width = {6, 3, 9, 9, 14, 16};
  batches.world = 2;
  rows.read_batches(batches);

  // sum over batches of B ((L - K) P + K min(r, P)), and the same over real tokens.
  const std::vector<std::int64_t> padded{2 * (2 * 6 + 3 * 4) + (2 * 3 + 3 * 3), 4 * (2 * 9 + 3 * 8),
                                         (2 * 14 + 3 * 12) + 2 * (2 * 16 + 3 * 12)};
  const std::vector<std::int64_t> real{(2 * 6 + 3 * 4) + (2 * 4 + 3 * 4) + (2 * 3 + 3 * 3),
                                       (2 * 9 + 3 * 8) + (2 * 7 + 3 * 7) + 2 * (2 * 8 + 3 * 8),
                                       (2 * 14 + 3 * 12) + (2 * 15 + 3 * 12)};
  const auto sum = [](const std::vector<std::int64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
  };
  for (const TokenCount count : {TokenCount::real, TokenCount::padded}) {
    schedule.count = count;
    const std::vector<std::int64_t>& expected = count == TokenCount::real ? real : padded;
    const LtdTable table = make_ltd_table(schedule, {BudgetKind::steps, 3}, {}, &rows);
    for (std::size_t step = 0; step < 3; ++step) CHECK(table.steps[step].layer_tokens == expected[step]);
    CHECK(table.layer_tokens == sum(expected));
    CHECK(table.real.layer_tokens == sum(real));
    CHECK(table.padded.layer_tokens == sum(padded));
    CHECK(table.real.dense_layer_tokens == 5 * (6 + 4 + 3 + 9 + 7 + 8 + 8 + 14 + 15));
    CHECK(table.padded.dense_layer_tokens == 5 * (2 * 6 + 3 + 4 * 9 + 14 + 2 * 16));
    // The plan begins again with its first step, which now keeps every token.
    CHECK(make_ltd_table(schedule, {BudgetKind::steps, 4}, {}, &rows).steps[3].layer_tokens ==
          5 * (count == TokenCount::real ? 6 + 4 + 3 : 2 * 6 + 3));
  }

  // The same share of each batch: of 16, 4, 8 and 12, rounded down to multiples of 4, and 4 at least.
  schedule.count = TokenCount::padded;
  schedule.kept_length = KeptLength::ratio;
  const LtdTable shares = make_ltd_table(schedule, {BudgetKind::steps, 3}, {}, &rows);
  CHECK(shares.steps[0].layer_tokens == 2 * (2 * 6 + 3 * 4) + (2 * 3 + 3 * 3));
  CHECK(shares.steps[1].layer_tokens == 4 * (2 * 9 + 3 * 4));
  CHECK(shares.steps[2].layer_tokens == (2 * 14 + 3 * 8) + 2 * (2 * 16 + 3 * 12));
  CHECK(make_ltd_table(schedule, {BudgetKind::steps, 4}, {}, &rows).steps[3].layer_tokens == 5 * (2 * 6 + 3));

  // Pairs: one segment a row, so nothing is left to chance. Rows that do not count are width alone.
  schedule.kept_length = KeptLength::absolute;
  const LtdTable table = make_ltd_table(schedule, {BudgetKind::steps, 3}, {}, &rows);
  const LtdAttention attention = ltd_attention(schedule, table, KeptMode::quota, &rows);
  double pairs = 0, dense = 0;
  const std::vector<double> kept{4, 4, 4, 8, 8, 8, 8, 12, 12};
  for (std::size_t row = 0; row < 9; ++row) {
    pairs += 2 * lengths[row] * lengths[row] + 3 * std::pow(std::min<double>(kept[row], lengths[row]), 2);
    dense += 5 * lengths[row] * lengths[row];
  }
  CHECK(attention.pairs == pairs);
  CHECK(attention.dense_pairs == dense);
  CHECK(attention.full_row_pairs == 5 * (2 * 36 + 9 + 4 * 81 + 196 + 2 * 256));
  CHECK(attention.kept_padding == 3 * (1 + 6));  // a row of 7 in 9, one of 6 in 16
}

TEST_CASE("rows come in a cycle") {
  LtdSchedule schedule = schedule_of({1, 4, 1, 3}, 3, 1, 2, 2, 4);
  const std::vector<RowPart> parts{{0, 4}};
  LtdRowTable rows;
  for (int row = 0; row < 7; ++row) rows.add(parts);
  rows.read_in_turn(4);
  CHECK(rows.of_steps(schedule, 1).first == 4);
  CHECK(rows.of_steps(schedule, 2).first == 1);
  CHECK(rows.of_steps(schedule, 2, 3).count == 12);
  CHECK(rows.of_micro_step(schedule, 1, 1).first == 6);
  schedule.micro_batch = std::int64_t{1} << 31;
  schedule.accumulation = 1;
  CHECK(rows.of_steps(schedule, std::int64_t{1} << 40).first == 4);  // 2^71 mod 7 = 2^2

  LtdBatches batches;
  batches.begin = {0, 1, 3, 6, 7};
  batches.rows = {6, 5, 4, 3, 2, 1, 0};
  batches.width = {4, 5, 6, 7};
  batches.world = 2;
  rows.read_batches(batches);
  CHECK(rows.cycle() == 7);
  CHECK(rows.of_steps(schedule, 0).count == 3);
  CHECK(rows.of_steps(schedule, 1).first == 3);
  CHECK(rows.of_steps(schedule, 1).count == 4);
  CHECK(rows.of_steps(schedule, 1, 4).count == 4 + 7 + 3);
  CHECK(rows.of_steps(schedule, 5).first == 3);
  CHECK(rows.of_micro_step(schedule, 3, 0).first == 3);
  CHECK(rows.of_micro_step(schedule, 3, 0).count == 4);
  CHECK(rows.at(4).width == 6);
  CHECK(rows.at(7 + 6).width == 7);
  CHECK(rows.widest() == 7);

  const auto refused = [&](const std::function<void(LtdBatches&)>& damage) {
    LtdBatches damaged = batches;
    damage(damaged);
    LtdRowTable table;
    for (int row = 0; row < 7; ++row) table.add(parts);
    CHECK_THROWS_AS(table.read_batches(damaged), Error);
  };
  refused([](LtdBatches& plan) { plan.rows[3] = 7; });
  refused([](LtdBatches& plan) { plan.width[1] = 3; });
  refused([](LtdBatches& plan) { plan.begin[2] = 1; });
  refused([](LtdBatches& plan) { plan.begin[2] = 8; });
  refused([](LtdBatches& plan) { plan.world = 3; });
}

TEST_CASE("the learning rate follows LayerTokens") {
  LearningRate rate{.peak = 2e-4, .min = 1e-6, .warmup_layer_tokens = 1000, .decay_layer_tokens = 9000};
  for (const LrDecay decay : {LrDecay::cosine, LrDecay::linear}) {
    rate.decay = decay;
    CHECK(learning_rate(rate, 0) == 0);
    CHECK(learning_rate(rate, 500) == Approx(1e-4));
    CHECK(learning_rate(rate, 1000) == Approx(2e-4));
    CHECK(learning_rate(rate, 5000) == Approx((2e-4 + 1e-6) / 2));
    CHECK(learning_rate(rate, 9000) == 1e-6);
    CHECK(learning_rate(rate, 90'000) == 1e-6);
  }
  rate.decay = LrDecay::constant;
  CHECK(learning_rate(rate, 90'000) == 2e-4);

  rate.decay = LrDecay::cosine;
  const Budget budget{BudgetKind::steps, 50};
  const LtdSchedule schedule = schedule_of({8, 32, 8, 30}, 4, 2, 2, 1, 32);
  const LtdTable now = table_of(schedule, budget, rate);
  rate.lag = 1;
  const LtdTable late = table_of(schedule, budget, rate);
  CHECK(now.steps[0].learning_rate == 0);
  CHECK(now.steps[3].learning_rate == learning_rate(rate, now.steps[2].cumulative));
  CHECK(late.steps[0].learning_rate == 0);
  CHECK(late.steps[1].learning_rate == 0);  // the first step's count comes too late for it
  for (std::size_t s = 1; s < 50; ++s) CHECK(late.steps[s].learning_rate == now.steps[s - 1].learning_rate);

  LearningRate to_the_end{.peak = 1, .min = 0.1};  // decay over all of the run
  const LtdTable whole = table_of(schedule, budget, to_the_end);
  CHECK(whole.steps[0].learning_rate == 1);
  to_the_end.decay_layer_tokens = whole.layer_tokens;
  CHECK(learning_rate(to_the_end, whole.layer_tokens) == 0.1);
  CHECK(whole.steps.back().learning_rate == learning_rate(to_the_end, whole.steps[48].cumulative));
}

TEST_CASE("schedules that cannot be trained are refused") {
  const auto refused = [](LtdSchedule schedule) {
    try {
      check_schedule(schedule);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK(refused(gpt3()) == "accepted");
  CHECK(refused(schedule_of({8, 2048, 16, 100}, 24, 22, 1, 1, 2048)).find("keeps 0 tokens") != std::string::npos);
  CHECK(refused(schedule_of({129, 128, 16, 100}, 24, 22, 1, 1, 2048)) == "--kept-start 129 is above --kept-max 128");
  CHECK(refused(schedule_of({128, 2048, 16, 0}, 24, 22, 1, 1, 2048)) == "--ramp-steps must be at least 1, found 0");
  CHECK(refused(schedule_of({128, 2048, 16, 1}, 24, 25, 1, 1, 2048)) == "--ltd-layers 25 of --layers 24");
  CHECK_THROWS_AS(table_of(gpt3(), {BudgetKind::steps, std::int64_t{1} << 40}), Error);
  CHECK_THROWS_AS(table_of(gpt3(), {BudgetKind::tokens, std::numeric_limits<std::int64_t>::max()}), Error);
  CHECK_THROWS_AS(table_of(gpt3(), {BudgetKind::steps, 0}), Error);
}
