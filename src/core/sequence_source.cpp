// A source without columns is never asked for one.
#include "shardpack/sequence_source.h"

#include "base/checked.h"

namespace shardpack {

std::optional<std::int64_t> SequenceSource::place_in_file(SequenceId, std::int64_t, std::int64_t) const { return std::nullopt; }

void SequenceSource::read_tokens(std::size_t, std::span<const TokenRequest>, std::byte*) const {
  ensure(false, "the source has the column that is asked for");
}

ColumnValues SequenceSource::read_values(std::size_t, std::span<const SequenceId>) const {
  ensure(false, "the source has the column that is asked for");
  return {};
}

std::int64_t SequenceSource::value_count(std::size_t, SequenceId) const {
  ensure(false, "the source has the column that is asked for");
  return 0;
}

}  // namespace shardpack
