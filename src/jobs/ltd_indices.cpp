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

/// The blocks of a batch plan's window.
KeptArray batch_blocks(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows) {
  const LtdBatches& batches = rows.batches();
  KeptArray array{.name = kept_file_name(window.first),
                  .shape = {},
                  .first_step = window.first,
                  .steps = window.count,
                  .layers = static_cast<std::int64_t>(setup.layer_ids.size()),
                  .offsets = {0},
                  .type = slot_type(setup.schedule.seq_length)};
  std::int64_t elements = 0;
  for (std::int64_t step = window.first; step < window.first + window.count; ++step) {
    const StepShape shape = shape_at(setup.schedule, step);
    for (std::int64_t i = 0; i < batches.per_step(); ++i) {
      const std::int64_t batch = step % batches.steps() * batches.per_step() + i;
      const std::int64_t width = batches.width[static_cast<std::size_t>(batch)], kept = kept_in(setup.schedule, shape, width);
      const std::int64_t sets = kept == width ? 0 : checked_mul(array.layers, batches.size(batch), "kept sets");
      elements = checked_add(elements, checked_mul(sets, kept, "kept indices"), "kept indices");
      array.offsets.push_back(elements);
    }
  }
  return array;
}

/// Kept slots of one step and layer.
void append_layer(const KeptArray& array, const LtdSetup& setup, const LtdRowTable* rows, std::int64_t piece,
                  std::vector<std::byte>& bytes) {
  const std::vector<RowPart> whole = whole_row(array.shape.row_tokens);
  KeptPlace place{.step = array.first_step + piece / array.layers,
                  .layer = setup.layer_ids[static_cast<std::size_t>(piece % array.layers)]};
  const std::int64_t first = rows != nullptr ? rows->of_steps(setup.schedule, place.step).first : 0;
  std::vector<std::uint32_t> slots;
  for (place.row = 0; place.row < array.rows; ++place.row) {
    const std::span<const RowPart> parts = rows != nullptr ? rows->at(first + place.row).parts : whole;
    select_kept(setup.mode, setup.seed, place, static_cast<Length>(array.shape.row_tokens), parts, array.shape.kept, slots);
    append_numbers(slots, array.type, bytes);
  }
}

/// Kept slots of one batch, layer by layer.
void append_block(const KeptArray& array, const LtdSetup& setup, const LtdRowTable& rows, std::int64_t piece,
                  std::vector<std::byte>& bytes) {
  if (array.offsets[static_cast<std::size_t>(piece) + 1] == array.offsets[static_cast<std::size_t>(piece)]) return;
  const LtdBatches& batches = rows.batches();
  KeptPlace place{.step = array.first_step + piece / batches.per_step()};
  const std::int64_t batch = place.step % batches.steps() * batches.per_step() + piece % batches.per_step();
  const std::int64_t begin = batches.begin[static_cast<std::size_t>(batch)],
                     of_step = rows.of_steps(setup.schedule, place.step).first;
  const StepShape shape = shape_at(setup.schedule, place.step);
  std::vector<std::uint32_t> slots;
  for (const std::int64_t layer : setup.layer_ids) {
    place.layer = layer;
    for (std::int64_t read = begin; read < begin + batches.size(batch); ++read) {
      const LtdRow row = rows.at(read);
      place.row = read - of_step;
      select_kept(setup.mode, setup.seed, place, row.width, row.parts, kept_in(setup.schedule, shape, row.width), slots);
      append_numbers(slots, array.type, bytes);
    }
  }
}

}  // namespace

std::vector<RowPart> whole_row(std::int64_t row_tokens) { return {{0, static_cast<Length>(row_tokens)}}; }

std::int64_t KeptArray::bytes() const {
  std::int64_t product = info(type).bytes;
  for (const std::int64_t extent : npy_shape()) product = checked_mul(product, extent, "bytes of kept indices");
  return product;
}

std::vector<std::int64_t> KeptArray::npy_shape() const {
  if (!offsets.empty()) return {offsets.back()};
  return {steps, layers, rows, shape.kept};
}

std::vector<KeptArray> kept_arrays(const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus, const StepWindow& window,
                                   const LtdRowTable* rows) {
  if (rows != nullptr && rows->in_batches()) return {batch_blocks(setup, window, *rows)};
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
  const bool blocks = !array.offsets.empty();
  const std::int64_t pieces = blocks ? static_cast<std::int64_t>(array.offsets.size()) - 1 : array.steps * array.layers;
  std::int64_t next = 0;
  const auto produce = [&]() -> std::optional<std::int64_t> {
    if (next == pieces) return std::nullopt;
    return next++;
  };
  const auto make = [&](std::int64_t piece) {
    std::vector<std::byte> bytes;
    if (blocks) {
      append_block(array, setup, *rows, piece, bytes);
    } else {
      append_layer(array, setup, rows, piece, bytes);
    }
    return bytes;
  };
  ordered_map(context.pool, 2 * context.pool.threads(), context.stop, produce, make,
              [&](std::vector<std::byte>&& bytes) { use(bytes); });
}

std::string offsets_to_npy(const std::vector<std::int64_t>& offsets) {
  std::string bytes = make_npy_header("<i8", {static_cast<std::int64_t>(offsets.size())});
  return bytes.append(reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof(std::int64_t));
}

std::int64_t boundary_bytes(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows) {
  const LtdReads lists = rows.of_steps(setup.schedule, window.first, window.count);
  // Every row of the cycle so often, and the first ones of the rest once more: parts, the leading 0, and padding at the end.
  const auto of_row = [&](std::int64_t read) { return static_cast<std::int64_t>(rows.at(read).parts.size()) + 2; };
  std::int64_t all = 0, rest = 0;
  for (std::int64_t i = 0; i < rows.cycle(); ++i) {
    all += of_row(i);
    if (i < lists.count % rows.cycle()) rest += of_row(lists.first + i);
  }
  const std::int64_t width = info(slot_type(setup.schedule.seq_length)).bytes;
  const std::int64_t numbers = checked_add(checked_mul(lists.count / rows.cycle(), all, "boundaries"), rest, "boundaries");
  return checked_add(checked_mul(numbers, width, "bytes of boundaries"), checked_mul(lists.count + 1, 8, "bytes of boundaries"),
                     "bytes of boundaries");
}

BoundaryFiles make_boundaries(const LtdSetup& setup, const StepWindow& window, const LtdRowTable& rows) {
  const IdType type = slot_type(setup.schedule.seq_length);
  std::string data;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint32_t> boundaries;
  std::int64_t count = 0;
  for (KeptPlace place{.step = window.first}; place.step < window.first + window.count; ++place.step) {
    const StepShape shape = shape_at(setup.schedule, place.step);
    const LtdReads reads = rows.of_steps(setup.schedule, place.step);
    for (place.row = 0; place.row < reads.count; ++place.row) {
      const LtdRow row = rows.at(reads.first + place.row);
      kept_boundaries(setup.mode, setup.seed, place, row.width, row.parts, kept_in(setup.schedule, shape, row.width), boundaries);
      append_numbers(boundaries, type, data);
      count += static_cast<std::int64_t>(boundaries.size());
      offsets.push_back(count);
    }
  }
  return {make_npy_header(info(type).numpy, {count}) + data, offsets_to_npy(offsets)};
}

}  // namespace shardpack
