// Many small pieces of a file with few calls: those that lie close together come with one read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/file.h"

namespace shardpack {

/// Values [first, first + count) of a table, wanted at `destination` of the caller's buffer, counted in values.
struct TableRange {
  std::int64_t first = 0, count = 0, destination = 0;
};

/// \param pieces  with begin_bytes and bytes, as a rule ascending; those that are not are read, too
/// \param alone   called for a piece that no other lies close to: read it
/// \param stored  called for the others, with their bytes, which are valid during the call
/// \throws Error{io} of reading
template <class Piece, class Alone, class Stored>
void read_close(const File& file, std::span<const Piece> pieces, Alone alone, Stored stored) {
  constexpr std::int64_t kGapBytes = 4 << 10;     // takes no longer to read than another call does
  constexpr std::int64_t kReadBytes = 256 << 10;  // stays in the second-level cache
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < pieces.size();) {
    const std::int64_t begin = pieces[first].begin_bytes;
    std::int64_t end = begin + pieces[first].bytes;
    std::size_t last = first + 1;
    for (; last < pieces.size(); ++last) {
      const std::int64_t next = pieces[last].begin_bytes, next_end = next + pieces[last].bytes;
      if (next < end || next - end > kGapBytes || next_end - begin > kReadBytes) break;
      end = next_end;
    }
    if (last - first == 1) {
      alone(pieces[first]);
    } else {
      if (buffer.empty()) buffer.resize(kReadBytes);
      const std::span<std::byte> together = std::span(buffer).first(static_cast<std::size_t>(end - begin));
      file.read_at(begin, together);
      for (const Piece& piece : pieces.subspan(first, last - first)) {
        stored(piece,
               together.subspan(static_cast<std::size_t>(piece.begin_bytes - begin), static_cast<std::size_t>(piece.bytes)));
      }
    }
    first = last;
  }
}

}  // namespace shardpack
