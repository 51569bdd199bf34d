// Partitions beside a walk over units one by one: the same cuts, whatever files, empty records and units kept together there are.
#include <numeric>
#include <random>
#include <vector>

#include "jobs/partitions.h"
#include "support/catch.h"

namespace shardpack {
namespace {

SequenceIndex index_of(const std::vector<std::vector<std::int64_t>>& lengths_by_file) {
  std::vector<SourceFile> files;
  for (const std::vector<std::int64_t>& lengths : lengths_by_file) {
    std::vector<std::int64_t>& begin = files.emplace_back().record_begin;
    begin = {0};
    for (const std::int64_t length : lengths) begin.push_back(begin.back() + length);
  }
  return SequenceIndex(std::move(files));
}

/// The first sequence of each partition: one begins where the next unit would be too much for the one before.
std::vector<SequenceId> begins_by_units(const std::vector<std::vector<std::int64_t>>& lengths_by_file, std::int64_t most_tokens,
                                        std::int32_t together) {
  std::vector<SequenceId> begins;
  std::int64_t tokens = 0, sequences = 0;
  SequenceId sequence = 0;
  for (const std::vector<std::int64_t>& lengths : lengths_by_file) {
    for (std::size_t record = 0; record < lengths.size(); record += static_cast<std::size_t>(together)) {
      const auto unit = lengths.begin() + static_cast<std::ptrdiff_t>(record);
      const std::int64_t more = std::accumulate(unit, unit + together, std::int64_t{0});
      if (sequences == 0 || tokens + more > most_tokens || sequences + together > kPartitionSequences) {
        begins.push_back(sequence);
        tokens = sequences = 0;
      }
      tokens += more;
      sequences += together;
      sequence += together;
    }
  }
  return begins;
}

std::vector<SequenceId> begins_of(const std::vector<Partition>& partitions) {
  std::vector<SequenceId> begins;
  for (const Partition& partition : partitions) begins.push_back(partition.sequences.first());
  return begins;
}

/// Every sequence lies in exactly one of the partitions.
void check_all_once(const std::vector<Partition>& partitions, std::int64_t sequences) {
  std::vector<int> times(static_cast<std::size_t>(sequences));
  for (const Partition& partition : partitions) {
    for (const SequenceRange& run : partition.sequences.runs()) {
      for (SequenceId s = run.first; s < run.last; ++s) ++times[static_cast<std::size_t>(s)];
    }
  }
  CHECK(times == std::vector<int>(times.size(), 1));
}

}  // namespace

TEST_CASE("partitions in input order are cut where a unit would be too much") {
  std::mt19937_64 random(11);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  for (int round = 0; round < 2'000; ++round) {
    const auto together = static_cast<std::int32_t>(1 + below(3) * below(2));
    std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(below(4)));
    std::int64_t sequences = 0;
    for (std::vector<std::int64_t>& file : lengths) {
      file.resize(static_cast<std::size_t>(below(20) * together));
      for (std::int64_t& length : file) length = below(4) == 0 ? 0 : below(30);
      sequences += std::ssize(file);
    }
    const std::int64_t most_tokens = 1 + below(200);
    const std::vector<Partition> partitions = cut_partitions(
        index_of(lengths), {.tokens = most_tokens, .order = PartitionOrder::input, .seed = 0, .keep_together = together});
    CHECK(begins_of(partitions) == begins_by_units(lengths, most_tokens, together));
    check_all_once(partitions, sequences);
  }
}

TEST_CASE("a partition has no more sequences than it may, empty ones too") {
  for (const std::int32_t together : {1, 3}) {
    const std::int64_t sequences = 2 * kPartitionSequences + 5 * together - 2 * kPartitionSequences % together;
    const std::vector<std::vector<std::int64_t>> lengths{std::vector<std::int64_t>(static_cast<std::size_t>(3 * together), 1),
                                                         std::vector<std::int64_t>(static_cast<std::size_t>(sequences), 0)};
    const std::vector<Partition> partitions = cut_partitions(
        index_of(lengths), {.tokens = 1'000, .order = PartitionOrder::input, .seed = 0, .keep_together = together});
    CHECK(begins_of(partitions) == begins_by_units(lengths, 1'000, together));
    CHECK(partitions.size() == 3);
  }
}

TEST_CASE("shuffled partitions hold every sequence once, in blocks within the limits") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::int64_t>> lengths(3, std::vector<std::int64_t>(2'000));
    for (std::vector<std::int64_t>& file : lengths) {
      for (std::int64_t& length : file) length = static_cast<std::int64_t>(random() % 50);
    }
    const SequenceIndex index = index_of(lengths);
    const PartitionCut cut{.tokens = 6'400, .order = PartitionOrder::shuffled, .seed = random(), .keep_together = 2};
    const std::vector<Partition> partitions = cut_partitions(index, cut);
    check_all_once(partitions, index.sequences());
    for (const Partition& partition : partitions) {
      std::int64_t tokens = 0;
      for (const SequenceRange& run : partition.sequences.runs()) {
        CHECK(run.first % 2 == 0);
        CHECK(run.last % 2 == 0);
        for (SequenceId s = run.first; s < run.last; ++s) tokens += index.place(s).tokens;
      }
      CHECK(tokens <= cut.tokens);
    }
    const std::vector<Partition> again = cut_partitions(index, cut);
    REQUIRE(again.size() == partitions.size());
    for (std::size_t p = 0; p < again.size(); ++p) CHECK(again[p].sequences == partitions[p].sequences);
  }
}

}  // namespace shardpack
