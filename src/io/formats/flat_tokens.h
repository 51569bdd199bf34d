// What the formats with one flat array of token ids share: opening the array, and the ways of cutting it into sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/formats/format.h"
#include "io/token_table.h"

namespace shardpack {

/// The file beside `file` whose name has `suffix` replaced by `by`; the suffix must be there.
InputFile sibling(const InputFile& file, std::string_view suffix, std::string_view by);
bool exists(const InputFile& file);

/// The file beside `file` whose name has `by` in place of the last suffix.
InputFile side_file(const InputFile& file, std::string_view by);

/// Ids of `type` from byte `begin_bytes` to the end of the file. \throws Error{bad_data} when that is not a whole number of ids.
TokenTable open_ids(const InputFile& file, std::int64_t begin_bytes, IdType type, bool big_endian = false);

/// The one of X.lengths.npy, X.offsets.npy and (beside X.npy) X.csv.gz that lies beside `file`, X being its name without the
/// last suffix. \throws Error{usage} when there are several: they may disagree.
std::optional<InputFile> boundary_sidecar(const InputFile& file);

/// Cut `shard`'s ids as the sidecar says, and note it among the shard's files. \throws Error{bad_data} when it contradicts
/// itself or the number of tokens.
void cut_by_sidecar(OpenedShard& shard, const InputFile& sidecar);

/// A delimiter belongs to the sequence that it ends (EOS) or begins (BOS, llm.c).
enum class DelimiterOwner : std::uint8_t { sequence_before, sequence_after };

/// Cut `shard`'s ids at a token. Tokens before the first or after the last delimiter are a sequence too.
/// One parallel pass over the tokens. \throws Error{usage} for an id that the stored type cannot hold.
void cut_by_delimiter(OpenedShard& shard, std::int64_t delimiter, DelimiterOwner owner, const OpenContext& context);

/// By the sidecar when there is one, else at options.eos_id, else Error{usage} that names both.
void cut_flat(OpenedShard& shard, const InputFile& file, const ReadOptions& options, const OpenContext& context);

/// For an array whose boundaries end at `end` tokens: \throws Error{bad_data} naming `sidecar` unless it has exactly that many,
/// with a hint when another --dtype would fit.
void check_last_end(const TokenTable& ids, std::int64_t end, const InputFile& sidecar);

}  // namespace shardpack
