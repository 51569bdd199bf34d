#include "jobs/row_widths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"
#include "core/column_values.h"
#include "core/placed_values.h"
#include "exec/ordered_map.h"
#include "shardpack/error.h"
#include "shardpack/presets.h"

namespace shardpack {

namespace {

/// Counts the masked tokens of items: those whose weight is not 0, where the sources have weights.
class MaskedTokens {
 public:
  MaskedTokens(const SequenceSource& source, const Preset& preset) : source_(source) {
    const std::span<const Column> columns = source.columns();
    const auto number_of = [&](std::string_view name) -> std::optional<std::size_t> {
      const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
      if (found == columns.end() || found->places != preset.positions_column) return std::nullopt;
      return static_cast<std::size_t>(found - columns.begin());
    };
    places_ = number_of(preset.positions_column);
    for (const OutputColumn& column : preset.columns) {
      if (column.source == OutputSource::entry_segments && !column.from.empty()) weights_ = number_of(column.from.front());
    }
  }

  std::vector<std::int64_t> of(std::span<const Item> items) const {
    std::vector<std::int64_t> counts(items.size());
    if (!places_) return counts;
    std::vector<TokenRun> runs;  // of items whose values have to be looked at
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (!weights_ && item.tokens == source_.index().place(item.sequence).tokens) {
        counts[i] = source_.value_count(*places_, item.sequence);
        continue;
      }
      runs.push_back({item.sequence, item.first_token, item.tokens});
      numbers.push_back(i);
      if (runs.size() == kReadAtOnce) read(runs, numbers, counts);
    }
    read(runs, numbers, counts);
    return counts;
  }

 private:
  static constexpr std::size_t kReadAtOnce = std::size_t{1} << 14;

  void read(std::vector<TokenRun>& runs, std::vector<std::size_t>& numbers, std::vector<std::int64_t>& counts) const {
    if (runs.empty()) return;
    const PlacedReader reader(source_, *places_, runs);
    const std::size_t tells = weights_.value_or(*places_);
    const Column& column = source_.columns()[tells];
    const ByteBuffer values = reader.read(tells);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::int64_t first = reader.begin()[r];
      counts[numbers[r]] =
          count_loss_tokens(column, column.type, values.data() + first * info(column.type).bytes, reader.begin()[r + 1] - first);
    }
    runs.clear();
    numbers.clear();
  }

  const SequenceSource& source_;
  std::optional<std::size_t> places_, weights_;
};

[[noreturn]] void refuse(const PackOptions& options, const SequenceSource& source, const OrderedRows& rows, std::int64_t row,
                         std::int64_t number, std::int64_t masked, std::int64_t room) {
  const std::span<const std::int32_t> items = rows.rows.row(row);
  const SequencePlace place = source.index().place(rows.items[static_cast<std::size_t>(items.front())].sequence);
  throw Error(ErrorCode::bad_data,
              fmt::format("row {} has {} masked tokens in {} segments, and --max-predictions {} leaves room for {}; raise it, or "
                          "leave it out, and it is worked out from the rows (this is the row's first sequence)",
                          with_commas(number), with_commas(masked), items.size(), *options.max_predictions, with_commas(room)),
              source.index().files()[static_cast<std::size_t>(place.file)].name,
              fmt::format("record {}", with_commas(place.record)));
}

}  // namespace

void settle_widths(const PackOptions& options, const SequenceSource& source, const std::vector<Partition>& partitions,
                   PlanningOptions planning, Manifest& manifest, const RunContext& context) {
  const Preset& preset = find_preset(options.preset);
  if (preset.positions_column.empty()) return;
  const std::int64_t segments =
      std::max<std::int64_t>(1, manifest.plan.max_segments > 0 ? manifest.plan.max_segments : manifest.max_segments_in_row);
  std::int64_t entries = segments + options.max_predictions.value_or(0);
  const MaskedTokens masked(source, preset);
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    throw_if_stopped(context.stop);
    planning.assign.partition = static_cast<std::int32_t>(p);
    PolicyResult policy = apply_policy(source.index(), partitions[p].sequences, planning.policy);
    const OrderedRows rows = assign_partition(std::move(policy.items), source.index(), partitions[p], planning);
    const std::vector<std::int64_t> counts = masked.of(rows.items);
    for (std::int64_t row = 0; row < rows.rows.rows(); ++row) {
      std::int64_t count = 0;
      for (const std::int32_t item : rows.rows.row(row)) count += counts[static_cast<std::size_t>(item)];
      if (count <= entries) continue;
      if (options.max_predictions) refuse(options, source, rows, row, planning.assign.first_row + row, count, entries);
      entries = count;
    }
    planning.assign.first_row += rows.rows.rows();
  }
  manifest.entry_width = entries;
  manifest.segment_width = segments;
}

}  // namespace shardpack
