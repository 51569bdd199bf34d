// A stored array of integers read from front to back: lengths, offsets and document starts beside the tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/file.h"
#include "shardpack/types.h"

namespace shardpack {

/// Holds one chunk at a time, so that an index of any size costs the same. The caller has checked that the file is long enough.
class IntegerArray {
 public:
  IntegerArray(const File& file, std::int64_t begin_bytes, std::int64_t count, IdType type, bool big_endian = false)
      : file_(file), at_bytes_(begin_bytes), left_(count), type_(type), big_endian_(big_endian) {}

  /// Elements not read yet.
  std::int64_t left() const { return left_ + static_cast<std::int64_t>(chunk_.size() - at_); }

  /// The next element; a u64 above 2^63 - 1 comes out negative, which no length and no offset is.
  std::int64_t next() {
    if (at_ == chunk_.size()) fill();
    return chunk_[at_++];
  }

 private:
  void fill();

  const File& file_;
  std::int64_t at_bytes_, left_;  // not in the chunk yet
  IdType type_;
  bool big_endian_;
  std::vector<std::int64_t> chunk_;
  std::size_t at_ = 0;
};

}  // namespace shardpack
