#include "io/input_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "io/column_choice.h"
#include "io/file.h"
#include "io/formats/sidecars.h"
#include "io/hf_folder.h"
#include "io/manifest_parts.h"
#include "io/npy.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// What lies in dataset folders and is never a shard. Anything else in a folder must be one: data silently left out is worse
/// than an error.
constexpr std::array kNotShards{"README*",
                                "LICENSE*",
                                "NOTICE*",
                                "CHANGELOG*",
                                "*.md",
                                "*.txt",
                                "*.rst",
                                "*.html",
                                "*.log",
                                "*.py",
                                "*.sh",
                                "*.yaml",
                                "*.yml",
                                "*.toml",
                                "*config.json",
                                "tokenizer*.json",
                                "*.model",
                                "*SUMS",
                                "*.md5",
                                "*.sha256",
                                "_SUCCESS",
                                "*.ds.metadata",
                                "vocab.json",
                                "special_tokens_map.json",
                                "meta.pkl",
                                "added_tokens.json",
                                "dataset_info.json",
                                "state.json",
                                "dataset_dict.json"};

bool is_never_a_shard(const std::string& base) {
  return std::any_of(kNotShards.begin(), kNotShards.end(),
                     [&](const char* pattern) { return ::fnmatch(pattern, base.c_str(), 0) == 0; });
}

/// One file before repeats are looked for.
struct Candidate {
  std::string path;
  bool by_sidecar = false;  // named by a file beside it; that is no repeat of the data file itself
};

struct Listing {
  const ReadOptions& options;  // say which side files are no shards, and which split is wanted
  bool split_found = false;
  std::vector<Candidate> files;
  std::optional<fs::path> root;  // the deepest folder above all inputs so far

  void add_root(const fs::path& folder) {
    if (!root) {
      root = folder;
      return;
    }
    const auto [end, ignored] = std::mismatch(root->begin(), root->end(), folder.begin(), folder.end());
    fs::path common;
    for (auto part = root->begin(); part != end; ++part) common /= *part;
    root = common;
  }
};

[[noreturn]] void fail_io(std::string_view verb, const std::error_code& error, const std::string& path) {
  throw Error(ErrorCode::io, fmt::format("cannot {}: {}", verb, error.message()), path);
}

/// Absolute, without "." and ".."; a last link is kept, because its name is the one that sidecars are found by.
fs::path normal(const std::string& argument) {
  std::error_code error;
  fs::path path(argument);
  if (fs::is_directory(path, error)) {
    path = fs::canonical(path, error);
  } else {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    path = fs::canonical(folder, error) / path.filename();
  }
  if (error) fail_io("find", error, argument);
  return path;
}

/// Could X.WORD.npy beside X hold token ids, for all that its name, its header and the options say?
bool may_hold_tokens(const std::string& path, const std::string& shown, const ReadOptions& options) {
  const std::string column = column_of_name(path);
  if (is_aligned_name(column) || is_named(options.columns, column) || is_placed_name(column, options.positions_columns))
    return false;
  try {
    const NpyHeader header = read_npy_header(File(path, File::Mode::read, shown));
    const bool whole_numbers = holds_numbers(header) && header.descr.find_first_of("iu") != std::string::npos;
    return whole_numbers && (header.shape.size() == 2 || (header.shape.size() == 1 && options.eos_id));
  } catch (const Error&) {  // no NPY file, as OLMo's are
    return true;
  }
}

/// Is a file of a folder or a glob a column of another one? Token ids taken for a column would be missing from the rows, and a
/// column taken for token ids would be trained on, so what could be either is refused.
bool is_column(const std::string& path, const std::string& shown, const ReadOptions& options) {
  const std::optional<std::string> owner = owner_of_column(path);
  if (!owner) return false;
  if (!may_hold_tokens(path, shown, options)) return true;
  throw Error(ErrorCode::usage,
              fmt::format("beside {0} this looks like a column of it, not token ids: --columns aligned,{1} carries it along, "
                          "--group-column {1} groups by it, else give the data files themselves, or keep it elsewhere",
                          fs::path(*owner).filename().string(), column_of_name(path)),
              shown);
}

/// The same file or folder, whatever the names: links are followed.
using Identity = std::pair<dev_t, ino_t>;
Identity identity_of(const std::string& path, const std::string& shown) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno("open", shown);
  return {status.st_dev, status.st_ino};
}

/// A shard in a folder, and its place in the folder's order.
struct Found {
  std::string key;
  std::string path;

  friend bool operator<(const Found& a, const Found& b) { return std::tie(a.key, a.path) < std::tie(b.key, b.path); }
  friend bool operator==(const Found& a, const Found& b) { return a.path == b.path; }
};

/// The files of a folder that `save_to_disk` wrote, in the order of its state.json; with an indices table, which takes rows from
/// them in another order, state.json stands for them all.
void list_hf_dataset(const fs::path& folder, const std::string& shown, const HfState& state, std::vector<Found>& found) {
  const auto add = [&](const std::string& name) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored)) {
      throw Error(ErrorCode::io, "state.json names it as part of the dataset, and it is not there",
                  (fs::path(shown) / name).string());
    }
    found.push_back({fmt::format("{}/{:09}", folder.string(), found.size()), (folder / name).string()});
  };
  if (!state.indices_files.empty()) return add("state.json");
  for (const std::string& name : state.data_files) add(name);
}

/// The split to read of a folder with dataset_dict.json.
std::string choose_split(const std::vector<std::string>& splits, const std::string& shown, Listing& listing) {
  listing.split_found = true;
  if (listing.options.split.empty() && splits.size() == 1) return splits[0];
  if (listing.options.split.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("a dataset of {} splits ({}); choose one by --split NAME", splits.size(), fmt::join(splits, ", ")),
                shown);
  }
  if (std::find(splits.begin(), splits.end(), listing.options.split) == splits.end()) {
    throw Error(ErrorCode::usage, fmt::format("--split {}: its splits are {}", listing.options.split, fmt::join(splits, ", ")),
                shown);
  }
  return listing.options.split;
}

/// Collects the shards below `folder`. `above` are the folders on the way to it, so that a link to one of them cannot loop.
void list_folder(const fs::path& folder, const std::string& shown, Listing& listing, std::vector<Identity>& above,
                 std::vector<Found>& found) {
  if (has_manifest_of(folder.string(), kPackedFormat)) {
    throw Error(ErrorCode::usage,
                "a packed dataset, not source shards; give the shards that it was made from (shardpack inspect lists them)",
                shown);
  }
  if (const std::vector<std::string> splits = read_hf_splits(folder, shown); !splits.empty()) {
    const std::string split = choose_split(splits, shown, listing);
    return list_folder(folder / split, (fs::path(shown) / split).string(), listing, above, found);
  }
  if (const std::optional<HfState> state = read_hf_state(folder, shown)) return list_hf_dataset(folder, shown, *state, found);
  const Identity own = identity_of(folder.string(), shown);
  if (std::find(above.begin(), above.end(), own) != above.end()) return;
  above.push_back(own);
  const bool unpacked = has_manifest_of(folder.string(), kUnpackedFormat);  // what unpack wrote beside the sources
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
    const fs::path& path = entries->path();
    const std::string base = path.filename().string();
    const std::string shown_entry = (fs::path(shown) / base).string();
    if (base.starts_with('.')) continue;
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_directory(status)) {
      list_folder(path, shown_entry, listing, above, found);
    } else if (is_never_a_shard(base) || (unpacked && (base == kManifestName || base == "removed.csv"))) {
      continue;
    } else if (!fs::exists(status)) {
      throw Error(ErrorCode::io, "a link to a file that is not there", shown_entry);
    } else if (fs::is_regular_file(status) && !data_file_of(path.string(), listing.options.group_column) &&
               !is_column(path.string(), shown_entry, listing.options)) {
      found.push_back({path.string(), path.string()});
    }
  }
  if (error) fail_io("list", error, shown);
  above.pop_back();
}

std::vector<Found> shards_below(const fs::path& folder, const std::string& shown, Listing& listing) {
  std::vector<Identity> above;
  std::vector<Found> found;
  list_folder(folder, shown, listing, above, found);
  return found;
}

/// A folder or a match of a glob, in byte order of the whole name.
void add_sorted(std::vector<Found> found, const std::string& argument, Listing& listing) {
  if (found.empty()) {
    throw Error(ErrorCode::bad_data, "no shard in it; `shardpack formats` lists what can be read", argument);
  }
  std::sort(found.begin(), found.end());
  for (Found& shard : found) listing.files.push_back({std::move(shard.path), false});
}

void add_folder(const fs::path& folder, const std::string& argument, Listing& listing) {
  add_sorted(shards_below(folder, argument, listing), argument, listing);
  listing.add_root(folder);
}

void add_file(const fs::path& path, Listing& listing) {
  const std::optional<std::string> data = data_file_of(path.string(), listing.options.group_column);
  listing.files.push_back({data.value_or(path.string()), data.has_value()});
  listing.add_root(path.parent_path());
}

/// Paths that the pattern matches; none when it matches nothing.
std::vector<std::string> expand(const std::string& pattern) {
  glob_t matches{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &matches);
  std::vector<std::string> paths(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (result != 0 && result != GLOB_NOMATCH) throw Error(ErrorCode::io, "cannot read a folder of this pattern", pattern);
  return paths;
}

void add_glob(const std::vector<std::string>& matches, const std::string& argument, Listing& listing) {
  std::vector<Found> found;
  for (const std::string& match : matches) {
    const fs::path path = normal(match);
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const std::vector<Found> below = shards_below(path, match, listing);
      found.insert(found.end(), below.begin(), below.end());
      listing.add_root(path);
    } else if (!is_never_a_shard(path.filename().string())) {
      // "*.idx" stands for the data files; "*" matches both, and the data file is listed once.
      std::optional<std::string> data = data_file_of(path.string(), listing.options.group_column);
      if (!data && is_column(path.string(), match, listing.options)) data = owner_of_column(path.string());
      const std::string shard = data.value_or(path.string());
      found.push_back({shard, shard});
      listing.add_root(path.parent_path());
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  add_sorted(std::move(found), argument, listing);
}

void add_argument(const std::string& argument, Listing& listing) {
  std::error_code error;
  const fs::file_status status = fs::status(argument, error);
  if (fs::is_directory(status)) return add_folder(normal(argument), argument, listing);
  if (fs::exists(status)) return add_file(normal(argument), listing);
  // A bare prefix, as Megatron's own options take it.
  if (fs::exists(argument + ".idx", error)) return add_file(normal(argument + ".idx"), listing);
  if (argument.find_first_of("*?[") != std::string::npos) {
    const std::vector<std::string> matches = expand(argument);
    if (matches.empty()) throw Error(ErrorCode::bad_data, "the pattern matches no file", argument);
    return add_glob(matches, argument, listing);
  }
  errno = ENOENT;
  throw_errno("open", argument);
}

}  // namespace

namespace {

/// Tells each input its columns: the files beside it that are named as such and are no inputs themselves.
void find_columns(std::vector<InputFile>& inputs, const ReadOptions& options) {
  std::set<std::string> given;
  std::set<fs::path> folders;
  for (const InputFile& input : inputs) {
    given.insert(input.path);
    folders.insert(fs::path(input.path).parent_path());
  }
  std::map<std::string, std::vector<SideColumn>> columns;  // by data file
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
      const std::string path = entries->path().string();
      const std::optional<std::string> owner = given.contains(path) ? std::nullopt : owner_of_column(path);
      if (owner) columns[*owner].push_back({column_of_name(path), path, {}});
    }
  }
  for (InputFile& input : inputs) {
    for (SideColumn& column : columns[input.path]) {
      if (column.column == options.group_column) continue;
      column.name = fs::path(input.name).replace_filename(fs::path(column.path).filename()).string();
      input.columns.push_back(column);
    }
    std::sort(input.columns.begin(), input.columns.end(),
              [](const SideColumn& a, const SideColumn& b) { return a.column < b.column; });
  }
}

/// What a shell makes of *.npy: files, and their columns by name.
void leave_out_columns(Listing& listing) {
  std::set<std::string> given;
  for (const Candidate& candidate : listing.files) given.insert(candidate.path);
  std::erase_if(listing.files, [&](const Candidate& candidate) {
    const std::optional<std::string> owner = owner_of_column(candidate.path);
    return owner && given.contains(*owner) && !may_hold_tokens(candidate.path, candidate.path, listing.options);
  });
}

}  // namespace

std::vector<InputFile> list_inputs(const std::vector<std::string>& arguments, const ReadOptions& options) {
  if (arguments.empty()) throw Error(ErrorCode::usage, "no input; give files, folders or globs");
  const bool standard_input = std::find(arguments.begin(), arguments.end(), "-") != arguments.end();
  if (standard_input && arguments.size() > 1) {
    throw Error(ErrorCode::usage, "standard input (-) cannot be combined with other inputs");
  }
  if (standard_input) return {{"-", "standard input"}};

  Listing listing{.options = options, .files = {}, .root = {}};
  for (const std::string& argument : arguments) add_argument(argument, listing);
  if (!options.split.empty() && !listing.split_found) {
    throw Error(ErrorCode::usage,
                fmt::format("--split {}: no input is a folder with a dataset_dict.json, which has splits", options.split));
  }
  leave_out_columns(listing);

  std::set<std::string> given_itself;
  for (const Candidate& candidate : listing.files) {
    if (!candidate.by_sidecar) given_itself.insert(candidate.path);
  }
  std::vector<InputFile> inputs;
  std::map<Identity, std::string> seen;
  std::set<std::string> by_sidecar;
  for (const Candidate& candidate : listing.files) {
    // `scan data/*` spelt out by a shell names data files and their sidecars: each pair is one input.
    if (candidate.by_sidecar && (given_itself.contains(candidate.path) || !by_sidecar.insert(candidate.path).second)) continue;
    std::string name = candidate.path.substr(listing.root->string().size());
    name.erase(0, name.find_first_not_of('/'));
    const auto [earlier, is_new] = seen.try_emplace(identity_of(candidate.path, name), name);
    if (!is_new && !options.allow_repeats) {
      throw Error(ErrorCode::usage,
                  fmt::format("given more than once{}; --allow-repeats reads it again",
                              earlier->second == name ? "" : fmt::format(" (also as {})", earlier->second)),
                  name);
    }
    inputs.push_back({candidate.path, std::move(name)});
  }
  find_columns(inputs, options);
  return inputs;
}

}  // namespace shardpack
