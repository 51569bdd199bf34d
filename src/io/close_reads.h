// Many small pieces of a file with few calls: those that lie close together come with one read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "io/file.h"

namespace shardpack {

/// Values [first, first + count) of a table, wanted at `destination` of the caller's buffer, counted in values.
struct TableRange {
  std::int64_t first = 0, count = 0, destination = 0;
};

/// Bytes of pieces that are converted: few enough to stay in the second-level cache.
inline constexpr std::int64_t kCloseBytes = 256 << 10;

/// \param pieces  with begin_bytes and bytes; those in ascending order and with gaps of a page at most are read at once
/// \param place   of a piece: where its bytes go, if they are wanted as they lie; else nothing, and it is of kCloseBytes at most
/// \param take    called with every piece, in order, and its bytes, for the time of the call; they are at its place already
/// \throws Error{io} of reading
template <class Piece, class Place, class Take>
void read_close(const File& file, std::span<const Piece> pieces, Place place, Take take) {
  constexpr std::int64_t kGapBytes = 4 << 10;  // takes no longer to read than another call does
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < pieces.size();) {
    const bool as_it_lies = !place(pieces[first]).empty();
    const std::int64_t begin = pieces[first].begin_bytes;
    std::int64_t end = begin + pieces[first].bytes;
    std::size_t last = first + 1;
    for (; last < pieces.size(); ++last) {
      const std::int64_t next = pieces[last].begin_bytes, next_end = next + pieces[last].bytes;
      if (next < end || next - end > kGapBytes || next_end - begin > kCloseBytes) break;
      if (place(pieces[last]).empty() == as_it_lies) break;
      end = next_end;
    }
    const std::span<const Piece> close = pieces.subspan(first, last - first);
    first = last;
    if (as_it_lies && close.size() == 1) {
      file.read_at(begin, place(close.front()));
      take(close.front(), std::span<const std::byte>(place(close.front())));
      continue;
    }
    buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(end - begin)));
    file.read_at(begin, std::span(buffer).first(static_cast<std::size_t>(end - begin)));
    for (const Piece& piece : close) {
      const std::span<const std::byte> stored = std::span<const std::byte>(buffer).subspan(
          static_cast<std::size_t>(piece.begin_bytes - begin), static_cast<std::size_t>(piece.bytes));
      if (as_it_lies) std::memcpy(place(piece).data(), stored.data(), stored.size());
      take(piece, stored);
    }
  }
}

}  // namespace shardpack
