#include "report/verify_text.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "report/figures.h"

namespace shardpack {

namespace {

std::string issue_line(const Issue& issue) {
  std::string place = issue.file;
  if (issue.row >= 0) place += fmt::format("{}row {}", place.empty() ? "" : ", ", with_commas(issue.row));
  return fmt::format("{}: {}{}{}\n", issue.kind, printable(place), place.empty() ? "" : ": ", printable(issue.message));
}

}  // namespace

std::string verify_to_text(const VerifyResult& result, std::string_view path, double seconds) {
  std::string text;
  if (result.ok()) {
    for (const std::string& line : result.checked) text += line + "\n";
  } else {
    for (const Issue& issue : result.issues) text += issue_line(issue);
  }
  const std::string read = fmt::format("{} read in {:.1f} s", short_bytes(result.bytes), seconds);
  if (result.ok()) return text + fmt::format("{} holds: {}\n", path, read);
  return text + fmt::format("{} does not hold: {}; {}\n", path,
                            counted(static_cast<std::int64_t>(result.issues.size()), "issue", "issues"), read);
}

}  // namespace shardpack
