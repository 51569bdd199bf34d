// Files of many kinds, some of them longer than a piece of the pass over tokens, with what is in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "core/fingerprint_keys.h"
#include "io/file.h"
#include "io/scan_pass.h"
#include "support/open_shards.h"
#include "support/opened_files.h"
#include "support/shard_files.h"

namespace shardpack {

/// `tokens` of them, in sequences of all kinds of lengths; ids from 3 to `greatest`.
inline Sequences pass_sequences(std::uint64_t seed, std::int64_t tokens, std::uint32_t greatest) {
  const RandomStream stream(seed, RandomPurpose::members);
  Sequences sequences;
  std::uint64_t draw = 0;
  while (tokens > 0) {
    const std::uint64_t kind = stream.bounded(draw++, 8);
    const std::uint64_t bound = kind == 0 ? 1 : kind == 1 ? 3 : kind == 2 ? 300'000 : 9000;
    const std::int64_t length = std::min(tokens, static_cast<std::int64_t>(stream.bounded(draw++, bound)));
    const std::uint64_t first = stream.bounded(draw++, greatest - 2);
    std::vector<std::uint32_t>& sequence = sequences.emplace_back();
    for (std::int64_t t = 0; t < length; ++t)
      sequence.push_back(3 + static_cast<std::uint32_t>((first + static_cast<std::uint64_t>(t) * 7919) % (greatest - 2)));
    tokens -= length;
  }
  return sequences;
}

inline std::string big_endian(std::string bytes, std::size_t width) {
  for (std::size_t at = 0; at < bytes.size(); at += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
  return bytes;
}

/// Files in order, and what each holds.
struct PassSample {
  struct Part {
    std::string path;
    Sequences sequences;
    std::string bytes;                             // of the data file and its sidecars
    bool read_by_pass;                             // and not when it is opened
    std::vector<TokenTable::Stretch> stretches{};  // of one that is laid out here, 16-bit ids in a format of no name
  };

  PassSample() {
    options.dtype = IdType::u16;
    options.eos_id = 2;
    add_npy<std::uint16_t>("a", "<u2", pass_sequences(1, 1'400'000, 60'000), 2);
    add_npy<std::uint16_t>("b", "<u2", {}, 2);
    add_npy<std::int32_t>("c", "<i4", pass_sequences(2, 600'000, 2'000'000'000), 4);
    add("d.jsonl", {{3, 4, 70'000}, {}, {5}}, false,
        {{"d.jsonl", "{\"input_ids\":[3,4,70000]}\n{\"input_ids\":[]}\n{\"input_ids\":[5]}\n"}});
    add_npy<std::uint16_t>("e", ">u2", pass_sequences(3, 900'000, 50'000), 2);
    add_npy<std::int64_t>("f", "<i8", pass_sequences(4, 300'000, 4'000'000'000), 8);
    add_npy<std::uint32_t>("g", "<u4", {{}, {}, {}}, 4);
    add_npy<std::uint8_t>("h", "|u1", pass_sequences(5, 100'000, 255), 1);
    add_npy<std::uint32_t>("i", ">u4", pass_sequences(6, 400'000, 4'294'967'295), 4);
    add_delimited("j.raw", pass_sequences(7, 100'000, 40'000));
    add_megatron("k", pass_sequences(8, 700'000, 65'000));
    add_stretches("l", pass_sequences(9, 700'000, 65'000), false);
    add_stretches("ll", pass_sequences(11, 500'000, 65'000), true);
    add_npy<std::int64_t>("m", ">i8", pass_sequences(10, 5, 1000), 8);
  }

  std::vector<OpenedFile> open() const {
    std::vector<OpenedFile> files;
    SequenceId sequences = 0;
    for (const Part& part : parts) {
      files.push_back(part.stretches.empty() ? open_one(part.path, sequences, options) : laid_out(part, sequences));
      sequences += files.back().records();
    }
    return files;
  }
  Sequences sequences() const {
    Sequences all;
    for (const Part& part : parts) all.insert(all.end(), part.sequences.begin(), part.sequences.end());
    return all;
  }
  /// Of file `number`, without a look at it.
  TokenFacts facts(std::size_t number) const {
    SequenceId record = 0;
    for (std::size_t p = 0; p < number; ++p) record += std::ssize(parts[p].sequences);
    const FingerprintKeys keys(1);
    TokenFacts facts;
    for (const std::vector<std::uint32_t>& sequence : parts[number].sequences) {
      facts.fingerprint += keys.of(record++, 0, std::span<const std::uint32_t>(sequence));
      for (const std::uint32_t id : sequence) {
        facts.id_min = facts.id_max < 0 ? id : std::min<std::int64_t>(facts.id_min, id);
        facts.id_max = std::max<std::int64_t>(facts.id_max, id);
      }
    }
    facts.hash = hash_hex(parts[number].bytes);
    return facts;
  }

  TempFolder folder;
  ReadOptions options;
  std::vector<Part> parts;

 private:
  /// \param files  the data file first
  void add(const std::string& name, const Sequences& sequences, bool read_by_pass,
           const std::vector<std::pair<std::string, std::string>>& files) {
    std::string bytes;
    for (const auto& [file, content] : files) {
      folder.write(file, content);
      bytes += content;
    }
    parts.push_back({folder.path(name), sequences, bytes, read_by_pass});
  }

  template <class Id>
  void add_npy(const std::string& name, const std::string& descr, const Sequences& sequences, std::size_t width) {
    std::vector<std::int32_t> lengths;
    std::int64_t tokens = 0;
    for (const auto& sequence : sequences) {
      lengths.push_back(static_cast<std::int32_t>(sequence.size()));
      tokens += std::ssize(sequence);
    }
    const std::string ids = ids_of<Id>(sequences);
    add(name + ".npy", sequences, true,
        {{name + ".npy", make_npy_header(descr, {tokens}) + (descr[0] == '>' ? big_endian(ids, width) : ids)},
         {name + ".lengths.npy", npy_file("<i4", {std::ssize(lengths)}, lengths)}});
  }

  void add_delimited(const std::string& name, Sequences sequences) {
    for (std::vector<std::uint32_t>& sequence : sequences) sequence.push_back(2);
    add(name, sequences, true, {{name, ids_of<std::uint16_t>(sequences)}});
  }

  void add_megatron(const std::string& name, const Sequences& sequences) {
    add(name + ".bin", sequences, true,
        {{name + ".bin", ids_of<std::uint16_t>(sequences)}, {name + ".idx", MegatronIndex(sequences).bytes()}});
  }

  /// Each sequence a stretch of its own, with gaps between them that leave many at odd bytes.
  /// \param turned  they lie in the file from the last to the first
  void add_stretches(const std::string& name, const Sequences& sequences, bool turned) {
    std::vector<TokenTable::Stretch> stretches(sequences.size());
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      stretches[i].first = tokens;
      tokens += std::ssize(sequences[i]);
    }
    std::string bytes;
    for (std::size_t n = 0; n < sequences.size(); ++n) {
      const std::size_t i = turned ? sequences.size() - 1 - n : n;
      bytes.append(n % 4, '?');
      stretches[i].begin_bytes = std::ssize(bytes);
      bytes += ids_of<std::uint16_t>({sequences[i]});
    }
    add(name, sequences, true, {{name, bytes + "end"}});
    for (std::size_t i = 0; i < sequences.size(); ++i) {  // there is none without tokens
      if (!sequences[i].empty()) parts.back().stretches.push_back(stretches[i]);
    }
  }

  static OpenedFile laid_out(const Part& part, SequenceId first_sequence) {
    OpenedFile file;
    file.input = {part.path, part.path.substr(part.path.rfind('/') + 1)};
    file.shard.ids.file = std::make_shared<const File>(part.path, File::Mode::read);
    file.shard.ids.stretches = part.stretches;
    file.shard.record_begin = {0};
    for (const std::vector<std::uint32_t>& sequence : part.sequences)
      file.shard.record_begin.push_back(file.shard.record_begin.back() + std::ssize(sequence));
    file.shard.ids.tokens = file.shard.record_begin.back();
    file.shard.files = {part.path};
    file.stamps = {stamp_of(part.path, file.input.name)};
    file.first_sequence = first_sequence;
    return file;
  }
};

}  // namespace shardpack
