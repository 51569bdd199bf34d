// What `save_to_disk` of Hugging Face datasets leaves in a folder beside its Arrow files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shardpack {

/// state.json: which files make up the dataset. Folders hold caches of other transformations too, so no other file counts.
struct HfState {
  std::vector<std::string> data_files;     ///< names in the folder, in the dataset's order
  std::vector<std::string> indices_files;  ///< names; not empty: rows are numbers of rows of the data files
};

/// None when there is no state.json of this kind. \throws Error{bad_data} for one that cannot be read.
std::optional<HfState> read_hf_state(const std::filesystem::path& folder, const std::string& shown);

/// The splits of dataset_dict.json, each a folder of its own; none when there is no such file.
std::vector<std::string> read_hf_splits(const std::filesystem::path& folder, const std::string& shown);

}  // namespace shardpack
