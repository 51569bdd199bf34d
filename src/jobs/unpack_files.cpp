#include "jobs/unpack_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "io/file.h"
#include "io/manifest_parts.h"
#include "jobs/verify_removed.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// Without .gz or .zst and the suffix before it.
std::string without_suffix(const std::string& name) {
  fs::path path(name);
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  if (path.has_stem()) path.replace_extension();
  return path.string();
}

/// Those of `below`, in `folder`.
void make_folders(const std::string& folder, const fs::path& below) {
  fs::path path = folder;
  for (const fs::path& part : below) {
    path /= part;
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) make_folder(path.string());
  }
}

}  // namespace

std::vector<std::string> unpacked_stems(const std::vector<ManifestSource>& sources, const RecordSinkSettings& settings) {
  std::vector<std::string> stems;
  std::set<std::string> taken{std::string(kManifestName), std::string(RemovedReader::kFileName)};
  for (const ManifestSource& source : sources) {
    std::string stem = without_suffix(source.name);
    for (int attempt = 1;; ++attempt) {
      const std::vector<std::string> files = record_files(settings, stem);
      if (std::none_of(files.begin(), files.end(), [&](const std::string& file) { return taken.contains(file); })) {
        taken.insert(files.begin(), files.end());
        break;
      }
      stem = attempt == 1 ? source.name : fmt::format("{}-{}", source.name, attempt);
    }
    stems.push_back(std::move(stem));
  }
  return stems;
}

SourceFiles::SourceFiles(const RecordSinkSettings& settings, std::vector<std::string> stems, const std::string& folder,
                         const RunContext& context)
    : settings_(settings), stems_(std::move(stems)), folder_(folder), context_(context) {}

void SourceFiles::add(const RecordSpool& spool, std::size_t file, std::int64_t first, std::int64_t last) {
  open(file);
  sink_->add(spool, first, last);
}

std::vector<ManifestFile> SourceFiles::finish() {
  if (!stems_.empty()) open(stems_.size() - 1);
  close();
  return std::move(files_);
}

void SourceFiles::open(std::size_t file) {
  while (opened_ <= file) {
    close();
    const std::string& stem = stems_[opened_++];
    make_folders(folder_, fs::path(stem).parent_path());
    sink_ = make_record_sink(settings_, folder_, stem, context_);
  }
}

void SourceFiles::close() {
  if (!sink_) return;
  for (ManifestFile& file : sink_->finish()) files_.push_back(std::move(file));
  sink_.reset();
}

}  // namespace shardpack
