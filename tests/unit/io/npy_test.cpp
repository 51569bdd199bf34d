// NPY headers: what NumPy writes is read, what it would refuse is refused, and what we write has NumPy's own form.
#include "io/npy.h"

#include <string>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::string npy(const std::string& dict, char major = 1) {
  std::string header(kNpyMagic);
  header += {major, '\0', static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)};
  if (major > 1) header += {'\0', '\0'};
  return header + dict;
}

std::string failure(const std::string& head, std::int64_t file_bytes) {
  try {
    parse_npy_header(head, file_bytes, "x.npy");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(error.path() == "x.npy");
    return error.what();
  }
  return "";
}

std::string type_failure(const std::string& descr) {
  NpyHeader header;
  header.descr = descr;
  bool big_endian = false;
  try {
    integer_type(header, "x.npy", big_endian);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an NPY header is written on a 64-byte boundary and read back") {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{}, {5}, {3, 4}, {0, 2048}, {2, 3, 5}}) {
    const std::string header = make_npy_header("<u2", shape);
    CHECK(header.size() % 64 == 0);
    CHECK(header.back() == '\n');
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    const NpyHeader read = parse_npy_header(header, static_cast<std::int64_t>(header.size()) + 2 * elements, "x.npy");
    CHECK(read.descr == "<u2");
    CHECK(!read.fortran_order);
    CHECK(read.shape == shape);
    CHECK(read.elements() == elements);
    CHECK(read.data_begin == static_cast<std::int64_t>(header.size()));
  }
  const std::string by_numpy("\x93NUMPY\x01\x00v\x00{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }", 69);
  CHECK(make_npy_header("<u2", {3, 4}).substr(0, by_numpy.size()) == by_numpy);
  CHECK(make_npy_header("<i8", {7}).find("(7,), }") != std::string::npos);
}

TEST_CASE("NPY headers of every version, order of keys and Python are read") {
  const std::string dict = "{'shape': (2L, 3L), \"descr\": '>i4', 'fortran_order': True}\n";
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string header = npy(dict, major);
    const NpyHeader read = parse_npy_header(header, static_cast<std::int64_t>(header.size()) + 24, "x.npy");
    CHECK(read.shape == std::vector<std::int64_t>{2, 3});
    CHECK(read.fortran_order);
    bool big_endian = false;
    CHECK(integer_type(read, "x.npy", big_endian) == IdType::i32);
    CHECK(big_endian);
  }
  const std::string structured = npy("{'descr': [('a', '<i4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (1,), }\n");
  CHECK(parse_npy_header(structured, 1000, "x.npy").descr == "[('a', '<i4'), ('b', '<f8', (2,))]");
}

TEST_CASE("every truncation of an NPY file is refused") {
  const TempFolder folder;
  const std::string whole = make_npy_header("<u4", {2, 2}) + std::string(16, '\0');
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CHECK(failure(whole.substr(0, bytes), static_cast<std::int64_t>(bytes)) != "");
    const File file(folder.write("x.npy", whole.substr(0, bytes)), File::Mode::read);
    CHECK_THROWS_AS(read_npy_header(file), Error);
  }
  const File file(folder.write("x.npy", whole), File::Mode::read);
  CHECK(read_npy_header(file).shape == std::vector<std::int64_t>{2, 2});
  CHECK(failure(whole + "x", static_cast<std::int64_t>(whole.size()) + 1) != "");
}

TEST_CASE("damaged NPY headers are refused with the byte") {
  const std::string rest = "'fortran_order': False, 'shape': (2,), }\n";
  const std::string sound = npy("{'descr': '<u2', " + rest);
  CHECK(failure(sound, static_cast<std::int64_t>(sound.size()) + 4) == "");
  CHECK(failure("PK\3\4 and so on", 100).find("does not begin with") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', " + rest, 9), 66).find("version 9.0") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', }"), 100).find("expected the keys") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'descr': '<u2', " + rest), 100).find("once") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'colour': 1, " + rest), 100).find("once") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', " + rest + "{}"), 100).find("nothing after") != std::string::npos);
  CHECK(failure(npy("{'descr': [('a', '<u2'"), 100).find("byte 32") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'fortran_order': 0, 'shape': (2,)}"), 100).find("True or False") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (-2,)}"), 100).find("whole number") != std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}"), 100).find("2^63") !=
        std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), 100).find("2^63") !=
        std::string::npos);
  CHECK(failure(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1152921504606846976,)}"), 100).find("cut short") !=
        std::string::npos);
}

TEST_CASE("types that are not integers are refused by what they hold") {
  CHECK(type_failure("<u2") == "");
  CHECK(type_failure("|u1") == "");
  CHECK(type_failure("|O").find("pickle") != std::string::npos);
  CHECK(type_failure("<f4").find("floating-point") != std::string::npos);
  CHECK(type_failure("|b1").find("booleans") != std::string::npos);
  CHECK(type_failure("<U5").find("text") != std::string::npos);
  CHECK(type_failure("[('a', '<i4')]").find("structures") != std::string::npos);
  CHECK(type_failure("<i3") != "");
  CHECK(type_failure("") != "");
}
