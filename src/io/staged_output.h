// Outputs appear whole or not at all: a run writes into the sibling OUT.partial/ and publishes it by renaming the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/journal.h"
#include "io/part_notes.h"
#include "shardpack/manifest.h"
#include "shardpack/progress.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// Owns OUT.partial/ with its marker and lock.
class StagedOutput {
 public:
  /// What to do with the OUT.partial/ of a run that has ended: remove it with a note, or go on with it. share: several processes
  /// write parts of one output into it; join: they are done, and it is to be published.
  enum class Leftovers { remove, resume, share, join };
  /// Where manifest, plans and shards' folders go: into the folder itself, or into a hidden one in it (a trainer's files lie
  /// above). What is joined is where its parts put it.
  enum class Place { beside, hidden };

  /// Checks and takes the place: the parent exists and is writable; OUT does not exist, or `force` is given and OUT is an output
  /// of shardpack of the same kind (its manifest.json says `format`) and holds nothing else; no living run holds OUT.partial/;
  /// what is there is ours. \throws Error{usage} and Error{io}.
  StagedOutput(const std::string& output, std::string_view format, bool force, Diagnostics& diagnostics,
               Leftovers leftovers = Leftovers::remove, Place place = Place::beside);
  /// Removes OUT.partial/ unless published or kept. Never throws.
  ~StagedOutput();
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  const std::string& folder() const { return folder_; }           ///< write here, after begin_shards() where it is hidden
  const std::string& trainer_folder() const { return partial_; }  ///< write what a trainer reads here

  /// Write a small file in folder() whole and durable. \throws Error{io}
  void write_file(std::string_view name, std::string_view bytes) const;
  void write_trainer_file(std::string_view name, std::string_view bytes) const;  ///< the same in trainer_folder()

  /// Make all of it durable and rename: to OUT when there is none, else exchange the two and delete the old one; then the owner
  /// marker goes. Files that equal the old ones byte for byte get the old modification time first.
  /// \throws Error{usage} when something came to stand at OUT meanwhile (OUT.partial/ then stays), Error{io}
  void publish();

  // ---- runs that can be resumed. Until begin_shards(), OUT.partial/ of an interrupted run with finished shards stays whatever
  // happens.

  /// Did an interrupted run leave finished shards that are to be kept?
  bool goes_on() const { return finished_ > 0; }

  /// Is what is known of the run by now the same as in the interrupted run, if that is to be resumed? So that a wrong option is
  /// refused before the inputs are read. \throws Error{usage} naming what differs
  void check_same_run(const RunIdentity& identity) const;

  /// Begin the journal; or go on in that of the interrupted run: its finished shards are checked by hash, and whatever else is in
  /// the folder, is deleted. \throws Error{usage} as check_same_run(), Error{io}
  void begin_shards(const RunIdentity& identity, const RunContext& context);

  /// The shard of this name, if the interrupted run finished it.
  const ManifestShard* finished_shard(const std::string& name) const;
  std::int64_t finished_bytes() const;  ///< of all of those

  /// Note a shard whose files are durable; the note is, on return. From one thread at a time.
  void shard_finished(const ManifestShard& shard);

  // ---- parts: each process takes one partition after the other, and notes in a journal of its own what is finished of it. The
  // folder stays until it is joined.

  const PartNotes& parts() const { return parts_; }

  /// Take a partition that no living process holds, and whatever is noted of it. Under `resume` its finished shards are checked
  /// by hash and kept when they are of the same run; everything else of it is deleted: folders shard-PPPPP-*, and the trainer's
  /// files whose names begin as one of `trainer_stems`. \return what was said when all of it was finished, if all of it is whole;
  /// else "" \throws Error{usage} when another process holds it, and as check_same_run(); Error{io}
  std::string begin_partition(std::int64_t number, const RunIdentity& identity, bool resume,
                              const std::vector<std::string>& trainer_stems, const RunContext& context);
  void partition_finished(const std::string& record);  ///< a JSON object on one line; durable on return

  /// Names of those shards whose files are not as they were noted, byte for byte. \throws Error{io} when one cannot be read
  std::vector<std::string> damaged(const std::vector<ManifestShard>& shards, const RunContext& context) const;

  /// Delete everything but the markers, the journals, these shards, and what else is named, in folder().
  void keep_only(const std::vector<ManifestShard>& shards, const std::vector<std::string>& files) const;

  /// After an error that is no fault of the data: from now on OUT.partial/ stays if a shard is finished.
  /// \return a clause for the user that says so; empty when there is none
  std::string keep_finished_shards();

 private:
  void take_over(Leftovers leftovers, bool stale);
  std::string hidden_prefix() const;

  std::string output_, partial_, folder_;
  PartNotes parts_;
  std::string format_;
  bool force_ = false;
  bool kept_ = false;       // partial_ is not ours to delete (any more)
  bool published_ = false;  // or given up to the user
  std::optional<File> marker_;
  std::optional<File> partition_;               // its journal, locked
  std::optional<Journal> journal_;              // in the marker, or of a partition
  std::map<std::string, ManifestShard> whole_;  // finished by the interrupted run, by name
  std::int64_t finished_ = 0;                   // shards
  Diagnostics& diagnostics_;
};

/// The same checks without taking the place: what --dry-run does.
void check_output_place(const std::string& output, std::string_view format, bool force);

}  // namespace shardpack
