// Columns of formats that keep nothing but token ids: in files of their own beside the data file.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/formats/format.h"

namespace shardpack {

/// Carry along what --columns asks for of file.columns, and of `loss_mask`, a file of one byte a token without a header. An
/// attention_mask is applied: the tokens that it leaves out leave the shard, and with them the values of lists of positions and
/// of what goes with those. All that is read is noted among the shard's files. The shard is cut into records already, and its
/// tokens lie in one stretch. \param token_shape  of an array with a value for each token; empty: a list of them \throws
/// Error{bad_data} for an array that is neither one value a token, nor one a record, nor a list of equal length for each record,
/// naming it and the data file; for positions of which nobody says what only fills the lists up
void take_side_columns(OpenedShard& shard, const InputFile& file, const ReadOptions& options, const OpenContext& context,
                       std::vector<std::int64_t> token_shape = {}, const std::optional<InputFile>& loss_mask = std::nullopt);

}  // namespace shardpack
