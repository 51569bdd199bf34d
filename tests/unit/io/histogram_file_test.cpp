#include "io/histogram_file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/byte_stream.h"
#include "io/npy.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/shared_data.h"
#include "support/standard_input.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

using Counts = std::vector<LengthCount>;

struct Reader {
  TempFolder folder;

  std::optional<LengthHistogram> read(std::string_view bytes, const std::string& name = "h") {
    return read_histogram(folder.write(name, bytes));
  }
  Counts counts(std::string_view bytes) {
    const auto histogram = read(bytes);
    REQUIRE(histogram.has_value());
    return histogram->counts();
  }
  std::string refusal(std::string_view bytes, ErrorCode code = ErrorCode::bad_data, const std::string& name = "h") {
    try {
      read(bytes, name);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(error.path() == folder.path(name));
      return error.position() + ": " + error.message();
    }
    return "no error";
  }
};

template <class T>
std::string npy(const std::string& descr, const std::vector<T>& values, std::vector<std::int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
  return make_npy_header(descr, shape) + bytes_of(values);
}

}  // namespace

TEST_CASE("a CSV histogram is read with and without header, comments and repeats") {
  Reader reader;
  const Counts expected{{0, 2}, {5, 4}, {70'000, 1}};
  CHECK(reader.counts("length,count\n5,3\n0,2\n70000,1\n5,1\n") == expected);
  CHECK(reader.counts("# made by hand\n\n5,4\n70000,1\n# the empty ones\n0,2") == expected);
  CHECK(reader.counts("\xEF\xBB\xBFlength,count\r\n 5 , 4 \r\n70000,1\r\n0,2\r\n6,0\r\n") == expected);
  CHECK(reader.counts("count,length\n4,5\n2,0\n1,70000\n") == expected);
  CHECK(reader.counts(gzip_member("length,count\n5,4\n") + gzip_member("0,2\n70000,1\n")) == expected);
  CHECK(reader.counts("length,count\n").empty());
  CHECK(reader.counts("9223372036854775807,1\n") == Counts{{9223372036854775807, 1}});
}

TEST_CASE("a plain list has one length a line") {
  Reader reader;
  CHECK(reader.counts("5\n7\n5\n0\n") == Counts{{0, 1}, {5, 2}, {7, 1}});
  CHECK(reader.counts("# lengths\nlength\n 5\r\n\n7") == Counts{{5, 1}, {7, 1}});
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += std::to_string(i % 1000) + "\n";  // several pieces, lines across their ends
  const auto histogram = reader.read(many);
  REQUIRE(histogram.has_value());
  CHECK(histogram->sequences() == 200'000);
  CHECK(histogram->count(999) == 200);
  CHECK(histogram->tokens() == 200 * 999 * 1000 / 2);
}

TEST_CASE("a JSON histogram is read by its two keys") {
  Reader reader;
  CHECK(reader.counts("{\"schema\":1,\"counts\":{\"17\":3,\"0\":2}}") == Counts{{0, 2}, {17, 3}});
  CHECK(reader.counts("\xEF\xBB\xBF\n{\n  \"counts\" : {\n \"17\": 3 },\n \"schema\": 1, \"made_by\": \"us\"\n}\n") ==
        Counts{{17, 3}});
  CHECK(reader.counts("{\"schema\": 1, \"counts\": {}}").empty());

  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"17\":-3}}") == "counts.17: the count is -3; expected a whole number from 0");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"17\":1.5}}") ==
        "counts.17: the count is 1.5; expected a whole number from 0");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"17\":\"3\"}}") ==
        "counts.17: the count is \"3\"; expected a whole number from 0");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"x\":3}}") == "counts.x: the length is x; expected a whole number from 0");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"\":3}}") == "counts.: the length is missing");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"1\":9223372036854775808}}", ErrorCode::limit) ==
        "counts.1: the count is 9223372036854775808; numbers are below 2^63");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"1\":1,\"1\":1}}") == "counts: the key '1' appears twice");
  CHECK(reader.refusal("{\"schema\":2,\"counts\":{\"1\":1}}") == "schema: expected 1, found 2: written by a later version?");
  CHECK(reader.refusal("{\"counts\":{\"1\":1}}") == ": the key 'schema' is missing");
  CHECK(reader.refusal("{\"schema\":1,\"counts\":{\"1\":1}").find("line 1, column ") == 0);
}

TEST_CASE("faults of a table are named with their line") {
  Reader reader;
  const auto number = std::string("; expected a whole number from 0");
  CHECK(reader.refusal("length,count\n\n5,-3\n") == "line 3: the count is -3" + number);
  CHECK(reader.refusal("-5,3\n") == "line 1: the length is -5" + number);
  CHECK(reader.refusal("5,3\n6,1.5\n") == "line 2: the count is 1.5" + number);
  CHECK(reader.refusal("5.0,3\n") == "line 1: the length is 5.0" + number);
  CHECK(reader.refusal("5\n6\n1e3\n") == "line 3: the length is 1e3" + number);
  CHECK(reader.refusal("5,3\nx,1\n") == "line 2: the length is x" + number);
  CHECK(reader.refusal("5,3\n6,\n") == "line 2: the count is missing");
  CHECK(reader.refusal("5,3\n,6\n") == "line 2: the length is missing");
  CHECK(reader.refusal("5,3\n6\n") == "line 2: expected length,count, found '6'");
  CHECK(reader.refusal("5,3\n6,1,2\n") == "line 2: expected length,count, found '6,1,2'");
  CHECK(reader.refusal("5\n6,1\n") == "line 2: expected one length, found '6,1'");
  CHECK(reader.refusal("5,3\nlength,count\n") == "line 2: the length is length" + number);
  CHECK(reader.refusal("length,rows\n5,3\n") ==
        "line 1: the column 'rows' is unknown; a histogram has length,count and perhaps group");
  CHECK(reader.refusal("length,count,count\n5,3,3\n") == "line 1: the column 'count' appears twice");
  CHECK(reader.refusal("9223372036854775808,1\n", ErrorCode::limit) ==
        "line 1: the length is 9223372036854775808; numbers are below 2^63");
  CHECK(reader.refusal("1,9223372036854775807\n1,1\n", ErrorCode::limit).find("line 2: ") == 0);
  CHECK(reader.refusal("4611686018427387904,2\n", ErrorCode::limit).find("line 1: ") == 0);
  CHECK(reader.refusal("length,count\n" + std::string(200'000, '7') + "\n").find("line 2: expected length,count, found '777") ==
        0);
  std::string long_table;
  for (int i = 0; i < 50'000; ++i) long_table += "5,3\n";
  const std::string compressed = gzip_member(long_table);
  CHECK(reader.refusal(compressed.substr(0, compressed.size() - 1)).find("byte ") == 0);
}

TEST_CASE("a grouped histogram is refused where groups are not known") {
  Reader reader;
  for (const char* text : {"length,count,group\n5,3,de\n", "5,3,de\n", "group,length,count\nde,5,3\n"}) {
    CAPTURE(text);
    CHECK(reader.refusal(text, ErrorCode::usage).find(": a grouped histogram") == 0);
  }
}

TEST_CASE("a grouped histogram is read back as it was written") {
  Reader reader;
  const auto read = [&](std::string_view bytes) { return *read_histogram_file(reader.folder.write("h", bytes)); };
  const HistogramFile file = read("length,count,group\n5,3,web\n7,1,12\n5,2,true\n5,4,web\n9,1,\"12\"\n0,2,\"a \"\"b\"\", c\"\n");
  REQUIRE(file.groups.size() == 5);  // true, 12, then strings by their bytes
  CHECK(file.groups[0].key == GroupKey(true));
  CHECK(file.groups[1].key == GroupKey(std::int64_t{12}));
  CHECK(file.groups[2].key == GroupKey(std::string("12")));
  CHECK(file.groups[3].key == GroupKey(std::string("a \"b\", c")));
  CHECK(file.groups[4].key == GroupKey(std::string("web")));
  CHECK(file.groups[4].lengths.counts() == Counts{{5, 7}});
  CHECK(file.lengths.sequences() == 13);
  const std::string written = grouped_histogram_to_csv(file.groups);
  const HistogramFile again = read(written);
  CHECK(grouped_histogram_to_csv(again.groups) == written);
  REQUIRE(again.groups.size() == 5);
  for (std::size_t g = 0; g < 5; ++g) CHECK(again.groups[g].key == file.groups[g].key);
  CHECK(reader.refusal("length,group\n5,de\n").find("line 1: a grouped histogram has length,count,group") == 0);
  CHECK(reader.refusal("length,count,group\n5,3\n").find("line 2: expected length,count,group") == 0);
  CHECK(reader.refusal("length,count,group\n5,3,\"web\n").find("line 2: the group \"web has no closing quote") == 0);
}

TEST_CASE("what is a shard is left to the readers of shards") {
  Reader reader;
  const std::string line = "{\"input_ids\": [1, 2]}\n";
  for (const std::string& bytes :
       {line, "\xEF\xBB\xBF" + line, gzip_member(line), zstd_frame(line),
        std::string("{\"schema\": \"a\", \"input_ids\": [1]}\n"), std::string("{\"counts\": [1], \"input_ids\": [1]}\n"),
        std::string("{\"schema\":1,\"command\":\"scan\"}"), std::string("{"), std::string(), std::string("\n \n"),
        std::string("# only a comment\n"), std::string(1024, '\0'), std::string("MMIDIDX\0\0\1", 10),
        std::string("text,label\nhello,1\n"), std::string("0,12,doc,src,3\n12,20,doc,src,4\n"), std::string("one two three\n"),
        std::string("[1, 2, 3]\n"), gzip_member("5,3\n").substr(0, 15)}) {
    CAPTURE(bytes);
    CHECK_FALSE(reader.read(bytes).has_value());
  }
  CHECK_FALSE(read_histogram(reader.folder.path()).has_value());
  CHECK_FALSE(read_histogram(reader.folder.path("*.bin")).has_value());
}

TEST_CASE("a 1-D integer NPY file without a sidecar holds lengths") {
  Reader reader;
  CHECK(reader.counts(npy<std::int32_t>("<i4", {5, 7, 5, 0})) == Counts{{0, 1}, {5, 2}, {7, 1}});
  CHECK(reader.counts(npy<std::uint8_t>("|u1", {5, 200})) == Counts{{5, 1}, {200, 1}});
  CHECK(reader.counts(npy<std::uint16_t>(">u2", {0x0500, 0x0001})) == Counts{{5, 1}, {256, 1}});
  CHECK(reader.counts(npy<std::int64_t>("<i8", {std::int64_t{1} << 40})) == Counts{{std::int64_t{1} << 40, 1}});
  CHECK(reader.counts(npy<std::int64_t>("<i8", {})).empty());
  CHECK(reader.refusal(npy<std::int64_t>("<i8", {4, -1})).find("element 1: a length is -1;") == 0);
  CHECK(reader.refusal(npy<std::uint64_t>("<u8", {std::uint64_t{1} << 63})).find("element 0: ") == 0);
  CHECK_FALSE(reader.read(npy<std::uint16_t>("<u2", {1, 2, 3, 4}, {2, 2})).has_value());
  CHECK(reader.refusal(npy<float>("<f4", {1, 2})).find("floating-point") != std::string::npos);

  const std::string lengths = npy<std::int64_t>("<i8", {2, 1});
  CHECK_FALSE(reader.read(npy<std::int64_t>("<i8", {0, 2, 3}), "other.offsets.npy").has_value());
  CHECK(reader.read(lengths, "train.lengths.npy")->sequences() == 2);
  CHECK_FALSE(reader.read(npy<std::uint16_t>("<u2", {7, 8, 9}), "train.npy").has_value());
  CHECK(reader.read(npy<std::uint16_t>("<u2", {7, 8, 9}), "valid.npy")->tokens() == 24);
}

TEST_CASE("a histogram from standard input, and JSON lines from there, which stay readable") {
  {
    const StandardInput input("length,count\n5,3\n");
    CHECK(read_histogram("-")->sequences() == 3);
  }
  {
    const StandardInput input("5,3\n6,-1\n");
    try {
      read_histogram("-");
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "standard input: line 2: the count is -1; expected a whole number from 0");
    }
  }
  const std::string lines = "{\"input_ids\": [1, 2]}\n";
  const StandardInput input(lines);
  CHECK_FALSE(read_histogram("-").has_value());
  ByteStream stream("-");
  std::string again(100, '\0');
  again.resize(stream.read(std::as_writable_bytes(std::span(again))));
  CHECK(again == lines);
}

TEST_CASE("written histograms are read back") {
  Reader reader;
  const LengthHistogram histogram(Counts{{0, 7}, {3, 2}, {512, 9'000'000'000}, {1 << 21, 1}});
  CHECK(histogram_to_csv(histogram) == "length,count\n0,7\n3,2\n512,9000000000\n2097152,1\n");
  CHECK(histogram_to_json(histogram) ==
        "{ \"schema\": 1, \"counts\": { \"0\": 7, \"3\": 2, \"512\": 9000000000, \"2097152\": 1 } }\n");
  CHECK(reader.read(histogram_to_csv(histogram)) == histogram);
  CHECK(reader.read(histogram_to_json(histogram)) == histogram);
  CHECK(reader.read(histogram_to_csv({})) == LengthHistogram{});
  CHECK(reader.read(histogram_to_json({})) == LengthHistogram{});
}

TEST_CASE("the published histograms are read whole") {
  struct Published {
    const char* name;
    std::int64_t sequences, tokens, max_length;
  };
  for (const Published& published : {Published{"wikipedia_bert_512.csv", 16'279'552, 4'164'796'173, 512},
                                     Published{"squad_1_1_384.csv", 88'641, 15'249'479, 384}}) {
    const std::string path = published_histogram_path(published.name).string();
    if (!std::filesystem::exists(path)) {
      WARN(kNoSharedData);
      return;
    }
    const auto histogram = read_histogram(path);
    REQUIRE(histogram.has_value());
    CHECK(histogram->sequences() == published.sequences);
    CHECK(histogram->tokens() == published.tokens);
    CHECK(histogram->max_length() == published.max_length);
  }
}
