// Random access to the tokens of the inputs and to what belongs to them, whatever their format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardpack/column.h"
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

  /// Where `tokens` tokens of `sequence` from its token `first_token` on lie in its data file, in ids of SourceFile::ids_dtype
  /// from the file's first byte; nothing where they do not lie there together. Thread-safe.
  virtual std::optional<std::int64_t> place_in_file(SequenceId sequence, std::int64_t first_token, std::int64_t tokens) const;

  /// What is carried along beside the ids, ascending by name.
  virtual std::span<const Column> columns() const { return {}; }

  /// read_block() for a column of kind token: values of its type, at the same places.
  virtual void read_tokens(std::size_t column, std::span<const TokenRequest> requests, std::byte* values) const;

  /// A column of another kind: what each of `sequences` has of it, in their order. Thread-safe, as is read_tokens().
  virtual ColumnValues read_values(std::size_t column, std::span<const SequenceId> sequences) const;

  /// How many values `sequence` has in a column of kind list or text.
  virtual std::int64_t value_count(std::size_t column, SequenceId sequence) const;

  /// \throws Error{io} when an input changed its size or modification time since it was opened: then what was read may be a
  /// mixture.
  virtual void check_unchanged() const {}
};

}  // namespace shardpack
