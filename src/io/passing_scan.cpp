#include "io/passing_scan.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/prefetch.h"

namespace shardpack {

namespace {

/// Takes what a pass reads, in order, off what is wanted.
class Taker {
 public:
  Taker(const std::vector<OpenedFile>& files, std::vector<FileRanges>& wanted, std::uint32_t* ids)
      : files_(files), wanted_(wanted), left_(wanted.size()), ids_(ids) {
    for (std::size_t f = 0; f < wanted.size(); ++f) left_[f].file = wanted[f].file;
  }

  void take(const ScanPass::Tokens& tokens) {
    const auto file_number = static_cast<std::int32_t>(tokens.file_number);
    for (; file_ < wanted_.size() && wanted_[file_].file < file_number; ++file_, range_ = 0) leave_from(range_);
    if (file_ == wanted_.size() || wanted_[file_].file > file_number) return;
    const TokenTable& table = files_[tokens.file_number].shard.ids;
    const std::int64_t width = info(table.type).bytes;
    const std::int64_t end = tokens.first + static_cast<std::int64_t>(tokens.stored.size()) / width;
    for (std::vector<TableRange>& ranges = wanted_[file_].ranges; range_ < ranges.size(); ++range_) {
      TableRange& range = ranges[range_];
      if (range.first >= end) return;
      fetch_destination(ranges, range_ + 2);
      if (range.first < tokens.first) {  // was read before
        const std::int64_t count = std::min(range.count, tokens.first - range.first);
        leave({range.first, count, range.destination});
        take_off(range, count);
      }
      const std::int64_t count = std::min(range.first + range.count, end) - range.first;
      if (count > 0) {
        copy(table, range.first,
             tokens.stored.subspan(static_cast<std::size_t>((range.first - tokens.first) * width),
                                   static_cast<std::size_t>(count * width)),
             ids_ + range.destination);
        take_off(range, count);
      }
      if (range.count > 0) return;  // goes on in the next tokens
    }
  }

  /// What is still wanted.
  std::vector<FileRanges> left() && {
    for (; file_ < wanted_.size(); ++file_, range_ = 0) leave_from(range_);
    std::erase_if(left_, [](const FileRanges& file) { return file.ranges.empty(); });
    return std::move(left_);
  }

 private:
  /// Destinations lie all over the block.
  void fetch_destination(const std::vector<TableRange>& ranges, std::size_t range) const {
    if (range >= ranges.size()) return;
    constexpr std::size_t kMostBytes = 4096;  // behind them the processor sees where it goes
    const auto bytes = static_cast<std::size_t>(ranges[range].count) * sizeof *ids_;
    prefetch_to_write(reinterpret_cast<std::uintptr_t>(ids_ + ranges[range].destination), std::min(bytes, kMostBytes));
  }
  static void take_off(TableRange& range, std::int64_t count) {
    range.first += count;
    range.count -= count;
    range.destination += count;
  }
  void leave(const TableRange& range) { left_[file_].ranges.push_back(range); }
  void leave_from(std::size_t first) {
    for (std::size_t r = first; r < wanted_[file_].ranges.size(); ++r) leave(wanted_[file_].ranges[r]);
  }
  /// Ids that the pass has found good.
  static void copy(const TokenTable& table, std::int64_t first, std::span<const std::byte> stored, std::uint32_t* ids) {
    if (info(table.type).bytes == sizeof *ids && !table.big_endian) {
      std::memcpy(ids, stored.data(), stored.size());
    } else {
      table.decode(first, stored, std::span(ids, stored.size() / static_cast<std::size_t>(info(table.type).bytes)));
    }
  }

  const std::vector<OpenedFile>& files_;
  std::vector<FileRanges>& wanted_;
  std::vector<FileRanges> left_;
  std::uint32_t* ids_;
  std::size_t file_ = 0, range_ = 0;  // of `wanted_`: the first that was not looked at
};

}  // namespace

template <class Read>
void PassingScan::go_on(Read read) {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  try {
    read();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void PassingScan::read_on(std::vector<FileRanges>& wanted, std::uint32_t* ids) {
  Taker taker(files_, wanted, ids);
  std::int64_t count = 0;
  for (const FileRanges& file : wanted) {
    for (const TableRange& range : file.ranges) count += range.count;
  }
  go_on([&] {
    wanted_ += count;
    pass_.read_on(wanted_, [&](const ScanPass::Tokens& tokens) { taker.take(tokens); });
  });
  wanted = std::move(taker).left();
}

void PassingScan::read_past(std::int32_t file, const TableRange& range) {
  const std::int64_t end = pass_.tokens_before(static_cast<std::size_t>(file)) + range.first + range.count;
  go_on([&] { pass_.read_on(end, [](const ScanPass::Tokens&) {}); });
}

void PassingScan::finish(const RunContext& context) {
  go_on([&] { pass_.run(context); });
}

ScanPassResult PassingScan::take_result() { return pass_.take_result(); }

}  // namespace shardpack
