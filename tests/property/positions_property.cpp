// Lists of token positions through any policy: every value is at its token in the rows or was removed with it, and none is twice.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/placed_values.h"
#include "io/packed_dataset.h"
#include "io/packed_rows.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

struct Record {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> positions, values;  // in any order, some of them twice
  std::vector<double> weights;

  /// Of entry `i`; `weighted`: what tells is whether its weight is 0.
  bool counts(std::size_t i, bool weighted) const { return !weighted || weights[i] != 0; }
};

Record any_record() {
  Record record;
  const std::size_t tokens = *rc::gen::weightedOneOf<std::size_t>({{1, rc::gen::just<std::size_t>(0)},
                                                                   {6, rc::gen::inRange<std::size_t>(1, 12)},
                                                                   {3, rc::gen::inRange<std::size_t>(12, 60)}});
  for (std::size_t i = 0; i < tokens; ++i) record.ids.push_back(*rc::gen::inRange<std::uint32_t>(3, 60'000));
  if (tokens == 0) return record;
  record.positions = *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::inRange<std::size_t>(0, 9), rc::gen::inRange<std::int64_t>(0, static_cast<std::int64_t>(tokens)));
  for (std::size_t i = 0; i < record.positions.size(); ++i) record.values.push_back(*rc::gen::inRange<std::int64_t>(-5, 70'000));
  for (std::size_t i = 0; i < record.positions.size(); ++i)
    record.weights.push_back(*rc::gen::element<double>(0, 0, 1, -1, 0.25));
  return record;
}

template <class T>
std::string json_list(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

PackOptions any_options() {
  PackOptions options;
  const Length multiple = *rc::gen::element<Length>(1, 1, 4);
  options.policy.row_tokens = options.packing.row_tokens = multiple * *rc::gen::inRange<Length>(4, 12);
  options.policy.segment_multiple = multiple;
  options.policy.overlong = *rc::gen::element(Overlong::truncate, Overlong::split, Overlong::drop);
  options.policy.truncate_side = *rc::gen::element(TruncateSide::start, TruncateSide::end);
  options.policy.min_tokens = *rc::gen::element<std::int64_t>(0, 3);
  options.policy.append_eos = *rc::gen::arbitrary<bool>();
  options.policy.prepend_bos = *rc::gen::arbitrary<bool>();
  options.policy.drop_unlabeled = *rc::gen::arbitrary<bool>();
  options.read.eos_id = 2;
  options.read.bos_id = 1;
  options.read.positions_columns = {"mark_positions"};
  options.packer = *rc::gen::elementOf(std::vector<std::string>{"auto", "nnlshp", "sequential", "concat"});
  if (options.policy.overlong == Overlong::split && options.packer != "concat")
    options.policy.split_min_tokens = *rc::gen::element<std::int64_t>(0, 3);
  options.partition_tokens = *rc::gen::element<std::int64_t>(50, 1 << 20);
  options.shard_bytes = *rc::gen::element<std::int64_t>(4'000, 1 << 20);
  options.rows_multiple = *rc::gen::element<std::int64_t>(1, 3);
  options.tail = *rc::gen::element(Tail::fill, Tail::drop);
  return options;
}

using Mark = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // record, place, value

/// What the rows hold; each at the slot of its token.
std::vector<Mark> packed_marks(const PackedDataset& dataset, const std::vector<Record>& records,
                               std::vector<std::vector<int>>& there) {
  std::vector<Mark> marks;
  const std::vector<Column>& columns = dataset.manifest().columns;
  const auto number = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(columns, name, &Column::name) - columns.begin());
  };
  const std::size_t where = number("mark_positions"), what = number("mark_values");
  for (const ManifestShard& shard : dataset.shards()) {
    const PackedRows rows(dataset, shard, true);
    const RowBlock block = rows.read(0, rows.rows());
    const auto* const ids = reinterpret_cast<const std::uint16_t*>(block.ids.data());
    const std::vector<std::int64_t> slots = whole_numbers(columns[where].type, block.columns[where].bytes),
                                    values = whole_numbers(columns[what].type, block.columns[what].bytes);
    const auto begin_of = [&](std::size_t s) { return block.columns[where].begin[s] - block.columns[where].begin.front(); };
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::int64_t at = 0;
      for (auto s = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row)]);
           s < static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row) + 1]); ++s) {
        const RowSegment& segment = block.segments[s];
        const Record& record = records[static_cast<std::size_t>(segment.record)];
        for (std::int64_t t = 0; t < segment.tokens; ++t)
          ++there[static_cast<std::size_t>(segment.record)][static_cast<std::size_t>(segment.first_token + t)];
        for (std::int64_t i = begin_of(s); i < begin_of(s + 1); ++i) {
          const std::int64_t slot = slots[static_cast<std::size_t>(i)];
          const std::int64_t place = slot - at - (segment.added & kAddedBos) + segment.first_token;
          RC_ASSERT(place >= segment.first_token && place < segment.first_token + segment.tokens);
          RC_ASSERT(ids[row * block.row_tokens + slot] == record.ids[static_cast<std::size_t>(place)]);
          marks.emplace_back(segment.record, place, values[static_cast<std::size_t>(i)]);
        }
        at += segment.slots;
      }
    }
  }
  return marks;
}

TEST_CASE("values that belong to tokens go where their tokens go") {
  ThreadPool pool(2);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  CHECK(rc::check([&] {
    const TempFolder folder;
    std::vector<Record> records(*rc::gen::inRange<std::size_t>(1, 20));
    std::string lines;
    const bool weighted = *rc::gen::arbitrary<bool>();
    std::int64_t all = 0;  // that take part in the loss
    for (Record& record : records) {
      record = any_record();
      for (std::size_t i = 0; i < record.positions.size(); ++i) all += record.counts(i, weighted) ? 1 : 0;
      lines += fmt::format("{{\"input_ids\":{},\"mark_positions\":{},\"mark_values\":{}{}}}\n", json_list(record.ids),
                           json_list(record.positions), json_list(record.values),
                           weighted ? ",\"mark_weights\":" + json_list(record.weights) : "");
    }
    const std::string input = folder.write("a.jsonl", lines), out = folder.path("packed");
    const PackOptions options = any_options();
    const Manifest manifest = pack({input}, out, options, context).manifest;
    const VerifyResult verdict = verify(out, {.against = {input}}, context);
    if (!verdict.ok()) RC_FAIL(verdict.issues.front().message);

    std::vector<std::vector<int>> there;
    for (const Record& record : records) there.emplace_back(record.ids.size());
    std::vector<Mark> marks = packed_marks(PackedDataset(out), records, there);
    std::vector<Mark> expected;
    std::int64_t packed = 0;
    for (std::size_t r = 0; r < records.size(); ++r) {
      RC_ASSERT(std::ranges::all_of(there[r], [](int times) { return times <= 1; }));
      std::int64_t counted = 0;
      for (std::size_t i = 0; i < records[r].positions.size(); ++i) {
        const std::int64_t place = records[r].positions[i];
        if (there[r][static_cast<std::size_t>(place)] == 0) continue;
        expected.emplace_back(static_cast<std::int64_t>(r), place, records[r].values[i]);
        counted += records[r].counts(i, weighted) ? 1 : 0;
      }
      packed += counted;
      const bool any = std::ranges::find(there[r], 1) != there[r].end();
      if (options.policy.drop_unlabeled && options.tail != Tail::drop) RC_ASSERT(!any || counted > 0);
    }
    std::ranges::sort(marks);
    std::ranges::sort(expected);
    RC_ASSERT(marks == expected);
    RC_ASSERT(manifest.loss_column == (weighted ? "mark_weights" : "mark_positions"));
    RC_ASSERT(manifest.loss_tokens == packed);
    std::int64_t removed = 0;
    for (const RemovedCount& count : manifest.removed) removed += count.loss_tokens;
    RC_ASSERT(manifest.loss_tokens + removed == all);
    RC_ASSERT(manifest.source_loss_tokens == all);
  }));
}

}  // namespace
}  // namespace shardpack
