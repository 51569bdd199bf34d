// Any sequences, written as JSON Lines in any manner and stored in any way, come back; so do the facts about them.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/fingerprint_keys.h"
#include "io/formats/jsonl.h"
#include "io/json.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

/// One of `choices`, all equally likely.
std::string any_of(std::vector<std::string> choices) { return *rc::gen::elementOf(std::move(choices)); }

std::string blanks() { return any_of({"", "", " ", "  ", "\t"}); }

template <class Values>
std::string list_of(const Values& values) {
  std::string text = "[" + blanks();
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : any_of({",", ", "})) + std::to_string(values[i]);
  return text + blanks() + "]";
}

/// A record and what reading it must give.
struct Record {
  std::optional<std::vector<std::uint32_t>> ids;  // none: null
  std::vector<int> mask;                          // empty: there is none

  std::vector<std::uint32_t> kept() const {
    std::vector<std::uint32_t> result;
    for (std::size_t i = 0; ids && i < ids->size(); ++i) {
      if (mask.empty() || mask[i] == 1) result.push_back((*ids)[i]);
    }
    return result;
  }
};

Record any_record() {
  Record record;
  if (*rc::gen::weightedElement<bool>({{1, true}, {9, false}})) return record;
  const rc::Gen<std::uint32_t> any_id = rc::gen::weightedOneOf<std::uint32_t>(
      {{8, rc::gen::inRange<std::uint32_t>(0, 60'000)}, {1, rc::gen::arbitrary<std::uint32_t>()}, {1, rc::gen::just(~0u)}});
  record.ids = *rc::gen::container<std::vector<std::uint32_t>>(any_id);
  if (*rc::gen::arbitrary<bool>())
    record.mask = *rc::gen::container<std::vector<int>>(record.ids->size(), rc::gen::inRange(0, 2));
  return record;
}

/// The record's line, without newline: its columns among others, in any order.
std::string line_of(const Record& record) {
  std::vector<std::string> members{"\"input_ids\"" + blanks() + ":" + blanks() + (record.ids ? list_of(*record.ids) : "null")};
  if (!record.mask.empty()) members.push_back("\"attention_mask\":" + list_of(record.mask));
  for (const char* other : {R"("text": "}\n{\"input_ids\": [1]}")", R"("meta" :{"input_ids":[[1,"]"],{}]} )",
                            R"("numbers": [-100, 5, 2.5])", R"("n": null)", R"("": true)"}) {
    if (*rc::gen::inRange(0, 4) == 0) members.emplace_back(other);
  }
  for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[*rc::gen::inRange<std::size_t>(0, i)]);
  std::string line = blanks() + "{" + blanks();
  for (std::size_t i = 0; i < members.size(); ++i) line += (i == 0 ? "" : ",") + blanks() + members[i];
  return line + "}" + blanks();
}

std::string text_of(const std::vector<Record>& records) {
  std::string text = any_of({"", "", "\xEF\xBB\xBF"});
  for (const Record& record : records) {
    text += any_of({"", "", "", "\n", " \r\n"});
    text += line_of(record) + any_of({"\n", "\n", "\r\n"});
  }
  if (!records.empty() && *rc::gen::arbitrary<bool>()) text.erase(text.rfind('\n'));  // a \r may stay
  return text;
}

/// What the other JSON reader makes of the same text, line by line; none when it refuses any of them.
std::optional<std::vector<std::uint32_t>> ids_by_json(std::string_view text) {
  std::vector<std::uint32_t> all;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the line after it may be empty
  try {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      begin = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const Json json = Json::parse(line, "line");
      const Json list = json.at("input_ids");
      const bool masked = json.has("attention_mask");
      if (masked && json.at("attention_mask").size() != list.size()) return std::nullopt;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::int64_t id = list.at(i).as_int();
        const std::int64_t kept = masked ? json.at("attention_mask").at(i).as_int() : 1;
        if (id < 0 || id > std::int64_t{~0u} || kept < 0 || kept > 1) return std::nullopt;
        if (kept == 1) all.push_back(static_cast<std::uint32_t>(id));
      }
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return all;
}

/// Plain, or cut anywhere into members or frames.
std::string stored(std::string_view text) {
  const int way = *rc::gen::elementOf(std::vector<int>{0, 1, 2});
  if (way == 0) return std::string(text);
  std::string result;
  for (int parts = *rc::gen::inRange(1, 5); parts > 0; --parts) {
    const std::size_t bytes = parts == 1 ? text.size() : *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    result += way == 1 ? gzip_member(text.substr(0, bytes)) : zstd_frame(text.substr(0, bytes));
    if (way == 2 && *rc::gen::arbitrary<bool>()) result += zstd_skippable_frame(text.substr(bytes));
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace

TEST_CASE("any sequences come back from any JSON Lines") {
  const TempFolder folder;
  ThreadPool alone(1), several(3);
  CHECK(rc::check("JSON Lines -> sequences and facts", [&] {
    const auto records = *rc::gen::container<std::vector<Record>>(rc::gen::exec(any_record));
    const std::string bytes = stored(text_of(records));
    const std::int64_t first_record = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);

    std::vector<std::int64_t> record_begin{0};
    std::vector<std::uint32_t> ids;
    RemovedCount padding;
    std::int64_t null_records = 0;
    Fingerprint fingerprint;
    const FingerprintKeys keys(0);
    for (const Record& record : records) {
      const std::vector<std::uint32_t> kept = record.kept();
      const std::size_t removed = record.ids ? record.ids->size() - kept.size() : 0;
      null_records += record.ids ? 0 : 1;
      padding.sequences += removed > 0 ? 1 : 0;
      padding.tokens += static_cast<std::int64_t>(removed);
      fingerprint += keys.of(first_record + static_cast<std::int64_t>(record_begin.size()) - 1, 0, kept);
      ids.insert(ids.end(), kept.begin(), kept.end());
      record_begin.push_back(static_cast<std::int64_t>(ids.size()));
    }

    NoProgress progress;
    ReadOptions options;
    options.null_row = NullRow::drop;
    ThreadPool& pool = *rc::gen::arbitrary<bool>() ? alone : several;
    const InputFile file{folder.write("x", bytes), "x"};
    const OpenedShard shard = open_jsonl(file, options, {pool, {}, progress, folder.path(), true, 0, first_record});
    std::vector<std::uint32_t> found(static_cast<std::size_t>(shard.ids.tokens));
    shard.ids.read(0, found);
    RC_ASSERT(found == ids);
    RC_ASSERT(shard.record_begin == record_begin);
    RC_ASSERT(shard.null_records == null_records);
    RC_ASSERT(shard.padding.sequences == padding.sequences);
    RC_ASSERT(shard.padding.tokens == padding.tokens);
    RC_ASSERT(shard.facts->fingerprint == fingerprint);
    RC_ASSERT(shard.facts->hash == hash_hex(bytes));
    RC_ASSERT(shard.facts->id_min == (ids.empty() ? 0 : std::int64_t{*std::min_element(ids.begin(), ids.end())}));
    RC_ASSERT(shard.facts->id_max == (ids.empty() ? -1 : std::int64_t{*std::max_element(ids.begin(), ids.end())}));
  }));
}

TEST_CASE("damaged JSON Lines are read as another JSON reader reads them, or refused") {
  const TempFolder folder;
  ThreadPool pool(1);
  NoProgress progress;
  std::int64_t read = 0, refused = 0;
  CHECK(rc::check("damage -> the same ids, or an error with a line", [&] {
    std::vector<Record> records = *rc::gen::container<std::vector<Record>>(3, rc::gen::exec(any_record));
    const std::string text = text_of(records);
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::string damaged = text;
      for (int edits = *rc::gen::inRange(1, 4); edits > 0 && !damaged.empty(); --edits) {
        const std::size_t at = *rc::gen::resize(1000, rc::gen::inRange<std::size_t>(0, damaged.size()));
        const std::string byte =
            any_of({"", ",", "[", "]", "{", "}", "\"", ":", "0", "1", "9", "-", ".", "e", "\\", "\n", " ", "\xC3", "n"});
        damaged.replace(at, *rc::gen::resize(1000, rc::gen::inRange<std::size_t>(0, 2)), byte);
      }
      if (damaged.find("-0") != std::string::npos) continue;  // to the other reader that is 0

      RC_LOG() << damaged;
      const auto expected = ids_by_json(damaged);
      const InputFile file{folder.write(std::to_string(read + refused), damaged), "x"};
      try {
        ReadOptions options;
        options.columns.which = ColumnChoice::Which::none;
        const OpenedShard shard = open_jsonl(file, options, {pool, {}, progress, folder.path(), true, 0, 0});
        std::vector<std::uint32_t> found(static_cast<std::size_t>(shard.ids.tokens));
        shard.ids.read(0, found);
        // Columns that are not read are not judged.
        RC_ASSERT((expected ? found == *expected : !shard.not_carried.empty()));
        ++read;
      } catch (const Error& error) {
        RC_ASSERT(!expected);
        RC_ASSERT(error.code() == ErrorCode::bad_data);
        RC_ASSERT(error.position().find("line ") == 0);
        ++refused;
      }
    }
  }));
  CHECK(read > 20);
  CHECK(refused > 200);
}
