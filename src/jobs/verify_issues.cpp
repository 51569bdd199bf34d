#include "jobs/verify_issues.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace shardpack {

void IssueList::add(std::string_view kind, std::string_view file, std::string message, std::int64_t row) {
  auto found = found_.find(kind);
  if (found == found_.end()) found = found_.emplace(std::string(kind), 0).first;
  if (++found->second <= kListedPerKind) listed_.push_back({std::string(kind), std::string(file), row, std::move(message)});
}

void IssueList::merge(IssueList&& other) {
  for (Issue& issue : other.listed_) {
    --other.found_[issue.kind];  // what stays are those that the other list did not keep
    add(issue.kind, issue.file, std::move(issue.message), issue.row);
  }
  for (const auto& [kind, not_listed] : other.found_) found_[kind] += not_listed;
  other.listed_.clear();
  other.found_.clear();
}

std::string without_path(const Error& error) {
  return error.position().empty() ? error.message() : error.position() + ": " + error.message();
}

std::vector<Issue> IssueList::take() {
  for (const auto& [kind, count] : found_) {
    if (count > kListedPerKind) {
      listed_.push_back({kind, "", -1, fmt::format("and {} more of this kind", with_commas(count - kListedPerKind))});
    }
  }
  found_.clear();
  return std::exchange(listed_, {});
}

}  // namespace shardpack
