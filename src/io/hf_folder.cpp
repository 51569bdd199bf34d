#include "io/hf_folder.h"

#include <system_error>

#include "io/file.h"
#include "io/json.h"
#include "io/safe_name.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;

std::optional<Json> read_json(const std::filesystem::path& path, const std::string& shown) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  return Json::parse(read_small_file(path.string(), kMaxBytes), (std::filesystem::path(shown) / path.filename()).string());
}

std::string name_in_folder(const Json& name) {
  std::string text = name.as_string();
  if (!is_plain_relative_path(text)) name.fail("expected the name of something in the folder");
  return text;
}

std::vector<std::string> file_names(const Json& state, std::string_view key) {
  std::vector<std::string> names;
  if (!state.has(key) || state.at(key).is_null()) return names;
  const Json list = state.at(key);
  for (std::size_t i = 0; i < list.size(); ++i) names.push_back(name_in_folder(list.at(i).at("filename")));
  return names;
}

}  // namespace

std::optional<HfState> read_hf_state(const std::filesystem::path& folder, const std::string& shown) {
  const std::optional<Json> state = read_json(folder / "state.json", shown);
  if (!state || !state->is_object() || !state->has("_data_files")) return std::nullopt;
  return HfState{file_names(*state, "_data_files"), file_names(*state, "_indices_data_files")};
}

std::vector<std::string> read_hf_splits(const std::filesystem::path& folder, const std::string& shown) {
  const std::optional<Json> dict = read_json(folder / "dataset_dict.json", shown);
  std::vector<std::string> names;
  if (!dict) return names;
  const Json list = dict->at("splits");
  for (std::size_t i = 0; i < list.size(); ++i) names.push_back(name_in_folder(list.at(i)));
  if (names.empty()) list.fail("expected at least one split");
  return names;
}

}  // namespace shardpack
