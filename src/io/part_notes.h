// What the parts of a distributed run note of their work, in a folder beside it: a journal for each partition, and small files
// that all of them share, or that only join() needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/journal.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// The folder of the notes in an output. Goes when that is published, after the rename.
inline constexpr std::string_view kPartsFolder = ".shardpack-parts";

/// What is noted of a partition.
struct NotedPartition {
  std::int64_t number = 0;
  RunIdentity identity;
  std::vector<ManifestShard> shards;  ///< of a name that is there twice the last one counts
  std::string record;                 ///< Journal::closing(): "" while not all of it is done
};

class PartNotes {
 public:
  /// \param partial  the output's folder while it is written, which may have no notes
  explicit PartNotes(const std::string& partial);

  const std::string& folder() const { return folder_; }
  bool there() const;        ///< is there such a folder?
  void make_folder() const;  ///< if there is none. \throws Error{io}
  void sync() const;         ///< the names in it are durable on return. \throws Error{io}

  /// Path of a shared file; write() writes one whole and durable, whoever else does so. \throws Error{io}
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, std::string_view bytes) const;

  /// The file of a partition's journal, locked as long as it is open. \throws Error{usage} when another process holds it,
  /// Error{io}
  File lock_journal(std::int64_t partition) const;

  /// Of every partition whose journal was begun, in their order. \throws Error{io}
  std::vector<NotedPartition> partitions() const;

 private:
  std::string folder_;
};

}  // namespace shardpack
