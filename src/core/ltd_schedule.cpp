#include "shardpack/ltd_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"
#include "base/wide.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// start + part / whole * (max - start), rounded down to a multiple of `granularity`, at most max. The released scheduler works
/// in doubles; both give the same (tests/property).
std::int64_t ramp(std::int64_t start, std::int64_t max, std::int64_t granularity, Int128 part, std::int64_t whole) {
  const Int128 value = start + part * (max - start) / whole;
  return static_cast<std::int64_t>(std::min<Int128>(value - value % granularity, max));
}

void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

void at_least(std::string_view option, std::int64_t value, std::int64_t least) {
  if (value < least) refuse(fmt::format("{} must be at least {}, found {}", option, least, value));
}

void check_curriculum(const Curriculum& curriculum, std::int64_t seq_length) {
  if (curriculum.kind == CurriculumKind::none) return;
  const auto fits = [&](std::int64_t length) {
    if (length < 1 || length > seq_length) {
      refuse(fmt::format("--curriculum: a length of {}; rows have {} tokens", length, with_commas(seq_length)));
    }
  };
  if (curriculum.kind == CurriculumKind::fixed_discrete) {
    if (curriculum.lengths.empty() || curriculum.until.size() + 1 != curriculum.lengths.size()) {
      refuse(fmt::format("--curriculum: {} lengths need {} last steps, found {}", curriculum.lengths.size(),
                         std::max<std::size_t>(curriculum.lengths.size(), 1) - 1, curriculum.until.size()));
    }
    if (!std::is_sorted(curriculum.until.begin(), curriculum.until.end())) refuse("--curriculum: the last steps must ascend");
    for (const std::int64_t length : curriculum.lengths) fits(length);
    return;
  }
  at_least("--curriculum: the ramp", curriculum.ramp_steps, 1);
  at_least("--curriculum: the granularity", curriculum.granularity, 1);
  at_least("--curriculum: the degree of the root", curriculum.root_degree, 1);
  fits(curriculum.start);
  fits(curriculum.max);
  if (curriculum.start > curriculum.max) refuse("--curriculum: begins with more tokens than it ends with");
  if (curriculum_length(curriculum, 1) < 1) {
    refuse(fmt::format("--curriculum: {} rounded down to a multiple of {} leaves no token", curriculum.start,
                       curriculum.granularity));
  }
}

}  // namespace

std::int64_t kept_at(const KeptGrowth& growth, std::int64_t step) {
  return ramp(growth.start, growth.max, growth.granularity, step, growth.ramp_steps);
}

std::int64_t curriculum_length(const Curriculum& curriculum, std::int64_t count) {
  switch (curriculum.kind) {
    case CurriculumKind::none:
      break;
    case CurriculumKind::fixed_linear:
      return ramp(curriculum.start, curriculum.max, curriculum.granularity, count, curriculum.ramp_steps);
    case CurriculumKind::fixed_root: {
      // In doubles, as the released scheduler: it is what the trainer will do.
      const double part = std::pow(static_cast<double>(count) / static_cast<double>(curriculum.ramp_steps),
                                   1.0 / static_cast<double>(curriculum.root_degree));
      const double value =
          std::floor(part * static_cast<double>(curriculum.max - curriculum.start) + static_cast<double>(curriculum.start));
      if (value >= static_cast<double>(curriculum.max) + static_cast<double>(curriculum.granularity)) return curriculum.max;
      const auto whole = static_cast<std::int64_t>(value);
      return std::min(whole - whole % curriculum.granularity, curriculum.max);
    }
    case CurriculumKind::fixed_discrete: {
      const auto place = std::lower_bound(curriculum.until.begin(), curriculum.until.end(), count) - curriculum.until.begin();
      return curriculum.lengths[static_cast<std::size_t>(place)];
    }
  }
  return std::numeric_limits<std::int64_t>::max();
}

void check_schedule(const LtdSchedule& schedule) {
  const KeptGrowth& growth = schedule.growth;
  at_least("--layers", schedule.layers, 1);
  at_least("--ltd-layers", schedule.ltd_layers, 0);
  if (schedule.ltd_layers > schedule.layers) {
    refuse(fmt::format("--ltd-layers {} of --layers {}", schedule.ltd_layers, schedule.layers));
  }
  at_least("--seq-length", schedule.seq_length, 1);
  if (schedule.seq_length > std::numeric_limits<Length>::max()) refuse("--seq-length must be below 2^31");
  at_least("--micro-batch", schedule.micro_batch, 1);
  at_least("--accumulation", schedule.accumulation, 1);
  at_least("--world", schedule.world, 1);
  at_least("--kept-start", growth.start, 1);
  at_least("--kept-step", growth.granularity, 1);
  at_least("--ramp-steps", growth.ramp_steps, 1);
  if (growth.start > growth.max) refuse(fmt::format("--kept-start {} is above --kept-max {}", growth.start, growth.max));
  if (kept_at(growth, 0) < 1) {
    refuse(
        fmt::format("the first step keeps 0 tokens: --kept-start {} is rounded down to a multiple of --kept-step {}; start with "
                    "{} or more",
                    growth.start, growth.granularity, growth.granularity));
  }
  check_curriculum(schedule.curriculum, schedule.seq_length);
}

StepShape shape_at(const LtdSchedule& schedule, std::int64_t step) {
  StepShape shape;
  shape.row_tokens = std::min(curriculum_length(schedule.curriculum, step + 1), schedule.seq_length);
  if (schedule.curriculum.use == CurriculumUse::reshape) shape.pieces = schedule.seq_length / shape.row_tokens;
  shape.kept = std::min(kept_at(schedule.growth, step), shape.row_tokens);
  return shape;
}

std::int64_t kept_in(const LtdSchedule& schedule, const StepShape& shape, std::int64_t width) {
  if (schedule.kept_length == KeptLength::absolute) return std::min(shape.kept, width);
  const std::int64_t full = std::min(schedule.growth.max, schedule.seq_length), granularity = schedule.growth.granularity;
  if (shape.kept >= full) return width;
  const std::int64_t share = width * shape.kept / full;  // below 2^62: both are Lengths
  return std::min(std::max(share - share % granularity, granularity), width);
}

double learning_rate(const LearningRate& rate, std::int64_t consumed) {
  if (consumed < rate.warmup_layer_tokens) {
    return rate.peak * static_cast<double>(consumed) / static_cast<double>(rate.warmup_layer_tokens);
  }
  if (rate.decay == LrDecay::constant) return rate.peak;
  if (consumed >= rate.decay_layer_tokens) return rate.min;
  const double done = static_cast<double>(consumed - rate.warmup_layer_tokens) /
                      static_cast<double>(rate.decay_layer_tokens - rate.warmup_layer_tokens);
  constexpr double kPi = 3.14159265358979323846;
  const double left = rate.decay == LrDecay::linear ? 1 - done : 0.5 * (1 + std::cos(kPi * done));
  return rate.min + left * (rate.peak - rate.min);
}

}  // namespace shardpack
