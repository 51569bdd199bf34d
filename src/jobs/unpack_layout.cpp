#include "jobs/unpack_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>

#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/packed_rows.h"
#include "jobs/verify_placement.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockSlots = std::int64_t{1} << 18;
constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

/// A segment of a partition's rows.
struct Piece {
  std::uint32_t record = 0;  // in the partition
  Length tokens = 0;
  std::int64_t first_token = 0;
};

class LayoutMaker {
 public:
  LayoutMaker(const PackedDataset& dataset, const ManifestPartition& partition, RecordSpool& spool)
      : dataset_(dataset), partition_(partition), first_sequence_(first_sequences(dataset.manifest().sources)), spool_(spool) {
    counts_.resize(spool.columns.size());
  }

  void add(const ManifestShard& shard, const RunContext& context) {
    const PackedRows rows(dataset_, shard, false);
    if (static_cast<std::int64_t>(pieces_.size()) + rows.segments() >= std::int64_t{kNowhere})
      throw Error(ErrorCode::limit, "a partition has 2^32 segments or more", dataset_.folder());
    for (std::int64_t row = 0; row < rows.rows();) {
      throw_if_stopped(context.stop);
      const std::int64_t count = rows.rows_in_block(row, kBlockSlots);
      const RowBlock block = rows.read(row, count);
      for (const RowSegment& segment : block.segments) {
        const std::int64_t record =
            first_sequence_[static_cast<std::size_t>(segment.file)] + segment.record - partition_.sequences.first();
        if (record < 0 || record >= partition_.sequences.count())
          fail_to_unpack(shard.folder, "a segment of another partition's record");
        pieces_.push_back({static_cast<std::uint32_t>(record), segment.tokens, segment.first_token});
      }
      row += count;
    }
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (!is_listed(spool_.columns[c].column)) continue;
      for (std::int64_t segment = 0; segment < rows.segments(); ++segment) counts_[c].push_back(rows.value_count(c, segment));
    }
  }

  /// `removed`: by record of the partition, is a part of it listed in removed.csv?
  PartitionLayout make(const std::vector<bool>& removed) {
    std::vector<std::uint32_t> order(pieces_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Piece &x = pieces_[a], &y = pieces_[b];
      return std::tie(x.record, x.first_token, x.tokens, a) < std::tie(y.record, y.first_token, y.tokens, b);
    });
    PartitionLayout layout;
    layout.destination.resize(pieces_.size());
    layout.leads.resize(pieces_.size());
    layout.values.resize(counts_.size());
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (is_placed(spool_.columns[c].column)) layout.values[c].resize(pieces_.size());
    }
    layout.place.assign(removed.size(), kNowhere);
    std::size_t file = 0;
    auto next = order.begin();
    for (std::uint32_t record = 0; record < removed.size(); ++record) {
      const auto begin = next;
      while (next != order.end() && pieces_[*next].record == record) ++next;
      if (begin == next && removed[record]) continue;
      while (partition_.sequences.first() + record >= first_sequence_[file + 1]) ++file;
      take_record(record, std::span(begin, next), file, layout);
    }
    return layout;
  }

 private:
  void take_record(std::uint32_t record, std::span<const std::uint32_t> segments, std::size_t file, PartitionLayout& layout) {
    const auto place = static_cast<std::uint32_t>(spool_.records());
    layout.place[record] = place;
    std::int64_t end = 0, destination = spool_.begin.back();
    for (const std::uint32_t segment : segments) {
      const Piece& piece = pieces_[segment];
      if (piece.first_token < end) {
        fail_to_unpack(dataset_.manifest().sources[file].name,
                       fmt::format("a token of record {} is in the rows twice",
                                   with_commas(partition_.sequences.first() + record - first_sequence_[file])));
      }
      layout.destination[segment] = destination;
      destination += piece.tokens;
      end = piece.first_token + piece.tokens;
    }
    spool_.begin.push_back(destination);
    if (segments.empty()) {
      ++layout.empty;
    } else {
      layout.leads[segments.front()] = true;
    }
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (!is_listed(spool_.columns[c].column)) continue;
      std::vector<std::int64_t>& begin = spool_.columns[c].begin;
      const bool placed = is_placed(spool_.columns[c].column);
      std::int64_t value = begin.back();
      for (const std::uint32_t segment : segments) {
        if (placed) layout.values[c][segment] = value;
        if (placed || segment == segments.front()) value += counts_[c][segment];
      }
      begin.push_back(value);
    }
    if (layout.runs.empty() || layout.runs.back().file != file) layout.runs.push_back({file, place, place});
    layout.runs.back().last = std::int64_t{place} + 1;
  }

  const PackedDataset& dataset_;
  const ManifestPartition& partition_;
  const std::vector<SequenceId> first_sequence_;
  RecordSpool& spool_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<std::int64_t>> counts_;  // by column of kind list and text, by segment
};

}  // namespace

void fail_to_unpack(const std::string& place, const std::string& what) {
  throw Error(ErrorCode::bad_data, what + "; shardpack verify tells more", place);
}

std::vector<const ManifestShard*> planned_shards(const PackedDataset& dataset, const ManifestPartition& partition) {
  std::vector<const ManifestShard*> shards;
  std::int64_t rows = 0;
  for (const std::string& name : partition.shards) {
    if (rows == partition.rows) break;
    const auto shard = std::find_if(dataset.shards().begin(), dataset.shards().end(),
                                    [&](const ManifestShard& listed) { return listed.folder == name; });
    if (shard == dataset.shards().end()) fail_to_unpack(dataset.folder(), fmt::format("the manifest lists no shard {}", name));
    shards.push_back(&*shard);
    rows += shard->rows;
  }
  if (rows != partition.rows) fail_to_unpack(dataset.folder(), "the shards of a partition do not have its rows");
  return shards;
}

PartitionLayout lay_out_partition(const PackedDataset& dataset, const ManifestPartition& partition,
                                  const std::vector<const ManifestShard*>& shards, const std::vector<bool>& removed,
                                  RecordSpool& spool, const RunContext& context) {
  LayoutMaker maker(dataset, partition, spool);
  for (const ManifestShard* shard : shards) maker.add(*shard, context);
  PartitionLayout layout = maker.make(removed);
  for (const RecordSpool::Values& values : spool.columns) {
    // Records without tokens have no segment that brings a value: 0 stands for it.
    if (values.column.kind == ColumnKind::sequence) values.file.truncate(spool.records() * info(values.column.type).bytes);
  }
  return layout;
}

std::vector<ManifestPartition> parts_to_unpack(const PackedDataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  std::vector<SequenceRange> runs;
  bool in_order = true;
  ManifestPartition all;
  for (const ManifestPartition& partition : manifest.partitions) {
    in_order =
        in_order && partition.sequences.runs().size() == 1 && (runs.empty() || runs.back().last == partition.sequences.first());
    runs.insert(runs.end(), partition.sequences.runs().begin(), partition.sequences.runs().end());
    all.rows += partition.rows;
    all.shards.insert(all.shards.end(), partition.shards.begin(), partition.shards.end());
  }
  std::ranges::sort(runs, {}, &SequenceRange::first);
  SequenceId next = 0;
  bool sound = true;
  for (const SequenceRange& run : runs) {
    sound = sound && run.first == next;
    next = run.last;
  }
  if (!sound || next != first_sequences(manifest.sources).back())
    fail_to_unpack(dataset.folder(), "the partitions of the manifest do not hold every record once");
  if (!in_order) all.sequences.append({0, next});
  std::vector<ManifestPartition> parts = in_order ? manifest.partitions : std::vector<ManifestPartition>{std::move(all)};
  for (const ManifestPartition& part : parts) {
    if (part.sequences.count() >= std::int64_t{kNowhere})
      throw Error(ErrorCode::limit, "2^32 records or more cannot be put in order at once", dataset.folder());
  }
  return parts;
}

}  // namespace shardpack
