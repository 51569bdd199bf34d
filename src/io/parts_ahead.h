// Decodes the frames of a zstd file, or the members of a BGZF file, several at a time and ahead of the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "io/part_decoder.h"
#include "shardpack/error.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

/// Who decodes ahead, and how far. None: the caller decodes one part after the other.
struct DecodeAhead {
  ThreadPool* pool = nullptr;
  std::stop_token stop;
  int in_flight = 0;  ///< units of parts; below 2 there is nothing to win

  /// As many units as keep the pool busy and, where there is a budget, take at most half of it.
  static DecodeAhead within(ThreadPool& pool, std::stop_token stop, std::int64_t memory_bytes);
};

/// Parts whose ends can be found without decoding them, until one comes that has to be decoded to be known or is damaged or very
/// long, or does not end where its header says; the caller goes on from there, so that headers which lie about lengths, as none
/// but BGZF's can, are believed by nobody. Memory: 20 MiB for each unit in flight, and what the decoder's window holds of that.
class PartsAhead {
 public:
  /// Fills `out` with stored bytes; fewer only at the end.
  using ReadStored = std::function<std::size_t(std::span<std::byte> out)>;
  /// Tells of a fault `at` stored bytes from the first one.
  using Fail = std::function<void(const Error& error, std::int64_t at)>;

  /// \param head  the first stored bytes, read already
  PartsAhead(Compression compression, std::span<const std::byte> head, ReadStored read, Fail fail, std::int64_t max_window_bytes,
             const DecodeAhead& ahead);
  ~PartsAhead();

  /// Fill `out`; fewer bytes when all parts that could be told apart are decoded.
  std::size_t read(std::span<std::byte> out);

  /// After that: parts decoded, the stored bytes behind them that have been read, and, in the middle of a part, its decoder; its
  /// plain bytes so far have been given out. Else none.
  std::int64_t parts() const;
  std::vector<std::byte> take_rest();
  std::unique_ptr<PartDecoder> take_decoder();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace shardpack
