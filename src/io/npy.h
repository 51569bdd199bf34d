// NPY headers: read any that NumPy writes, write version 1.0 with the data on a 64-byte boundary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "shardpack/column.h"
#include "shardpack/types.h"

namespace shardpack {

struct NpyHeader {
  std::string descr;  ///< as stored: "<u2", ">i4", "|u1", "|O", "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_begin = 0;  ///< bytes

  std::int64_t elements() const;  ///< Error{bad_data} on overflow
};

inline constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

/// Parse the header at the start of `head` (the first bytes of a file of `file_bytes` bytes). Checks that the header is complete,
/// the shape non-negative and, for numbers, that the file holds exactly the data. \throws Error{bad_data} naming `shown`.
NpyHeader parse_npy_header(std::string_view head, std::int64_t file_bytes, const std::string& shown);

/// The same, reading as much of the file as its header takes.
NpyHeader read_npy_header(const File& file);

/// Integer type of a header; Error{bad_data} for floats, objects (with a hint), structures. `big_endian` is set for '>'.
IdType integer_type(const NpyHeader& header, const std::string& shown, bool& big_endian);

/// Are its elements integers, floating-point numbers or booleans?
bool holds_numbers(const NpyHeader& header);

/// Type of a header's numbers, floating-point ones and booleans (as u8) too; Error{bad_data} for anything else.
ValueType value_type(const NpyHeader& header, const std::string& shown, bool& big_endian);

/// The header's bytes, a multiple of 64 of them. `descr`: "<u2", or the fields of a structure: "[('step', '<u4'), ('lr',
/// '<f8')]".
std::string make_npy_header(std::string_view descr, const std::vector<std::int64_t>& shape);

}  // namespace shardpack
