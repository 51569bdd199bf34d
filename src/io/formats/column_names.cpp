#include "io/formats/column_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardpack {

std::string quoted_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) list += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  return names.size() > kMost ? list + ", ..." : list;
}

std::string no_ids_message(const std::string& ids_column, const std::vector<std::string>& names, std::string_view loader,
                           std::string_view saver) {
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  std::string message = fmt::format("no column '{}'", ids_column);
  constexpr std::array<std::string_view, 4> kUsualNames{"input_ids", "tokens", "ids", "token_ids"};
  const auto usual = std::find_if(kUsualNames.begin(), kUsualNames.end(), has);
  if (usual != kUsualNames.end()) {
    message += fmt::format("; there are {}: add --ids-column {}", quoted_list(names), *usual);
  } else if (has("text") || has("messages")) {
    const std::string_view ids = has("text") ? "tok(row['text'])" : "tok.apply_chat_template(row['messages'], return_dict=True)";
    message += fmt::format(
        " but '{}': tokenize first, for instance in Python: {}.map(lambda row: {{'input_ids': {}['input_ids']}})"
        ".select_columns('input_ids').{}(NEW)",
        has("text") ? "text" : "messages", loader, ids, saver);
  } else if (!names.empty()) {
    message += fmt::format("; there are {}: name the one with the token ids by --ids-column", quoted_list(names));
  } else {
    message += "; there are no columns at all";
  }
  return message;
}

}  // namespace shardpack
