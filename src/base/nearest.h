// "Did you mean": the candidate nearest to what was typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours), if that is at most a third of
/// its length plus one; "" otherwise. The first of equals wins.
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);

}  // namespace shardpack
