#include "jobs/ltd_samples.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "jobs/ltd_indices.h"

namespace shardpack {

std::vector<std::uint32_t> kept_of(const LtdSetup& setup, const StepShape& shape, const KeptPlace& place,
                                   const LtdRowTable* rows) {
  std::vector<std::uint32_t> slots;
  if (rows == nullptr) {
    const auto width = static_cast<Length>(shape.row_tokens);
    select_kept(setup.mode, setup.seed, place, width, whole_row(shape.row_tokens), shape.kept, slots);
  } else {
    const LtdRow row = rows->at(rows->of_steps(setup.schedule, place.step).first + place.row);
    select_kept(setup.mode, setup.seed, place, row.width, row.parts, kept_in(setup.schedule, shape, row.width), slots);
  }
  return slots;
}

std::int64_t rows_in_step(const LtdSchedule& schedule, const StepShape& shape, std::int64_t step, const LtdRowTable* rows) {
  return rows != nullptr ? rows->of_steps(schedule, step).count : schedule.global_batch() * shape.pieces;
}

std::vector<KeptSample> kept_samples(const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus, const LtdRowTable* rows) {
  std::vector<LtdPlateau> dropping;
  for (const LtdPlateau& plateau : plateaus) {
    if (plateau.shape.kept < plateau.shape.row_tokens) dropping.push_back(plateau);
  }
  std::vector<KeptSample> samples;
  if (dropping.empty() || setup.layer_ids.empty()) return samples;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  struct Moment {
    StepShape shape;
    std::int64_t step;
  };
  const LtdPlateau &first = dropping.front(), &middle = dropping[dropping.size() / 2], &last = dropping.back();
  const Moment moments[] = {
      {first.shape, first.first_step}, {middle.shape, middle.first_step}, {last.shape, last.first_step + last.steps - 1}};
  for (const Moment& moment : moments) {
    const std::int64_t last_row = rows_in_step(setup.schedule, moment.shape, moment.step, rows) - 1;
    for (const std::int64_t layer : {setup.layer_ids.front(), setup.layer_ids.back()}) {
      for (const std::int64_t row : {std::int64_t{0}, last_row}) {
        if (!seen.insert({moment.step, layer, row}).second) continue;
        const KeptPlace place{moment.step, layer, row};
        samples.push_back({place, kept_of(setup, moment.shape, place, rows)});
      }
    }
  }
  return samples;
}

}  // namespace shardpack
