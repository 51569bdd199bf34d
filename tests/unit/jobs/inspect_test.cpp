// inspect: what it reads of a dataset equals what was packed; the report shows it within 100 columns.
#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>

#include "report/inspect_report.h"
#include "shardpack/inspect.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

InspectResult look(const std::string& path, const InspectOptions& options = {}) {
  ThreadPool pool(1);
  NoProgress progress;
  NoDiagnostics diagnostics;
  return inspect(path, options, {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}});
}

ErrorCode failure(const std::string& path, const InspectOptions& options) {
  try {
    look(path, options);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TinyOptions options_with_everything() {
  TinyOptions options;
  options.lengths = {5, 9, 3, 12, 0, 7, 40, 1, 4, 8, 2, 6};
  options.policy = {
      .row_tokens = 16, .overlong = Overlong::split, .append_eos = true, .prepend_bos = true, .segment_multiple = 2};
  options.shard_rows = 3;
  options.repeated_rows = 2;
  options.position_start = 5;
  return options;
}

TEST_CASE("every row shows the tokens that were packed") {
  TinyOptions options = options_with_everything();
  SECTION("plain") {}
  SECTION("compressed, wide ids") {
    options.zstd_level = 1;
    options.id_type = IdType::u32;
    options.first_id = 100'000;
  }
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path(), options);
  std::int64_t tokens = 0, segments = 0;
  for (std::int64_t row = 0; row < manifest.rows; ++row) {
    const RowView view = look(folder.path(), {.read = {}, .row = row, .sequence = {}}).row.value();
    CHECK(view.row == row);
    CHECK(view.tail == (row >= manifest.planned_rows()));
    std::int64_t end = 0;
    for (const SegmentView& segment : view.segments) {
      CHECK(segment.begin == end);
      end += segment.slots;
      CHECK(segment.first_position == 5);
      CHECK(segment.length == segment.tokens + (segment.added & 1) + (segment.added >> 1));
      std::vector<std::int64_t> ids;
      if ((segment.added & kAddedBos) != 0) ids.push_back(kTinyBos);
      for (std::int64_t t = 0; t < segment.tokens; ++t)
        ids.push_back(tiny_token(options, segment.sequence, segment.first_token + t));
      if ((segment.added & kAddedEos) != 0) ids.push_back(kTinyEos);
      const auto first = static_cast<std::ptrdiff_t>(segment.first_ids.size()),
                 last = static_cast<std::ptrdiff_t>(segment.last_ids.size());
      CHECK(first + last == std::min<std::ptrdiff_t>(segment.length, 6));
      CHECK(segment.first_ids == std::vector<std::int64_t>(ids.begin(), ids.begin() + first));
      CHECK(segment.last_ids == std::vector<std::int64_t>(ids.end() - last, ids.end()));
      if (!view.tail) {
        tokens += segment.length;
        ++segments;
      }
    }
    CHECK(end <= view.row_tokens);
  }
  CHECK(tokens == manifest.tokens);
  CHECK(segments == manifest.segments);
}

TEST_CASE("a sequence is found where its rows show it") {
  const TinyOptions options = options_with_everything();
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path(), options);
  for (std::int64_t sequence = 0; sequence < manifest.source_sequences; ++sequence) {
    const SequenceView view = look(folder.path(), {.read = {}, .row = {}, .sequence = sequence}).sequence.value();
    CHECK(view.record == (sequence < 4 ? sequence : sequence - 4));
    std::int64_t next = 0;
    for (const PieceView& piece : view.pieces) {
      if (!piece.tail) {
        CHECK(piece.first_token == next);
        next += piece.tokens;
      }
      const RowView row = look(folder.path(), {.read = {}, .row = piece.row, .sequence = {}}).row.value();
      CHECK(row.shard == piece.shard);
      CHECK(row.row_in_shard == piece.row_in_shard);
      const SegmentView& segment = row.segments.at(static_cast<std::size_t>(piece.segment - 1));
      CHECK(segment.sequence == sequence);
      CHECK(segment.begin == piece.begin);
      CHECK(segment.first_token == piece.first_token);
      CHECK(segment.added == piece.added);
    }
    CHECK(next == options.lengths[static_cast<std::size_t>(sequence)]);
  }
}

TEST_CASE("a dataset as a whole") {
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path(), options_with_everything());
  const InspectResult result = look(folder.path());
  const DatasetView& view = result.dataset.value();
  CHECK(view.manifest.rows == manifest.rows);
  CHECK(view.segments_in_rows.sequences() == manifest.planned_rows());
  CHECK(view.segments_in_rows.tokens() == manifest.segments);
  CHECK(view.segments_in_rows.max_length() == manifest.max_segments_in_row);
  CHECK(look(folder.path("manifest.json")).dataset.has_value());
  const std::string text = inspect_to_text(result);
  CHECK(text.find("the last 2 repeated") != std::string::npos);
  CHECK(widest_line(text) <= 100);
  CHECK(inspect_to_json(result, 0).find("\"kind\": \"dataset\"") != std::string::npos);
}

TEST_CASE("plans and histograms") {
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path(), options_with_everything());
  const InspectResult plan = look(folder.path("plan-00000.json"));
  REQUIRE(plan.plan);
  CHECK(plan.plan->plan.rows() == manifest.planned_rows());
  CHECK(widest_line(inspect_to_text(plan)) <= 100);
  const InspectResult histogram = look(folder.write("lengths.csv", "length,count\n3,10\n17,2\n400,1\n"));
  REQUIRE(histogram.histogram);
  CHECK(histogram.histogram->sequences() == 13);
  CHECK(inspect_to_text(histogram).find("3 to 400, mean 35.7") != std::string::npos);
  CHECK(widest_line(inspect_to_text(histogram)) <= 100);
}

InspectOptions row(std::int64_t number) { return {.read = {}, .row = number, .sequence = {}}; }
InspectOptions sequence(std::int64_t number) { return {.read = {}, .row = {}, .sequence = number}; }

TEST_CASE("a manifest that tells of other rows than are stored") {
  const TempFolder folder;
  Manifest manifest = write_tiny_dataset(folder.path());
  SECTION("longer ones") { manifest.row_tokens = std::numeric_limits<Length>::max(); }
  SECTION("of wider ids") { manifest.id_type = IdType::u32; }
  write_manifest_of_what_is_there(folder.path(), manifest);
  CHECK(failure(folder.path(), row(0)) == ErrorCode::bad_data);
}

TEST_CASE("numbers of rows, segments and records that are not there") {
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path());
  REQUIRE(manifest.shards.size() == 1);
  const std::int64_t number = GENERATE(std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 40);
  const auto forge = [&](const std::string& name, std::size_t index, std::int64_t entries) {
    const std::string path = folder.path(manifest.shards.front().folder + "/" + name);
    std::string bytes = read_file(path);
    std::memcpy(bytes.data() + bytes.size() - static_cast<std::size_t>(entries) * 8 + index * 8, &number, sizeof number);
    write_file(path, bytes);
  };
  SECTION("the rows begin elsewhere") {
    forge("row_offsets.npy", 1, manifest.rows + 1);
    CHECK(failure(folder.path(), {}) == ErrorCode::bad_data);
    CHECK(failure(folder.path(), row(0)) == ErrorCode::bad_data);
    CHECK(failure(folder.path(), row(1)) == ErrorCode::bad_data);
    CHECK(failure(folder.path(), sequence(0)) == ErrorCode::bad_data);
  }
  SECTION("a segment is of another file, or record") {
    const std::size_t of_what = GENERATE(std::size_t{0}, std::size_t{1});
    forge("seq_source.npy", of_what, 3 * manifest.segments);
    CHECK(failure(folder.path(), row(0)) == ErrorCode::bad_data);
  }
}

TEST_CASE("what is not there") {
  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path());
  CHECK(failure(folder.path(), row(manifest.rows)) == ErrorCode::usage);
  CHECK(failure(folder.path(), row(-1)) == ErrorCode::usage);
  CHECK(failure(folder.path(), sequence(12)) == ErrorCode::usage);
  CHECK(failure(folder.path("plan-00000.json"), row(0)) == ErrorCode::usage);
  CHECK(failure(folder.path("nowhere"), {}) == ErrorCode::io);
  write_file(folder.path("manifest.json"), "{}");
  CHECK(failure(folder.path(), {}) == ErrorCode::bad_data);
}

}  // namespace
}  // namespace shardpack
