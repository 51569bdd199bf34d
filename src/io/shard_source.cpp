#include "io/shard_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/checked.h"

namespace shardpack {

namespace {

bool comes_before(const TokenRequest& a, const TokenRequest& b) {
  return std::pair(a.sequence, a.first_token) < std::pair(b.sequence, b.first_token);
}

/// Sequences are numbered in the order of files and places, so theirs is the order of the disk. A block asks for thousands out of
/// a range that is not much larger, where digits are sorted several times faster than by comparing.
void sort_by_place(std::vector<TokenRequest>& requests) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  if (requests.size() < kDigits) return std::sort(requests.begin(), requests.end(), comes_before);
  const auto [least, most] = std::ranges::minmax(requests, {}, &TokenRequest::sequence);
  const auto first = least.sequence;
  const auto range = static_cast<std::uint64_t>(most.sequence - first);
  std::vector<TokenRequest> sorted(requests.size());
  for (int shift = 0; shift < 64 && range >> shift != 0; shift += kDigitBits) {
    std::array<std::size_t, kDigits + 1> begin{};
    const auto digit = [&](const TokenRequest& request) {
      return static_cast<std::uint64_t>(request.sequence - first) >> shift & (kDigits - 1);
    };
    for (const TokenRequest& request : requests) ++begin[digit(request) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const TokenRequest& request : requests) sorted[begin[digit(request)]++] = request;
    requests.swap(sorted);
  }
  // Pieces of one sequence are few and side by side.
  for (auto run = requests.begin(); run != requests.end();) {
    const auto end = std::find_if(run, requests.end(), [&](const TokenRequest& r) { return r.sequence != run->sequence; });
    if (end - run > 1) std::sort(run, end, comes_before);
    run = end;
  }
}

}  // namespace

ShardSource::ShardSource(SequenceIndex index, std::vector<FileTables> tables, std::vector<Column> columns,
                         std::vector<FileStamp> stamps)
    : index_(std::move(index)), tables_(std::move(tables)), columns_(std::move(columns)), stamps_(std::move(stamps)) {}

void ShardSource::add_file(std::size_t file, FileTables tables, const std::vector<FileStamp>& stamps) {
  tables_[file] = std::move(tables);
  stamps_.insert(stamps_.end(), stamps.begin(), stamps.end());
}

const FileTables& ShardSource::tables(std::int32_t file) const { return tables_[static_cast<std::size_t>(file)]; }

template <class Visit>
void ShardSource::for_each_file(std::span<const TokenRequest> requests, Visit visit) const {
  // Looked up before the first is read: memory answers many such questions at once, but only one between two reads.
  std::vector<SequencePlace> places(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) places[i] = index_.place(requests[i].sequence);
  std::vector<TableRange> ranges;
  ranges.reserve(requests.size());
  std::int32_t file = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const TokenRequest& request = requests[i];
    const SequencePlace& place = places[i];
    ensure(request.first_token >= 0 && request.tokens >= 0 && request.first_token <= place.tokens - request.tokens,
           "the tokens asked for are in the sequence");
    if (request.tokens == 0) continue;
    if (place.file != file) {
      if (!ranges.empty()) visit(file, std::span<const TableRange>(ranges));
      ranges.clear();
      file = place.file;
    }
    const TableRange next{place.first_token + request.first_token, request.tokens, request.destination};
    const bool continues = !ranges.empty() && ranges.back().first + ranges.back().count == next.first &&
                           ranges.back().destination + ranges.back().count == next.destination;
    if (continues) {
      ranges.back().count += next.count;
    } else {
      ranges.push_back(next);
    }
  }
  if (!ranges.empty()) visit(file, std::span<const TableRange>(ranges));
}

void ShardSource::read_ids(std::int32_t file, std::span<const TableRange> ranges, IdType type, void* ids) const {
  const TokenTable& table = tables(file).ids;
  ensure(table.file != nullptr, "the source was opened for random access");
  if (type == IdType::u16) {
    table.read(ranges, static_cast<std::uint16_t*>(ids));
  } else {
    table.read(ranges, static_cast<std::uint32_t*>(ids));
  }
}

void ShardSource::read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const {
  ensure(type == IdType::u16 || type == IdType::u32, "ids are read as u16 or u32");
  sort_by_place(requests);
  read_unchanged(stamps_, [&] {
    if (passing_ && type == IdType::u32) return read_in_passing(requests, static_cast<std::uint32_t*>(ids));
    for_each_file(requests, [&](std::int32_t file, std::span<const TableRange> ranges) { read_ids(file, ranges, type, ids); });
  });
}

void ShardSource::read_in_passing(std::span<const TokenRequest> requests, std::uint32_t* ids) const {
  std::vector<FileRanges> wanted;
  for_each_file(requests, [&](std::int32_t file, std::span<const TableRange> ranges) {
    wanted.push_back({file, std::vector(ranges.begin(), ranges.end())});
  });
  passing_->read_on(wanted, ids);
  try {
    for (const FileRanges& left : wanted) read_ids(left.file, left.ranges, IdType::u32, ids);
  } catch (const Error&) {
    // The fault to report is the first one of the input, as the pass finds it: on the way to where this one is, at the latest.
    passing_->read_past(wanted.back().file, wanted.back().ranges.back());
    throw;
  }
}

TokenFacts ShardSource::finish_pass(const RunContext& context) {
  read_unchanged(stamps_, [&] { passing_->finish(context); });
  const TokenFacts totals = settle(passing_->take_result(), index_);
  passing_.reset();
  return totals;
}

std::optional<std::int64_t> ShardSource::place_in_file(SequenceId sequence, std::int64_t first_token, std::int64_t tokens) const {
  const SequencePlace place = index_.place(sequence);
  if (index_.files()[static_cast<std::size_t>(place.file)].ids_dtype.empty()) return std::nullopt;  // its file may not be open
  return tables(place.file).ids.place_in_file(place.first_token + first_token, tokens);
}

void ShardSource::read_tokens(std::size_t column, std::span<const TokenRequest> requests, std::byte* values) const {
  const ValueType type = columns_[column].type;
  const auto read_ranges = [&](std::int32_t file, std::span<const TableRange> ranges) {
    table(column, file).values.read(ranges, type, values);
  };
  read_unchanged(stamps_, [&] { for_each_file(requests, read_ranges); });
}

ColumnValues ShardSource::read_values(std::size_t column, std::span<const SequenceId> sequences) const {
  const Column& wanted = columns_[column];
  const auto width = static_cast<std::size_t>(info(wanted.type).bytes);
  ColumnValues result;
  read_unchanged(stamps_, [&] {
    if (wanted.kind == ColumnKind::sequence) {
      result.bytes.resize(sequences.size() * width);
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        const SequencePlace place = index_.place(sequences[i]);
        table(column, place.file).values.read(place.record, 1, wanted.type, result.bytes.data() + i * width);
      }
      return;
    }
    result.begin.push_back(0);
    for (const SequenceId sequence : sequences) {
      const SequencePlace place = index_.place(sequence);
      const ColumnTable& list = table(column, place.file);
      const std::int64_t first = list.begin[static_cast<std::size_t>(place.record)];
      const std::int64_t count = list.begin[static_cast<std::size_t>(place.record) + 1] - first;
      const std::size_t before = result.bytes.size();
      result.bytes.resize(before + static_cast<std::size_t>(count) * width);
      list.values.read(first, count, wanted.type, result.bytes.data() + before);
      result.begin.push_back(result.begin.back() + count);
    }
  });
  return result;
}

std::int64_t ShardSource::value_count(std::size_t column, SequenceId sequence) const {
  const SequencePlace place = index_.place(sequence);
  const std::vector<std::int64_t>& begin = table(column, place.file).begin;
  return begin[static_cast<std::size_t>(place.record) + 1] - begin[static_cast<std::size_t>(place.record)];
}

void ShardSource::check_unchanged() const {
  for (const FileStamp& stamp : stamps_) check_stamp(stamp);
}

}  // namespace shardpack
