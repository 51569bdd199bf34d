#include "io/formats/integer_array.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/checked.h"

namespace shardpack {

namespace {

constexpr std::int64_t kChunkElements = 8 << 10;

template <class Stored>
void widen(std::vector<std::byte>& stored, bool big_endian, std::vector<std::int64_t>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::byte* const at = stored.data() + i * sizeof(Stored);
    if (big_endian) std::reverse(at, at + sizeof(Stored));
    Stored value;
    std::memcpy(&value, at, sizeof value);
    out[i] = static_cast<std::int64_t>(value);
  }
}

}  // namespace

void IntegerArray::fill() {
  ensure(left_ > 0, "the array is not read past its end");
  const std::int64_t elements = std::min(left_, kChunkElements);
  std::vector<std::byte> stored(static_cast<std::size_t>(elements * info(type_).bytes));
  file_.read_at(at_bytes_, stored);
  at_bytes_ += static_cast<std::int64_t>(stored.size());
  left_ -= elements;
  at_ = 0;
  chunk_.resize(static_cast<std::size_t>(elements));
  switch (type_) {
    case IdType::u8:
      return widen<std::uint8_t>(stored, big_endian_, chunk_);
    case IdType::i8:
      return widen<std::int8_t>(stored, big_endian_, chunk_);
    case IdType::u16:
      return widen<std::uint16_t>(stored, big_endian_, chunk_);
    case IdType::i16:
      return widen<std::int16_t>(stored, big_endian_, chunk_);
    case IdType::u32:
      return widen<std::uint32_t>(stored, big_endian_, chunk_);
    case IdType::i32:
      return widen<std::int32_t>(stored, big_endian_, chunk_);
    case IdType::u64:
      return widen<std::uint64_t>(stored, big_endian_, chunk_);
    case IdType::i64:
      return widen<std::int64_t>(stored, big_endian_, chunk_);
  }
}

}  // namespace shardpack
