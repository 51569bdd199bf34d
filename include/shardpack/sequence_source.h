// Random access to the tokens of the inputs, whatever their format.
#pragma once

#include <cstdint>
#include <vector>

#include "shardpack/sequence_index.h"
#include "shardpack/types.h"

namespace shardpack {

/// Copy `tokens` ids of `sequence`, from its token `first_token` on, to id number `destination` of the buffer.
struct TokenRequest {
  SequenceId sequence = 0;
  std::int64_t first_token = 0;
  std::int64_t tokens = 0;
  std::int64_t destination = 0;
};

class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  virtual const SequenceIndex& index() const = 0;

  /// Serve all requests, in whatever order reads fastest (the vector is sorted in place). `ids` points to ids of `type`, u16 or
  /// u32, with room for every destination; ids are checked to fit.
  /// Thread-safe. \throws Error{bad_data} for an id that does not fit, Error{io} when a file shrank or cannot be read.
  virtual void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const = 0;

  /// \throws Error{io} when an input changed its size or modification time since it was opened: then what was read may be a
  /// mixture.
  virtual void check_unchanged() const {}
};

}  // namespace shardpack
