#include "io/staged_output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "io/exchange_folders.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/owned_folder.h"
#include "io/system_calls.h"
#include "io/whole_shards.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartialSuffix = ".partial";
constexpr std::string_view kAsideSuffix = ".replaced";  // where exchange_by_renames() puts the old output for a moment

std::string with_suffix(const std::string& output, std::string_view suffix) { return output + std::string(suffix); }

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// ---- what may be replaced -----------------------------------------------------------------------------------------------------

/// A file in an output of ours that its manifest does not name; empty when there is none. Hidden ones do not count, and where the
/// manifest is damaged nobody can say.
std::string foreign_file(const FoundManifest& output) {
  std::set<std::string> known{std::string(kManifestName)};  // hidden folders need no list
  try {
    const Json manifest = Json::parse(read_small_file(output.path), output.path);
    const auto note = [&](const Json& files, const std::string& prefix) {
      for (std::size_t f = 0; f < files.size(); ++f) known.insert(prefix + files.at(f).at("name").as_string());
    };
    note(manifest.at("files"), "");
    if (manifest.has("trainer_files")) note(manifest.at("trainer_files"), "");
    if (manifest.has("shards")) {
      const Json shards = manifest.at("shards");
      for (std::size_t s = 0; s < shards.size(); ++s) {
        note(shards.at(s).at("files"), shards.at(s).at("folder").as_string() + "/");
        if (shards.at(s).has("trainer_files")) note(shards.at(s).at("trainer_files"), "");
      }
    }
  } catch (const Error&) {
    return {};
  }
  for (const TreeEntry& entry : list_tree(output.output)) {
    const bool hidden = entry.name.front() == '.' || entry.name.find("/.") != std::string::npos;
    if (!hidden && entry.kind != S_IFDIR && known.find(entry.name) == known.end()) return entry.name;
  }
  return {};
}

/// The name that the output really has: without trailing slashes and dots, links to folders followed. \throws Error{usage}
std::string settle_name(const std::string& output) {
  fs::path path(output);
  while ((!path.has_filename() || path.filename() == ".") && path.has_parent_path() && path.parent_path() != path) {
    path = path.parent_path();
  }
  if (path.empty()) throw Error(ErrorCode::usage, "the output needs a name");
  if (path.filename() == "." || path.filename() == ".." || kind_of(path.string()) == S_IFLNK) {
    std::error_code error;
    path = fs::canonical(path, error);
    if (error) throw Error(ErrorCode::usage, fmt::format("cannot follow the output's name: {}", error.message()), output);
  }
  if (!path.has_filename()) throw Error(ErrorCode::usage, "the root folder cannot be an output", output);
  return path.string();
}

/// May `output` be made, or replaced under `force`? \throws Error
void check_output(const std::string& output, std::string_view format, bool force) {
  const std::string parent = parent_of(output);
  std::error_code unreachable;
  if (!fs::is_directory(parent, unreachable)) {
    throw Error(ErrorCode::io, fmt::format("the folder {} that it should be made in does not exist", parent), output);
  }
  if (::access(parent.c_str(), W_OK | X_OK) != 0) throw_errno("write to the folder", parent);
  if (!exists(output)) return;
  if (!is_folder(output)) throw Error(ErrorCode::usage, "the output exists and is not a folder", output);
  if (!force) throw Error(ErrorCode::usage, "the output exists; --force replaces it if shardpack made it", output);
  const std::optional<FoundManifest> found = find_manifest(output);
  if (!found) {
    throw Error(ErrorCode::usage, "not made by shardpack, so --force does not replace it; choose another output", output);
  }
  if (found->format != format) {
    throw Error(ErrorCode::usage,
                fmt::format("an output of another kind ({}), so --force does not replace it; remove it, or choose another output",
                            printable(found->format)),
                output);
  }
  if (const std::string file = foreign_file(*found); !file.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("holds {}, which was not made by shardpack, so --force does not replace it; move it elsewhere", file),
                output);
  }
  if (::access(output.c_str(), W_OK | X_OK) != 0) throw_errno("write to the folder", output);
}

// ---- the folder that is written into ------------------------------------------------------------------------------------------

/// Is there something at `partial`? \throws Error{usage} when it is not ours to delete
bool check_staging(const std::string& partial) {
  if (!exists(partial)) return false;
  std::error_code unreadable;
  const bool ours = is_folder(partial) && (has_marker(partial) || fs::is_empty(partial, unreadable));
  if (!ours) {
    throw Error(ErrorCode::usage, "stands where the output is prepared, and was not made by shardpack; move it elsewhere",
                partial);
  }
  return true;
}

/// Put in order what a run left that was killed while it published: without RENAME_EXCHANGE the old output may stand aside, and
/// goes back to its place, or away if the new one is there; and the output may have its marker still.
void recover(const std::string& output, Diagnostics& diagnostics) {
  const std::string aside = with_suffix(output, kAsideSuffix);
  if (is_folder(aside) && has_marker(aside)) {
    const File lock = lock_marker(aside);
    if (exists(output)) {
      delete_folder(aside);
      diagnostics.info(fmt::format("{}: removed what an interrupted run had left", aside));
    } else {
      if (sys::rename(aside.c_str(), output.c_str()) != 0) throw_errno("move back", aside);
      diagnostics.info(fmt::format("{}: put back the output that an interrupted run had moved aside", output));
    }
  }
  if (is_folder(output) && has_marker(output)) {
    const File lock = lock_marker(output);
    sys::unlink(in_folder(output, kOwnerMarker).c_str());
  }
}

// ---- shards that are finished -------------------------------------------------------------------------------------------------

std::string finished_shards(std::int64_t count) {
  return count == 1 ? "1 finished shard" : with_commas(count) + " finished shards";
}

bool begins_with_any(std::string_view name, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return name.starts_with(beginning); });
}

// ---- publishing ---------------------------------------------------------------------------------------------------------------

bool equal_bytes(const std::string& path_a, const std::string& path_b) {
  const File a(path_a, File::Mode::read), b(path_b, File::Mode::read);
  if (a.size() != b.size()) return false;
  constexpr std::size_t kBlockBytes = 1 << 20;
  std::vector<std::byte> block_a(kBlockBytes), block_b(kBlockBytes);
  for (std::int64_t offset = 0;; offset += kBlockBytes) {
    const std::size_t count = a.read_some_at(offset, block_a);
    if (count != b.read_some_at(offset, block_b)) return false;
    if (std::memcmp(block_a.data(), block_b.data(), count) != 0) return false;
    if (count < kBlockBytes) return true;
  }
}

/// Give the files of `folder` that equal those of `old` their modification time, so that nothing that depends on them is made
/// again. A file that cannot be compared counts as changed.
void keep_times_of_equal_files(const std::string& folder, const std::string& old) {
  for (const TreeEntry& entry : list_tree(folder)) {
    const std::string path = in_folder(folder, entry.name), counterpart = in_folder(old, entry.name);
    struct stat status {};
    if (entry.kind != S_IFREG || ::lstat(counterpart.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    try {
      if (!equal_bytes(path, counterpart)) continue;
    } catch (const Error&) {
      continue;
    }
    if (sys::set_modified(path.c_str(), status.st_mtim) != 0) throw_errno("set the time of", path);
  }
}

}  // namespace

void check_output_place(const std::string& output, std::string_view format, bool force) {
  const std::string name = settle_name(output);
  check_output(name, format, force);
  const std::string partial = with_suffix(name, kPartialSuffix);
  if (check_staging(partial) && has_marker(partial)) {
    const File free_to_take = lock_marker(partial);
  }
}

StagedOutput::StagedOutput(const std::string& output, std::string_view format, bool force, Diagnostics& diagnostics,
                           Leftovers leftovers, Place place)
    : output_(settle_name(output)),
      partial_(with_suffix(output_, kPartialSuffix)),
      folder_(place == Place::hidden ? in_folder(partial_, kHiddenFolder) : partial_),
      parts_(partial_),
      format_(format),
      force_(force),
      diagnostics_(diagnostics) {
  recover(output_, diagnostics_);
  check_output(output_, format, force);
  const bool stale = check_staging(partial_);
  if (leftovers == Leftovers::join && is_folder(in_folder(partial_, kHiddenFolder))) folder_ = in_folder(partial_, kHiddenFolder);
  if (leftovers == Leftovers::join && !parts_.there()) {
    throw Error(ErrorCode::bad_data, "there are no parts to join here; pack --part I/N makes them", partial_);
  }
  if (!stale && sys::mkdir(partial_.c_str(), 0777) != 0 && errno != EEXIST) throw_errno("create", partial_);
  try {
    marker_.emplace(lock_marker(partial_, leftovers == Leftovers::share));
    take_over(leftovers, stale);
  } catch (...) {
    if (!stale && !marker_) sys::rmdir(partial_.c_str());  // fails when somebody else is in it
    throw;
  }
}

/// What to do with what is there, now that the place is ours.
void StagedOutput::take_over(Leftovers leftovers, bool stale) {
  kept_ = true;
  journal_.emplace(*marker_);
  finished_ = static_cast<std::int64_t>(journal_->shards().size());
  const bool parts = leftovers == Leftovers::share || leftovers == Leftovers::join;
  if (parts && finished_ > 0) {
    throw Error(ErrorCode::usage,
                "an interrupted run without --part left finished shards here; go on with it by --resume, or delete the folder",
                partial_);
  }
  if (!parts && parts_.there() && !parts_.partitions().empty()) {
    throw Error(ErrorCode::usage, "holds parts of a distributed run; 'shardpack join' publishes them, or delete the folder",
                partial_);
  }
  if (leftovers == Leftovers::share) {
    parts_.make_folder();
    if (folder_ != partial_ && sys::mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) throw_errno("create", folder_);
    sync_folder(partial_);
    sync_folder(parent_of(output_));
  }
  if (parts || (leftovers == Leftovers::resume && finished_ > 0)) return;

  // Whatever is there was written under this marker, and its owner has ended.
  kept_ = false;
  marker_->truncate(0);
  delete_except(partial_, {std::string(kOwnerMarker)});
  if (finished_ > 0) {
    diagnostics_.info(fmt::format("{}: removed what an interrupted run had left, {} among it (--resume goes on with them)",
                                  partial_, finished_shards(finished_)));
  } else if (stale) {
    diagnostics_.info(fmt::format("{}: removed what an interrupted run had left", partial_));
  }
  journal_.emplace(*marker_);
  finished_ = 0;
}

StagedOutput::~StagedOutput() {
  if (kept_) return;
  try {
    delete_folder(partial_);
  } catch (...) {  // the next run finds the marker
  }
}

void StagedOutput::write_file(std::string_view name, std::string_view bytes) const {
  write_small_file(in_folder(folder_, name), bytes);
}

void StagedOutput::write_trainer_file(std::string_view name, std::string_view bytes) const {
  write_small_file(in_folder(partial_, name), bytes);
}

void StagedOutput::check_same_run(const RunIdentity& identity) const {
  if (!journal_->begun()) return;
  const std::string found = difference(journal_->identity(), identity);
  if (found.empty()) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot be resumed, for it would come out otherwise: {}; give what was given then, or leave out --resume to "
                  "begin again",
                  found),
      partial_);
}

void StagedOutput::begin_shards(const RunIdentity& identity, const RunContext& context) {
  if (journal_->begun()) {
    check_same_run(identity);
    const std::string prefix = hidden_prefix();
    whole_ = whole_shards(partial_, prefix, journal_->shards(), Unreadable::is_written_anew, context);
    std::set<std::string> keep{std::string(kOwnerMarker)};
    for (const auto& [name, shard] : whole_) {
      keep.insert(std::string(kHiddenFolder));
      keep.insert(prefix + name);
      for (const ManifestFile& file : files_in_output(shard, prefix)) keep.insert(file.name);
    }
    delete_except(partial_, keep);
    diagnostics_.info(fmt::format("{}: goes on with {} of an interrupted run, checked by hash", partial_,
                                  finished_shards(static_cast<std::int64_t>(whole_.size()))));
    finished_ = static_cast<std::int64_t>(whole_.size());
    kept_ = false;
  } else {
    journal_->begin(identity);
  }
  if (!exists(folder_)) make_folder(folder_);
  sync_folder(partial_);
  sync_folder(parent_of(output_));
}

const ManifestShard* StagedOutput::finished_shard(const std::string& name) const {
  const auto found = whole_.find(name);
  return found == whole_.end() ? nullptr : &found->second;
}

std::int64_t StagedOutput::finished_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, shard] : whole_) {
    for (const ManifestFile& file : files_in_output(shard, "")) bytes += file.bytes;
  }
  return bytes;
}

void StagedOutput::shard_finished(const ManifestShard& shard) {
  sync_folder(partial_);  // the names of its files and folder; what is in them is durable
  if (folder_ != partial_) sync_folder(folder_);
  journal_->add(shard);
  ++finished_;
}

std::string StagedOutput::keep_finished_shards() {
  if (finished_ == 0 || published_) return {};
  kept_ = true;
  return fmt::format("{} {} in {}, and the same command with --resume goes on from there", finished_shards(finished_),
                     finished_ == 1 ? "stays" : "stay", partial_);
}

// ---- parts --------------------------------------------------------------------------------------------------------------------

std::string StagedOutput::hidden_prefix() const { return folder_ == partial_ ? "" : std::string(kHiddenFolder) + "/"; }

std::string StagedOutput::begin_partition(std::int64_t number, const RunIdentity& identity, bool resume,
                                          const std::vector<std::string>& trainer_stems, const RunContext& context) {
  journal_.reset();
  partition_.reset();
  partition_.emplace(parts_.lock_journal(number));
  journal_.emplace(*partition_);
  whole_.clear();
  std::string record;
  if (journal_->begun() && resume) {
    check_same_run(identity);
    whole_ = whole_shards(partial_, hidden_prefix(), journal_->shards(), Unreadable::is_written_anew, context);
    std::set<std::string> noted;
    for (const ManifestShard& shard : journal_->shards()) noted.insert(shard.folder);
    if (whole_.size() == noted.size()) record = journal_->closing();
  } else {
    journal_->begin(identity);
    parts_.sync();
  }
  finished_ += static_cast<std::int64_t>(whole_.size());

  std::set<std::string> trainer_files;
  for (const auto& [name, shard] : whole_) {
    for (const ManifestFile& file : shard.trainer_files) trainer_files.insert(file.name);
  }
  const std::string own = fmt::format("shard-{:05}-", number);
  for (const TreeEntry& entry : list_folder(folder_)) {
    if (!entry.name.starts_with(own) || whole_.find(entry.name) != whole_.end()) continue;
    delete_except(in_folder(folder_, entry.name), {});
    delete_entry(folder_, entry);
  }
  for (const TreeEntry& entry : list_folder(partial_)) {
    if (begins_with_any(entry.name, trainer_stems) && trainer_files.find(entry.name) == trainer_files.end())
      delete_entry(partial_, entry);
  }
  return record;
}

void StagedOutput::partition_finished(const std::string& record) {
  sync_folder(partial_);
  if (folder_ != partial_) sync_folder(folder_);
  parts_.sync();
  journal_->close(record);
}

std::vector<std::string> StagedOutput::damaged(const std::vector<ManifestShard>& shards, const RunContext& context) const {
  const std::map<std::string, ManifestShard> whole =
      whole_shards(partial_, hidden_prefix(), shards, Unreadable::is_a_fault, context);
  std::vector<std::string> names;
  for (const ManifestShard& shard : shards) {
    if (whole.find(shard.folder) == whole.end()) names.push_back(shard.folder);
  }
  return names;
}

void StagedOutput::keep_only(const std::vector<ManifestShard>& shards, const std::vector<std::string>& files) const {
  std::set<std::string> keep{std::string(kOwnerMarker), std::string(kHiddenFolder), std::string(kPartsFolder)};
  for (const std::string& name : files) keep.insert(hidden_prefix() + name);
  for (const ManifestShard& shard : shards) {
    keep.insert(hidden_prefix() + shard.folder);
    for (const ManifestFile& file : files_in_output(shard, hidden_prefix())) keep.insert(file.name);
  }
  for (const TreeEntry& entry : list_tree(parts_.folder())) keep.insert(in_folder(std::string(kPartsFolder), entry.name));
  delete_except(partial_, keep);
}

void StagedOutput::publish() {
  try {
    check_output(output_, format_, force_);  // once more: somebody may have been there meanwhile
  } catch (const Error& error) {             // hours of work are not thrown away for it
    if (error.code() != ErrorCode::usage) throw;
    sys::unlink(in_folder(partial_, kOwnerMarker).c_str());
    kept_ = published_ = true;
    throw Error(error.code(), fmt::format("{}; the new output is whole and stays in {}", error.message(), partial_),
                error.path());
  }
  const bool replaces = exists(output_);
  if (replaces) keep_times_of_equal_files(partial_, output_);

  // What is in the files has been synced by whoever wrote them; their names have not.
  for (const TreeEntry& entry : list_tree(partial_)) {
    if (entry.kind == S_IFDIR) sync_folder(in_folder(partial_, entry.name));
  }
  sync_folder(partial_);

  // Both folders have their markers through the renames: at no moment is there one to delete that is not known as ours.
  std::optional<File> old_marker;
  if (replaces) {
    old_marker.emplace(lock_marker(output_));
    old_marker->truncate(0);  // the old output is nothing to go on with
    sync_folder(output_);     // or a power cut takes the marker and leaves the exchange
    try {
      exchange_folders(partial_, output_, with_suffix(output_, kAsideSuffix));
    } catch (...) {
      if (!exists(partial_)) kept_ = published_ = true;  // by renames: the new one is in place, and the old one stays aside
      sys::unlink(in_folder(output_, kOwnerMarker).c_str());
      throw;
    }
  } else if (sys::rename(partial_.c_str(), output_.c_str()) != 0) {
    throw_errno("rename to the output", partial_);
  }
  kept_ = published_ = true;
  sync_folder(parent_of(output_));
  // Not before: a power cut may take the rename and leave this.
  const std::string parts = in_folder(output_, kPartsFolder);
  try {
    if (is_folder(parts)) {
      delete_except(parts, {});
      sys::rmdir(parts.c_str());
    }
  } catch (const Error& error) {
    diagnostics_.warn(fmt::format("what the parts had noted is not all gone: {}", error.what()));
  }
  sys::unlink(in_folder(output_, kOwnerMarker).c_str());
  if (!replaces) return;
  try {
    delete_folder(partial_);
  } catch (const Error& error) {
    diagnostics_.warn(fmt::format("the old output is not all gone: {}", error.what()));
  }
}

}  // namespace shardpack
