// Columns by name, for the formats whose records have them: which names mean what, and what to say when one is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

inline constexpr std::string_view kMaskColumn = "attention_mask";  ///< positions with 0 are padding

/// Names as an error lists them: 'a', 'b'.
std::string quoted_list(const std::vector<std::string>& names);

/// What helps where records have `names` but not `ids_column`: another name, or tokenizing first. `loader` is the Python
/// expression that loads such a file as a dataset, `saver` the method that saves one.
std::string no_ids_message(const std::string& ids_column, const std::vector<std::string>& names, std::string_view loader,
                           std::string_view saver);

}  // namespace shardpack
