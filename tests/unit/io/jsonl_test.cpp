#include "io/formats/jsonl.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/units.h"
#include "core/fingerprint_keys.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/standard_input.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

using Sequences = std::vector<std::vector<std::uint32_t>>;

struct CountedProgress final : ProgressSink {
  void begin_stage(std::string_view, std::int64_t, std::string_view) override {}
  void advance(std::int64_t amount) override { bytes += amount; }
  void end_stage() override {}
  std::int64_t bytes = 0;
};

/// A JSONL file of the given bytes, and how it is opened.
struct Opener {
  TempFolder folder;
  ReadOptions options;
  int threads = 1;
  bool spool = true;
  std::int64_t memory_bytes = 0, first_record = 0;
  CountedProgress progress;

  OpenedShard open_path(const std::string& path) {
    ThreadPool pool(threads);
    return open_jsonl({path, "x.jsonl"}, options, {pool, {}, progress, folder.path(), spool, memory_bytes, first_record});
  }
  OpenedShard open(std::string_view bytes) {
    std::filesystem::remove(folder.path("x.jsonl"));  // some file systems flush what is cut to nothing and written again
    return open_path(folder.write("x.jsonl", bytes));
  }

  /// What the Error says that `bytes` give; its path is checked.
  std::string refusal(std::string_view bytes, ErrorCode code = ErrorCode::bad_data) {
    try {
      open(bytes);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(error.path() == "x.jsonl");
      return error.position() + ": " + error.message();
    }
    return "no error";
  }
};

Sequences sequences(const OpenedShard& shard) {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(shard.ids.tokens));
  shard.ids.read(0, ids);
  Sequences result;
  for (std::size_t i = 0; i + 1 < shard.record_begin.size(); ++i) {
    result.emplace_back(ids.begin() + shard.record_begin[i], ids.begin() + shard.record_begin[i + 1]);
  }
  return result;
}

std::string line_of(const std::vector<std::uint32_t>& ids) {
  std::string line = "{\"input_ids\": [";
  for (std::size_t i = 0; i < ids.size(); ++i) line += (i == 0 ? "" : ", ") + std::to_string(ids[i]);
  return line + "]}\n";
}

Sequences many_sequences(std::size_t count) {
  Sequences result(count);
  std::uint64_t state = 7;
  for (auto& ids : result) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.resize(state >> 56);
    for (std::uint32_t& id : ids) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      id = static_cast<std::uint32_t>(state >> 48);
    }
  }
  return result;
}

std::string text_of(const Sequences& all) {
  std::string text;
  for (const auto& ids : all) text += line_of(ids);
  return text;
}

FormatProbe probe_of(const InputFile& file, std::string_view bytes) {
  return {file, bytes.substr(0, 4096), static_cast<std::int64_t>(bytes.size())};
}

}  // namespace

TEST_CASE("a line is a record, however it is written") {
  Opener opener;
  const std::string text =
      "\xEF\xBB\xBF{\"input_ids\":[1,2,3]}\r\n"
      "\n"
      " \t\r\n"
      "  { \"text\" : \"a \\\"quoted\\\" {[\\u00e9]}\", \"input_ids\" : [ 0 , 4294967295 ] , "
      "\"meta\":{\"input_ids\":[9],\"x\":[[],{}]} }  \n"
      "{\"input_ids\": []}\n"
      "{\"input\\u005fids\": [7], \"score\": -1.5e3, \"flag\": true, \"none\": null}";
  const OpenedShard shard = opener.open(text);
  CHECK(sequences(shard) == Sequences{{1, 2, 3}, {0, 4294967295}, {}, {7}});
  CHECK(shard.record_begin == std::vector<std::int64_t>{0, 3, 5, 5, 6});
  CHECK(shard.ids.tokens == 6);
  CHECK(shard.ids.type == IdType::u32);
  CHECK(shard.null_records == 0);
  CHECK(shard.not_carried == std::vector<std::string>{"flag", "meta", "none", "score", "text"});
  CHECK(shard.files == std::vector<std::string>{opener.folder.path("x.jsonl")});
  CHECK(shard.warnings.empty());
  REQUIRE(shard.facts.has_value());
  CHECK(shard.facts->id_min == 0);
  CHECK(shard.facts->id_max == 4294967295);
  CHECK(shard.facts->hash == hash_hex(text));
  CHECK(opener.progress.bytes == static_cast<std::int64_t>(text.size()));
}

TEST_CASE("files without records are valid") {
  Opener opener;
  for (const char* text : {"", "\n", "\r\n \n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\n"}) {
    const OpenedShard shard = opener.open(text);
    CHECK(shard.record_begin == std::vector<std::int64_t>{0});
    CHECK(shard.ids.tokens == 0);
    CHECK(shard.facts->id_min == 0);
    CHECK(shard.facts->id_max == -1);
    CHECK(shard.facts->fingerprint == Fingerprint{});
    CHECK(shard.facts->hash == hash_hex(text));
  }
}

TEST_CASE("the same records come from any compression, number of threads, budget and from standard input") {
  const Sequences expected = many_sequences(12'000);  // three blocks
  const std::string text = text_of(expected);
  REQUIRE(text.size() > (std::size_t{9} << 20));
  const std::size_t third = text.find('\n', text.size() / 3) + 1, half = text.size() / 2;  // members need not end at lines

  const FingerprintKeys keys(256);
  Fingerprint fingerprint;
  for (std::size_t i = 0; i < expected.size(); ++i) fingerprint += keys.of(100 + static_cast<SequenceId>(i), 0, expected[i]);

  const std::string gzip = gzip_member(text.substr(0, third)) + gzip_member("") + gzip_member(text.substr(third));
  const std::string zstd = zstd_frame(text.substr(0, half)) + zstd_skippable_frame("x") + zstd_frame(text.substr(half));
  Opener opener;
  opener.first_record = 100;
  for (const std::string& stored : {text, gzip, zstd}) {
    for (const int threads : {1, 2, 5}) {
      opener.threads = threads;
      opener.memory_bytes = threads == 2 ? 1 : 0;  // 1 byte: one block at a time
      const OpenedShard shard = opener.open(stored);
      CHECK(sequences(shard) == expected);
      CHECK(shard.facts->fingerprint == fingerprint);
      CHECK(shard.facts->id_max <= 65535);
      CHECK(shard.facts->hash == hash_hex(stored));
    }
    const StandardInput input(stored);
    const OpenedShard shard = opener.open_path("-");
    CHECK(sequences(shard) == expected);
    CHECK(shard.facts->hash == hash_hex(stored));
    CHECK(shard.files == std::vector<std::string>{"-"});
  }
}

TEST_CASE("without a spool there are lengths and facts, and no tokens") {
  Opener opener;
  opener.spool = false;
  const OpenedShard shard = opener.open("{\"input_ids\": [5, 3]}\n{\"input_ids\": [4]}\n");
  CHECK(shard.ids.file == nullptr);
  CHECK(shard.record_begin == std::vector<std::int64_t>{0, 2, 3});
  CHECK(shard.facts->id_min == 3);
  CHECK(shard.facts->id_max == 5);
}

TEST_CASE("a line longer than a block is read, and one longer than the limit is not") {
  Opener opener;
  std::vector<std::uint32_t> ids(4'000'000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i % 100'000);
  const Sequences expected{{1}, ids, {2}};
  const std::string text = text_of(expected);
  REQUIRE(text.size() > (std::size_t{24} << 20));
  const OpenedShard shard = opener.open(text);
  CHECK(sequences(shard) == expected);
  Fingerprint fingerprint;
  const FingerprintKeys keys(1'000);
  for (std::size_t i = 0; i < expected.size(); ++i) fingerprint += keys.of(static_cast<SequenceId>(i), 0, expected[i]);
  CHECK(shard.facts->fingerprint == fingerprint);

  opener.memory_bytes = 1 << 20;
  CHECK(opener.refusal(text, ErrorCode::limit) ==
        "line 2: the line is longer than 16.0 MiB, which is what the memory budget allows; raise --memory");
}

TEST_CASE("positions that the mask calls padding are left out and counted") {
  Opener opener;
  const OpenedShard shard = opener.open(
      "{\"input_ids\": [5, 6, 9, 9], \"attention_mask\": [1, 1, 0, 0]}\n"
      "{\"attention_mask\": [false, true, true], \"input_ids\": [9, 7, 8]}\n"
      "{\"input_ids\": [1, 2], \"attention_mask\": [1, 1]}\n"
      "{\"input_ids\": [9], \"attention_mask\": [0], \"labels\": [-100]}\n"
      "{\"input_ids\": [], \"attention_mask\": []}\n"
      "{\"input_ids\": [3]}\n");
  CHECK(sequences(shard) == Sequences{{5, 6}, {7, 8}, {1, 2}, {}, {}, {3}});
  CHECK(shard.padding.sequences == 3);
  CHECK(shard.padding.tokens == 4);
  CHECK(shard.facts->id_max == 8);
  CHECK(shard.not_carried == std::vector<std::string>{"labels"});
  const FingerprintKeys keys(4);  // positions count after the padding has gone
  const std::vector<std::vector<std::uint32_t>> kept = sequences(shard);
  Fingerprint fingerprint;
  for (std::size_t i = 0; i < kept.size(); ++i) fingerprint += keys.of(static_cast<SequenceId>(i), 0, kept[i]);
  CHECK(shard.facts->fingerprint == fingerprint);

  CHECK(opener.refusal("{\"input_ids\": [1, 2], \"attention_mask\": [1]}") ==
        "line 1: attention_mask has 1 entries for 2 token ids");
  CHECK(opener.refusal("{\"input_ids\": [1, 2], \"attention_mask\": [1, 2]}") ==
        "line 1: attention_mask[1] is 2; expected 0 or 1");
  CHECK(opener.refusal("{\"input_ids\": [1], \"attention_mask\": [1.0]}") == "line 1: attention_mask[0] is 1.0; expected 0 or 1");
  CHECK(opener.refusal("{\"input_ids\": [1], \"attention_mask\": [\"1\"]}") ==
        "line 1: attention_mask[0] is a string; expected 0 or 1");
  CHECK(opener.refusal("{\"input_ids\": [1], \"attention_mask\": 1}") ==
        "line 1: attention_mask is 1; expected a list of 0 and 1");
  CHECK(opener.refusal("{\"input_ids\": [1], \"attention_mask\": null}") ==
        "line 1: attention_mask is null; expected as many 0 and 1 as token ids");
  CHECK(opener.refusal("{\"attention_mask\": [], \"input_ids\": [], \"attention_mask\": []}") ==
        "line 1: the column 'attention_mask' appears twice in one object");
}

TEST_CASE("what is not a token id is refused with its line, index and value") {
  Opener opener;
  const auto refusal_of = [&](const std::string& list) {
    return opener.refusal("{\"input_ids\": [0]}\n\n{\"input_ids\": [4, " + list + "]}\n{\"input_ids\": [-5]}\n");
  };
  const std::string rule = "; token ids are whole numbers from 0";
  CHECK(refusal_of("-1") == "line 3: input_ids[1] is -1" + rule);
  CHECK(refusal_of("5, 6 , -9223372036854775809") == "line 3: input_ids[3] is -9223372036854775809" + rule);
  for (const std::string number : {"1.0", "1e3", "0.5", "-2.5E-3", "1.0e400"}) {
    CHECK(refusal_of(number) == "line 3: input_ids[1] is " + number + rule + ", written without a fraction or exponent");
  }
  for (const std::string number :
       {"4294967296", "18446744073709551615", "18446744073709551616", "100000000000000000000000000000000000000"}) {
    CHECK(refusal_of(number) == "line 3: input_ids[1] is " + number + "; token ids are below 2^32");
  }
  for (const std::string other : {"null", "true", "false", "nul", "12a", "01", "-", "NaN", "0x10", "+1"}) {
    CHECK(refusal_of(other) == "line 3: input_ids[1] is " + other + rule);
  }
  CHECK(refusal_of("\"7\"") == "line 3: input_ids[1] is a string" + rule);
  CHECK(refusal_of("[1, 2]") == "line 3: input_ids[1] is a list" + rule);
  CHECK(refusal_of("{}") == "line 3: input_ids[1] is an object" + rule);
  CHECK(opener.refusal("{\"input_ids\": 5}") == "line 1: input_ids is 5; expected a list of token ids");
  CHECK(opener.refusal("{\"input_ids\": \"1 2\"}") == "line 1: input_ids is a string; expected a list of token ids");
  CHECK(opener.refusal("{\"input_ids\": {\"0\": 1}}") == "line 1: input_ids is an object; expected a list of token ids");
  CHECK(opener.refusal("{\"input_ids\": nulls}") == "line 1: input_ids is nulls; expected a list of token ids");
  CHECK(opener.refusal("{\"input_ids\": [1], \"input_ids\": [1]}") ==
        "line 1: the column 'input_ids' appears twice in one object");

  std::string many = "{\"input_ids\": [0";
  for (int i = 1; i < 41'822; ++i) many += ", 1";
  CHECK(opener.refusal(many + ", -1]}\n") == "line 1: input_ids[41,822] is -1" + rule);
}

TEST_CASE("the first faulty line is the one named, whichever block finds one first") {
  Opener opener;
  std::string text = text_of(many_sequences(20'000));
  const std::size_t at = text.find('\n', text.size() / 2) + 1;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  REQUIRE(line > 2'000);
  text.insert(at, "{\"input_ids\": [-7]}\n{\"input_ids\": [-8]}\n");
  text += "{\"input_ids\": [-9]}\n";
  for (const int threads : {1, 4}) {
    opener.threads = threads;
    CHECK(opener.refusal(text) == "line " + with_commas(line) + ": input_ids[0] is -7; token ids are whole numbers from 0");
  }
}

TEST_CASE("null ids are an error unless they are dropped, and then are counted records of no tokens") {
  Opener opener;
  const std::string text = "{\"input_ids\": [1]}\n{\"input_ids\": null, \"attention_mask\": null}\n{\"input_ids\": [2, 3]}\n";
  CHECK(opener.refusal(text) == "line 2: input_ids is null; --null-row drop leaves such records out");
  opener.options.null_row = NullRow::drop;
  const OpenedShard shard = opener.open(text);
  CHECK(sequences(shard) == Sequences{{1}, {}, {2, 3}});
  CHECK(shard.null_records == 1);
  CHECK(opener.refusal("{\"input_ids\": [null]}").find("input_ids[0] is null") != std::string::npos);
}

TEST_CASE("a line that is not one complete object is refused") {
  Opener opener;
  const std::string good = "{\"input_ids\": [1]}\n";
  CHECK(opener.refusal(good + "5\n") == "line 2: not a JSON object; JSON Lines have one object a line");
  CHECK(opener.refusal(good + "\"x\"\n") == "line 2: not a JSON object; JSON Lines have one object a line");
  CHECK(opener.refusal(good + "null\n").find("line 2: not a JSON object") == 0);
  CHECK(opener.refusal(good + "[1, 2]\n").find("line 2: a list, where JSON Lines have one object a line") == 0);
  CHECK(opener.refusal("[{\"input_ids\": [1]},\n {\"input_ids\": [2]}]\n").find("jq -c '.[]'") != std::string::npos);
  CHECK(opener.refusal("[\n  {\"input_ids\": [1]}\n]\n").find("jq -c '.[]'") != std::string::npos);
  CHECK(opener.refusal("{\n  \"input_ids\": [1]\n}\n") ==
        "line 1: an object over several lines is not JSON Lines; convert with: jq -c . FILE > NEW.jsonl");
  for (const std::string bad :
       {"{\"input_ids\": [1]} x", "{\"input_ids\": [1]}{\"input_ids\": [2]}", "{\"input_ids\": [1]}, {}", "{\"input_ids\": [1]}]",
        "{\"input_ids\": [1]", "{\"input_ids\": [1}", "{\"input_ids\": [1 2]}", "{\"input_ids\": [1,]}", "{\"input_ids\" [1]}",
        "{\"input_ids\": [1],}", "{input_ids: [1]}", "{\"input_ids\": [1], \"t\": \"a}", "{\"input_ids\": [1], \"t\": \"\x01\"}",
        "{\"input_ids\": [1], \"t\": [1}", "x", "{", "}"}) {
    CAPTURE(bad);
    CHECK(opener.refusal(good + bad + "\n" + good).find("line 2: ") == 0);
    CHECK(opener.refusal(good + bad).find("line 2: ") == 0);
  }
  CHECK(opener.refusal(good + std::string(3, '\0') + "\n").find("line 2: ") == 0);
  CHECK(opener.refusal(good + "{\"input_ids\": [1], \"t\": \"\xff\"}\n" + good) == "line 2: not valid UTF-8");
  CHECK(opener.refusal("\xff\xfe{\"input_ids\": [1]}\n") == "line 1: not valid UTF-8");
  CHECK(opener.refusal(good + "\xEF\xBB\xBF" + good).find("line 2: ") == 0);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(opener.refusal("{\"x\": " + deep + ", \"input_ids\": [[" + deep + "]]}\n").find("line 1: ") == 0);
}

TEST_CASE("a missing column of ids is named, with what would help") {
  Opener opener;
  CHECK(opener.refusal("{\"tokens\": [1], \"id\": 7}\n") ==
        "line 1: no column 'input_ids'; there are 'tokens', 'id': add --ids-column tokens");
  CHECK(opener.refusal("{\"a\": [1], \"b\": 7}\n") ==
        "line 1: no column 'input_ids'; there are 'a', 'b': name the one with the token ids by --ids-column");
  CHECK(opener.refusal("{}\n") == "line 1: no column 'input_ids'; there are no columns at all");
  const std::string text = opener.refusal("{\"id\": 1, \"text\": \"Once upon\"}\n");
  CHECK(text.find("line 1: no column 'input_ids' but 'text': tokenize first, for instance in Python: ") == 0);
  CHECK(text.find("tok(row['text'])['input_ids']") != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(opener.refusal("{\"messages\": []}\n").find("apply_chat_template(row['messages']") != std::string::npos);
  CHECK(opener.refusal("{\"input_ids\": [1]}\n{\"text\": \"x\"}\n").find("line 2: no column 'input_ids' but 'text'") == 0);

  opener.options.ids_column = "tokens";
  const OpenedShard shard = opener.open("{\"tokens\": [1], \"input_ids\": [2, 3]}\n");
  CHECK(sequences(shard) == Sequences{{1}});
  CHECK(shard.not_carried == std::vector<std::string>{"input_ids"});
  CHECK(opener.refusal("{\"tokens\": [-1]}\n").find("line 1: tokens[0] is -1;") == 0);
  // Named by the user and nowhere in the file: a slip of the command line. In some records only: of the data.
  CHECK(opener.refusal("{\"input_ids\": [1]}\n", ErrorCode::usage) ==
        "line 1: no column 'tokens'; there are 'input_ids': add --ids-column input_ids");
  CHECK(opener.refusal("{\"tokens\": []}\n{\"input_ids\": [1]}\n").find("line 2: no column 'tokens'") == 0);
}

TEST_CASE("the group column's values are numbered as they come; a record without one is refused or left out") {
  Opener opener;
  opener.options.group_column = "lang";
  const OpenedShard shard = opener.open(
      "{\"lang\": \"web\", \"input_ids\": [1]}\n{\"input_ids\": [2], \"lang\": -4}\n{\"lang\": true, \"input_ids\": []}\n"
      "{\"lang\": \"w\\u0065b\", \"input_ids\": [3]}\n");
  CHECK(shard.groups.keys == std::vector<GroupKey>{std::string("web"), std::int64_t{-4}, true});
  CHECK(shard.groups.of_record == std::vector<std::int32_t>{0, 1, 2, 0});
  CHECK(shard.not_carried.empty());

  const std::string good = "{\"lang\": 1, \"input_ids\": [5]}\n", null = "{\"lang\": null, \"input_ids\": [6, 7]}\n",
                    missing = "{\"input_ids\": [8]}\n";
  CHECK(opener.refusal(good + null) == "line 2: lang is null; --null-row drop leaves such records out");
  CHECK(opener.refusal(good + missing) ==
        "line 2: no column 'lang'; there are 'input_ids'; --null-row drop leaves such records out");
  CHECK(opener.refusal(missing, ErrorCode::usage) == "line 1: no column 'lang'; there are 'input_ids'");
  CHECK(opener.refusal("{\"lang\": 1.5, \"input_ids\": [6, 7]}\n").find("line 1: lang is 1.5; groups are told by") == 0);
  CHECK(opener.refusal("{\"lang\": [1], \"input_ids\": [6, 7]}\n").find("line 1: lang is a list; groups are told by") == 0);
  CHECK(opener.refusal("{\"lang\": 1, \"lang\": 1, \"input_ids\": [6, 7]}\n").find("line 1: the column 'lang' appears twice") ==
        0);

  opener.options.null_row = NullRow::drop;
  const OpenedShard dropped = opener.open(null + good + missing);
  CHECK(sequences(dropped) == Sequences{{}, {5}, {}});
  CHECK(dropped.groups.of_record == std::vector<std::int32_t>{-1, 0, -1});
  CHECK(dropped.null_records == 2);
}

TEST_CASE("a limit ends the shard after so many records of all inputs, and the hash is still the file's") {
  const std::string text = "\n{\"input_ids\": [1]}\n\n{\"input_ids\": [2, 2], \"a\": 1}\n{\"input_ids\": [-3], \"b\": 1}\n";
  Opener opener;
  opener.options.limit = 12;
  opener.first_record = 10;
  for (const std::string& stored : {text, gzip_member(text), zstd_frame(text) + zstd_frame(text)}) {
    const OpenedShard shard = opener.open(stored);
    CHECK(sequences(shard) == Sequences{{1}, {2, 2}});
    CHECK(shard.not_carried == std::vector<std::string>{"a"});
    CHECK(shard.facts->hash == hash_hex(stored));
  }
  opener.first_record = 12;
  CHECK(opener.open(text).record_begin == std::vector<std::int64_t>{0});
  opener.first_record = 9;
  CHECK(opener.refusal(text).find("line 5: input_ids[0] is -3") == 0);

  const Sequences many = many_sequences(20'000);
  opener.options.limit = 15'000;
  opener.first_record = 0;
  CHECK(sequences(opener.open(text_of(many))) == Sequences(many.begin(), many.begin() + 15'000));
}

TEST_CASE("cut anywhere, a plain file is refused unless the cut lies between lines") {
  Opener opener;
  const std::string text =
      "{\"input_ids\": [1, 20, 300], \"t\": \"a\xC3\xA9\\n\"}\r\n{\"a\": [{}], \"input_ids\": []}\n\n{\"input_ids\": "
      "[4000000000]}\n";
  const Sequences whole = sequences(opener.open(text));
  REQUIRE(whole.size() == 3);
  std::size_t complete = 0;  // records
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    const std::string kept = text.substr(0, cut);
    const bool ends_record = text[cut] == '\r' || (text[cut] == '\n' && cut > 0 && text[cut - 1] == '}');
    if (ends_record) ++complete;
    const bool between_lines = cut == 0 || ends_record || kept.back() == '\n' || kept.back() == '\r';
    if (between_lines) {
      CHECK(sequences(opener.open(kept)) == Sequences(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(complete)));
    } else {
      const auto line = std::count(kept.begin(), kept.end(), '\n') + 1;
      CHECK(opener.refusal(kept).find("line " + std::to_string(line) + ": ") == 0);
    }
  }
  CHECK(complete == 3);
}

TEST_CASE("cut anywhere, a compressed file is refused unless the cut lies between members or frames") {
  Opener opener;
  const std::string first = "{\"input_ids\": [1, 2]}\n", second = "{\"input_ids\": [3]}\n";
  for (const bool gzip : {true, false}) {
    const std::string part = gzip ? gzip_member(first) : zstd_frame(first);
    const std::string whole = part + (gzip ? gzip_member(second) : zstd_frame(second));
    const std::string name = gzip ? "x.jsonl.gz" : "x.jsonl.zst";
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      CAPTURE(gzip, cut);
      const std::string path = opener.folder.write(name, whole.substr(0, cut));
      if (cut == part.size()) {
        CHECK(sequences(opener.open_path(path)) == Sequences{{1, 2}});
        continue;
      }
      try {
        opener.open_path(path);
        FAIL_CHECK("no error");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::bad_data);
        CHECK(error.path() == "x.jsonl");
        const bool has_magic = cut >= (gzip ? 2u : 4u) || cut == 0;
        CHECK(error.position() == (has_magic ? "byte " + std::to_string(cut) : std::string("line 1")));
      }
    }
    CHECK(sequences(opener.open_path(opener.folder.write(name, whole))) == Sequences{{1, 2}, {3}});
  }
}

TEST_CASE("a requested stop ends the reading") {
  TempFolder folder;
  ThreadPool pool(2);
  NoProgress progress;
  std::stop_source stop;
  stop.request_stop();
  const InputFile file{folder.write("x.jsonl", text_of(many_sequences(100))), "x.jsonl"};
  try {
    open_jsonl(file, {}, {pool, stop.get_token(), progress, folder.path(), true, 0, 0});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::cancelled);
  }
}

TEST_CASE("json lines are found by content and then by name") {
  const TempFolder folder;
  const auto matches = [&](const std::string& name, const std::string& bytes) {
    const InputFile file{folder.write(name, bytes), name};
    return matches_jsonl(probe_of(file, bytes));
  };
  const std::string line = "{\"input_ids\": [1]}\n";
  CHECK(matches("x", line));
  CHECK(matches("x.txt", "\xEF\xBB\xBF \r\n\t" + line));
  CHECK(matches("x.gz", gzip_member("\n" + line)));
  CHECK(matches("x", zstd_skippable_frame("s") + zstd_frame(line)));
  CHECK(matches("x.zst", zstd_frame(text_of(many_sequences(3'000)))));  // the first 4 KiB decode to nothing
  for (const char* name : {"x.jsonl", "x.json", "x.ndjson", "x.jsonl.gz", "x.json.zst", "x.jsonl.zstd"}) {
    CHECK(matches(name, "5"));  // opening says what is wrong with it
    CHECK(matches(name, ""));
  }
  CHECK(matches("x.jsonl.gz", gzip_member(line).substr(0, 12)));
  CHECK_FALSE(matches("x.gz", gzip_member(line).substr(0, 12)));
  CHECK_FALSE(matches("x.gz", gzip_member("1,2\n")));
  CHECK_FALSE(matches("x.csv", "1,2\n"));
  CHECK_FALSE(matches("x", ""));
  CHECK_FALSE(matches("x.bin", std::string(64, '\0')));
  const InputFile standard_input{"-", "-"};
  CHECK(matches_jsonl(probe_of(standard_input, "")));
}
