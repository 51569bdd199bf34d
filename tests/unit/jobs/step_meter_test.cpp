// Loss tokens of steps against a count over whole slices, and the recorded shape of training.
#include "jobs/step_meter.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "support/catch.h"

namespace shardpack {
namespace {

/// The same from slices of the rows.
std::optional<StepLoss> by_slices(const std::vector<std::int64_t>& rows, const TrainingShape& shape) {
  const auto sum = [&](std::int64_t first, std::int64_t count) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), std::int64_t{0});
  };
  const std::int64_t step_rows = shape.step_rows(), steps = static_cast<std::int64_t>(rows.size()) / step_rows;
  if (steps == 0) return std::nullopt;
  std::vector<std::int64_t> of_steps, of_ranks;
  for (std::int64_t step = 0; step < steps; ++step) {
    of_steps.push_back(sum(step * step_rows, step_rows));
    for (std::int64_t at = 0; at < step_rows; at += shape.micro_batch)
      of_ranks.push_back(sum(step * step_rows + at, shape.micro_batch));
  }
  return StepLoss{
      static_cast<double>(std::accumulate(of_steps.begin(), of_steps.end(), std::int64_t{0})) / static_cast<double>(steps),
      *std::min_element(of_steps.begin(), of_steps.end()), *std::max_element(of_steps.begin(), of_steps.end()),
      *std::min_element(of_ranks.begin(), of_ranks.end())};
}

TEST_CASE("loss tokens of steps, ranks and micro-steps are those of their rows") {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < 53; ++i) rows.push_back(3 + i * 7919 % 101);
  for (const std::int64_t world : {1, 2, 4}) {
    for (const std::int64_t accumulation : {1, 3}) {
      for (const std::int64_t micro_batch : {1, 2, 5}) {
        const TrainingShape shape{world, accumulation, micro_batch};
        INFO(world << " x " << accumulation << " x " << micro_batch);
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{12}, rows.size()}) {
          const std::vector<std::int64_t> some(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
          LossMeter meter(shape);
          for (const std::int64_t tokens : some) meter.add(tokens);
          const std::optional<StepLoss> found = meter.finish(), expected = by_slices(some, shape);
          REQUIRE(found.has_value() == expected.has_value());
          if (!found) continue;
          CHECK(found->mean == Approx(expected->mean));
          CHECK(found->least == expected->least);
          CHECK(found->most == expected->most);
          CHECK(found->least_of_rank == expected->least_of_rank);
        }
      }
    }
  }
}

TEST_CASE("the shape of training is read back from a manifest, and nothing odd is believed") {
  Manifest manifest;
  CHECK(training_shape_of(manifest).step_rows() == 1);
  manifest.options = {{"world", "8"}, {"accumulation", "4"}, {"micro_batch", "2"}};
  const TrainingShape shape = training_shape_of(manifest);
  CHECK(shape.world == 8);
  CHECK(shape.accumulation == 4);
  CHECK(shape.micro_batch == 2);
  manifest.options = {{"world", "\"8\""}, {"accumulation", "-4"}, {"micro_batch", "99999999999"}};
  CHECK(training_shape_of(manifest).step_rows() == 1);
}

}  // namespace
}  // namespace shardpack
