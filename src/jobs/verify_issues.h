// What verify finds, kept short: a damaged dataset may break a rule in every row, and the first hundred of a kind tell enough.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/error.h"

namespace shardpack {

class IssueList {
 public:
  static constexpr std::int64_t kListedPerKind = 100;

  /// `file` is relative to the dataset's folder; `row` counts in that shard, -1 when the issue is not about a row.
  void add(std::string_view kind, std::string_view file, std::string message, std::int64_t row = -1);
  void merge(IssueList&& other);

  bool empty() const { return listed_.empty(); }
  /// The issues in the order found, then one line for each kind of which there are more.
  std::vector<Issue> take();

 private:
  std::vector<Issue> listed_;
  std::map<std::string, std::int64_t, std::less<>> found_;  // by kind; more than are listed
};

/// What an error says, without the path: "POSITION: MESSAGE".
std::string without_path(const Error& error);

}  // namespace shardpack
