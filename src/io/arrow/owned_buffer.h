// Bytes of ours that Arrow keeps alive as long as it needs them: nothing is copied.
#pragma once

#include <arrow/buffer.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace shardpack {

template <class Owned>
class OwnedBuffer final : public arrow::Buffer {
 public:
  explicit OwnedBuffer(Owned&& owned) : arrow::Buffer(nullptr, 0), owned_(std::move(owned)) {
    data_ = reinterpret_cast<const std::uint8_t*>(owned_.data());
    size_ = capacity_ = static_cast<std::int64_t>(owned_.size() * sizeof(owned_[0]));
  }

 private:
  Owned owned_;
};

template <class Owned>
std::shared_ptr<arrow::Buffer> owned_buffer(Owned owned) {
  return std::make_shared<OwnedBuffer<Owned>>(std::move(owned));
}

}  // namespace shardpack
