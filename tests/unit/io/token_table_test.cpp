// Every stored type, both byte orders, both widths asked for: the ids come out, or the first that cannot is named.
#include "io/token_table.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

/// A table at an odd offset, so that nothing is aligned.
template <class T>
TokenTable table_of(const TempFolder& folder, IdType type, std::vector<T> values, bool big_endian = false) {
  std::string bytes = bytes_of(values);
  if (big_endian) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) std::reverse(bytes.begin() + i, bytes.begin() + i + sizeof(T));
  }
  TokenTable table;
  table.file = std::make_shared<const File>(folder.write("ids.bin", "xyz" + bytes), File::Mode::read, "ids.bin");
  table.type = type;
  table.append(static_cast<std::int64_t>(values.size()), 3);
  table.big_endian = big_endian;
  return table;
}

template <class Out>
std::vector<Out> read(const TokenTable& table, std::int64_t first, std::int64_t tokens) {
  std::vector<Out> ids(static_cast<std::size_t>(tokens));
  table.read(first, std::span(ids));
  return ids;
}

template <class Out>
std::string failure(const TokenTable& table) {
  try {
    read<Out>(table, 0, table.tokens);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

template <class T>
void check_type(IdType type) {
  const TempFolder folder;
  std::vector<T> values;  // longer than a conversion chunk
  for (int i = 0; i < 20'000; ++i) values.push_back(static_cast<T>((i * 7) & 0x7f));
  for (const bool big_endian : {false, true}) {
    const TokenTable table = table_of(folder, type, values, big_endian);
    const auto same = [](auto a, auto b) { return static_cast<std::int64_t>(a) == static_cast<std::int64_t>(b); };
    const std::vector<std::uint32_t> wide = read<std::uint32_t>(table, 0, table.tokens);
    CHECK(std::equal(wide.begin(), wide.end(), values.begin(), values.end(), same));
    const std::vector<std::uint16_t> narrow = read<std::uint16_t>(table, 11, 16'500);
    CHECK(std::equal(narrow.begin(), narrow.end(), values.begin() + 11, values.begin() + 11 + 16'500, same));
    CHECK(read<std::uint32_t>(table, table.tokens, 0).empty());
    CHECK_THROWS_AS(read<std::uint32_t>(table, table.tokens, 1), Error);
  }
}

}  // namespace

TEST_CASE("ids of every stored type are read") {
  check_type<std::uint8_t>(IdType::u8);
  check_type<std::int8_t>(IdType::i8);
  check_type<std::uint16_t>(IdType::u16);
  check_type<std::int16_t>(IdType::i16);
  check_type<std::uint32_t>(IdType::u32);
  check_type<std::int32_t>(IdType::i32);
  check_type<std::uint64_t>(IdType::u64);
  check_type<std::int64_t>(IdType::i64);
}

TEST_CASE("the largest ids keep every bit") {
  const TempFolder folder;
  const std::vector<std::uint32_t> largest{4294967295u};
  CHECK(read<std::uint32_t>(table_of<std::uint32_t>(folder, IdType::u32, {4294967295u}), 0, 1) == largest);
  CHECK(read<std::uint32_t>(table_of<std::int64_t>(folder, IdType::i64, {4294967295}), 0, 1) == largest);
  CHECK(read<std::uint32_t>(table_of<std::uint64_t>(folder, IdType::u64, {4294967295u}, true), 0, 1) == largest);
  CHECK(read<std::uint16_t>(table_of<std::uint32_t>(folder, IdType::u32, {65535}), 0, 1) == std::vector<std::uint16_t>{65535});
}

TEST_CASE("an id that cannot be one is named with its place") {
  const TempFolder folder;
  CHECK(failure<std::uint32_t>(table_of<std::int32_t>(folder, IdType::i32, {1, 2, -5, -6})) ==
        "ids.bin: token 2: id -5; token ids are whole numbers from 0 to 4,294,967,295");
  CHECK(failure<std::uint16_t>(table_of<std::int16_t>(folder, IdType::i16, {1, -1})).find("--dtype u16") != std::string::npos);
  CHECK(failure<std::uint32_t>(table_of<std::int16_t>(folder, IdType::i16, {1, -1})).find("token 1") != std::string::npos);
  CHECK(failure<std::uint32_t>(table_of<std::int8_t>(folder, IdType::i8, {-1})).find("--dtype u8") != std::string::npos);
  CHECK(failure<std::uint32_t>(table_of<std::int64_t>(folder, IdType::i64, {4294967296})).find("id 4294967296") !=
        std::string::npos);
  CHECK(failure<std::uint32_t>(table_of<std::int64_t>(folder, IdType::i64, {-1}, true)).find("id -1") != std::string::npos);
  CHECK(failure<std::uint32_t>(table_of<std::uint64_t>(folder, IdType::u64, {~std::uint64_t{0}})) != "");
  CHECK(failure<std::uint16_t>(table_of<std::uint32_t>(folder, IdType::u32, {7, 65536})) ==
        "ids.bin: token 1: id 65536 does not fit 16 bits; choose --id-dtype u32");
  std::vector<std::uint32_t> far(30'000, 1);
  far[29'999] = 70'000;
  CHECK(failure<std::uint16_t>(table_of(folder, IdType::u32, far)).find("token 29,999") != std::string::npos);
}

TEST_CASE("a file that shrank since it was opened is an I/O error") {
  const TempFolder folder;
  const TokenTable table = table_of<std::uint16_t>(folder, IdType::u16, {1, 2, 3, 4});
  folder.write("ids.bin", "xyz");
  try {
    read<std::uint16_t>(table, 0, 4);
    FAIL("read past the end");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
  }
}
TEST_CASE("tokens have a place in their file where they lie there together, and on a multiple of their width") {
  TokenTable table;
  table.append(3, 4);   // tokens 0 to 2
  table.append(2, 10);  // 3 and 4 follow them in the file
  table.append(4, 0);   // 5 to 8 do not
  table.append(1, 31);
  CHECK(table.numpy_type() == "<u2");
  CHECK(table.place_in_file(0, 5) == 2);
  CHECK(table.place_in_file(3, 2) == 5);
  CHECK(table.place_in_file(5, 4) == 0);
  CHECK_FALSE(table.place_in_file(4, 2).has_value());
  CHECK_FALSE(table.place_in_file(9, 1).has_value());  // byte 31
  CHECK_FALSE(table.place_in_file(2, 0).has_value());
  table.big_endian = true;
  CHECK(table.numpy_type() == ">u2");
  table.decoded = true;
  CHECK(table.numpy_type().empty());
  CHECK_FALSE(table.place_in_file(0, 5).has_value());
  CHECK(TokenTable().numpy_type().empty());
}
