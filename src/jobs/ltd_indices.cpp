#include "jobs/ltd_indices.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "exec/ordered_map.h"
#include "io/ltd_files.h"
#include "io/npy.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

namespace {

/// Numbers as elements of `type` (u16 or u32), behind what `bytes` holds.
template <class Bytes>
void append_numbers(const std::vector<std::uint32_t>& numbers, IdType type, Bytes& bytes) {
  const auto width = static_cast<std::size_t>(info(type).bytes);
  std::size_t at = bytes.size();
  bytes.resize(at + numbers.size() * width);
  for (const std::uint32_t number : numbers) {
    std::memcpy(bytes.data() + at, &number, width);  // little-endian
    at += width;
  }
}

}  // namespace

std::vector<RowPart> whole_row(std::int64_t row_tokens) { return {{0, static_cast<Length>(row_tokens)}}; }

std::int64_t KeptArray::bytes() const {
  std::int64_t product = info(type).bytes;
  for (const std::int64_t extent : npy_shape()) product = checked_mul(product, extent, "bytes of kept indices");
  return product;
}

std::vector<KeptArray> kept_arrays(const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus, const StepWindow& window) {
  std::vector<KeptArray> arrays;
  for (const LtdPlateau& plateau : plateaus) {
    const std::int64_t first = std::max(plateau.first_step, window.first);
    const std::int64_t last = std::min(plateau.first_step + plateau.steps, window.first + window.count);
    if (first >= last || plateau.shape.kept == plateau.shape.row_tokens) continue;
    arrays.push_back({.name = kept_file_name(first),
                      .shape = plateau.shape,
                      .first_step = first,
                      .steps = last - first,
                      .layers = static_cast<std::int64_t>(setup.layer_ids.size()),
                      .rows = setup.schedule.global_batch() * plateau.shape.pieces,
                      .type = slot_type(setup.schedule.seq_length)});
  }
  return arrays;
}

void for_each_piece(const KeptArray& array, const LtdSetup& setup, const LtdRowTable* rows, const RunContext& context,
                    const std::function<void(std::span<const std::byte>)>& use) {
  std::int64_t next = 0;
  const std::int64_t pieces = array.steps * array.layers;
  const auto produce = [&]() -> std::optional<std::int64_t> {
    if (next == pieces) return std::nullopt;
    return next++;
  };
  const std::vector<RowPart> whole = whole_row(array.shape.row_tokens);
  const auto make = [&](std::int64_t piece) {
    KeptPlace place{.step = array.first_step + piece / array.layers,
                    .layer = setup.layer_ids[static_cast<std::size_t>(piece % array.layers)]};
    std::vector<std::byte> bytes;
    std::vector<std::uint32_t> slots;
    for (place.row = 0; place.row < array.rows; ++place.row) {
      std::span<const RowPart> parts = whole;
      if (rows != nullptr) parts = rows->parts_of(rows->row_of(place.step, array.rows, place.row));
      select_kept(setup.mode, setup.seed, place, static_cast<Length>(array.shape.row_tokens), parts, array.shape.kept, slots);
      append_numbers(slots, array.type, bytes);
    }
    return bytes;
  };
  ordered_map(context.pool, 2 * context.pool.threads(), context.stop, produce, make,
              [&](std::vector<std::byte>&& bytes) { use(bytes); });
}

std::int64_t boundary_bytes(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows) {
  const std::int64_t batch = setup.schedule.global_batch(), width = info(slot_type(setup.schedule.seq_length)).bytes;
  const std::int64_t lists = checked_mul(window.count, batch, "rows of the window");
  // Every row of the table so often, and the first ones of the rest once more: parts, the leading 0, and padding at the end.
  const auto of_row = [&](std::int64_t row) { return static_cast<std::int64_t>(rows.parts_of(row).size()) + 2; };
  std::int64_t all = 0, rest = 0;
  const std::int64_t begin = rows.row_of(window.first, batch, 0);
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    all += of_row(i);
    if (i < lists % rows.rows()) rest += of_row((begin + i) % rows.rows());
  }
  const std::int64_t numbers = checked_add(checked_mul(lists / rows.rows(), all, "boundaries"), rest, "boundaries");
  return checked_add(checked_mul(numbers, width, "bytes of boundaries"), checked_mul(lists + 1, 8, "bytes of boundaries"),
                     "bytes of boundaries");
}

BoundaryFiles make_boundaries(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows) {
  const IdType type = slot_type(setup.schedule.seq_length);
  const std::int64_t batch = setup.schedule.global_batch();
  std::string data;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint32_t> boundaries;
  std::int64_t count = 0;
  for (KeptPlace place{.step = window.first}; place.step < window.first + window.count; ++place.step) {
    const std::int64_t kept = shape_at(setup.schedule, place.step).kept;
    for (place.row = 0; place.row < batch; ++place.row) {
      const std::int64_t row = rows.row_of(place.step, batch, place.row);
      kept_boundaries(setup.mode, setup.seed, place, rows.width[static_cast<std::size_t>(row)], rows.parts_of(row), kept,
                      boundaries);
      append_numbers(boundaries, type, data);
      count += static_cast<std::int64_t>(boundaries.size());
      offsets.push_back(count);
    }
  }
  BoundaryFiles files{make_npy_header(info(type).numpy, {count}),
                      make_npy_header("<i8", {static_cast<std::int64_t>(offsets.size())})};
  files.boundaries += data;
  files.offsets.append(reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof(std::int64_t));
  return files;
}

}  // namespace shardpack
