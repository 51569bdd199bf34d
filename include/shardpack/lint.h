// lint: mistakes in the random-LTD, curriculum and batch settings of a DeepSpeed JSON config, before they cost a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardpack {

enum class Severity : std::uint8_t {
  error,    ///< the trainer refuses to start, stops, or keeps no token
  warning,  ///< it runs, but not as the config reads
};

struct Finding {
  Severity severity = Severity::error;
  std::string rule;         ///< a word or two: "layer-count"
  std::string path;         ///< of the key: "data_efficiency.data_routing.random_ltd.enabled"
  std::string consequence;  ///< what will happen
  std::string fix;          ///< what to write instead
};

/// What the config alone does not tell.
struct LintOptions {
  bool packed = false;                       ///< rows hold several sequences, or padding
  std::optional<std::int64_t> loader_batch;  ///< rows a step that the data loader really gives
  std::optional<std::int64_t> world;         ///< data-parallel ranks
  std::optional<std::int64_t> hidden_size;
  std::string layer_prefix;  ///< names of the model's layers up to their number: "transformer.h."
};

struct LintResult {
  std::vector<Finding> findings;  ///< errors first
  bool random_ltd = false;        ///< it is switched on
  std::int64_t rules = 0;         ///< that were checked

  std::int64_t count(Severity severity) const;
  bool ok() const { return count(Severity::error) == 0; }
};

/// \throws Error{io} for a file that cannot be read, Error{bad_data} for one that is not a JSON object
LintResult lint(const std::string& path, const LintOptions& options);
/// The same of a config's text, which messages call `shown`.
LintResult lint_text(const std::string& text, const std::string& shown, const LintOptions& options);

}  // namespace shardpack
