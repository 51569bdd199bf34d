#include "report/lint_report.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/wrap.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

constexpr std::size_t kIndent = 4;  ///< of what does not fit on a finding's first line

const char* name(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

}  // namespace

std::string lint_to_text(const LintResult& result, std::string_view path) {
  std::string text;
  for (const Finding& finding : result.findings) {
    text += fmt::format("{}: {}\n  ", name(finding.severity), printable(finding.path));
    append_words(text, fmt::format("{}: {}", finding.rule, printable(finding.consequence)), kIndent);
    text += "\n  ";
    append_words(text, "fix: " + printable(finding.fix), kIndent);
    text += '\n';
  }
  return text + fmt::format("{}: {}, {}; {}{}\n", path, counted(result.count(Severity::error), "error", "errors"),
                            counted(result.count(Severity::warning), "warning", "warnings"),
                            counted(result.rules, "rule", "rules"), result.random_ltd ? "" : " (random-LTD is off)");
}

std::string lint_to_json(const LintResult& result, std::string_view path) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "lint").member("path", path).member("ok", result.ok());
  json.member("random_ltd", result.random_ltd).member("rules", result.rules);
  json.member("errors", result.count(Severity::error)).member("warnings", result.count(Severity::warning));
  json.key("findings").begin_array();
  for (const Finding& finding : result.findings) {
    json.begin_object(true);
    json.member("severity", name(finding.severity)).member("rule", finding.rule).member("path", finding.path);
    json.member("consequence", finding.consequence).member("fix", finding.fix);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
