#include "io/formats/sidecars.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace shardpack {

namespace {

/// A sidecar's name is the data file's with one suffix in place of another.
struct Pair {
  std::string_view sidecar, data;
};
constexpr std::array<Pair, 7> kPairs{{
    {".bos.idx", ".bin"},  // of NeMo Automodel; not needed, and its unit differs between writer and reader
    {".idx", ".bin"},
    {".csv.gz", ".npy"},
    {".ds.index", ".ds"},
    {".ds.metadata", ".ds"},
    {".ds.datalist", ".ds"},
    {".ds.loss", ".ds"},
}};

/// A list of lengths or offsets belongs to a data file of any suffix.
constexpr std::array<std::string_view, 2> kBoundaryLists{".lengths.npy", ".offsets.npy"};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string without(std::string_view path, std::string_view suffix) {
  return std::string(path.substr(0, path.size() - suffix.size()));
}

/// The first by name when there are several, so that no order of listing matters.
std::optional<std::string> file_with_stem(const std::string& stem) {
  for (const std::string_view suffix : {"", ".npy", ".bin"}) {
    if (std::string path = stem + std::string(suffix); is_file(path)) return path;
  }
  const std::filesystem::path wanted(stem);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
  std::optional<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (path.stem() == wanted.filename() && is_file(path.string()) && (!found || path.string() < *found)) found = path.string();
  }
  return found;
}

}  // namespace

std::optional<std::string> data_file_of(const std::string& path, const std::string& group_column) {
  if (const std::string suffix = "." + group_column + ".npy"; !group_column.empty() && path.ends_with(suffix)) {
    return file_with_stem(without(path, suffix));
  }
  for (const std::string_view suffix : kBoundaryLists) {
    if (path.ends_with(suffix)) return file_with_stem(without(path, suffix));
  }
  for (const Pair& pair : kPairs) {
    if (!path.ends_with(pair.sidecar)) continue;
    const std::string data = without(path, pair.sidecar) + std::string(pair.data);
    if (is_file(data)) return data;
  }
  // The supervised layout of OLMo keeps a mask beside the ids.
  const std::filesystem::path whole(path);
  constexpr std::string_view kMask = "labels_mask_part";
  if (const std::string base = whole.filename().string(); base.starts_with(kMask)) {
    const std::string data = (whole.parent_path() / ("token_ids_part" + base.substr(kMask.size()))).string();
    if (is_file(data)) return data;
  }
  return std::nullopt;
}

std::optional<std::string> owner_of_column(const std::string& path) {
  constexpr std::string_view kSuffix = ".npy";
  if (!path.ends_with(kSuffix)) return std::nullopt;
  const std::string stem = without(path, kSuffix);
  const auto has_boundaries = [](const std::string& of) {
    return std::any_of(kBoundaryLists.begin(), kBoundaryLists.end(),
                       [&](std::string_view list) { return is_file(of + std::string(list)); });
  };
  const std::filesystem::path named(stem);
  const std::string word = named.extension().string();  // with its dot
  const bool is_list = std::any_of(kBoundaryLists.begin(), kBoundaryLists.end(),
                                   [&](std::string_view list) { return list == word + std::string(kSuffix); });
  if (word.size() < 2 || word.find_first_not_of("0123456789", 1) == std::string::npos || is_list || has_boundaries(stem))
    return std::nullopt;
  const std::string owner = without(stem, word);
  for (const std::string_view suffix : {".npy", ".bin", ".ds"}) {
    if (std::string data = owner + std::string(suffix); is_file(data)) return data;
  }
  return has_boundaries(owner) ? file_with_stem(owner) : std::nullopt;
}

std::string column_of_name(const std::string& path) {
  const std::string word = std::filesystem::path(path).stem().extension().string();
  return word.empty() ? word : word.substr(1);
}

std::string missing_data_file_of(const std::string& path) {
  for (const Pair& pair : kPairs) {
    if (path.ends_with(pair.sidecar) && !data_file_of(path, "")) return without(path, pair.sidecar) + std::string(pair.data);
  }
  return {};
}

}  // namespace shardpack
