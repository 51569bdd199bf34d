// The large files of a random-LTD folder: kept slots of every step, layer and row, and the segments among them. Made and checked
// by the same walk over the run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shardpack/ltd.h"

namespace shardpack {

/// One file of kept slots. Where rows have one width: an array [steps, layers, rows, kept] for each run of steps of one shape
/// that drops tokens. Of a batch plan: all of the window in one array without dimensions, a block [layers, rows, kept] for each
/// batch that drops tokens and none for the others.
struct KeptArray {
  std::string name;  ///< "kept/00000000.npy"
  StepShape shape;   ///< of its steps; of a batch plan not used
  std::int64_t first_step = 0, steps = 0, layers = 0, rows = 0;
  std::vector<std::int64_t> offsets = {};  ///< of a batch plan: where each batch's block begins, and one entry more
  IdType type = IdType::u16;

  std::int64_t bytes() const;  ///< of the data. \throws Error{limit} above 2^63
  std::vector<std::int64_t> npy_shape() const;
};
/// \param rows  null = full rows
std::vector<KeptArray> kept_arrays(const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus, const StepWindow& window,
                                   const LtdRowTable* rows);

/// The bytes of an array in order, a piece for each step and layer, or for each batch; pieces are made in the pool.
void for_each_piece(const KeptArray& array, const LtdSetup& setup, const LtdRowTable* rows, const RunContext& context,
                    const std::function<void(std::span<const std::byte>)>& use);

/// A whole NPY file of 64-bit numbers.
std::string offsets_to_npy(const std::vector<std::int64_t>& offsets);

/// At most so many bytes do the boundaries of a window take, both files together.
std::int64_t boundary_bytes(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows);

/// Boundaries of the rows of a window's steps, one list after the other; entry i of the offsets is where list i begins.
struct BoundaryFiles {
  std::string boundaries, offsets;  ///< whole NPY files
};
BoundaryFiles make_boundaries(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows);

/// The parts of a row where there is no dataset.
std::vector<RowPart> whole_row(std::int64_t row_tokens);

}  // namespace shardpack
