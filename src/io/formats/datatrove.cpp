// datatrove: F.ds holds the ids, F.ds.index the end of every document as u64, F.ds.metadata how wide an id is.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/integer_array.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxMetadataBytes = 64 << 10;

struct Metadata {
  std::optional<IdType> type;  // older files do not say
  std::int64_t tokens = 0;
};

/// Three lines: "tokenizer|bytes per id", the token count, and the count again for people ("1.23 GT").
/// Without a tokenizer's name the size stands there twice ("Unknown Tokenizer|2|2"), so it is taken from the end.
Metadata read_metadata(const InputFile& file) {
  const std::string text = read_small_file(file.path, kMaxMetadataBytes);
  const auto fail = [&](std::string_view message, int line) {
    throw Error(ErrorCode::bad_data, message, file.name, fmt::format("line {}", line));
  };
  std::string_view rest = text;
  const auto take_line = [&] {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return line;
  };
  const std::string_view tokenizer = take_line(), count = take_line(), for_people = take_line();

  Metadata metadata;
  const char* const count_end = count.data() + count.size();
  if (std::from_chars(count.data(), count_end, metadata.tokens).ptr != count_end || count.empty() || metadata.tokens < 0) {
    fail(fmt::format("expected the number of tokens, found '{}'", count), 2);
  }
  if (!for_people.ends_with('T')) fail("expected the number of tokens for people, such as '1.23 GT': cut short", 3);
  if (const std::size_t bar = tokenizer.rfind('|'); bar != std::string_view::npos) {
    const std::string_view bytes = tokenizer.substr(bar + 1);
    if (bytes == "2") metadata.type = IdType::u16;
    if (bytes == "4") metadata.type = IdType::u32;
    if (!metadata.type) fail(fmt::format("expected ids of 2 or 4 bytes, found '{}'", bytes), 1);
  }
  return metadata;
}

std::vector<std::int64_t> read_ends(const InputFile& index, const TokenTable& ids) {
  const File file(index.path, File::Mode::read, index.name);
  const std::int64_t bytes = file.size();
  if (bytes % 8 != 0) {
    throw Error(ErrorCode::bad_data, "not a whole number of 8-byte document ends: cut short", index.name,
                fmt::format("byte {}", with_commas(bytes)));
  }
  const std::int64_t documents = bytes / 8;
  IntegerArray ends(file, 0, documents, IdType::u64);
  std::vector<std::int64_t> record_begin{0};
  record_begin.reserve(static_cast<std::size_t>(documents) + 1);
  for (std::int64_t document = 0; document < documents; ++document) {
    const std::int64_t end = ends.next();
    if (end < record_begin.back()) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("the document ends at token {}, before the {} of the one before", with_commas(end),
                              with_commas(record_begin.back())),
                  index.name, fmt::format("document {}", with_commas(document)));
    }
    record_begin.push_back(end);
  }
  check_last_end(ids, record_begin.back(), index);
  return record_begin;
}

}  // namespace

bool matches_datatrove(const FormatProbe& probe) { return probe.file.path.ends_with(".ds"); }

OpenedShard open_datatrove(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  const InputFile index = sibling(file, "", ".index"), metadata_file = sibling(file, "", ".metadata");
  std::optional<Metadata> metadata;
  if (exists(metadata_file)) metadata = read_metadata(metadata_file);
  const std::optional<IdType> stated = metadata ? metadata->type : std::nullopt;

  OpenedShard shard;
  shard.ids = open_ids(file, 0, options.dtype ? *options.dtype : stated.value_or(IdType::u16));
  shard.files = {file.path};
  if (exists(index)) {
    shard.record_begin = read_ends(index, shard.ids);
    shard.files.push_back(index.path);
  } else if (options.eos_id) {
    cut_by_delimiter(shard, *options.eos_id, DelimiterOwner::sequence_before, context);
  } else {
    throw Error(ErrorCode::usage,
                fmt::format("{} is not there; without it, give --eos-id N when a token ends each document", index.name),
                file.name);
  }
  if (metadata) {
    check_last_end(shard.ids, metadata->tokens, metadata_file);
    shard.files.push_back(metadata_file.path);
  }
  const InputFile loss = sibling(file, "", ".loss");
  take_side_columns(shard, file, options, context, {}, exists(loss) ? std::optional(loss) : std::nullopt);
  return shard;
}

}  // namespace shardpack
