// The quality table: rows that every packer needs for every histogram, row length and segment limit, as exact integers. It is
// committed as results.csv, so that a change in quality is seen as a change of a file.
//
//   quality_table FILE                     write the table; rows of published histograms that are not at hand stay as they are
//   quality_table FILE --check generated   compare; exit 1 and a diff when it is another
//   quality_table FILE --check published   the same for published histograms; exit 77 (skipped) when they are not at hand
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quality/histograms.h"
#include "shardpack/packer.h"
#include "support/shared_data.h"

namespace shardpack {
namespace {
constexpr const char* kHeader = "histogram,row_tokens,max_segments,packer,rows,bound,gap";
constexpr int kSkipped = 77;

struct PublishedHistogram {
  const char* name;
  const char* file;
  Length row_tokens;
};
constexpr PublishedHistogram kPublished[] = {{"wikipedia", "wikipedia_bert_512.csv", 512}, {"squad", "squad_1_1_384.csv", 384}};

using Lines = std::vector<std::string>;

/// These take seconds for the larger problems, and the table is made at every run of the tests.
bool takes_long(std::string_view packer, const LengthHistogram& items, const PackerOptions& options) {
  const std::int64_t size = std::ssize(items.counts()) * options.row_tokens;
  if (packer == "nnlshp") return size * std::max(options.max_segments, 3) > 1'100'000;
  if (packer == "optimal") return size * std::max(options.max_segments, 1) > 4'500'000;
  return false;
}

/// `auto` turns to `optimal` as well. Where that takes long, what it does before is in the table.
PlanEffort effort(std::string_view packer, const LengthHistogram& items, const PackerOptions& options) {
  return packer == "auto" && takes_long("optimal", items, options) ? PlanEffort::fast : PlanEffort::normal;
}

/// Rows and gap, exact where they are: plans of the linear programming solver may differ by a row from one version of it to the
/// next, so there a ceiling on the gap stands.
std::string line(const PackingPlan& plan, std::string_view packer) {
  if (plan.packer != "optimal") {
    return fmt::format("{},{},{},{}", packer, plan.rows(), plan.bound.rows, plan.gap());
  }
  const std::int64_t ceiling =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(plan.gap(), 1))));
  return fmt::format("{},,{},<={}", packer, plan.bound.rows, ceiling);
}

void add_lines(Lines& lines, const QualityCase& quality_case) {
  for (const Length row_tokens : quality_case.row_tokens) {
    for (const std::int32_t max_segments : quality_case.max_segments) {
      PackerOptions options;
      options.row_tokens = row_tokens;
      options.max_segments = max_segments;
      for (const PackerInfo& packer : packers()) {
        if (packer.input_order || takes_long(packer.name, quality_case.items, options)) continue;
        options.effort = effort(packer.name, quality_case.items, options);
        const PackingPlan plan = plan_packs(quality_case.items, packer.name, options);
        lines.push_back(fmt::format("{},{},{},{}", quality_case.name, row_tokens, max_segments, line(plan, packer.name)));
      }
    }
  }
}

Lines generated_lines() {
  Lines lines;
  for (const QualityCase& quality_case : generated_cases()) add_lines(lines, quality_case);
  return lines;
}

/// Nothing when the histograms are not at hand.
std::optional<Lines> published_lines() {
  Lines lines;
  for (const PublishedHistogram& published : kPublished) {
    std::optional<LengthHistogram> items = published_histogram(published.file);
    if (!items) return std::nullopt;
    add_lines(lines, {published.name, std::move(*items), {published.row_tokens}, {0, 2, 3, 4, 6, 8, 12, 16}});
  }
  return lines;
}

struct Table {
  Lines published, generated;
};

Table read_table(const std::string& path) {
  Table table;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // header
  while (std::getline(file, line)) {
    const auto is_its = [&](const PublishedHistogram& p) { return line.rfind(p.name + std::string(","), 0) == 0; };
    const bool published = std::any_of(std::begin(kPublished), std::end(kPublished), is_its);
    (published ? table.published : table.generated).push_back(line);
  }
  return table;
}

int write(const std::string& path) {
  const Lines published = published_lines().value_or(read_table(path).published);
  const Lines generated = generated_lines();
  std::ofstream file(path, std::ios::trunc);
  file << kHeader << '\n';
  for (const Lines* lines : {&published, &generated}) {
    for (const std::string& line : *lines) file << line << '\n';
  }
  file.close();
  if (!file) {
    fmt::print(stderr, "cannot write {}\n", path);
    return 1;
  }
  return 0;
}

/// Lines of one that the other lacks.
Lines lacking(Lines ours, Lines theirs) {
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  Lines result;
  std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::back_inserter(result));
  return result;
}

int compare(const Lines& expected, const Lines& found, const std::string& path) {
  if (expected == found) return 0;
  fmt::print("{} differs ({}):\n", path, kHeader);
  for (const std::string& line : lacking(expected, found)) fmt::print("- {}\n", line);
  for (const std::string& line : lacking(found, expected)) fmt::print("+ {}\n", line);
  fmt::print("If this is meant, write it again: quality_table {}\n", path);
  return 1;
}

int run(const Lines& arguments) {
  if (arguments.size() == 1) return write(arguments[0]);
  if (arguments.size() == 3 && arguments[1] == "--check") {
    const Table table = read_table(arguments[0]);
    if (arguments[2] == "generated") return compare(table.generated, generated_lines(), arguments[0]);
    if (arguments[2] == "published") {
      if (const std::optional<Lines> found = published_lines()) return compare(table.published, *found, arguments[0]);
      fmt::print("{}\n", kNoSharedData);
      return kSkipped;
    }
  }
  fmt::print(stderr, "usage: quality_table FILE [--check generated|published]\n");
  return 2;
}
}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  try {
    return shardpack::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "quality_table: {}\n", error.what());
    return 1;
  }
}
