// llm.c, modded-nanogpt and NeMo Automodel: 256 header words, then ids; an end-of-text id begins each document, and shards cut
// documents anywhere.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kHeaderBytes = 1024;

struct Variant {
  std::int32_t magic, version;
  std::optional<IdType> type;            // none: the header's fourth word says how many bytes
  std::optional<std::int64_t> begin_id;  // of a document
};
constexpr std::array<Variant, 3> kVariants{{
    {20240520, 1, IdType::u16, 50256},   // GPT-2
    {20240801, 7, IdType::u32, 128000},  // Llama 3
    {278895051, 1, std::nullopt, std::nullopt},
}};

/// Other files of the same tools: recognised, so that nobody trains on a checkpoint.
struct Relative {
  std::int32_t magic;
  std::string_view name;
};
constexpr std::array<Relative, 5> kRelatives{{
    {20240522, "a multiple-choice evaluation file"},
    {20240326, "a model checkpoint"},
    {20240803, "a model checkpoint"},
    {20240327, "a training state"},
    {20240328, "a tokenizer"},
}};

std::int32_t word(std::string_view head, std::size_t i) {
  std::int32_t value = 0;
  if (head.size() >= 4 * (i + 1)) std::memcpy(&value, head.data() + 4 * i, sizeof value);
  return value;
}

const Variant* find_variant(std::int32_t magic) {
  for (const Variant& variant : kVariants) {
    if (variant.magic == magic) return &variant;
  }
  return nullptr;
}

std::string_view name_of_relative(std::int32_t magic) {
  for (const Relative& relative : kRelatives) {
    if (relative.magic == magic) return relative.name;
  }
  return {};
}

}  // namespace

bool matches_llmc(const FormatProbe& probe) {
  const std::int32_t magic = word(probe.head, 0);
  if (find_variant(magic) == nullptr && name_of_relative(magic).empty()) return false;
  // Two ids of a headerless file may look like the magic; the small version after it settles the matter.
  return probe.head.size() < 8 || (word(probe.head, 1) >= 0 && word(probe.head, 1) < 256);
}

OpenedShard open_llmc(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  const auto fail = [&](const std::string& message, const std::string& position = {}) {
    throw Error(ErrorCode::bad_data, message, file.name, position);
  };
  std::string head(static_cast<std::size_t>(kHeaderBytes), '\0');
  const File opened(file.path, File::Mode::read, file.name);
  head.resize(opened.read_some_at(0, std::as_writable_bytes(std::span(head))));

  const std::int32_t magic = word(head, 0);
  if (const std::string_view relative = name_of_relative(magic); !relative.empty()) {
    fail(fmt::format("{} of llm.c (magic {}), which holds no training tokens", relative, magic));
  }
  const Variant* const variant = find_variant(magic);
  if (variant == nullptr) fail(fmt::format("expected an llm.c magic (20240520, 20240801 or 278895051), found {}", magic));
  if (opened.size() < kHeaderBytes) {
    fail(fmt::format("an llm.c header has {} bytes: the file was cut short", with_commas(kHeaderBytes)),
         fmt::format("byte {}", with_commas(opened.size())));
  }
  if (word(head, 1) != variant->version) {
    fail(fmt::format("llm.c version {}; version {} is known for magic {}", word(head, 1), variant->version, magic), "byte 4");
  }
  IdType type = variant->type.value_or(IdType::u16);
  if (!variant->type) {
    const std::int32_t bytes = word(head, 3);
    if (bytes != 2 && bytes != 4) fail(fmt::format("ids of {} bytes; 2 or 4 are known", bytes), "byte 12");
    type = bytes == 2 ? IdType::u16 : IdType::u32;
  }

  OpenedShard shard;
  shard.ids = open_ids(file, kHeaderBytes, type);
  shard.files = {file.path};
  if (const std::int32_t count = word(head, 2); count != shard.ids.tokens) {
    fail(fmt::format("the header counts {} tokens, but {} follow it: the file was cut short or damaged", with_commas(count),
                     with_commas(shard.ids.tokens)),
         fmt::format("byte {}", with_commas(opened.size())));
  }
  const std::optional<std::int64_t> begin_id = options.eos_id ? options.eos_id : variant->begin_id;
  if (!begin_id) {
    throw Error(ErrorCode::usage, "its header does not say which id begins a document; give it as --eos-id N", file.name);
  }
  cut_by_delimiter(shard, *begin_id, DelimiterOwner::sequence_after, context);

  if (shard.ids.tokens > 0) {
    std::uint32_t first = 0;
    shard.ids.read(0, std::span(&first, 1));
    if (first != *begin_id) {
      shard.warnings.push_back(
          fmt::format("{}: its first {} tokens continue a document of the shard before (or --eos-id {} is wrong); they are a "
                      "sequence of their own",
                      file.name, with_commas(shard.record_begin[1]), *begin_id));
    }
  }
  take_side_columns(shard, file, options, context);
  return shard;
}

}  // namespace shardpack
