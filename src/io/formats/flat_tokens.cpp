#include "io/formats/flat_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/formats/document_csv.h"
#include "io/formats/integer_array.h"
#include "io/npy.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockTokens = 1 << 18;  // of the delimiter scan
constexpr std::size_t kGroupTokens = 64;        // compared as a whole before any is looked at alone

std::string_view last_suffix(const InputFile& file) {
  const std::size_t slash = file.name.rfind('/');
  const std::size_t dot = file.name.rfind('.');
  const std::size_t base = slash == std::string::npos ? 0 : slash + 1;
  if (dot == std::string::npos || dot <= base) return {};  // none, or a hidden file's own dot
  return std::string_view(file.name).substr(dot);
}

/// Lengths (or offsets) from a 1-D NPY file, as record_begin.
std::vector<std::int64_t> read_npy_boundaries(const InputFile& sidecar, const TokenTable& ids, bool offsets) {
  const File file(sidecar.path, File::Mode::read, sidecar.name);
  const NpyHeader header = read_npy_header(file);
  bool big_endian = false;
  const IdType type = integer_type(header, sidecar.name, big_endian);
  if (header.shape.size() != 1) {
    throw Error(ErrorCode::bad_data,
                fmt::format("expected a list of {} (shape (N,)), found shape ({})", offsets ? "offsets" : "lengths",
                            fmt::join(header.shape, ", ")),
                sidecar.name);
  }
  const std::int64_t count = header.shape[0];  // as many as the file holds: parse_npy_header() checked
  IntegerArray values(file, header.data_begin, count, type, big_endian);
  std::vector<std::int64_t> record_begin;
  record_begin.reserve(static_cast<std::size_t>(count) + 1);
  if (!offsets) record_begin.push_back(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = values.next();
    const std::int64_t before = record_begin.empty() ? 0 : record_begin.back();
    if (value < (offsets ? before : 0) || (offsets && i == 0 && value != 0)) {
      throw Error(ErrorCode::bad_data,
                  offsets ? fmt::format("offset {}; offsets begin at 0 and never descend (the one before is {})", value, before)
                          : fmt::format("length {}; lengths are whole numbers from 0", value),
                  sidecar.name, fmt::format("element {}", with_commas(i)));
    }
    const std::int64_t end = offsets ? value : before + std::min(value, std::numeric_limits<std::int64_t>::max() - before);
    if (end > ids.tokens) check_last_end(ids, end, sidecar);
    record_begin.push_back(end);
  }
  if (record_begin.empty()) {
    throw Error(ErrorCode::bad_data, "no offsets; there is one more of them than sequences, so at least the 0", sidecar.name);
  }
  return record_begin;
}

/// Positions of `delimiter` in one block of tokens.
template <class Id>
std::vector<std::int64_t> find_in_block(const TokenTable& table, std::int64_t first, std::int64_t tokens, Id delimiter) {
  const auto count = static_cast<std::size_t>(tokens);
  static thread_local std::vector<Id> ids;
  if (ids.size() < count) ids.resize(count);
  table.read(first, std::span(ids).first(count));
  std::vector<std::int64_t> found;
  for (std::size_t group = 0; group < count; group += kGroupTokens) {
    const std::size_t end = std::min(group + kGroupTokens, count);
    Id any = 0;  // as wide as an id, so that the compare stays in one kind of vector lane
    for (std::size_t i = group; i < end; ++i) any = static_cast<Id>(any | (ids[i] == delimiter));
    if (any == 0) continue;
    for (std::size_t i = group; i < end; ++i) {
      if (ids[i] == delimiter) found.push_back(first + static_cast<std::int64_t>(i));
    }
  }
  return found;
}

std::int64_t largest_id(IdType type) {
  const std::string_view name = info(type).name;
  if (info(type).bytes >= 4) return type == IdType::i32 ? std::numeric_limits<std::int32_t>::max() : std::int64_t{0xffffffff};
  return (std::int64_t{1} << (8 * info(type).bytes - (name[0] == 'i'))) - 1;
}

}  // namespace

InputFile sibling(const InputFile& file, std::string_view suffix, std::string_view by) {
  ensure(file.path.ends_with(suffix) && file.name.ends_with(suffix), "the file has the suffix");
  InputFile result = file;
  result.path.replace(result.path.size() - suffix.size(), suffix.size(), by);
  result.name.replace(result.name.size() - suffix.size(), suffix.size(), by);
  return result;
}

InputFile side_file(const InputFile& file, std::string_view by) { return sibling(file, last_suffix(file), by); }

bool exists(const InputFile& file) {
  std::error_code ignored;
  return std::filesystem::exists(file.path, ignored);
}

TokenTable open_ids(const InputFile& file, std::int64_t begin_bytes, IdType type, bool big_endian) {
  TokenTable table;
  table.file = std::make_shared<const File>(file.path, File::Mode::read, file.name);
  table.type = type;
  table.big_endian = big_endian;
  const std::int64_t bytes = table.file->size() - begin_bytes;
  const std::int64_t width = info(type).bytes;
  if (bytes % width != 0) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} bytes are not a whole number of {} ids of {} bytes: cut short, or of another --dtype",
                            with_commas(bytes), info(type).name, width),
                file.name, fmt::format("byte {}", with_commas(begin_bytes + bytes)));
  }
  table.append(bytes / width, begin_bytes);
  return table;
}

std::optional<InputFile> boundary_sidecar(const InputFile& file) {
  const std::string_view suffix = last_suffix(file);
  std::optional<InputFile> found;
  for (const std::string_view by : {".lengths.npy", ".offsets.npy", ".csv.gz"}) {
    if (by == ".csv.gz" && suffix != ".npy") continue;
    InputFile candidate = side_file(file, by);
    if (!exists(candidate)) continue;
    if (found) {
      throw Error(ErrorCode::usage,
                  fmt::format("both {} and {} say where its sequences begin; keep one of them", found->name, candidate.name),
                  file.name);
    }
    found = std::move(candidate);
  }
  return found;
}

void check_last_end(const TokenTable& ids, std::int64_t end, const InputFile& sidecar) {
  if (end == ids.tokens) return;
  std::string hint = "; one of the two was cut short or belongs to another file";
  for (const IdType type : {IdType::u8, IdType::u16, IdType::u32, IdType::u64}) {
    const std::int64_t bytes = ids.tokens * info(ids.type).bytes;
    if (end > 0 && bytes % info(type).bytes == 0 && bytes / info(type).bytes == end) {
      hint = fmt::format("; the sizes fit ids of {} bytes, so --dtype {} may be right", info(type).bytes, info(type).name);
    }
  }
  throw Error(ErrorCode::bad_data,
              fmt::format("its sequences reach to token {}, but {} holds {} tokens of type {}{}", with_commas(end),
                          ids.file->shown(), with_commas(ids.tokens), info(ids.type).name, hint),
              sidecar.name);
}

void cut_by_sidecar(OpenedShard& shard, const InputFile& sidecar) {
  if (sidecar.path.ends_with(".csv.gz")) {
    shard.record_begin = read_document_csv(sidecar, shard.ids.tokens);
  } else {
    shard.record_begin = read_npy_boundaries(sidecar, shard.ids, sidecar.path.ends_with(".offsets.npy"));
  }
  check_last_end(shard.ids, shard.record_begin.back(), sidecar);
  shard.files.push_back(sidecar.path);
}

void cut_by_delimiter(OpenedShard& shard, std::int64_t delimiter, DelimiterOwner owner, const OpenContext& context) {
  const TokenTable& ids = shard.ids;
  if (delimiter < 0 || delimiter > largest_id(ids.type)) {
    throw Error(ErrorCode::usage,
                fmt::format("--eos-id {} is not an id that type {} can hold (0 to {})", delimiter, info(ids.type).name,
                            with_commas(largest_id(ids.type))),
                ids.file->shown());
  }
  shard.record_begin = {0};
  const auto append = [&](const std::vector<std::int64_t>& positions) {
    for (const std::int64_t position : positions) {
      const std::int64_t begin = position + (owner == DelimiterOwner::sequence_before ? 1 : 0);
      if (begin > shard.record_begin.back()) shard.record_begin.push_back(begin);
    }
  };
  std::int64_t next = 0;
  const auto produce = [&]() -> std::optional<std::int64_t> {
    if (next >= ids.tokens) return std::nullopt;
    return std::exchange(next, next + kBlockTokens);
  };
  const bool narrow = info(ids.type).bytes <= 2;
  const auto find = [&](std::int64_t&& first) {
    const std::int64_t tokens = std::min(kBlockTokens, ids.tokens - first);
    return narrow ? find_in_block(ids, first, tokens, static_cast<std::uint16_t>(delimiter))
                  : find_in_block(ids, first, tokens, static_cast<std::uint32_t>(delimiter));
  };
  ordered_map(context.pool, default_in_flight(context.pool), context.stop, produce, find, append);
  // Tokens after the last EOS are a sequence like the others, never lost.
  if (shard.record_begin.back() < ids.tokens) shard.record_begin.push_back(ids.tokens);
}

void cut_flat(OpenedShard& shard, const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  if (const std::optional<InputFile> sidecar = boundary_sidecar(file)) return cut_by_sidecar(shard, *sidecar);
  if (!options.eos_id) {
    const std::string_view suffix = last_suffix(file);
    throw Error(
        ErrorCode::usage,
        fmt::format("nothing says where its sequences end; give --eos-id N when a token ends each of them, or put {} or {} "
                    "beside it",
                    sibling(file, suffix, ".lengths.npy").name, sibling(file, suffix, ".offsets.npy").name),
        file.name);
  }
  cut_by_delimiter(shard, *options.eos_id, DelimiterOwner::sequence_before, context);
  if (shard.ids.tokens > 0 && shard.record_begin.size() == 2) {
    std::uint32_t last = 0;
    shard.ids.read(shard.ids.tokens - 1, std::span(&last, 1));
    if (last != *options.eos_id) {
      shard.warnings.push_back(fmt::format("{}: token {} is nowhere in it, so all {} tokens are one sequence; is --eos-id right?",
                                           file.name, *options.eos_id, with_commas(shard.ids.tokens)));
    }
  }
}

}  // namespace shardpack
