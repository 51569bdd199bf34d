// A SequenceSource over vectors, for tests that need no file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "shardpack/sequence_source.h"

namespace shardpack {

/// One source file "memory" holding the given sequences.
inline SequenceIndex memory_index(const std::vector<std::int64_t>& lengths, std::vector<std::uint8_t> ends = {}) {
  SourceFile file{
      .name = "memory", .format = "memory", .bytes = 0, .hash = "", .ids_dtype = "", .record_begin = {0}, .null_records = 0};
  for (const std::int64_t length : lengths) file.record_begin.push_back(file.record_begin.back() + length);
  return SequenceIndex({file}, std::move(ends));
}

class MemorySource final : public SequenceSource {
 public:
  explicit MemorySource(std::vector<std::vector<std::uint32_t>> sequences) : sequences_(std::move(sequences)) {
    std::vector<std::int64_t> lengths;
    for (const auto& sequence : sequences_) lengths.push_back(static_cast<std::int64_t>(sequence.size()));
    index_ = memory_index(lengths);
  }

  const SequenceIndex& index() const override { return index_; }

  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override {
    for (const TokenRequest& request : requests) {
      for (std::int64_t i = 0; i < request.tokens; ++i) {
        const std::uint32_t id =
            sequences_.at(static_cast<std::size_t>(request.sequence)).at(static_cast<std::size_t>(request.first_token + i));
        if (type == IdType::u16) {
          static_cast<std::uint16_t*>(ids)[request.destination + i] = static_cast<std::uint16_t>(id);
        } else {
          static_cast<std::uint32_t*>(ids)[request.destination + i] = id;
        }
      }
    }
  }

 private:
  std::vector<std::vector<std::uint32_t>> sequences_;
  SequenceIndex index_;
};

}  // namespace shardpack
