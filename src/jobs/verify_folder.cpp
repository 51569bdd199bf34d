#include "jobs/verify_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/units.h"
#include "io/owned_folder.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// Names in a folder, hidden ones too, sorted.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  if (failed) throw Error(ErrorCode::io, fmt::format("cannot list the folder: {}", failed.message()), folder);
  std::sort(names.begin(), names.end());
  return names;
}

class FolderCheck {
 public:
  FolderCheck(const PackedDataset& dataset, IssueList& issues) : dataset_(dataset), issues_(issues) {}

  std::set<std::string, std::less<>> run() {
    std::set<std::string, std::less<>> top{std::string(kManifestName)};
    for (const ManifestFile& file : dataset_.manifest().files) {
      top.insert(file.name);
      check_file("", file);
    }
    std::set<std::string, std::less<>> trainer{std::string(kHiddenFolder)};
    const auto check_trainer_files = [&](const std::vector<ManifestFile>& files) {
      for (const ManifestFile& file : files) {
        trainer.insert(file.name);
        check_size(file.name, file, [&] { return dataset_.trainer_path(file.name); });
      }
    };
    for (const ManifestShard& shard : dataset_.shards()) {
      top.insert(shard.folder);
      check_shard(shard);
      check_trainer_files(shard.trainer_files);
    }
    check_trainer_files(dataset_.manifest().trainer_files);
    find_extra(dataset_.folder(), "", top);
    if (dataset_.native()) return std::move(whole_);
    find_extra(dataset_.trainer_folder(), "", trainer);
    return std::move(whole_);
  }

 private:
  void check_file(const std::string& folder, const ManifestFile& file) {
    check_size(relative_name(folder, file.name), file, [&] { return dataset_.file_path(folder, file.name); });
  }

  /// \param find  gives the file's path, or says that it is not there
  template <class Find>
  void check_size(const std::string& shown, const ManifestFile& file, Find find) {
    std::string path;
    try {
      path = find();
    } catch (const Error& error) {
      issues_.add("missing", shown, without_path(error));
      return;
    }
    std::error_code failed;
    const auto bytes = fs::is_regular_file(path, failed) ? static_cast<std::int64_t>(fs::file_size(path, failed)) : -1;
    if (failed || bytes < 0) {
      issues_.add("missing", shown, failed ? failed.message() : "not a regular file");
    } else if (bytes != file.bytes) {
      issues_.add("size", shown, fmt::format("{} bytes, expected {}", with_commas(bytes), with_commas(file.bytes)));
    } else {
      whole_.insert(shown);
    }
  }

  void check_shard(const ManifestShard& shard) {
    const std::string path = dataset_.folder() + "/" + shard.folder;
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      issues_.add("missing", shard.folder, "the shard's folder is not there");
      return;
    }
    std::set<std::string, std::less<>> names;
    for (const ManifestFile& file : shard.files) {
      names.insert(file.name);
      check_file(shard.folder, file);
    }
    find_extra(path, shard.folder, names);
  }

  void find_extra(const std::string& path, const std::string& folder, const std::set<std::string, std::less<>>& listed) {
    for (const std::string& name : entries_of(path)) {
      if (folder.empty() && name == kOwnerMarker) continue;
      if (!listed.contains(name)) issues_.add("extra", relative_name(folder, name), "the manifest does not list it");
    }
  }

  const PackedDataset& dataset_;
  IssueList& issues_;
  std::set<std::string, std::less<>> whole_;
};

}  // namespace

std::string relative_name(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

std::set<std::string, std::less<>> check_folder(const PackedDataset& dataset, IssueList& issues) {
  return FolderCheck(dataset, issues).run();
}

}  // namespace shardpack
