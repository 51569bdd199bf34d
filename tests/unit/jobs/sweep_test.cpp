#include "shardpack/sweep.h"

#include <algorithm>
#include <map>

#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

struct Runner {
  ThreadPool pool{2};
  NoProgress progress;
  NoDiagnostics diagnostics;
  RunContext context() {
    return {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .memory_bytes = 64 << 20, .temp_dir = {}};
  }
};

SweepResult run(const std::string& input, const SweepOptions& options, const ReadOptions& read = {}) {
  Runner runner;
  return sweep({input}, read, options, runner.context());
}

/// 400 sequences of 1 to 60 tokens, a few empty.
std::vector<std::int64_t> some_lengths() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 400; ++i) lengths.push_back(i % 97 == 3 ? 0 : i * i * 7919 % 60 + 1);
  return lengths;
}

std::string as_csv(const std::vector<std::int64_t>& lengths) {
  std::string text = "length,count\n";
  for (const std::int64_t length : lengths) text += std::to_string(length) + ",1\n";
  return text;
}

std::string as_jsonl(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (const std::int64_t length : lengths) {
    text += "{\"input_ids\": [";
    for (std::int64_t i = 0; i < length; ++i) text += i == 0 ? "5" : ",5";
    text += "]}\n";
  }
  return text;
}

void check_same(const SweepCell& cell, const PlanResult& planned) {
  INFO(cell.packer << " -L " << cell.row_tokens << " -K " << cell.max_segments << " overlong "
                   << static_cast<int>(cell.overlong));
  REQUIRE(cell.problem.empty());
  const PlanStats figures = stats(planned.plan);
  CHECK(cell.planner == planned.plan.packer);
  CHECK(cell.segment_limit == planned.plan.max_segments);
  CHECK(cell.rows == figures.rows);
  CHECK(cell.segments == figures.segments);
  CHECK(cell.strategies == planned.plan.strategies());
  CHECK(cell.max_segments_in_row == figures.max_segments_in_row);
  CHECK(cell.bound.rows == planned.plan.bound.rows);
  CHECK(cell.bound.kind == planned.plan.bound.kind);
  CHECK(cell.sequences == planned.policy.sequences);
  CHECK(cell.added_eos == planned.policy.added_eos);
  CHECK(cell.added_bos == planned.policy.added_bos);
  std::int64_t removed = 0;
  for (std::size_t cause = 0; cause < kRemovalCauses.size(); ++cause) {
    CHECK(cell.removed[cause].sequences == planned.policy.counts[cause].sequences);
    CHECK(cell.removed[cause].tokens == planned.policy.counts[cause].tokens);
    removed += planned.policy.counts[cause].tokens;
  }
  CHECK(cell.lost_tokens() == removed);
  CHECK(cell.tokens == planned.tokens - removed + cell.added_eos + cell.added_bos);
}

/// Every cell against the job `plan` with the same options.
void check_cells(const std::string& input, const SweepOptions& options, const ReadOptions& read, bool with_input_order) {
  const SweepResult result = run(input, options, read);
  REQUIRE(result.cells.size() ==
          result.row_tokens.size() * result.overlong.size() * result.packers.size() * result.max_segments.size());
  std::size_t compared = 0;
  for (const SweepCell& cell : result.cells) {
    if (find_packer(cell.packer).input_order && !with_input_order) continue;
    PlanOptions one{.policy = options.policy, .packer = cell.packer, .packing = options.packing};
    one.policy.row_tokens = one.packing.row_tokens = cell.row_tokens;
    one.policy.overlong = cell.overlong;
    one.packing.max_segments = cell.max_segments;
    if (cell.overlong != Overlong::split || cell.packer == "concat") one.policy.split_min_tokens = 0;
    Runner runner;
    check_same(cell, plan({input}, read, one, runner.context()));
    ++compared;
  }
  CHECK(compared > 0);
}

std::vector<std::string> all_packers() {
  std::vector<std::string> names;
  for (const PackerInfo& packer : packers()) names.emplace_back(packer.name);
  return names;
}

SweepCell cell(Length row_tokens, std::int32_t limit, std::int64_t rows, std::int64_t tokens, std::int64_t touched = 0,
               std::int64_t lost = 0) {
  SweepCell made;
  made.row_tokens = row_tokens;
  made.segment_limit = made.max_segments = limit;
  made.rows = rows;
  made.tokens = tokens;
  made.touched_sequences = touched;
  made.removed[static_cast<std::size_t>(RemovalCause::truncated)].tokens = lost;
  return made;
}

}  // namespace

TEST_CASE("every cell says what plan says of the same options: a histogram") {
  const TempFolder folder;
  const std::string input = folder.write("lengths.csv", as_csv(some_lengths()));
  SweepOptions options;
  options.row_tokens = {24, 48, 64};
  options.overlong = {Overlong::truncate, Overlong::split, Overlong::drop};
  options.packers = all_packers();
  options.max_segments = {0, 1, 3};
  check_cells(input, options, {}, false);
  options.overlong = {Overlong::split};
  options.policy = {.split_min_tokens = 5, .min_tokens = 4, .append_eos = true, .prepend_bos = true, .segment_multiple = 8};
  options.packing.nnls_weights = NnlsWeights::tokens;
  check_cells(input, options, {}, false);
}

TEST_CASE("every cell says what plan says of the same options: shards, in their own order") {
  const TempFolder folder;
  const std::string input = folder.write("train.jsonl", as_jsonl(some_lengths()));
  SweepOptions options;
  options.row_tokens = {24, 64};
  options.overlong = {Overlong::split, Overlong::drop};
  options.packers = all_packers();
  options.max_segments = {0, 2};
  check_cells(input, options, {}, true);
  ReadOptions read;
  read.eos_id = 5;  // all end in it
  read.bos_id = 6;
  options.policy.append_eos = options.policy.prepend_bos = true;
  options.policy.split_min_tokens = 3;
  options.policy.segment_multiple = 4;
  check_cells(input, options, read, true);
  const SweepResult result = run(input, options, read);
  CHECK(result.cells.front().added_eos == 0);
  CHECK(result.cells.front().added_bos == result.cells.front().sequences);
}

TEST_CASE("every cell says what plan says of the same options: sequences that are kept together") {
  std::vector<std::int64_t> lengths = some_lengths();
  std::replace(lengths.begin(), lengths.end(), std::int64_t{0}, std::int64_t{9});
  const TempFolder folder;
  const std::string input = folder.write("train.jsonl", as_jsonl(lengths));
  SweepOptions options;
  options.row_tokens = {64, 256};
  options.overlong = {Overlong::drop};
  options.packers = {"auto", "spfhp", "nnlshp", "none", "sequential"};
  options.max_segments = {0, 2, 3, 6};
  options.policy.keep_together = 2;
  check_cells(input, options, {}, true);
  const SweepResult result = run(input, options);
  std::int64_t over = 0, tokens = 0;
  for (std::size_t i = 0; i < lengths.size(); i += 2) {
    if (lengths[i] + lengths[i + 1] <= 64) continue;
    over += 2;
    tokens += lengths[i] + lengths[i + 1];
  }
  CHECK(result.over[0].sequences == over);
  CHECK(result.over[0].tokens == tokens);
  CHECK(result.cells.front().touched_sequences == over);

  options.overlong.clear();
  CHECK(run(input, options).overlong == std::vector<Overlong>{Overlong::drop});
  options.policy.keep_together = 1;
  CHECK(run(input, options).overlong == std::vector<Overlong>{Overlong::split});
  options.policy.keep_together = 2;

  options.overlong = {Overlong::split, Overlong::error};  // a unit is never cut
  options.max_segments = {1, 2};
  const SweepResult mixed = run(input, options);
  for (const SweepCell& cell : mixed.cells)
    CHECK(cell.problem.empty() == (cell.overlong == Overlong::error && cell.max_segments == 2 && cell.row_tokens == 256));
}

TEST_CASE("input order: next fit and one stream, counted by hand") {
  const std::vector<std::int64_t> lengths = some_lengths();
  const TempFolder folder;
  const std::string input = folder.write("train.jsonl", as_jsonl(lengths));
  SweepOptions options;
  options.row_tokens = {64, 100};
  options.packers = {"sequential", "concat"};
  const SweepResult result = run(input, options);
  for (std::size_t l = 0; l < 2; ++l) {
    const std::int64_t row = options.row_tokens[l];
    std::int64_t rows = 0, room = 0, at = 0, cut = 0, cut_tokens = 0;
    for (const std::int64_t length : lengths) {
      if (length == 0) continue;
      if (length > room) {
        ++rows;
        room = row;
      }
      room -= length;
      if (at / row != (at + length - 1) / row) {
        ++cut;
        cut_tokens += length;
      }
      at += length;
    }
    CHECK(result.cell(l, 0, 0, 0).rows == rows);
    CHECK(result.cell(l, 0, 0, 0).touched_sequences == 0);
    CHECK(result.cell(l, 0, 0, 0).order == InputOrder::real);
    CHECK(result.cell(l, 0, 1, 0).rows == (at + row - 1) / row);
    CHECK(result.cell(l, 0, 1, 0).touched_sequences == cut);
    CHECK(result.cell(l, 0, 1, 0).touched_tokens == cut_tokens);
  }
}

TEST_CASE("a histogram's sequences are shuffled; where their order does not matter the figures are exact") {
  const TempFolder folder;
  SweepOptions options;
  options.row_tokens = {256};
  options.packers = {"sequential", "concat"};
  // 100 tokens each: two fit into a row of 256; 64 of them fill 25 rows, and 24 of these ends cut a sequence.
  const SweepResult few = run(folder.write("few.csv", "100,6400\n0,12\n"), options);
  CHECK(few.cells[0].order == InputOrder::shuffled);
  CHECK(few.cells[0].rows == 3200);
  CHECK(few.cells[1].rows == 2500);
  CHECK(few.cells[1].touched_sequences == 2400);
  CHECK(few.cells[1].touched_tokens == 240'000);

  const SweepResult many = run(folder.write("many.csv", "100,64000000\n"), options);
  CHECK(many.cells[0].order == InputOrder::sampled);
  CHECK(many.cells[0].strategies == 0);
  CHECK(many.cells[0].rows == Approx(32'000'000).epsilon(1e-4));
  CHECK(many.cells[0].rows >= many.cells[0].bound.rows);
  CHECK(many.cells[0].segments == 64'000'000);
  CHECK(many.cells[1].rows == 25'000'000);
  CHECK(many.cells[1].bound.rows == 25'000'000);
  CHECK(many.cells[1].touched_sequences == Approx(24'000'000).epsilon(1e-4));
  CHECK(many.cells[1].segments == Approx(88'000'000).epsilon(1e-4));
}

TEST_CASE("a bound that one packer proves holds for the others with the same items and no more segments") {
  const TempFolder folder;
  SweepOptions options;
  options.row_tokens = {30};
  options.packers = {"lpfhp", "optimal", "concat"};
  options.max_segments = {0, 2, 3};
  const SweepResult result = run(folder.write("lengths.csv", "11,9\n13,4\n17,4\n12,5\n"), options);
  for (std::size_t limit = 0; limit < 3; ++limit) {
    std::int64_t best = 0;
    for (std::size_t other = 0; other < 3; ++other) {  // limits 0, 2, 3: no limit bounds all, 3 bounds 2
      const bool looser = other == limit || other == 0 || (limit == 1 && other == 2);
      for (std::size_t packer = 0; looser && packer < 2; ++packer)
        best = std::max(best, result.cell(0, 0, packer, other).bound.rows);
    }
    for (std::size_t packer = 0; packer < 2; ++packer) {
      CHECK(result.cell(0, 0, packer, limit).best_bound == best);
      CHECK(result.cell(0, 0, packer, limit).rows >= best);
    }
    CHECK(result.cell(0, 0, 2, limit).best_bound == result.cell(0, 0, 2, limit).bound.rows);
  }
}

TEST_CASE("over-long sequences under error: the cell says so, and the others have their figures") {
  const TempFolder folder;
  SweepOptions options;
  options.row_tokens = {32, 64};
  options.overlong = {Overlong::error, Overlong::truncate};
  options.packers = {"lpfhp", "concat"};
  for (const std::string& input :
       {folder.write("lengths.csv", as_csv(some_lengths())), folder.write("a.jsonl", as_jsonl(some_lengths()))}) {
    const SweepResult result = run(input, options);
    CHECK(result.cell(0, 0, 0, 0).problem.find("are longer than a row of 32 slots") != std::string::npos);
    CHECK(result.cell(0, 0, 0, 0).rows == 0);
    CHECK(result.cell(0, 0, 1, 0).problem.empty());  // concat cuts at row ends anyway
    CHECK(result.cell(0, 1, 0, 0).problem.empty());
    CHECK(result.cell(1, 0, 0, 0).problem.empty());
    CHECK(result.cell(1, 0, 0, 0).rows == result.cell(1, 1, 0, 0).rows);  // nothing is longer than 64
    std::int64_t over = 0, tokens = 0;
    for (const std::int64_t length : some_lengths()) {
      if (length > 32) {
        ++over;
        tokens += length;
      }
    }
    CHECK(result.over[0].sequences == over);
    CHECK(result.over[0].tokens == tokens);
    CHECK(result.over[0].truncated_tokens == tokens - 32 * over);
    CHECK(result.over[0].pieces == 2 * over);
    CHECK(result.cell(0, 1, 0, 0).touched_sequences == over);
    CHECK(result.cell(0, 1, 0, 0).lost_tokens() == tokens - 32 * over);
    CHECK(result.over[1].sequences == 0);
    CHECK(result.cell(1, 1, 0, 0).touched_sequences == 0);
  }
}

TEST_CASE("huge sequences and counts: figures, or the reason why not, and never out of memory") {
  const TempFolder folder;
  SweepOptions options;
  options.row_tokens = {512};
  options.overlong = {Overlong::split, Overlong::truncate};
  const SweepResult long_one = run(folder.write("one.csv", "1000000000000,3\n"), options);
  CHECK(long_one.cell(0, 0, 0, 0).rows == 5'859'375'000);
  CHECK(long_one.cell(0, 0, 4, 0).problem.find("too many to lay out in order") != std::string::npos);
  CHECK(long_one.cell(0, 1, 4, 0).rows == 3);
  const SweepResult many = run(folder.write("many.csv", "300,1000000000000\n200,1000000000000\n"), options);
  CHECK(many.cell(0, 0, 0, 0).rows == 1'000'000'000'000);
  CHECK(many.cell(0, 0, 5, 0).order == InputOrder::sampled);
  const SweepResult none = run(folder.write("none.csv", "0,5\n"), options);
  CHECK(none.cells.front().rows == 0);
  CHECK_FALSE(none.knee);
}

TEST_CASE("lists are taken once each, in their order, and must make sense") {
  const TempFolder folder;
  const std::string input = folder.write("lengths.csv", as_csv(some_lengths()));
  SweepOptions options;
  options.row_tokens = {64, 32, 64};
  options.max_segments = {3, 0, 3};
  const SweepResult result = run(input, options);
  CHECK(result.row_tokens == std::vector<Length>{64, 32});
  CHECK(result.max_segments == std::vector<std::int32_t>{3, 0});
  CHECK(result.cell(1, 0, 0, 0).row_tokens == 32);
  CHECK(result.cell(1, 0, 0, 0).max_segments == 3);

  const auto refusal = [&](const SweepOptions& wrong) {
    try {
      run(folder.path("is-not-read"), wrong);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal({}) == "a sweep needs at least one row length");
  options.packers = {"auto", "lpfph"};
  CHECK(refusal(options).find("did you mean 'lpfhp'") != std::string::npos);
  options.packers = {"auto"};
  options.policy.segment_multiple = 48;
  CHECK(refusal(options).find("multiple of 48 slots") != std::string::npos);
  options.row_tokens.push_back(96);  // one is enough
  const SweepResult mixed = run(input, options);
  CHECK(mixed.cell(0, 0, 0, 0).problem.find("multiple of 48 slots") != std::string::npos);
  CHECK(mixed.cell(2, 0, 0, 0).rows > 0);
}

TEST_CASE("the knee: near the best in what is lost, cut and filled, then short rows, then few segments, then few rows") {
  LengthHistogram lengths;
  lengths.add(100, 1000);  // 100,000 tokens
  const auto knee = [&](const std::vector<SweepCell>& cells) { return find_knee(cells, lengths); };
  CHECK_FALSE(knee({}));
  CHECK(knee({cell(512, 0, 200, 100'000), cell(1024, 0, 100, 100'000)}) == 0u);  // the same fill
  CHECK(knee({cell(512, 0, 199, 100'000), cell(1024, 0, 98, 100'000)}) == 1u);   // 98.1 % and 99.6 %
  CHECK(knee({cell(1024, 0, 98, 100'000), cell(512, 0, 196, 100'000)}) == 1u);   // in whatever order
  CHECK(knee({cell(512, 0, 196, 100'000), cell(512, 8, 196, 100'000)}) == 1u);   // no limit is the highest
  CHECK(knee({cell(512, 3, 230, 100'000), cell(512, 8, 196, 100'000)}) == 1u);
  CHECK(knee({cell(512, 3, 1963, 1'000'000), cell(512, 8, 1961, 1'000'000)}) == 0u);  // 99.1 % and 99.6 %: near enough
  CHECK(knee({cell(512, 0, 197, 100'000), cell(512, 0, 196, 100'000)}) == 1u);
  CHECK(knee({cell(512, 0, 196, 100'000), cell(512, 0, 196, 100'000)}) == 0u);        // the first of equals
  CHECK(knee({cell(512, 0, 195, 100'000, 6), cell(1024, 0, 98, 100'000, 0)}) == 1u);  // cuts 0.6 % more
  CHECK(knee({cell(512, 0, 196, 100'000, 5), cell(1024, 0, 98, 100'000, 0)}) == 0u);
  CHECK(knee({cell(512, 0, 190, 97'000, 5, 3000), cell(512, 0, 196, 100'000, 5)}) == 1u);  // loses tokens
  CHECK(knee({cell(512, 0, 195, 99'600, 5, 400), cell(512, 0, 196, 100'000, 5)}) == 1u);   // near enough, but loses more
  SweepCell none = cell(512, 0, 0, 0);
  none.problem = "over-long";
  CHECK(knee({none, cell(1024, 0, 300, 100'000)}) == 1u);
  CHECK_FALSE(knee({none}));
}

TEST_CASE("Wikipedia: five row lengths, six packers, four limits") {
  if (!published_histogram("wikipedia_bert_512.csv")) {
    WARN(kNoSharedData);
    return;
  }
  SweepOptions options;
  options.row_tokens = {512, 1024, 2048, 4096, 8192};
  options.packers.front() = "ffd";  // auto takes seconds
  options.max_segments = {0, 2, 3, 8};
  const SweepResult result = run(published_histogram_path("wikipedia_bert_512.csv").string(), options);
  CHECK(result.cells.size() == 120);
  std::map<std::pair<std::string, std::int32_t>, std::int64_t> rows;
  for (const SweepCell& made : result.cells) {
    if (made.row_tokens == 512) rows[{made.packer, made.max_segments}] = made.rows;
  }
  CHECK(rows.at({"spfhp", 2}) == 10'101'683);
  CHECK(rows.at({"spfhp", 0}) == 8'166'708);
  CHECK(rows.at({"lpfhp", 8}) == 8'207'569);
  CHECK(rows.at({"lpfhp", 0}) == 8'138'483);
  CHECK(rows.at({"none", 3}) == 16'279'552);
  REQUIRE(result.knee);
  CHECK(result.cells[*result.knee].row_tokens == 512);
}
