// From arguments to an ordered list of input files.
#pragma once

#include <string>
#include <vector>

#include "io/formats/format.h"
#include "shardpack/formats.h"

namespace shardpack {

/// Files, folders and globs, in the order given; a folder or glob is listed in sorted (byte) order, folders recursively, hidden
/// entries, sidecars and columns left out. A sidecar given by name (train.idx) or a bare prefix (train) stands for its data file;
/// X.WORD.npy given by name beside X is a file of token ids, unless it can only be a column of an X that is given too.
/// Names are relative to the common root of all inputs. Every path is made absolute and normal first.
/// Every file is told the columns beside it. \throws Error{usage} for what may be a column as well as token ids, Error{io} for
/// what does not exist or cannot be read, Error{usage} for a file given twice without allow_repeats, Error{bad_data} for a folder
/// or glob without any shard.
std::vector<InputFile> list_inputs(const std::vector<std::string>& arguments, const ReadOptions& options);

}  // namespace shardpack
