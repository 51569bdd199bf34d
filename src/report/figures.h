// Figures as the reports of several jobs show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"
#include "shardpack/packing_plan.h"
#include "shardpack/training_shape.h"

namespace shardpack {

/// "99.999 %", cut and not rounded: 100.000 % means that no slot is empty.
std::string percent_text(double share);
std::string percent_number(double share);  ///< the same without its unit

/// "1 row", "1,234 rows".
std::string counted(std::int64_t count, std::string_view singular, std::string_view plural);

/// "truncated 5 (1,234 tokens), dropped 1 (9,000 tokens)", or "nothing".
std::string removed_text(const RemovedCounts& removed);

/// "labels (i32, minus100), score (f64, per sequence)": the columns that are carried.
std::string columns_text(const std::vector<Column>& columns);

/// "121,978 of 124,544 tokens take part in the loss (labels)".
std::string loss_text(const Manifest& manifest);

/// "proven optimal", or "at most 3 rows from the proven optimum".
std::string gap_text(std::int64_t gap);

std::string shape_text(const TrainingShape& shape);  ///< "4 ranks x 1 micro-step of 2 rows"

/// One text report line: "rows          9,094,695\n".
std::string report_line(std::string_view label, std::string_view value);

/// {"empty": {"sequences": 0, "tokens": 0}, ...}; `with_loss`: with "loss_tokens", where a column tells them.
void write_removed(JsonWriter& json, const RemovedCounts& removed, bool with_loss = false);

/// Rows and bound of each group's plan.
std::vector<ManifestGroup> figures_of(const std::vector<GroupPlan>& groups);

/// A line for each group; of many, those with most rows. "" without groups.
std::string groups_text(std::vector<ManifestGroup> groups);

/// [{"key": "web", "rows": 17, "bound": 17}, ...] under the key "groups"; nothing without groups.
void write_groups(JsonWriter& json, const std::vector<ManifestGroup>& groups);

/// The figures that plan and pack have in common, in the order of docs/cli.md.
struct PackingFigures {
  std::string packer, bound_kind;
  std::int64_t row_tokens = 0, max_segments = 0;
  std::int64_t sequences = 0, segments = 0, tokens = 0;  ///< in the rows; tokens with what is added
  std::int64_t unslotted = 0;  ///< of the tokens, those that take no slot: where the preset says so, one of every segment
  std::int64_t rows = 0, planned_rows = 0, bound = 0, max_segments_in_row = 0, strategies = 0;

  std::int64_t slots() const { return tokens - unslotted; }  ///< that hold a token
  std::int64_t padding() const { return planned_rows * row_tokens - slots(); }
  double efficiency() const;      ///< slots taken / slots of the planned rows; 1 for no rows
  double packing_factor() const;  ///< sequences / planned rows; 0 for no rows
  double ceiling() const;         ///< what it could be at most: row_tokens / mean length; 0 for no rows
  /// The same of segments: where sequences were split, padding would take a row for each piece. So this is the speed-up over
  /// padding, except for concat, which cuts wherever a row ends.
  double speedup() const;
  double speedup_ceiling() const;
  bool comparable_with_padding() const { return packer != "concat" && planned_rows > 0; }
  const char* packed_unit() const { return segments == sequences ? "sequences" : "segments"; }
  std::int64_t gap() const { return planned_rows - bound; }
};
void write_figures(JsonWriter& json, const PackingFigures& figures, double seconds);

}  // namespace shardpack
