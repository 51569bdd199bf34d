// The .csv.gz beside an OLMo/dolma token array: a line a document, "start,end[,id,src,loc]" in tokens, end exclusive.
#pragma once

#include <cstdint>
#include <vector>

#include "io/formats/format.h"

namespace shardpack {

/// Documents as record_begin. They must follow one another without overlap or hole from token 0 on; none may end after
/// `tokens`. Quoted fields may hold commas, newlines and doubled quotes. \throws Error{bad_data} with the line.
std::vector<std::int64_t> read_document_csv(const InputFile& csv, std::int64_t tokens);

}  // namespace shardpack
