// Rows to write, and a small dataset made of them. Everything follows from the seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "core/fingerprint_keys.h"
#include "io/file.h"
#include "shardpack/manifest.h"
#include "shardpack/row_sink.h"

namespace shardpack {

/// Segments row by row.
using SampleRows = std::vector<std::vector<RowSegment>>;

struct SampleOptions {
  Length row_tokens = 64;
  Length segment_multiple = 1;
  bool added = true;
  std::uint64_t seed = 1;
};

/// Rows of every kind: full, with padding at the end, of one segment, without any.
inline SampleRows sample_rows(std::int64_t rows, const SampleOptions& options) {
  const RandomStream random(options.seed, RandomPurpose::sample);
  std::uint64_t draws = 0;
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.bounded(draws++, static_cast<std::uint64_t>(high - low + 1)));
  };
  SampleRows result(static_cast<std::size_t>(rows));
  std::int64_t record = 0;
  for (std::vector<RowSegment>& row : result) {
    std::int64_t free_slots = draw(0, 9) == 0 ? 0 : options.row_tokens - draw(0, 2) * draw(0, options.row_tokens / 2);
    while (free_slots > 0) {
      RowSegment segment;
      segment.file = static_cast<std::int32_t>(draw(0, 3));
      segment.record = record++;
      segment.first_token = draw(0, 1) * draw(0, 100'000);
      segment.added = static_cast<std::uint8_t>(options.added ? draw(0, 3) : 0);
      segment.tokens = static_cast<Length>(draw(1, std::max<std::int64_t>(1, options.row_tokens / 3)));
      const std::int64_t multiple = options.segment_multiple;
      segment.slots = static_cast<Length>((segment.length() + multiple - 1) / multiple * multiple);
      if (segment.slots > free_slots) break;
      free_slots -= segment.slots;
      row.push_back(segment);
    }
  }
  return result;
}

/// A token's id in the sample; 0 is the pad id, and a token of its own as well.
inline std::uint32_t sample_id(const RowSegment& segment, std::int64_t place) {
  return static_cast<std::uint32_t>((segment.record * 7919 + segment.first_token * 31 + place * 17) % 50'000);
}

/// Rows [first, first + count) as a block.
inline RowBlock sample_block(const SampleRows& rows, std::size_t first, std::size_t count, Length row_tokens, IdType id_type) {
  RowBlock block;
  block.first_row = static_cast<std::int64_t>(first);
  for (std::size_t r = 0; r < first; ++r) block.first_segment += static_cast<std::int64_t>(rows[r].size());
  block.rows = static_cast<std::int64_t>(count);
  block.row_tokens = row_tokens;
  block.id_type = id_type;
  block.row_begin = {0};
  const auto id_bytes = static_cast<std::size_t>(info(id_type).bytes);
  block.ids.assign(count * static_cast<std::size_t>(row_tokens) * id_bytes, std::byte{});
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t slot = r * static_cast<std::size_t>(row_tokens);
    for (const RowSegment& segment : rows[first + r]) {
      for (std::int64_t place = 0; place < segment.length(); ++place) {
        const std::uint32_t id = sample_id(segment, place);
        std::memcpy(block.ids.data() + (slot + static_cast<std::size_t>(place)) * id_bytes, &id, id_bytes);  // little-endian
      }
      slot += static_cast<std::size_t>(segment.slots);
      block.segments.push_back(segment);
    }
    block.row_begin.push_back(static_cast<std::int64_t>(block.segments.size()));
  }
  return block;
}

/// What a shard of these rows is.
inline ShardPlan sample_plan(const std::string& folder, const SampleRows& rows, const SampleOptions& options) {
  ShardPlan plan;
  plan.folder = folder;
  plan.rows = static_cast<std::int64_t>(rows.size());
  plan.row_tokens = options.row_tokens;
  for (const std::vector<RowSegment>& row : rows) {
    plan.segments += static_cast<std::int64_t>(row.size());
    plan.max_segments_in_row = std::max(plan.max_segments_in_row, static_cast<std::int32_t>(row.size()));
    for (const RowSegment& segment : row) {
      plan.write_added = plan.write_added || segment.added != 0;
      plan.write_slots = plan.write_slots || segment.slots != segment.length();
    }
  }
  return plan;
}

/// Write the shard in blocks of `block_rows` rows.
inline std::vector<ManifestFile> write_sample(const ShardPlan& plan, const SampleRows& rows, std::size_t block_rows) {
  const std::unique_ptr<RowSink> sink = make_native_sink(plan);
  for (std::size_t first = 0; first < rows.size(); first += block_rows) {
    const std::size_t count = std::min(block_rows, rows.size() - first);
    sink->write(sink->encode(sample_block(rows, first, count, plan.row_tokens, plan.id_type)));
  }
  return sink->finish();
}

inline constexpr SampleOptions kSampleDatasetOptions{.segment_multiple = 4};
inline constexpr std::int64_t kSampleDatasetRows = 40;

inline constexpr std::int64_t kSampleSourceSequences = 1000;  // in each of four files

/// Of the rows' source tokens.
inline Fingerprint sample_fingerprint(const SampleRows& rows) {
  const FingerprintKeys keys(1000);
  Fingerprint total;
  for (const std::vector<RowSegment>& row : rows) {
    for (const RowSegment& segment : row) {
      std::vector<std::uint32_t> ids;
      const std::int64_t before = (segment.added & kAddedBos) != 0 ? 1 : 0;
      for (std::int64_t i = 0; i < segment.tokens; ++i) ids.push_back(sample_id(segment, before + i));
      const SequenceId ordinal = segment.file * kSampleSourceSequences + segment.record;
      total += keys.of(ordinal, segment.first_token, std::span<const std::uint32_t>(ids));
    }
  }
  return total;
}

/// A manifest and one shard, in the existing `folder`.
inline Manifest write_sample_dataset(const std::string& folder, int zstd_level = 0) {
  const SampleRows rows = sample_rows(kSampleDatasetRows, kSampleDatasetOptions);
  ShardPlan plan = sample_plan(folder + "/shard-00000-00000", rows, kSampleDatasetOptions);
  plan.zstd_level = zstd_level;

  Manifest manifest;
  manifest.tool_version = "0.1.0";
  manifest.row_tokens = plan.row_tokens;
  manifest.rows = plan.rows;
  manifest.segments = manifest.sequences = manifest.source_sequences = plan.segments;
  manifest.max_segments_in_row = plan.max_segments_in_row;
  manifest.plan = {.packer = "bfd", .bound_kind = "l1", .segment_multiple = 4, .rows = plan.rows, .bound = 1};
  manifest.compress = zstd_level > 0 ? "zstd:" + std::to_string(zstd_level) : "";
  for (int file = 0; file < 4; ++file) {
    manifest.sources.push_back({"part-" + std::to_string(file), "raw", 0, kSampleSourceSequences, 0, hash_hex("")});
  }
  ManifestShard shard;
  shard.folder = "shard-00000-00000";
  shard.rows = plan.rows;
  shard.segments = plan.segments;
  shard.fingerprint = manifest.packed_fingerprint = manifest.source_fingerprint = sample_fingerprint(rows);
  shard.files = write_sample(plan, rows, 16);
  manifest.shards.push_back(shard);

  const std::string text = to_json(manifest);
  File file(folder + "/manifest.json", File::Mode::create);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.close();
  return manifest;
}

}  // namespace shardpack
