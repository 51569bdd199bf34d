#include "io/formats/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace shardpack {

namespace {

constexpr std::string_view kConvert = "save its token ids as JSON lines with input_ids, or as NPY";

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view name;
  std::string_view instead;
};

using namespace std::string_view_literals;

constexpr std::array kMagics{
    Magic{0, "FEA1"sv, "a Feather version 1 file", kConvert},
    Magic{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", kConvert},
    Magic{0, "PK\3\4"sv, "a ZIP archive (.npz, or saved by torch)", "save the arrays with numpy.save, one .npy each"},
    Magic{0, "PK\5\6"sv, "an empty ZIP archive", "save the arrays with numpy.save, one .npy each"},
    Magic{0, "TNTIDX\0\0"sv, "an index of the old 'lazy' or 'cached' kind", "preprocess the data again with --dataset-impl mmap"},
    Magic{0, "HUFFIDX\0\0"sv, "a Huffman-coded fairseq index", "preprocess the data again with --dataset-impl mmap"},
    Magic{0, "\x83\xAF\x70\xD1\x0D\x88\x4A\x3F"sv, "an ArrayRecord (Riegeli) file", kConvert},
    Magic{0, "SQLite format 3\0"sv, "an SQLite database", kConvert},
    Magic{0,
          "\xFD"
          "7zXZ\0"sv,
          "an xz file", "decompress it, or compress with gzip or zstd"},
    Magic{0, "BZh"sv, "a bzip2 file", "decompress it, or compress with gzip or zstd"},
    Magic{0, "\x04\x22\x4D\x18"sv, "an LZ4 file", "decompress it, or compress with gzip or zstd"},
    Magic{0, "\x80\4\x95"sv, "a Python pickle", "save integer arrays with numpy.save, or JSON lines"},
    Magic{257, "ustar"sv, "a tar archive (WebDataset)", "unpack it and convert the samples to JSON lines with input_ids"},
};

std::uint64_t load_u64(std::string_view head, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, head.data() + at, sizeof value);
  return value;
}
std::uint32_t load_u32(std::string_view head, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, head.data() + at, sizeof value);
  return value;
}

/// A record begins with its length and the masked CRC-32C of the length: no other file gets that right by chance.
bool is_tfrecord(std::string_view head) {
  if (head.size() < 12) return false;
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < 8; ++i) {
    crc ^= static_cast<unsigned char>(head[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  crc = ~crc;
  return load_u32(head, 8) == ((crc >> 15 | crc << 17) + 0xA282EAD8u);
}

/// A length of at most 100 MB, then that much JSON.
bool is_safetensors(std::string_view head, std::int64_t bytes) {
  return head.size() > 9 && head[8] == '{' && (head[9] == '"' || head[9] == '}') && load_u64(head, 0) <= 100'000'000 &&
         load_u64(head, 0) + 8 <= static_cast<std::uint64_t>(bytes);
}

std::string refuse(std::string_view name, std::string_view instead) {
  return fmt::format("{}, not read by this version; {}", name, instead);
}

}  // namespace

std::string refusal(const FormatProbe& probe) {
  for (const Magic& magic : kMagics) {
    if (probe.head.size() >= magic.offset && probe.head.substr(magic.offset).starts_with(magic.bytes)) {
      return refuse(magic.name, magic.instead);
    }
  }
  if (is_safetensors(probe.head, probe.bytes)) return refuse("a safetensors file", kConvert);
  if (is_tfrecord(probe.head)) return refuse("a TFRecord file", kConvert);
  if (probe.file.path.ends_with(".mds")) return refuse("a MosaicML Streaming (MDS) shard", kConvert);
  if (probe.file.path.ends_with(".pbin")) return refuse("a Modalities .pbin file", kConvert);
  return {};
}

bool is_textual(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace shardpack
