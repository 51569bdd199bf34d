// The bytes of shards in every format with random access, as their own tools write them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/npy.h"
#include "shardpack/formats.h"
#include "support/compressed.h"
#include "support/open_shards.h"
#include "support/temp_folder.h"

namespace shardpack {

template <class T>
std::vector<T> flat(const Sequences& sequences) {
  std::vector<T> ids;
  for (const auto& sequence : sequences) {
    for (const std::uint32_t id : sequence) ids.push_back(static_cast<T>(id));
  }
  return ids;
}

template <class T>
std::string ids_of(const Sequences& sequences) {
  return bytes_of(flat<T>(sequences));
}

template <class T>
std::string npy_file(const std::string& descr, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  return make_npy_header(descr, shape) + bytes_of(values);
}

/// NAME.npy with all ids in a row and NAME.lengths.npy beside it; returns the path of the first.
template <class T>
std::string write_npy(const TempFolder& folder, const std::string& name, const std::string& descr, const Sequences& sequences) {
  std::vector<std::int32_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  folder.write(name + ".lengths.npy", npy_file("<i4", {static_cast<std::int64_t>(lengths.size())}, lengths));
  const std::vector<T> ids = flat<T>(sequences);
  return folder.write(name + ".npy", npy_file(descr, {static_cast<std::int64_t>(ids.size())}, ids));
}

/// An index as its tools write it; every field can be made wrong.
struct MegatronIndex {
  std::uint8_t code = 8;
  std::int64_t id_bytes = 2;
  std::vector<std::int32_t> lengths;
  std::optional<std::vector<std::int64_t>> places;     // default: one after the other
  std::optional<std::vector<std::int64_t>> documents;  // default: one a sequence
  bool fairseq = false;
  std::optional<std::int64_t> claimed_sequences, claimed_documents;
  std::uint64_t version = 1;

  explicit MegatronIndex(const Sequences& sequences) {
    for (const auto& sequence : sequences) lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  }
  std::string bytes() const {
    std::vector<std::int64_t> all_places, all_documents{0};
    std::int64_t at = 0;
    for (const std::int32_t length : lengths) {
      all_places.push_back(at);
      at += length * id_bytes;
      all_documents.push_back(all_documents.back() + 1);
    }
    const auto count = static_cast<std::int64_t>(lengths.size());
    const std::vector<std::int64_t> stored_documents = documents.value_or(all_documents);
    std::string out("MMIDIDX\0\0", 9);
    out += bytes_of(std::vector<std::uint64_t>{version});
    out += static_cast<char>(code);
    out += bytes_of(std::vector<std::int64_t>{claimed_sequences.value_or(count)});
    if (!fairseq) {
      out += bytes_of(std::vector<std::int64_t>{claimed_documents.value_or(static_cast<std::int64_t>(stored_documents.size()))});
    }
    out += bytes_of(lengths) + bytes_of(places.value_or(all_places));
    if (!fairseq) out += bytes_of(stored_documents);
    return out;
  }
};

inline std::string llmc_file(std::int32_t magic, std::int32_t version, std::int32_t count, const std::string& ids,
                             std::int32_t fourth = 0) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  header[3] = fourth;
  return bytes_of(header) + ids;
}

/// A data file with its sidecars.
struct ShardFiles {
  std::string main;
  std::map<std::string, std::string> files;  // name -> bytes
  ReadOptions options;
};

/// The same sequences in each format. They are not empty, each ends in `delimiter`, and it is nowhere else in them.
inline std::vector<ShardFiles> every_format(const Sequences& sequences, std::uint32_t delimiter) {
  std::vector<std::int32_t> lengths;
  std::vector<std::uint64_t> ends, offsets{0};
  std::string csv;
  for (const auto& sequence : sequences) {
    lengths.push_back(static_cast<std::int32_t>(sequence.size()));
    ends.push_back(offsets.back() + sequence.size());
    csv += std::to_string(offsets.back()) + "," + std::to_string(ends.back()) + ",\"an id, \"\"quoted\"\"\"\r\n";
    offsets.push_back(ends.back());
  }
  const auto tokens = static_cast<std::int64_t>(offsets.back());
  const auto count = static_cast<std::int64_t>(sequences.size());
  const std::string ids = ids_of<std::uint16_t>(sequences);
  const std::string ids_npy = npy_file("<u2", {tokens}, flat<std::uint16_t>(sequences));
  ReadOptions raw;
  raw.dtype = IdType::u16;
  raw.eos_id = delimiter;
  MegatronIndex wide(sequences);
  wide.code = 4;
  wide.id_bytes = 4;
  MegatronIndex fairseq(sequences);
  fairseq.fairseq = true;
  return {
      {"a.bin", {{"a.bin", ids}, {"a.idx", MegatronIndex(sequences).bytes()}}, {}},
      {"a.bin", {{"a.bin", ids_of<std::int32_t>(sequences)}, {"a.idx", wide.bytes()}}, {}},
      {"a.bin", {{"a.bin", ids}, {"a.idx", fairseq.bytes()}}, {}},
      {"a.npy", {{"a.npy", ids_npy}, {"a.lengths.npy", npy_file("<i4", {count}, lengths)}}, {}},
      {"a.npy", {{"a.npy", ids_npy}, {"a.offsets.npy", npy_file("<u8", {count + 1}, offsets)}}, {}},
      {"a.npy", {{"a.npy", ids}, {"a.csv.gz", gzip_member(csv)}}, {}},
      {"a.ds",
       {{"a.ds", ids}, {"a.ds.index", bytes_of(ends)}, {"a.ds.metadata", "gpt2|2\n" + std::to_string(tokens) + "\n1.00 T"}},
       {}},
      {"a.raw", {{"a.raw", ids}}, raw},
  };
}

}  // namespace shardpack
