#include "cli/output_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "cli/option_table.h"
#include "io/file.h"
#include "io/formats/sidecars.h"
#include "io/input_list.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/plan_file.h"
#include "io/system_calls.h"
#include "shardpack/error.h"
#include "shardpack/version.h"

namespace shardpack {

namespace fs = std::filesystem;

namespace {

bool is_special(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

std::string first_bytes(const std::string& path, std::size_t count) {
  std::string bytes(count, '\0');
  const std::size_t read = File(path, File::Mode::read).read_some_at(0, std::as_writable_bytes(std::span(bytes)));
  bytes.resize(read);
  return bytes;
}

bool holds(const std::string& path, std::string_view bytes) {
  std::error_code missing;
  if (fs::file_size(path, missing) != bytes.size() || missing) return false;
  return first_bytes(path, bytes.size()) == bytes;
}

void write_special(const std::string& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!stream) throw_errno("write", path);
}

/// Unlinks its file unless it was renamed.
struct Partial {
  explicit Partial(const std::string& target) : path(target + ".partial") {}
  ~Partial() {
    if (!path.empty()) sys::unlink(path.c_str());
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  std::string path;
};

/// Made empty when it is not there; never cut, for it may be something else by mistake.
void touch(const std::string& path) {
  const int descriptor = sys::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) throw_errno("create", path);
  const int failed = futimens(descriptor, nullptr);
  if (sys::close(descriptor) != 0 || failed != 0) throw_errno("touch", path);
}

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string escaped_for_make(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '$') text += '$';
    if (c == ' ' || c == '\t' || c == '#' || c == ':') text += '\\';
    text += c;
  }
  return text;
}

/// The path of a listed input as the user would write it: by the argument that it came from, else from the working folder.
std::string as_named(const std::string& path, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const fs::path whole = fs::absolute(argument).lexically_normal();
    if (whole == path) return argument;
    const fs::path rest = fs::path(path).lexically_relative(whole);
    if (!rest.empty() && *rest.begin() != "..") return (fs::path(argument) / rest).lexically_normal().string();
  }
  const fs::path rest = fs::path(path).lexically_relative(fs::current_path());
  return rest.empty() || *rest.begin() == ".." ? path : rest.string();
}

/// Data file -> the sidecars beside it, of all files in `folder`.
std::multimap<std::string, std::string> sidecars_in(const fs::path& folder, const std::string& group_column) {
  std::multimap<std::string, std::string> sidecars;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (const std::optional<std::string> data = data_file_of(path, group_column)) sidecars.emplace(*data, path);
  }
  return sidecars;
}

/// Every file that the inputs consist of: data files, each followed by its sidecars.
void append_inputs(std::vector<std::string>& names, const std::vector<std::string>& arguments, const ReadOptions& read) {
  if (arguments.empty() || (arguments.size() == 1 && arguments[0] == "-")) return;
  std::map<std::string, std::multimap<std::string, std::string>> folders;
  for (const InputFile& input : list_inputs(arguments, read)) {
    names.push_back(as_named(input.path, arguments));
    const std::string folder = fs::path(input.path).parent_path().string();
    if (!folders.contains(folder)) folders.emplace(folder, sidecars_in(folder, read.group_column));
    std::set<std::string> beside;  // a folder is listed in no order
    for (auto [at, end] = folders.at(folder).equal_range(input.path); at != end; ++at) beside.insert(at->second);
    for (const SideColumn& column : input.columns) beside.insert(column.path);
    for (const std::string& sidecar : beside) names.push_back(as_named(sidecar, arguments));
  }
}

/// \throws Error{usage} when one of the `written` files is read by the run, or lies beside an input as part of it
void check_not_read(const std::vector<std::string>& written, const Settings& settings) {
  const std::vector<std::string> read = dependencies(settings);
  for (const std::string& path : written) {
    const std::string data = data_file_of(path, settings.pack.read.group_column).value_or(path);
    for (const std::string& input : read) {
      std::error_code ignored;
      if (fs::equivalent(data, input, ignored)) {
        throw Error(ErrorCode::usage, "is read by this command and would be overwritten; choose another place", path);
      }
    }
  }
}

/// Does the command's -o name a folder with a manifest?
bool makes_folder(Command command) {
  return command == Command::pack || command == Command::batch || command == Command::unpack || command == Command::ltd;
}

}  // namespace

void check_output_file(const std::string& path, bool force, std::string_view signature) {
  std::error_code ignored;
  if (!fs::is_directory(parent_of(path), ignored)) throw Error(ErrorCode::io, "its folder does not exist", path);
  if (is_special(path) || !fs::exists(fs::symlink_status(path, ignored))) return;
  if (fs::is_directory(path, ignored)) throw Error(ErrorCode::usage, "is a folder; give a file", path);
  if (!force) throw Error(ErrorCode::usage, "exists; --force replaces it", path);
  if (first_bytes(path, signature.size()) != signature) {
    throw Error(ErrorCode::usage, "exists and is not such a file of shardpack's; --force does not replace it", path);
  }
}

void check_side_files(const Settings& settings) {
  const bool reads_dataset = settings.command == Command::verify || settings.command == Command::inspect;
  const bool names_dataset = reads_dataset || settings.command == Command::join;
  const std::string dataset = names_dataset ? settings.inputs.front() : makes_folder(settings.command) ? settings.output : "";
  std::vector<std::string> written;  // and there already
  const auto note = [&](const std::string& path) {
    std::error_code ignored;
    if (path != "-" && fs::is_regular_file(path, ignored)) written.push_back(path);
  };
  for (const std::string& path : {settings.stats_file, settings.depfile, settings.stamp_file}) {
    if (path.empty()) continue;
    if (!dataset.empty()) {
      const fs::path rest = fs::absolute(path).lexically_relative(fs::absolute(dataset));
      if (!rest.empty() && *rest.begin() != "..") {
        throw Error(ErrorCode::usage,
                    fmt::format("lies in {}, where verify would find it one file too many; choose another place",
                                reads_dataset ? "the dataset" : "the output"),
                    path);
      }
    }
    check_output_file(path, true, "");
    note(path);
  }
  note(settings.output);
  note(settings.write_lengths);
  note(settings.save_scan);
  if (!written.empty()) check_not_read(written, settings);
}

void write_output_file(const std::string& path, std::string_view bytes) {
  if (is_special(path)) return write_special(path, bytes);
  if (holds(path, bytes)) return;
  Partial partial(path);
  File file(partial.path, File::Mode::create, path);
  file.write_at(0, std::as_bytes(std::span(bytes)));
  file.sync();
  file.close();
  if (sys::rename(partial.path.c_str(), path.c_str()) != 0) throw_errno("rename", path);
  partial.path.clear();
  sync_folder(parent_of(path));
}

std::string stats_json(const Settings& settings, const RunFacts& facts, const ProgressBar& progress, int threads) {
  const auto per_second = [](std::int64_t amount, double seconds) {
    return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
  };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", info(settings.command).name).member("tool_version", kVersion);
  json.member("threads", threads).member("memory_bytes", settings.memory_bytes);
  json.member("seconds", facts.seconds);
  json.member("tokens", facts.tokens).key("tokens_per_second").value(per_second(facts.tokens, facts.seconds), 0);
  json.member("input_bytes", facts.input_bytes).member("output_bytes", facts.output_bytes);
  json.member("peak_rss_bytes", std::int64_t{usage.ru_maxrss} * 1024);
  json.member("peak_anonymous_bytes", progress.peak_anonymous_bytes());
  json.key("stages").begin_array();
  for (const StageRecord& stage : progress.stages()) {
    json.begin_object(true);
    json.member("name", stage.name).member("seconds", stage.seconds).member("done", stage.done).member("unit", stage.unit);
    json.key("per_second").value(per_second(stage.done, stage.seconds), 0);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

std::string depfile_text(const std::string& target, const std::vector<std::string>& inputs) {
  std::string rule = escaped_for_make(target) + ":", empty_rules;
  for (const std::string& input : inputs) {
    const std::string name = escaped_for_make(input);
    rule += " \\\n  " + name;
    empty_rules += name + ":\n";
  }
  return rule + "\n" + empty_rules;
}

/// Of a folder of ours, or where it would be.
std::string manifest_in(const std::string& folder) {
  const std::optional<FoundManifest> found = find_manifest(folder);
  return found ? found->path : (fs::path(folder) / kManifestName).string();
}

std::vector<std::string> dependencies(const Settings& settings) {
  std::vector<std::string> names;
  constexpr CommandSet kNamesFolders =
      set_of(Command::verify) | set_of(Command::inspect) | set_of(Command::unpack) | set_of(Command::ltd) | set_of(Command::lint);
  const bool names_folders = (set_of(settings.command) & kNamesFolders) != 0;
  if (names_folders && !settings.ltd.deepspeed.empty()) names.push_back(settings.ltd.deepspeed);
  std::error_code ignored;
  const std::string manifest = settings.inputs.empty() ? "" : manifest_in(settings.inputs.front());
  if (names_folders && !settings.inputs.empty()) {
    for (const std::string& path : settings.inputs) names.push_back(fs::is_directory(path, ignored) ? manifest_in(path) : path);
    append_inputs(names, settings.verify.against, settings.pack.read);
  } else if (settings.command == Command::batch && fs::is_regular_file(manifest, ignored)) {
    names.push_back(manifest);  // rows of a packed dataset
  } else if (!names_folders && settings.command != Command::join) {
    append_inputs(names, settings.inputs, settings.pack.read);
  }
  for (const std::string& file : {settings.config_file, settings.files_from, settings.calibrate, settings.pack.scan}) {
    if (!file.empty() && file != "-") names.push_back(file);
  }
  if (!settings.pack.plan.empty()) {
    for (std::string& file : plan_files_in(settings.pack.plan)) names.push_back(std::move(file));
  }
  std::set<std::string> seen;  // with --allow-repeats
  names.erase(std::remove_if(names.begin(), names.end(), [&](const std::string& name) { return !seen.insert(name).second; }),
              names.end());
  return names;
}

void write_side_files(const Settings& settings, const RunFacts& facts, const ProgressBar& progress, int threads, bool success) {
  if (!settings.stats_file.empty()) write_output_file(settings.stats_file, stats_json(settings, facts, progress, threads));
  if (!settings.depfile.empty()) {
    std::string target = settings.stamp_file.empty() ? settings.output : settings.stamp_file;
    if (settings.stamp_file.empty() && makes_folder(settings.command)) target = manifest_in(target);
    write_output_file(settings.depfile, depfile_text(target, dependencies(settings)));
  }
  if (!settings.stamp_file.empty() && success) touch(settings.stamp_file);
}

}  // namespace shardpack
