// Lists whose values belong to tokens, as a file has them: the columns of places, and the lists that go with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/value_table.h"

namespace shardpack {

/// The places that records [first, last) have, each in its sequence; the tokens of record r begin at record_begin[r]. `shown`:
/// the file's name. \throws Error{bad_data} naming the record of a place outside of its sequence
std::vector<std::int64_t> read_places(const ColumnTable& where, const std::vector<std::int64_t>& record_begin, std::size_t first,
                                      std::size_t last, const std::string& shown);

/// Has each of these records as many values of `table` as places? \throws Error{bad_data} naming the first that has not
void check_equal_lists(const ColumnTable& table, const ColumnTable& where, std::size_t first, std::size_t last,
                       const std::string& shown);

}  // namespace shardpack
