#include "jobs/verify_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/units.h"

namespace shardpack {

namespace {

/// What one record's ranges, in order, amount to.
struct RecordWalk {
  std::int64_t end = 0;  // tokens accounted for
  bool placed = false;
  bool truncated = false;
  std::int64_t placed_tokens = 0;
  int lost_to = -1;  // cause of a removed range other than truncation; tail wins
  std::string fault;

  void range(std::int64_t first_token, std::int64_t tokens) {
    if (tokens == 0 && first_token == 0) return;  // concat cut between an added BOS and the first token
    if (first_token != end && fault.empty()) {
      fault = first_token < end ? fmt::format("token {} is there twice", with_commas(first_token))
                                : fmt::format("tokens {} to {} are neither in a row nor in removed.csv", with_commas(end),
                                              with_commas(first_token - 1));
    }
    end = std::max(end, first_token + tokens);
  }
};

/// What is wrong with a record under --drop-unlabeled, whose loss lies behind `loss_place` tokens of the side that was kept.
std::string loss_fault(const RecordWalk& walk, std::uint32_t loss_place, Length row_tokens) {
  constexpr Length kMostAdded = 2;  // a BOS and an EOS
  if (walk.lost_to == static_cast<int>(RemovalCause::unlabeled)) {
    const std::int64_t kept = std::min<std::int64_t>(walk.end, row_tokens - kMostAdded);
    return loss_place < kept ? "is not in the rows as unlabeled, and a token that would be there takes part in the loss" : "";
  }
  const bool whole = walk.placed && walk.lost_to < 0;
  return whole && loss_place >= walk.placed_tokens ? "is in the rows, and no token of it there takes part in the loss" : "";
}

}  // namespace

std::vector<SequenceId> first_sequences(const std::vector<ManifestSource>& sources) {
  std::vector<SequenceId> first{0};
  for (const ManifestSource& source : sources) first.push_back(first.back() + source.sequences);
  return first;
}

Placement::Placement(const SequenceRanges& sequences)
    : sequences_(sequences), pages_(static_cast<std::size_t>((sequences.count() + kPageRecords - 1) / kPageRecords)) {}

std::uint32_t& Placement::leading(SequenceId sequence) {
  const std::int64_t rank = sequences_.rank(sequence);
  std::unique_ptr<Page>& page = pages_[static_cast<std::size_t>(rank / kPageRecords)];
  if (!page) page = std::make_unique<Page>();
  return (*page)[static_cast<std::size_t>(rank % kPageRecords)];
}

void Placement::place(SequenceId sequence, std::int64_t first_token, Length tokens) {
  std::uint32_t& own = leading(sequence);
  if (first_token == 0 && own == 0 && tokens > 0) {
    own = static_cast<std::uint32_t>(tokens);
  } else {
    others_.push_back({sequence, first_token, tokens, kPlaced});
  }
}

void Placement::remove(const RemovedRange& range) {
  leading(range.sequence);  // its page is looked at
  others_.push_back({range.sequence, range.first_token, range.tokens, static_cast<std::int8_t>(range.cause)});
}

void Placement::finish(const std::vector<ManifestSource>& sources, const SequenceIndex* index, Length row_tokens,
                       PlacementTotals& totals, IssueList& issues) {
  std::ranges::sort(others_, [](const Range& a, const Range& b) {
    return std::tie(a.sequence, a.first_token, a.tokens) < std::tie(b.sequence, b.first_token, b.tokens);
  });
  const std::vector<SequenceId> first_of_file = first_sequences(sources);
  totals.file_tokens.resize(sources.size());
  std::size_t file = 0;
  auto other = others_.begin();

  const auto check = [&](SequenceId sequence, std::uint32_t own) {
    while (sequence >= first_of_file[file + 1]) ++file;

    RecordWalk walk;
    if (own > 0) {
      walk.placed = true;
      walk.end = walk.placed_tokens = own;
    }
    for (; other != others_.end() && other->sequence == sequence; ++other) {
      walk.range(other->first_token, other->tokens);
      if (other->cause == kPlaced) {
        walk.placed = true;
        walk.placed_tokens += other->tokens;
        continue;
      }
      const auto cause = static_cast<RemovalCause>(other->cause);
      totals.removed[static_cast<std::size_t>(cause)].tokens += other->tokens;
      if (cause == RemovalCause::truncated) {
        walk.truncated = true;
      } else if (walk.lost_to != static_cast<int>(RemovalCause::tail)) {
        walk.lost_to = other->cause;
      }
    }

    totals.file_tokens[file] += walk.end;
    if (walk.placed) ++totals.sequences;
    if (walk.truncated) ++totals.removed[static_cast<std::size_t>(RemovalCause::truncated)].sequences;
    if (!walk.placed && walk.lost_to >= 0) ++totals.removed[static_cast<std::size_t>(walk.lost_to)].sequences;
    if (!walk.placed && walk.lost_to < 0) {
      ++totals.without_tokens;
      if (walk.truncated && walk.fault.empty()) walk.fault = "is truncated and has no segment";
    }
    if (index != nullptr && walk.fault.empty() && walk.end != index->place(sequence).tokens) {
      walk.fault = fmt::format("{} tokens are in rows or removed.csv, the source has {}", with_commas(walk.end),
                               with_commas(index->place(sequence).tokens));
    }
    if (index != nullptr && index->has_loss_places() && walk.fault.empty()) {
      walk.fault = loss_fault(walk, index->loss_place(sequence), row_tokens);
    }
    if (!walk.fault.empty()) {
      issues.add("placement", sources[file].name,
                 fmt::format("record {}: {}", with_commas(sequence - first_of_file[file]), walk.fault));
    }
  };

  std::int64_t rank = 0;
  for (const SequenceRange& run : sequences_.runs()) {
    for (SequenceId next = run.first; next < run.last;) {
      const std::int64_t at = rank % kPageRecords, count = std::min(kPageRecords - at, run.last - next);
      const Page* const page = pages_[static_cast<std::size_t>(rank / kPageRecords)].get();
      if (page == nullptr && index == nullptr) {  // where the sources are not at hand, nothing more can be said of these
        totals.without_tokens += count;
      } else {
        for (std::int64_t i = 0; i < count; ++i) check(next + i, page == nullptr ? 0 : (*page)[static_cast<std::size_t>(at + i)]);
      }
      next += count;
      rank += count;
    }
  }
}

}  // namespace shardpack
