// Many pieces with few reads: which come together, and that ids and values of any ranges are those of the file.
#include "io/close_reads.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "io/shard_source.h"
#include "io/token_table.h"
#include "io/value_table.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

// ---- pieces -----------------------------------------------------------------------------------------------------------------
struct Piece {
  std::int64_t begin_bytes = 0, bytes = 0;
  bool operator==(const Piece&) const = default;
};

struct Reads {
  std::vector<Piece> alone, together;
};

/// Each is at its place when it is told of, if it has one; what has none comes by the same reads.
Reads read(const File& file, const std::string& content, const std::vector<Piece>& pieces) {
  std::vector<std::byte> wanted(content.size());
  const auto place = [&](const Piece& piece) {
    return std::span(wanted).subspan(static_cast<std::size_t>(piece.begin_bytes), static_cast<std::size_t>(piece.bytes));
  };
  const auto is_right = [&](const Piece& piece, std::span<const std::byte> bytes) {
    return std::ssize(bytes) == piece.bytes && std::memcmp(bytes.data(), content.data() + piece.begin_bytes, bytes.size()) == 0;
  };
  Reads reads;
  read_close(file, std::span<const Piece>(pieces), place, [&](const Piece& piece, std::span<const std::byte> stored) {
    REQUIRE(is_right(piece, stored));
    REQUIRE(is_right(piece, place(piece)));
    (stored.data() == place(piece).data() ? reads.alone : reads.together).push_back(piece);
  });
  std::vector<Piece> converted, all = pieces;
  std::erase_if(all, [](const Piece& piece) { return piece.bytes > kCloseBytes; });
  read_close(
      file, std::span<const Piece>(all), [](const Piece&) { return std::span<std::byte>(); },
      [&](const Piece& piece, std::span<const std::byte> stored) {
        REQUIRE(is_right(piece, stored));
        converted.push_back(piece);
      });
  REQUIRE(converted == all);
  return reads;
}

std::string any_bytes(std::size_t count) {
  const RandomStream random(5, RandomPurpose::sample);
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(random.value(i));
  return bytes;
}

TEST_CASE("pieces come with one read where little lies between them, and they are few bytes together") {
  const TempFolder folder;
  const std::string content = any_bytes(600 << 10);
  const File file(folder.write("a", content), File::Mode::read);
  constexpr std::int64_t kGap = 4 << 10, kMost = 256 << 10;
  CHECK(read(file, content, {}).alone.empty());

  const std::vector<Piece> close{{10, 5}, {15, 1}, {16 + kGap, 100}, {16 + kGap + 100 + 7, 3}};
  CHECK(read(file, content, close).together == close);
  CHECK(read(file, content, close).alone.empty());
  const std::vector<Piece> apart{{10, 5}, {15 + kGap + 1, 100}};
  CHECK(read(file, content, apart).alone == apart);

  const std::vector<Piece> most{{1, 100}, {101, kMost - 100}};
  CHECK(read(file, content, most).together == most);
  const std::vector<Piece> more{{1, 100}, {101, kMost - 99}};
  CHECK(read(file, content, more).alone == more);
  const std::vector<Piece> large{{0, kMost + 1}, {kMost + 1, 1}, {kMost + 2, 1}};
  CHECK(read(file, content, large).alone == std::vector<Piece>{large[0]});
  CHECK(read(file, content, large).together == std::vector<Piece>{large[1], large[2]});

  // Backwards, and one over another.
  const std::vector<Piece> backwards{{500, 10}, {490, 10}, {495, 10}, {495, 10}};
  CHECK(read(file, content, backwards).alone == backwards);

  const std::vector<Piece> beyond{{600 << 10, 0}, {600 << 10, 1}};
  CHECK_THROWS_AS(read(file, content, beyond), Error);
}

// ---- tables -----------------------------------------------------------------------------------------------------------------
constexpr std::int64_t kValues = 90'000;

/// Values of a type as a file stores them, in stretches that do not lie in their order, with other bytes between.
template <class Table, class Append>
std::string lay_out(const std::string& values, std::size_t width, bool big_endian, Table& table, Append append) {
  std::string stored = values;
  if (big_endian) {
    for (std::size_t i = 0; i < stored.size(); i += width) std::reverse(&stored[i], &stored[i] + width);
  }
  const std::int64_t cuts[] = {0, 17, 30'000, 30'001, 61'234, kValues};
  const std::size_t order[] = {2, 0, 1, 4, 3};  // in the file
  std::string file = "odd";
  std::int64_t begin[5];
  for (const std::size_t stretch : order) {
    begin[stretch] = std::ssize(file);
    const auto from = static_cast<std::size_t>(cuts[stretch]) * width, to = static_cast<std::size_t>(cuts[stretch + 1]) * width;
    file += stored.substr(from, to - from) + std::string(stretch == 1 ? 6000 : 41, '\xEE');
  }
  for (std::size_t stretch = 0; stretch < 5; ++stretch) append(cuts[stretch + 1] - cuts[stretch], begin[stretch]);
  table.big_endian = big_endian;
  return file;
}

/// Of every size, near each other and far apart, a few of them anywhere; each is wanted at a place of its own, behind a gap.
std::vector<TableRange> any_ranges(std::uint64_t seed) {
  const RandomStream random(seed, RandomPurpose::sample);
  std::uint64_t draws = 0;
  const auto draw = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.bounded(draws++, static_cast<std::uint64_t>(bound)));
  };
  std::vector<TableRange> ranges;
  std::int64_t at = 0, destination = 0;
  for (int i = 0; i < 150; ++i) {
    at += draw(4) == 0 ? draw(6'000) : draw(40);
    if (draw(12) == 0) at = draw(kValues);
    at %= kValues;
    const std::int64_t sizes[] = {0, 1, 1 + draw(60), 1 + draw(600), draw(40'000)};
    const std::int64_t count = std::min(sizes[draw(20) == 0 ? 4 : draw(4)], kValues - at);
    destination += draw(3);
    ranges.push_back({at, count, destination});
    destination += count;
    at += count;
  }
  return ranges;
}

/// Where no range is wanted, nothing is written.
template <class Out, class Read, class Value>
void check_ranges(Read read, Value value) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<TableRange> ranges = any_ranges(seed);
    constexpr auto kUntouched = static_cast<Out>(91);
    std::vector<Out> expected(static_cast<std::size_t>(ranges.back().destination + ranges.back().count + 5), kUntouched);
    std::vector<Out> found = expected;
    for (const TableRange& range : ranges) {
      for (std::int64_t i = 0; i < range.count; ++i)
        expected[static_cast<std::size_t>(range.destination + i)] = static_cast<Out>(value(range.first + i));
    }
    read(std::span<const TableRange>(ranges), found.data());
    REQUIRE(found == expected);
  }
}

template <class T>
std::vector<T> small_values() {
  std::vector<T> values;
  for (std::int64_t i = 0; i < kValues; ++i) values.push_back(static_cast<T>((i * 7 + i / 128) & 0x7f));
  return values;
}

template <class T>
TokenTable token_table(const TempFolder& folder, IdType type, const std::vector<T>& values, bool big_endian) {
  TokenTable table;
  table.type = type;
  const std::string bytes = lay_out(bytes_of(values), sizeof(T), big_endian, table,
                                    [&](std::int64_t count, std::int64_t begin) { table.append(count, begin); });
  table.file = std::make_shared<const File>(folder.write("ids.bin", bytes), File::Mode::read, "ids.bin");
  return table;
}

template <class T>
void check_ids(IdType type) {
  INFO(info(type).name);
  const TempFolder folder;
  const std::vector<T> values = small_values<T>();
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  for (const bool big_endian : {false, true}) {
    const TokenTable table = token_table(folder, type, values, big_endian);
    REQUIRE(table.stretches.size() == 5);
    check_ranges<std::uint32_t>([&](auto ranges, std::uint32_t* ids) { table.read(ranges, ids); }, value);
    check_ranges<std::uint16_t>([&](auto ranges, std::uint16_t* ids) { table.read(ranges, ids); }, value);
  }
}

TEST_CASE("ids of many ranges are those of the file, for every stored type") {
  check_ids<std::uint8_t>(IdType::u8);
  check_ids<std::int8_t>(IdType::i8);
  check_ids<std::uint16_t>(IdType::u16);
  check_ids<std::int16_t>(IdType::i16);
  check_ids<std::uint32_t>(IdType::u32);
  check_ids<std::int32_t>(IdType::i32);
  check_ids<std::uint64_t>(IdType::u64);
  check_ids<std::int64_t>(IdType::i64);
  TokenTable().read(std::span<const TableRange>(), static_cast<std::uint32_t*>(nullptr));
}

template <class T>
void check_values(ValueType type) {
  INFO(info(type).name);
  const TempFolder folder;
  const std::vector<T> values = small_values<T>();
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  for (const bool big_endian : {false, true}) {
    ValueTable table;
    const std::string bytes = lay_out(bytes_of(values), sizeof(T), big_endian, table,
                                      [&](std::int64_t count, std::int64_t begin) { table.append(count, begin, type); });
    table.file = std::make_shared<const File>(folder.write("values.bin", bytes), File::Mode::read, "values.bin");
    REQUIRE(table.stretches.size() == 5);
    const auto as = [&](ValueType wanted) {
      return [&table, wanted](auto ranges, auto* out) { table.read(ranges, wanted, reinterpret_cast<std::byte*>(out)); };
    };
    constexpr std::array kOfRows{ValueType::u8, ValueType::i32, ValueType::i64, ValueType::f32, ValueType::f64};
    if (std::ranges::find(kOfRows, type) != kOfRows.end()) check_ranges<T>(as(type), value);
    check_ranges<double>(as(ValueType::f64), value);
    if (type < ValueType::f16) check_ranges<std::int64_t>(as(ValueType::i64), value);
  }
}

TEST_CASE("values of many ranges are those of the file, for every stored type, as they lie and as another type") {
  check_values<std::uint8_t>(ValueType::u8);
  check_values<std::int8_t>(ValueType::i8);
  check_values<std::uint16_t>(ValueType::u16);
  check_values<std::int16_t>(ValueType::i16);
  check_values<std::uint32_t>(ValueType::u32);
  check_values<std::int32_t>(ValueType::i32);
  check_values<std::uint64_t>(ValueType::u64);
  check_values<std::int64_t>(ValueType::i64);
  check_values<float>(ValueType::f32);
  check_values<double>(ValueType::f64);
  ValueTable().read(std::span<const TableRange>(), ValueType::i64, nullptr);
}

TEST_CASE("halves of many ranges are widened, in either order of bytes") {
  const TempFolder folder;
  std::vector<std::uint16_t> halves;  // 1024 to 2047, which are whole numbers of exponent 25
  for (std::int64_t i = 0; i < kValues; ++i) halves.push_back(static_cast<std::uint16_t>(25 << 10 | (i & 1023)));
  for (const bool big_endian : {false, true}) {
    ValueTable table;
    const std::string bytes = lay_out(bytes_of(halves), 2, big_endian, table, [&](std::int64_t count, std::int64_t begin) {
      table.append(count, begin, ValueType::f16);
    });
    table.file = std::make_shared<const File>(folder.write("values.bin", bytes), File::Mode::read, "values.bin");
    const auto read = [&](auto ranges, float* out) { table.read(ranges, ValueType::f32, reinterpret_cast<std::byte*>(out)); };
    check_ranges<float>(read, [](std::int64_t i) { return 1024 + (i & 1023); });
  }
}

// ---- failures ---------------------------------------------------------------------------------------------------------------
std::string failure(const TokenTable& table, const std::vector<TableRange>& ranges, bool narrow, ErrorCode code) {
  std::vector<std::uint32_t> ids(kValues);
  try {
    if (narrow) {
      table.read(ranges, reinterpret_cast<std::uint16_t*>(ids.data()));
    } else {
      table.read(ranges, ids.data());
    }
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "read";
}

template <class T>
void check_named(IdType type, T bad, bool narrow, const std::string& said) {
  const TempFolder folder;
  std::vector<T> values = small_values<T>();
  values[30'250] = bad;
  const std::vector<TableRange> ranges{{30'100, 40, 0}, {30'150, 1, 100}, {30'200, 80, 200}, {30'300, 10, 300}};
  const std::vector<TableRange> beside{{30'100, 40, 0}, {30'150, 100, 100}, {30'251, 49, 300}};
  for (const bool big_endian : {false, true}) {
    const TokenTable table = token_table(folder, type, values, big_endian);
    CHECK(failure(table, ranges, narrow, ErrorCode::bad_data).find("ids.bin: token 30,250: id " + said) == 0);
    CHECK(failure(table, beside, narrow, ErrorCode::bad_data) == "read");
  }
}

TEST_CASE("an id that cannot be one is named in a piece that was read with others") {
  check_named<std::int32_t>(IdType::i32, -5, false, "-5");
  check_named<std::int16_t>(IdType::i16, -7, true, "-7");
  check_named<std::int16_t>(IdType::i16, -7, false, "-7");
  check_named<std::int64_t>(IdType::i64, std::int64_t{1} << 32, false, "4294967296");
  check_named<std::uint32_t>(IdType::u32, 65'536, true, "65536 does not fit 16 bits");
}

TEST_CASE("ranges beyond a table, and of a file that was cut short, are errors") {
  const TempFolder folder;
  const TokenTable table = token_table(folder, IdType::u32, small_values<std::uint32_t>(), false);
  for (const TableRange& range : {TableRange{kValues, 1, 0}, TableRange{-1, 2, 0}, TableRange{5, -1, 0},
                                  TableRange{kValues - 1, 2, 0}, TableRange{1, std::numeric_limits<std::int64_t>::max(), 0}})
    CHECK(failure(table, {{0, 3, 0}, range}, false, ErrorCode::internal) != "read");

  ValueTable values;
  values.file = table.file;
  values.append(kValues, 3, ValueType::u32);
  std::vector<std::byte> out(4 * kValues);
  CHECK_THROWS_AS(values.read(std::vector<TableRange>{{0, 3, 0}, {kValues - 1, 2, 3}}, ValueType::u32, out.data()), Error);

  const std::vector<TableRange> ranges{{40'000, 30, 0}, {40'040, 30, 40}, {40'080, 30, 80}};
  CHECK(failure(table, ranges, false, ErrorCode::io) == "read");
  folder.write("ids.bin", "odd");
  CHECK(failure(table, ranges, false, ErrorCode::io).find("ids.bin") == 0);
  CHECK_THROWS_AS(values.read(ranges, ValueType::u32, out.data()), Error);
  CHECK_THROWS_AS(values.read(ranges, ValueType::i64, out.data()), Error);
}

// ---- blocks -----------------------------------------------------------------------------------------------------------------
/// Three files of sequences of 1 to 3 tokens, the second big-endian: token t of file f has the id of id_at(f, t) and the score
/// score_at(f, t).
struct ManySequences {
  explicit ManySequences(std::int64_t sequences_a_file) : sequences(3 * sequences_a_file) {
    std::vector<SourceFile> files(3);
    std::vector<FileTables> tables(3);
    for (std::size_t f = 0; f < files.size(); ++f) {
      files[f].name = "file";
      files[f].record_begin = {0};
      for (std::int64_t s = 0; s < sequences_a_file; ++s)
        files[f].record_begin.push_back(files[f].record_begin.back() + 1 + (s % 1000 == 7 ? 2 : 0));
      std::vector<std::uint16_t> ids;
      std::vector<std::uint8_t> scores;
      for (std::int64_t t = 0; t < files[f].tokens(); ++t) {
        const std::uint16_t id = id_at(f, t);
        ids.push_back(f == 1 ? static_cast<std::uint16_t>(id << 8 | id >> 8) : id);
        scores.push_back(score_at(f, t));
      }
      tables[f].ids.file = file(f, "ids", bytes_of(ids));
      tables[f].ids.append(files[f].tokens(), 0);
      tables[f].ids.big_endian = f == 1;
      tables[f].columns.push_back({{.name = "score", .kind = ColumnKind::token, .type = ValueType::i32}, {}, {}, {}});
      tables[f].columns[0].values.file = file(f, "scores", bytes_of(scores));
      tables[f].columns[0].values.append(files[f].tokens(), 0, ValueType::u8);
    }
    const std::vector<Column> columns{tables[0].columns[0].column};
    source = std::make_unique<ShardSource>(SequenceIndex(std::move(files)), std::move(tables), columns, std::vector<FileStamp>{});
  }
  std::shared_ptr<const File> file(std::size_t number, const std::string& name, const std::string& bytes) const {
    return std::make_shared<const File>(folder.write(name + std::to_string(number), bytes), File::Mode::read);
  }
  static std::uint16_t id_at(std::size_t file, std::int64_t token) {
    return static_cast<std::uint16_t>(token * 40'503 + static_cast<std::int64_t>(file) * 7);
  }
  static std::uint8_t score_at(std::size_t file, std::int64_t token) {
    return static_cast<std::uint8_t>(token * 31 + static_cast<std::int64_t>(file));
  }

  TempFolder folder;
  std::int64_t sequences;
  std::unique_ptr<ShardSource> source;
};

TEST_CASE("a block of requests in any order gets every token to its place") {
  // Few requests, and many out of ranges of one, two and three digits of the sort.
  struct Size {
    std::int64_t sequences_a_file;
    int requests;
  };
  for (const Size& size : {Size{700, 2'000}, Size{600, 6'000}, Size{3'000, 6'000}, Size{1'450'000, 6'000}}) {
    const ManySequences many(size.sequences_a_file);
    const RandomStream random(3, RandomPurpose::sample);
    std::uint64_t draws = 0;
    const auto draw = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random.bounded(draws++, static_cast<std::uint64_t>(bound)));
    };
    std::vector<TokenRequest> requests;
    std::vector<std::uint16_t> expected;
    std::vector<std::int32_t> expected_scores;
    for (int r = 0; r < size.requests; ++r) {
      const SequenceId sequence =
          draw(10) == 0 ? draw(size.sequences_a_file / 1000 + 1) * 1000 % many.sequences + 7 : draw(many.sequences);
      const SequencePlace place = many.source->index().place(sequence);
      const std::int64_t first = draw(place.tokens), tokens = draw(place.tokens - first + 1);
      requests.push_back({sequence, first, tokens, std::ssize(expected)});
      for (std::int64_t t = 0; t < tokens; ++t) {
        const std::int64_t token = place.first_token + first + t;
        expected.push_back(ManySequences::id_at(static_cast<std::size_t>(place.file), token));
        expected_scores.push_back(ManySequences::score_at(static_cast<std::size_t>(place.file), token));
      }
      if (draw(5) == 0) {  // a gap in the buffer
        expected.push_back(0);
        expected_scores.push_back(0);
      }
    }
    std::vector<std::uint16_t> narrow(expected.size());
    std::vector<std::uint32_t> wide(expected.size());
    std::vector<TokenRequest> again = requests;
    many.source->read_block(requests, IdType::u16, narrow.data());
    CHECK(narrow == expected);
    CHECK(std::ranges::is_sorted(requests, {}, [](const TokenRequest& r) { return std::pair(r.sequence, r.first_token); }));
    many.source->read_block(again, IdType::u32, wide.data());
    CHECK(std::equal(wide.begin(), wide.end(), expected.begin(), expected.end()));
    std::vector<std::int32_t> scores(expected.size());
    many.source->read_tokens(0, requests, reinterpret_cast<std::byte*>(scores.data()));
    CHECK(scores == expected_scores);
  }
}

}  // namespace
}  // namespace shardpack
