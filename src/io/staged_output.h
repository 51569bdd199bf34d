// Outputs appear whole or not at all: a run writes into the sibling OUT.partial/ and publishes it by renaming the folder.
#pragma once

#include <string>
#include <string_view>

#include "shardpack/progress.h"

namespace shardpack {

/// Stands in every folder that is ours to delete; the run that works there holds a lock on it, which a crash frees. A run killed
/// in the instant between renaming and removing it leaves it in OUT, where it means nothing.
inline constexpr std::string_view kOwnerMarker = ".shardpack-owner";

/// Owns OUT.partial/ with its marker and lock.
class StagedOutput {
 public:
  /// Checks and takes the place: the parent exists and is writable; OUT does not exist, or `force` is given and OUT is an output
  /// of shardpack of the same kind (its manifest.json says `format`) and holds nothing else; no living run holds OUT.partial/. A
  /// stale one of ours is removed with a note; one that is not ours is refused. \throws Error{usage} and Error{io}.
  StagedOutput(const std::string& output, std::string_view format, bool force, Diagnostics& diagnostics);
  /// Removes OUT.partial/ unless published or kept. Never throws.
  ~StagedOutput();
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  const std::string& folder() const { return partial_; }  ///< write here

  /// Write a small file whole and durable. \throws Error{io}
  void write_file(std::string_view name, std::string_view bytes) const;

  /// Make all of it durable and rename: to OUT when there is none, else exchange the two and delete the old one; then the owner
  /// marker goes. Files that equal the old ones byte for byte get the old modification time first.
  /// \throws Error{usage} when something came to stand at OUT meanwhile (OUT.partial/ then stays), Error{io}
  void publish();

 private:
  std::string output_, partial_, format_;
  bool force_ = false;
  bool released_ = false;  // partial_ is no longer ours to delete
  int lock_ = -1;
  Diagnostics& diagnostics_;
};

/// The same checks without taking the place: what --dry-run does.
void check_output_place(const std::string& output, std::string_view format, bool force);

}  // namespace shardpack
