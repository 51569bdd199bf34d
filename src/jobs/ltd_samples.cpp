#include "jobs/ltd_samples.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "jobs/ltd_indices.h"

namespace shardpack {

std::vector<std::uint32_t> kept_of(const LtdSetup& setup, const StepShape& shape, const KeptPlace& place,
                                   const LtdRowTable* rows) {
  std::vector<std::uint32_t> slots;
  const auto width = static_cast<Length>(shape.row_tokens);
  if (rows == nullptr) {
    select_kept(setup.mode, setup.seed, place, width, whole_row(shape.row_tokens), shape.kept, slots);
  } else {
    const std::int64_t row = rows->row_of(place.step, setup.schedule.global_batch(), place.row);
    select_kept(setup.mode, setup.seed, place, width, rows->parts_of(row), shape.kept, slots);
  }
  return slots;
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
    const std::int64_t last_row = setup.schedule.global_batch() * moment.shape.pieces - 1;
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
