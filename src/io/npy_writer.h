// Writes a one-dimensional NPY array whose length is known only at its end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/file.h"
#include "shardpack/manifest.h"

namespace shardpack {

class NpyWriter {
 public:
  /// `descr` as in an NPY header: "<i8". \throws Error{io}
  NpyWriter(const std::string& folder, std::string name, std::string_view descr);

  template <class T>
  void append(std::span<const T> elements) {
    append_bytes(std::as_bytes(elements));
    elements_ += static_cast<std::int64_t>(elements.size());
  }
  template <class T>
  void append(const T& element) {
    append(std::span<const T>(&element, 1));
  }

  /// The same from the bytes of `count` elements.
  void append_stored(std::span<const std::byte> bytes, std::int64_t count) {
    append_bytes(bytes);
    elements_ += count;
  }

  /// Header, sync, and the manifest's entry. \throws Error{io}
  ManifestFile finish();

 private:
  void append_bytes(std::span<const std::byte> bytes);

  std::string path_, name_, descr_;
  File file_;
  std::int64_t elements_ = 0, end_;
};

}  // namespace shardpack
