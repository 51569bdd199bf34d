// Every random-access format: what its own tools write is read, each refusal says what helps, and a file cut at any byte is
// never taken for a whole one.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/format.h"
#include "io/npy.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/open_shards.h"
#include "support/shard_files.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

const Sequences kThree{{5, 6, 7, 9}, {8, 9}, {1, 2, 3, 4, 9}};  // each ends in 9
constexpr std::int64_t kEos = 9;

ReadOptions raw_options(IdType type, std::optional<std::int64_t> eos = kEos) {
  ReadOptions options;
  options.dtype = type;
  options.eos_id = eos;
  return options;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Cut each file of the dataset at every byte: always bad data, with a place, but where `valid` says that it is a smaller file.
template <class Valid>
void check_truncations(const std::map<std::string, std::string>& files, const std::string& main, const ReadOptions& options,
                       Valid valid) {
  const TempFolder folder;
  ShardOpener opener(1);
  for (const auto& [name, bytes] : files) folder.write(name, bytes);
  REQUIRE(!opener.failure({folder.path(main)}, options).failed);
  for (const auto& [name, bytes] : files) {
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      folder.write(name, bytes.substr(0, cut));
      INFO(name << " cut at byte " << cut);
      const ShardOpener::Failure failure = opener.failure({folder.path(main)}, options);
      if (valid(name, cut)) {
        CHECK(failure.what == "");
      } else {
        CHECK(failure.failed);
        CHECK(failure.code == ErrorCode::bad_data);
        CHECK(failure.has_place);
      }
    }
    folder.write(name, bytes);
  }
}
constexpr auto kNeverValid = [](const std::string&, std::size_t) { return false; };

}  // namespace

// ---- Megatron ---------------------------------------------------------------------------------------------------------------

TEST_CASE("the four layouts behind Megatron's magic are told apart by their sizes") {
  const TempFolder folder;
  ShardOpener opener;
  const auto reads = [&](MegatronIndex index, std::uint8_t code, std::int64_t id_bytes, bool fairseq, const std::string& ids) {
    index.code = code;
    index.id_bytes = id_bytes;
    index.fairseq = fairseq;
    folder.write("a.idx", index.bytes());
    return opener.sequences({folder.write("a.bin", ids)}) == kThree;
  };
  const MegatronIndex index(kThree);
  CHECK(reads(index, 1, 1, false, ids_of<std::uint8_t>(kThree)));
  CHECK(reads(index, 2, 1, false, ids_of<std::int8_t>(kThree)));
  CHECK(reads(index, 3, 2, false, ids_of<std::int16_t>(kThree)));
  CHECK(reads(index, 4, 4, false, ids_of<std::int32_t>(kThree)));
  CHECK(reads(index, 5, 8, false, ids_of<std::int64_t>(kThree)));
  CHECK(reads(index, 8, 2, false, ids_of<std::uint16_t>(kThree)));  // Megatron, GPT-NeoX
  CHECK(reads(index, 6, 2, false, ids_of<std::uint16_t>(kThree)));  // DeepSpeed
  CHECK(reads(index, 7, 4, false, ids_of<std::uint32_t>(kThree)));  // DeepSpeed
  CHECK(reads(index, 8, 8, false, ids_of<std::uint64_t>(kThree)));  // DeepSpeed
  CHECK(reads(index, 8, 2, true, ids_of<std::uint16_t>(kThree)));   // fairseq
  CHECK(reads(index, 9, 4, true, ids_of<std::uint32_t>(kThree)));
  CHECK(reads(index, 10, 8, true, ids_of<std::uint64_t>(kThree)));
}

TEST_CASE("Megatron documents join sequences, and empty ones stay") {
  const TempFolder folder;
  ShardOpener opener;
  MegatronIndex index(kThree);
  index.documents = std::vector<std::int64_t>{0, 2, 2, 3};
  folder.write("a.idx", index.bytes());
  const std::string data = folder.write("a.bin", ids_of<std::uint16_t>(kThree));
  CHECK(opener.sequences({data}) == Sequences{{5, 6, 7, 9, 8, 9}, {}, {1, 2, 3, 4, 9}});
  ReadOptions by_sequence;
  by_sequence.unit = Unit::sequence;
  CHECK(opener.sequences({data}, by_sequence) == kThree);

  folder.write("b.idx", MegatronIndex({}).bytes());
  CHECK(opener.sequences({folder.write("b.bin", "")}).empty());
  folder.write("c.idx", MegatronIndex({{}, {}}).bytes());
  CHECK(opener.sequences({folder.write("c.bin", "")}) == Sequences{{}, {}});
  folder.write("d.idx", MegatronIndex({{}, {4}}).bytes());
  CHECK(opener.sequences({folder.write("d.bin", ids_of<std::uint16_t>({{4}}))}) == Sequences{{}, {4}});
}

TEST_CASE("a Megatron pair that contradicts itself is refused with what is wrong") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string ids = ids_of<std::uint16_t>(kThree);
  const auto failure = [&](const MegatronIndex& index, const std::string& data, const ReadOptions& options = {}) {
    folder.write("a.idx", index.bytes());
    return opener.failure({folder.write("a.bin", data)}, options);
  };
  const MegatronIndex sound(kThree);
  MegatronIndex index = sound;

  index.documents = std::vector<std::int64_t>{0, 1, 2};  // stale after a merge
  CHECK(failure(index, ids).code == ErrorCode::bad_data);
  CHECK(contains(failure(index, ids).what, "ends at sequence 2 of 3"));
  CHECK(contains(failure(index, ids).what, "--unit sequence"));
  ReadOptions by_sequence;
  by_sequence.unit = Unit::sequence;
  CHECK(!failure(index, ids, by_sequence).failed);
  index.documents = std::vector<std::int64_t>{1, 2, 3};
  CHECK(contains(failure(index, ids).what, "document 0"));
  index.documents = std::vector<std::int64_t>{0, 2, 1, 3};
  CHECK(contains(failure(index, ids).what, "document 2"));
  index.documents = std::vector<std::int64_t>{0, 4};
  CHECK(contains(failure(index, ids).what, "document 1"));
  index.documents = std::vector<std::int64_t>{};
  CHECK(contains(failure(index, ids).what, "document index ends"));

  index = sound;
  index.places = std::vector<std::int64_t>{0, 8, 12 - (std::int64_t{1} << 32)};  // wrapped in 32 bits
  CHECK(contains(failure(index, ids).what, "sequence 2: it begins at byte -4,294,967,284"));
  index.places = std::vector<std::int64_t>{2, 10, 14};
  CHECK(contains(failure(index, ids).what, "sequence 0"));
  index = sound;
  index.lengths[1] = -2;
  index.places = std::vector<std::int64_t>{0, 8, 12};
  CHECK(contains(failure(index, ids).what, "sequence 1: length -2"));

  CHECK(contains(failure(sound, ids.substr(0, 12)).what, "a.bin: byte 12: holds 12 bytes, but a.idx lists 11 tokens"));
  CHECK(contains(failure(sound, ids.substr(0, 12)).what, "cut short"));
  CHECK(contains(failure(sound, ids + ids).what, "do not belong together"));

  index = sound;
  index.code = 4;  // i32, but the places step 2 bytes
  CHECK(contains(failure(index, ids).what, "--dtype u16"));
  ReadOptions as_u16;
  as_u16.dtype = IdType::u16;
  CHECK(!failure(index, ids, as_u16).failed);
  ReadOptions as_u32;
  as_u32.dtype = IdType::u32;
  CHECK(failure(index, ids, as_u32).code == ErrorCode::usage);
  index.code = 99;
  CHECK(contains(failure(index, ids).what, "type code 99"));
  index.code = 6;
  index.id_bytes = 8;
  CHECK(contains(failure(index, ids_of<std::uint64_t>(kThree)).what, "floating-point"));
  index.code = 7;
  index.id_bytes = 4;
  CHECK(contains(failure(index, bytes_of(std::vector<float>(11, 5.0f))).what, "floating-point"));

  index = sound;
  index.version = 2;
  CHECK(contains(failure(index, ids).what, "version 2"));
  folder.write("a.idx", sound.bytes() + std::string(3, '\0'));
  CHECK(contains(opener.failure({folder.write("a.bin", ids)}).what, "multimodal"));
}

TEST_CASE("a Megatron index cannot make the reader believe its counts") {
  const TempFolder folder;
  ShardOpener opener;
  for (const std::int64_t claim : {std::int64_t{1} << 60, std::int64_t{-1}, std::int64_t{4}}) {
    MegatronIndex index(kThree);
    index.claimed_sequences = claim;
    folder.write("a.idx", index.bytes());
    CHECK(opener.failure({folder.write("a.bin", ids_of<std::uint16_t>(kThree))}).code == ErrorCode::bad_data);
    index = MegatronIndex(kThree);
    index.claimed_documents = claim - 1;
    folder.write("a.idx", index.bytes());
    CHECK(opener.failure({folder.path("a.bin")}).code == ErrorCode::bad_data);
  }
}

TEST_CASE("older Megatron indexes and lone halves are refused by name") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string data = folder.write("a.bin", ids_of<std::uint16_t>(kThree));
  folder.write("a.idx", std::string("TNTIDX\0\0", 8) + std::string(100, '\1'));
  CHECK(contains(opener.failure({data}).what, "TNTIDX"));
  folder.write("a.idx", std::string("HUFFIDX\0\0", 9) + std::string(100, '\1'));
  CHECK(contains(opener.failure({data}).what, "Huffman"));
  folder.write("a.idx", std::string(100, '\1'));
  CHECK(contains(opener.failure({data}).what, "found other bytes"));

  folder.write("b.idx", MegatronIndex(kThree).bytes());
  const ShardOpener::Failure lone = opener.failure({folder.path("b.idx")});
  CHECK(lone.code == ErrorCode::io);
  CHECK(contains(lone.what, "b.bin is not there"));
  CHECK(opener.failure({folder.path("b")}).code == ErrorCode::io);
  ReadOptions named;
  named.format = "megatron";
  CHECK(opener.failure({folder.path("b.idx")}, named).code == ErrorCode::io);
  CHECK(opener.failure({folder.write("c.bin", "1234567890")}, named).code == ErrorCode::io);
}

TEST_CASE("a negative id is named with file and token, and --dtype undoes a wrap") {
  const TempFolder folder;
  ShardOpener opener;
  MegatronIndex index(kThree);
  index.code = 3;  // i16, though ids above 32,767 were stored
  std::vector<std::uint16_t> ids = flat<std::uint16_t>(kThree);
  ids[6] = 40'000;
  folder.write("a.idx", index.bytes());
  const std::string data = folder.write("a.bin", bytes_of(ids));
  const ShardOpener::Failure failure = opener.failure({data});
  CHECK(failure.code == ErrorCode::bad_data);
  CHECK(contains(failure.what, "a.bin: token 6: id -25536"));
  ReadOptions as_u16;
  as_u16.dtype = IdType::u16;
  CHECK(opener.open({data}, as_u16).totals.id_max == 40'000);
}

TEST_CASE("a Megatron pair cut at any byte is refused") {
  check_truncations({{"a.bin", ids_of<std::uint16_t>(kThree)}, {"a.idx", MegatronIndex(kThree).bytes()}}, "a.bin", {},
                    kNeverValid);
  MegatronIndex fairseq(kThree);
  fairseq.fairseq = true;
  fairseq.code = 9;
  fairseq.id_bytes = 4;
  check_truncations({{"a.bin", ids_of<std::uint32_t>(kThree)}, {"a.idx", fairseq.bytes()}}, "a.bin", {}, kNeverValid);
  const Sequences one{{5, 6, 7, 8}};
  MegatronIndex single(one);
  single.code = 4;
  single.id_bytes = 4;
  check_truncations({{"a.bin", ids_of<std::int32_t>(one)}, {"a.idx", single.bytes()}}, "a.bin", {}, kNeverValid);
}

// ---- NPY --------------------------------------------------------------------------------------------------------------------

TEST_CASE("NPY rows are sequences, in either byte order") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(opener.sequences({folder.write("a.npy", npy_file<std::uint16_t>("<u2", {2, 3}, flat<std::uint16_t>(rows)))}) == rows);
  CHECK(opener.sequences({folder.write("b.npy", npy_file<std::int64_t>("<i8", {2, 3}, flat<std::int64_t>(rows)))}) == rows);
  const std::string swapped("\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6", 24);
  CHECK(opener.sequences({folder.write("c.npy", make_npy_header(">i4", {2, 3}) + swapped)}) == rows);
  CHECK(opener.sequences({folder.write("d.npy", make_npy_header("<u2", {0, 3}))}).empty());
  CHECK(opener.failure({folder.write("e.npy", make_npy_header("<u2", {1 << 30, 0}))}).code == ErrorCode::bad_data);

  std::string fortran = npy_file<std::uint16_t>("<u2", {2, 3}, flat<std::uint16_t>(rows));
  fortran.replace(fortran.find("False"), 5, "True ");
  CHECK(contains(opener.failure({folder.write("f.npy", fortran)}).what, "Fortran"));
  CHECK(contains(opener.failure({folder.write("g.npy", make_npy_header("|O", {2}) + "pickle")}).what, "pickle"));
  CHECK(contains(opener.failure({folder.write("h.npy", npy_file<float>("<f4", {1, 2}, {1, 2}))}).what, "floating-point"));
  CHECK(opener.failure({folder.write("i.npy", npy_file<std::uint8_t>("|u1", {1, 1, 1}, {1}))}).code == ErrorCode::bad_data);
  CHECK(opener.failure({folder.write("j.npy", npy_file<std::int32_t>("<i4", {1, 2}, {4, -1}))}).what ==
        "j.npy: token 1: id -1; token ids are whole numbers from 0 to 4,294,967,295");
}

TEST_CASE("1-D NPY is cut by a sidecar, else at the EOS id, else it asks") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.npy", npy_file<std::uint32_t>("<u4", {11}, flat<std::uint32_t>(kThree)));
  const ShardOpener::Failure asks = opener.failure({path});
  CHECK(asks.code == ErrorCode::usage);
  CHECK(contains(asks.what, "--eos-id"));
  CHECK(contains(asks.what, "a.lengths.npy"));

  ReadOptions with_eos;
  with_eos.eos_id = kEos;
  CHECK(opener.sequences({path}, with_eos) == kThree);
  CHECK(opener.warnings().empty());

  folder.write("a.lengths.npy", npy_file<std::int32_t>("<i4", {4}, {3, 0, 7, 1}));
  const Sequences by_lengths{{5, 6, 7}, {}, {9, 8, 9, 1, 2, 3, 4}, {9}};
  CHECK(opener.sequences({path}) == by_lengths);
  CHECK(opener.sequences({path}, with_eos) == by_lengths);  // a boundary is never inferred where it is stored
  CHECK(opener.open({path}).source->index().files()[0].bytes == 128 + 44 + 128 + 16);

  folder.write("a.offsets.npy", npy_file<std::uint64_t>("<u8", {3}, {0, 4, 11}));
  CHECK(opener.failure({path}).code == ErrorCode::usage);  // which of the two?
  folder.write("a.lengths.npy", "");
  std::remove(folder.path("a.lengths.npy").c_str());
  CHECK(opener.sequences({path}) == Sequences{{5, 6, 7, 9}, {8, 9, 1, 2, 3, 4, 9}});
}

TEST_CASE("lengths and offsets that do not fit the tokens are refused") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.bin", ids_of<std::uint16_t>(kThree));
  const auto failure = [&](const std::string& kind, const std::string& bytes) {
    const std::string sidecar = folder.write("a." + kind + ".npy", bytes);
    const ShardOpener::Failure result = opener.failure({path}, raw_options(IdType::u16));
    std::remove(sidecar.c_str());
    CHECK(result.code == ErrorCode::bad_data);
    return result.what;
  };
  CHECK(contains(failure("lengths", npy_file<std::int64_t>("<i8", {2}, {4, 6})), "token 10"));
  CHECK(contains(failure("lengths", npy_file<std::int64_t>("<i8", {2}, {12, -1})), "token 12"));
  CHECK(contains(failure("lengths", npy_file<std::int64_t>("<i8", {2}, {4, -1})), "element 1: length -1"));
  CHECK(failure("lengths", npy_file<std::int64_t>("<i8", {2}, {11, INT64_MAX})) != "");
  CHECK(failure("lengths", npy_file<std::uint64_t>("<u8", {1}, {UINT64_MAX})) != "");
  CHECK(failure("lengths", npy_file<std::int64_t>("<i8", {2, 1}, {4, 7})) != "");
  CHECK(contains(failure("lengths", npy_file<float>("<f4", {1}, {11})), "floating-point"));
  CHECK(contains(failure("lengths", npy_file<std::int64_t>("<i8", {2}, {2, 20})), "token 22"));
  CHECK(contains(failure("offsets", npy_file<std::int64_t>("<i8", {2}, {0, 10})), "token 10"));
  CHECK(contains(failure("offsets", npy_file<std::int64_t>("<i8", {3}, {0, 6, 4})), "element 2"));
  CHECK(contains(failure("offsets", npy_file<std::int64_t>("<i8", {2}, {1, 11})), "element 0"));
  CHECK(failure("offsets", npy_file<std::int64_t>("<i8", {0}, {})) != "");
  folder.write("b.lengths.npy", npy_file<std::int32_t>("<i4", {2}, {3, 8}));
  CHECK(contains(opener.failure({folder.write("b.bin", ids_of<std::uint32_t>(kThree))}, raw_options(IdType::u16)).what,
                 "--dtype u32"));
}

TEST_CASE("an NPY file or its sidecar cut at any byte is refused") {
  const std::string rows = npy_file<std::uint16_t>("<u2", {2, 3}, {1, 2, 3, 4, 5, 6});
  check_truncations({{"a.npy", rows}}, "a.npy", {}, kNeverValid);
  const std::string tokens = npy_file<std::uint16_t>("<u2", {11}, flat<std::uint16_t>(kThree));
  check_truncations({{"a.npy", tokens}, {"a.lengths.npy", npy_file<std::int32_t>("<i4", {2}, {4, 7})}}, "a.npy", {}, kNeverValid);
  check_truncations({{"a.npy", tokens}, {"a.offsets.npy", npy_file<std::int64_t>("<i8", {3}, {0, 4, 11})}}, "a.npy", {},
                    kNeverValid);
}

// ---- raw and nanoGPT --------------------------------------------------------------------------------------------------------

TEST_CASE("headerless ids are cut after each EOS, and a tail without one is kept") {
  const TempFolder folder;
  ShardOpener opener;
  Sequences with_tail = kThree;
  with_tail.push_back({9});
  with_tail.push_back({3, 3});
  CHECK(opener.sequences({folder.write("a.bin", ids_of<std::uint16_t>(with_tail))}, raw_options(IdType::u16)) == with_tail);
  CHECK(opener.sequences({folder.write("b.bin", ids_of<std::uint32_t>(with_tail))}, raw_options(IdType::u32)) == with_tail);
  CHECK(opener.sequences({folder.write("c.bin", ids_of<std::int64_t>(with_tail))}, raw_options(IdType::i64)) == with_tail);
  CHECK(opener.sequences({folder.write("d.u8", ids_of<std::uint8_t>(with_tail))}, raw_options(IdType::u8)) == with_tail);
  CHECK(opener.sequences({folder.write("no_suffix", ids_of<std::uint16_t>(with_tail))}, raw_options(IdType::u16)) == with_tail);
  CHECK(opener.sequences({folder.write("empty.bin", "")}, raw_options(IdType::u16)).empty());
  CHECK(opener.sequences({folder.write("empty.npy", "")}, raw_options(IdType::u16)).empty());

  ReadOptions nanogpt;
  nanogpt.format = "nanogpt";
  nanogpt.eos_id = kEos;
  const ScannedSource scanned = opener.open({folder.path("a.bin")}, nanogpt);
  CHECK(ShardOpener::sequences_of(*scanned.source) == with_tail);
  CHECK(scanned.source->index().files()[0].format == "nanogpt");
}

TEST_CASE("EOS ids at the edges of scan blocks are all found") {
  const TempFolder folder;
  ShardOpener opener;
  std::vector<std::uint16_t> ids(3'000'000, 1);
  std::vector<std::int64_t> expected{0};
  for (const std::int64_t at : {0, 63, 64, 262'143, 262'144, 1'048'575, 1'048'576, 1'048'577, 2'500'000, 2'999'998}) {
    ids[static_cast<std::size_t>(at)] = 9;
    expected.push_back(at + 1);
  }
  expected.push_back(3'000'000);
  const ScannedSource scanned = opener.open({folder.write("a.bin", bytes_of(ids))}, raw_options(IdType::u16));
  CHECK(scanned.source->index().files()[0].record_begin == expected);
}

TEST_CASE("a headerless file says which flags it needs") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.bin", ids_of<std::uint16_t>(kThree));
  const ShardOpener::Failure unknown = opener.failure({path});
  CHECK(unknown.code == ErrorCode::usage);
  for (const char* flag : {"--dtype", "--eos-id", ".lengths.npy"}) CHECK(contains(unknown.what, flag));
  CHECK(opener.failure({path}, raw_options(IdType::u16, std::nullopt)).code == ErrorCode::usage);
  ReadOptions without_type;
  without_type.format = "raw";
  without_type.eos_id = kEos;
  CHECK(contains(opener.failure({path}, without_type).what, "--dtype"));

  CHECK(opener.failure({path}, raw_options(IdType::u16, 65'536)).code == ErrorCode::usage);
  CHECK(opener.failure({path}, raw_options(IdType::u16, -1)).code == ErrorCode::usage);
  CHECK(!opener.failure({path}, raw_options(IdType::u16, 65'535)).failed);
  REQUIRE(opener.warnings().size() == 1);  // a wrong EOS id makes one long sequence
  CHECK(contains(opener.warnings()[0], "--eos-id"));

  const ShardOpener::Failure odd = opener.failure({folder.write("b.bin", "12345")}, raw_options(IdType::u16));
  CHECK(odd.code == ErrorCode::bad_data);
  CHECK(contains(odd.what, "b.bin: byte 5"));

  const std::string header = folder.write("c.bin", npy_file<std::uint16_t>("<u2", {2, 3}, {1, 2, 3, 4, 5, 6}));
  ReadOptions forced = raw_options(IdType::u16);
  forced.format = "raw";
  CHECK(opener.failure({header}, forced).code == ErrorCode::usage);  // the header would be read as tokens
  CHECK(opener.sequences({header}).size() == 2);
}

TEST_CASE("a headerless file cut between ids is a smaller one, cut inside an id is refused") {
  check_truncations({{"a.bin", ids_of<std::uint32_t>(kThree)}}, "a.bin", raw_options(IdType::u32),
                    [](const std::string&, std::size_t cut) { return cut % 4 == 0; });
}

// ---- OLMo and dolma ---------------------------------------------------------------------------------------------------------

TEST_CASE("OLMo documents come from the csv, whatever its other fields hold") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.npy", ids_of<std::uint16_t>(kThree));
  const auto csv = [&](const std::string& text) { folder.write("a.csv.gz", gzip_member(text)); };
  csv("0,4,id0,src,0\r\n4,6,\"a \"\"quoted\"\", \r\nbroken id\",src,1\r\n6,11,id2,\"s,rc\",2\r\n");
  CHECK(opener.sequences({path}) == kThree);
  csv("0,4\n4,4\n4,6\n\n6,11");  // start and end alone, an empty document, a blank line, no last newline
  CHECK(opener.sequences({path}) == Sequences{kThree[0], {}, kThree[1], kThree[2]});
  folder.write("a.csv.gz", gzip_member("0,4\n") + gzip_member("4,6\n6,11\n"));
  CHECK(opener.sequences({path}) == kThree);
  CHECK(opener.open({path}).source->index().files()[0].format == "olmo");

  const std::string wide = folder.write("b.npy", ids_of<std::uint32_t>(kThree));
  folder.write("b.csv.gz", gzip_member("0,4\n4,6\n6,11\n"));
  CHECK(contains(opener.failure({wide}).what, "--dtype u32"));
  CHECK(opener.sequences({wide}, raw_options(IdType::u32)) == kThree);
}

TEST_CASE("an OLMo csv with a hole, an overlap or no numbers is bad data with its line") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.npy", ids_of<std::uint16_t>(kThree));
  const auto failure = [&](const std::string& text) {
    folder.write("a.csv.gz", gzip_member(text));
    const ShardOpener::Failure result = opener.failure({path});
    CHECK(result.code == ErrorCode::bad_data);
    return result.what;
  };
  CHECK(contains(failure("0,4\n5,6\n6,11\n"), "a.csv.gz: line 2"));
  CHECK(contains(failure("0,4\n5,6\n6,11\n"), "hole"));
  CHECK(contains(failure("0,4,\"x\ny\"\n3,6\n6,11\n"), "line 3"));
  CHECK(contains(failure("0,4\n3,6\n6,11\n"), "overlap"));
  CHECK(contains(failure("0,4\n4,2\n"), "before its start"));
  CHECK(contains(failure("0,4\n4,12\n"), "holds 11"));
  CHECK(contains(failure("0,4\n4,6\n"), "token 6"));
  CHECK(contains(failure("start,end\n0,11\n"), "'start'"));
  CHECK(contains(failure("0,4.0\n4,11\n"), "'4.0'"));
  CHECK(contains(failure("11\n"), "one field"));
  CHECK(contains(failure("0,11,\"open\n"), "not closed"));
  CHECK(failure("0,99999999999999999999999\n") != "");
  CHECK(failure("0,-11\n") != "");
  folder.write("a.csv.gz", "0,11\n");
  CHECK(!opener.failure({path}).failed);  // not compressed after all, and nothing is wrong with it
}

TEST_CASE("headerless .npy without its csv asks, and --eos-id serves") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.npy", ids_of<std::uint16_t>(kThree));
  CHECK(opener.failure({path}).code == ErrorCode::usage);
  CHECK(contains(opener.failure({path}).what, ".csv.gz"));
  CHECK(opener.sequences({path}, raw_options(IdType::u16)) == kThree);
  ReadOptions olmo;
  olmo.format = "olmo";
  olmo.eos_id = kEos;
  CHECK(opener.sequences({path}, olmo) == kThree);

  // The same sidecar beside a real NPY file, as some tools write it.
  folder.write("b.csv.gz", gzip_member("0,4\n4,6\n6,11\n"));
  CHECK(opener.sequences({folder.write("b.npy", npy_file<std::uint16_t>("<u2", {11}, flat<std::uint16_t>(kThree)))}) == kThree);

  folder.write("labels_mask_part_0000.npy", std::string(11, '\1'));
  folder.write("token_ids_part_0000.csv.gz", gzip_member("0,11\n"));
  const std::string part = folder.write("token_ids_part_0000.npy", ids_of<std::uint16_t>(kThree));
  const ScannedSource masked = opener.open({part});
  REQUIRE(masked.source->columns().size() == 1);
  CHECK(masked.source->columns()[0].name == "loss_mask");
  CHECK(masked.loss_tokens == 11);
}

TEST_CASE("an OLMo pair cut at any byte is refused") {
  check_truncations({{"a.npy", ids_of<std::uint16_t>(kThree)}, {"a.csv.gz", gzip_member("0,4\n4,6\n6,11\n")}}, "a.npy", {},
                    kNeverValid);
}

// ---- datatrove --------------------------------------------------------------------------------------------------------------

TEST_CASE("datatrove documents end where the index says") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string ends = bytes_of(std::vector<std::uint64_t>{4, 6, 11});
  folder.write("a.ds.index", ends);
  const std::string path = folder.write("a.ds", ids_of<std::uint16_t>(kThree));
  CHECK(opener.sequences({path}) == kThree);
  for (const char* text : {"gpt2|2\n11\n11 T", "Unknown Tokenizer|2|2\n11\n11 T\n", "gpt2\n11\n11 T"}) {
    folder.write("a.ds.metadata", text);
    CHECK(opener.sequences({path}) == kThree);
  }
  folder.write("b.ds.index", ends);
  const std::string wide = folder.write("b.ds", ids_of<std::uint32_t>(kThree));
  CHECK(contains(opener.failure({wide}).what, "--dtype u32"));
  CHECK(opener.sequences({wide}, raw_options(IdType::u32)) == kThree);
  folder.write("b.ds.metadata", "llama|4\n11\n11 T");
  CHECK(opener.sequences({wide}) == kThree);
  folder.write("b.ds.loss", std::string(11, '\1'));
  const ScannedSource masked = opener.open({wide});
  REQUIRE(masked.source->columns().size() == 1);
  CHECK(masked.source->columns()[0].name == "loss_mask");
  CHECK(masked.loss_tokens == 11);

  const std::string lone = folder.write("c.ds", ids_of<std::uint16_t>(kThree));
  CHECK(opener.failure({lone}).code == ErrorCode::usage);
  ReadOptions with_eos;
  with_eos.eos_id = kEos;
  CHECK(opener.sequences({lone}, with_eos) == kThree);
}

TEST_CASE("datatrove sidecars that contradict the tokens are refused") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.ds", ids_of<std::uint16_t>(kThree));
  const auto failure = [&](const std::vector<std::uint64_t>& ends, const std::string& metadata) {
    folder.write("a.ds.index", bytes_of(ends));
    folder.write("a.ds.metadata", metadata);
    const ShardOpener::Failure result = opener.failure({path});
    CHECK(result.code == ErrorCode::bad_data);
    return result.what;
  };
  const std::string sound = "gpt2|2\n11\n11 T";
  CHECK(contains(failure({4, 6, 12}, sound), "token 12"));
  CHECK(contains(failure({4, 3, 11}, sound), "document 1"));
  CHECK(failure({4, UINT64_MAX}, sound) != "");
  CHECK(failure({}, sound) != "");
  CHECK(contains(failure({4, 6, 11}, "gpt2|2\n12\n12 T"), "a.ds.metadata"));
  CHECK(contains(failure({4, 6, 11}, "gpt2|3\n11\n11 T"), "2 or 4 bytes"));
  CHECK(contains(failure({4, 6, 11}, "gpt2|2\neleven\n11 T"), "line 2"));
}

TEST_CASE("datatrove files cut at any byte are refused") {
  check_truncations({{"a.ds", ids_of<std::uint16_t>(kThree)},
                     {"a.ds.index", bytes_of(std::vector<std::uint64_t>{4, 6, 11})},
                     {"a.ds.metadata", "gpt2|2\n11\n11 T"}},
                    "a.ds", {}, kNeverValid);
}

// ---- llm.c ------------------------------------------------------------------------------------------------------------------

TEST_CASE("an llm.c shard is cut before each end-of-text id") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences gpt2{{50256, 1, 2}, {50256}, {50256, 3}};
  CHECK(opener.sequences({folder.write("a.bin", llmc_file(20240520, 1, 6, ids_of<std::uint16_t>(gpt2)))}) == gpt2);
  CHECK(opener.warnings().empty());
  const Sequences llama{{128000, 1, 2}, {128000, 70'000}};
  CHECK(opener.sequences({folder.write("b.bin", llmc_file(20240801, 7, 5, ids_of<std::uint32_t>(llama)))}) == llama);

  const Sequences continued{{4, 5}, {50256, 1}};
  CHECK(opener.sequences({folder.write("c.bin", llmc_file(20240520, 1, 4, ids_of<std::uint16_t>(continued)))}) == continued);
  REQUIRE(opener.warnings().size() == 1);
  CHECK(contains(opener.warnings()[0], "c.bin: its first 2 tokens continue"));

  ReadOptions other;
  other.eos_id = 1;
  CHECK(opener.sequences({folder.path("a.bin")}, other) == Sequences{{50256}, {1, 2, 50256, 50256, 3}});
  CHECK(opener.sequences({folder.write("d.bin", llmc_file(20240520, 1, 0, ""))}).empty());

  const Sequences any{{7, 1, 2}, {7, 3}};
  const std::string automodel = folder.write("e.bin", llmc_file(278895051, 1, 5, ids_of<std::uint32_t>(any), 4));
  CHECK(opener.failure({automodel}).code == ErrorCode::usage);
  ReadOptions with_id;
  with_id.eos_id = 7;
  CHECK(opener.sequences({automodel}, with_id) == any);
  folder.write("e.bos.idx", bytes_of(std::vector<std::int32_t>{1024, 1030}));  // its unit is unclear; it is not used
  CHECK(opener.sequences({automodel}, with_id) == any);
}

TEST_CASE("llm.c files of other kinds and with wrong headers are refused") {
  const TempFolder folder;
  ShardOpener opener;
  const auto failure = [&](const std::string& bytes) {
    const ShardOpener::Failure result = opener.failure({folder.write("a.bin", bytes)});
    CHECK(result.code == ErrorCode::bad_data);
    return result.what;
  };
  const std::string ids = ids_of<std::uint16_t>({{50256, 1, 2}});
  CHECK(contains(failure(llmc_file(20240522, 1, 3, ids)), "evaluation"));
  CHECK(contains(failure(llmc_file(20240326, 3, 3, ids)), "checkpoint"));
  CHECK(contains(failure(llmc_file(20240327, 1, 3, ids)), "training state"));
  CHECK(contains(failure(llmc_file(20240328, 2, 3, ids)), "tokenizer"));
  CHECK(contains(failure(llmc_file(20240803, 3, 3, ids)), "checkpoint"));
  CHECK(contains(failure(llmc_file(20240520, 2, 3, ids)), "version 2"));
  CHECK(contains(failure(llmc_file(20240520, 1, 4, ids)), "counts 4 tokens, but 3 follow"));
  CHECK(failure(llmc_file(20240520, 1, -1, ids)) != "");
  CHECK(contains(failure(llmc_file(278895051, 1, 3, ids, 3)), "ids of 3 bytes"));
  ReadOptions named;
  named.format = "llmc";
  CHECK(contains(opener.failure({folder.write("b.bin", std::string(2000, '\1'))}, named).what, "magic"));
}

TEST_CASE("an llm.c shard cut at any byte is refused") {
  check_truncations({{"a.bin", llmc_file(20240520, 1, 6, ids_of<std::uint16_t>({{50256, 1, 2}, {50256, 3, 4}}))}}, "a.bin", {},
                    kNeverValid);
}

// ---- detection --------------------------------------------------------------------------------------------------------------

TEST_CASE("formats that are not read are refused by name") {
  const TempFolder folder;
  ShardOpener opener;
  const auto failure = [&](const std::string& name, const std::string& bytes) {
    const ShardOpener::Failure result = opener.failure({folder.write(name, bytes)});
    CHECK(result.code == ErrorCode::bad_data);
    CHECK(contains(result.what, name));
    return result.what;
  };
  const std::string rest(200, '\3');
  CHECK(contains(failure("a.h5", "\x89HDF\r\n\x1a\n" + rest), "HDF5"));
  CHECK(contains(failure("a.npz", "PK\3\4" + rest), "ZIP"));
  CHECK(contains(failure("a.safetensors", std::string("\x40\0\0\0\0\0\0\0", 8) + "{\"x\":" + rest), "safetensors"));
  CHECK(
      contains(failure("a.tfrecord", std::string("\x05\0\0\0\0\0\0\0", 8) + std::string("\xEA\xB2\x04\x3E", 4) + "hello" + rest),
               "TFRecord"));
  CHECK(contains(failure("a.riegeli", "\x83\xAF\x70\xD1\x0D\x88\x4A\x3F" + rest), "ArrayRecord"));
  CHECK(contains(failure("a.mds", std::string("\2\0\0\0", 4) + rest), "MDS"));
  CHECK(contains(failure("a.pbin", std::string("\2\0\0\0\0\0\0\0\0", 9) + rest), "Modalities"));
  CHECK(contains(failure("a.pkl", "\x80\4\x95" + rest), "pickle"));
  CHECK(contains(failure("a.tar", std::string(257, '\0') + "ustar" + rest), "tar"));
  CHECK(contains(failure("a.idx2", std::string("TNTIDX\0\0", 8) + rest), "lazy"));
  CHECK(contains(failure("a.xz", std::string("\xFD"
                                             "7zXZ\0",
                                             6) +
                                     rest),
                 "xz"));
  CHECK(contains(failure("a.text", "It was the best of times, it was the worst of times, ..."), "tokenize it first"));
  CHECK(contains(failure("tiny.bin", "abc"), "too few"));
}

TEST_CASE("an unknown format suggests the nearest") {
  const TempFolder folder;
  ShardOpener opener;
  ReadOptions options;
  options.format = "megatorn";
  const ShardOpener::Failure failure = opener.failure({folder.write("a.bin", "12345678")}, options);
  CHECK(failure.code == ErrorCode::usage);
  CHECK(contains(failure.what, "did you mean megatron?"));
  options.format = "qqqqqq";
  CHECK(
      contains(opener.failure({folder.path("a.bin")}, options).what, "the formats are llmc, hf, arrow, parquet, npy, megatron"));
  CHECK(input_format_summaries().size() == input_formats().size());
}

TEST_CASE("formats that carry the same sequences agree on every token and on the fingerprint") {
  const TempFolder folder;
  ShardOpener opener;
  folder.write("m.idx", MegatronIndex(kThree).bytes());
  folder.write("o.csv.gz", gzip_member("0,4\n4,6\n6,11\n"));
  folder.write("d.ds.index", bytes_of(std::vector<std::uint64_t>{4, 6, 11}));
  folder.write("n.lengths.npy", npy_file<std::uint8_t>("|u1", {3}, {4, 2, 5}));
  const std::string ids = ids_of<std::uint16_t>(kThree);
  const std::vector<std::string> paths{folder.write("m.bin", ids), folder.write("o.npy", ids), folder.write("d.ds", ids),
                                       folder.write("n.npy", npy_file<std::int64_t>("<i8", {11}, flat<std::int64_t>(kThree))),
                                       folder.write("r.bin", ids)};
  std::optional<Fingerprint> first;
  for (const std::string& path : paths) {
    const ReadOptions options = path.ends_with("r.bin") ? raw_options(IdType::u16) : ReadOptions{};
    const ScannedSource scanned = opener.open({path}, options);
    CHECK(ShardOpener::sequences_of(*scanned.source) == kThree);
    if (!first) first = scanned.totals.fingerprint;
    CHECK(scanned.totals.fingerprint == *first);
    CHECK(scanned.totals.id_min == 1);
    CHECK(scanned.totals.id_max == 9);
  }
}
