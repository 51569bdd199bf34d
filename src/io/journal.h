// What a run that can be resumed writes down as it goes: what decides its bytes, then every finished shard. docs/formats.md has
// the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// Everything that decides the bytes of an output, in a fixed order: what it is ("option seed", "input 1") and its value. A run
/// is resumed only by one with the same list.
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

/// The value of what was not known yet when the run began; nothing differs from it.
inline constexpr std::string_view kNotKnownYet = "not known yet";

/// The first few things that are not as they were, as a user would say it; empty when all of `now` is in `then`.
std::string difference(const RunIdentity& then, const RunIdentity& now);

/// Lines with a checksum each, in a file of the caller's: what follows the first line that is not whole does not count, for it
/// was written when a run ended.
class Journal {
 public:
  /// Reads what is there. \throws Error{io}; damage is no error
  explicit Journal(const File& file);

  bool begun() const { return begun_; }
  const RunIdentity& identity() const { return identity_; }
  /// In the order of their completion; of those with the same name the last one counts.
  const std::vector<ManifestShard>& shards() const { return shards_; }

  /// Empty the file and begin. \throws Error{io}
  void begin(const RunIdentity& identity);
  /// Durable on return. \throws Error{io}
  void add(const ManifestShard& shard);

  /// What was said of the whole when all of it was done, a JSON object on one line; "" while it is not.
  const std::string& closing() const { return closing_; }
  void close(const std::string& record);  ///< durable on return. \throws Error{io}

 private:
  void append(const std::string& record);

  const File& file_;
  bool begun_ = false;
  RunIdentity identity_;
  std::vector<ManifestShard> shards_;
  std::string closing_;
  std::int64_t end_ = 0;  // of what is whole, in bytes
};

}  // namespace shardpack
