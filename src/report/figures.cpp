#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/printable.h"
#include "base/units.h"
#include "io/group_key_text.h"

namespace shardpack {

namespace {
double ratio(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }
}  // namespace

std::string percent_number(double share) { return fmt::format("{:.3f}", std::floor(share * 1e5) / 1e3); }
std::string percent_text(double share) { return percent_number(share) + " %"; }

std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", with_commas(count), count == 1 ? singular : plural);
}

std::string removed_text(const RemovedCounts& removed) {
  std::string text;
  for (std::size_t cause = 0; cause < removed.size(); ++cause) {
    const RemovedCount& count = removed[cause];
    if (count.sequences == 0 && count.tokens == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kRemovalCauses[cause], with_commas(count.sequences));
    if (count.tokens == 0) continue;
    text += fmt::format(" ({}", counted(count.tokens, "token", "tokens"));
    if (count.loss_tokens > 0) text += fmt::format(", {} of the loss", with_commas(count.loss_tokens));
    text += ")";
  }
  return text.empty() ? "nothing" : text;
}

std::string columns_text(const std::vector<Column>& columns) {
  std::string text;
  for (const Column& column : columns) {
    const std::string_view type = column.kind == ColumnKind::text ? "text" : info(column.type).name;
    text += fmt::format("{}{} ({}", text.empty() ? "" : ", ", column.name, type);
    if (column.alignment != Alignment::plain)
      text += fmt::format(", {}", kAlignments[static_cast<std::size_t>(column.alignment)]);
    if (column.kind == ColumnKind::sequence || column.kind == ColumnKind::text) text += ", per sequence";
    if (holds_places(column)) {
      text += ", positions";
    } else if (is_placed(column)) {
      text += fmt::format(", at {}", column.places);
    } else if (column.kind == ColumnKind::list) {
      text += ", lists";
    }
    text += ")";
  }
  return text;
}

std::string loss_text(const Manifest& manifest) {
  return fmt::format("{} of {} tokens take part in the loss ({})", with_commas(manifest.loss_tokens),
                     with_commas(manifest.tokens), manifest.loss_column);
}

std::string shape_text(const TrainingShape& shape) {
  return fmt::format("{} x {} of {}", counted(shape.world, "rank", "ranks"),
                     counted(shape.accumulation, "micro-step", "micro-steps"), counted(shape.micro_batch, "row", "rows"));
}

std::string gap_text(std::int64_t gap) {
  return gap == 0 ? "proven optimal" : fmt::format("at most {} from the proven optimum", counted(gap, "row", "rows"));
}

std::string report_line(std::string_view label, std::string_view value) { return fmt::format("{:<13} {}\n", label, value); }

void write_removed(JsonWriter& json, const RemovedCounts& removed, bool with_loss) {
  json.begin_object();
  for (std::size_t cause = 0; cause < removed.size(); ++cause) {
    json.key(kRemovalCauses[cause]).begin_object(true);
    json.member("sequences", removed[cause].sequences).member("tokens", removed[cause].tokens);
    if (with_loss) json.member("loss_tokens", removed[cause].loss_tokens);
    json.end_object();
  }
  json.end_object();
}

std::vector<ManifestGroup> figures_of(const std::vector<GroupPlan>& groups) {
  std::vector<ManifestGroup> figures;
  figures.reserve(groups.size());
  for (const GroupPlan& group : groups) figures.push_back({group.key, group.plan.rows(), group.plan.bound.rows});
  return figures;
}

std::string groups_text(std::vector<ManifestGroup> groups) {
  constexpr std::size_t kListed = 10;
  if (groups.empty()) return {};
  std::ranges::stable_sort(groups, std::greater(), &ManifestGroup::rows);
  std::string text = report_line("groups", with_commas(static_cast<std::int64_t>(groups.size())));
  for (std::size_t g = 0; g < std::min(groups.size(), kListed); ++g) {
    text += fmt::format("  {}: {}, {}\n", printable(group_text(groups[g].key)), counted(groups[g].rows, "row", "rows"),
                        gap_text(groups[g].rows - groups[g].bound));
  }
  if (groups.size() > kListed) text += fmt::format("  ... and {} more (--json lists all)\n", groups.size() - kListed);
  return text;
}

void write_groups(JsonWriter& json, const std::vector<ManifestGroup>& groups) {
  if (groups.empty()) return;
  json.key("groups").begin_array();
  for (const ManifestGroup& group : groups) {
    json.begin_object(true)
        .key("key")
        .raw(group_text(group.key))
        .member("rows", group.rows)
        .member("bound", group.bound)
        .end_object();
  }
  json.end_array();
}

double PackingFigures::efficiency() const {
  if (planned_rows == 0) return 1;
  return static_cast<double>(slots()) / (static_cast<double>(planned_rows) * static_cast<double>(row_tokens));
}

double PackingFigures::packing_factor() const { return ratio(sequences, planned_rows); }
double PackingFigures::ceiling() const { return static_cast<double>(row_tokens) * ratio(sequences, slots()); }
double PackingFigures::speedup() const { return ratio(segments, planned_rows); }
double PackingFigures::speedup_ceiling() const { return static_cast<double>(row_tokens) * ratio(segments, slots()); }

void write_figures(JsonWriter& json, const PackingFigures& figures, double seconds) {
  json.member("packer", figures.packer)
      .member("row_tokens", figures.row_tokens)
      .member("max_segments", figures.max_segments)
      .member("sequences", figures.sequences)
      .member("tokens", figures.tokens)
      .member("rows", figures.rows)
      .member("padding_tokens", figures.padding())
      .member("efficiency", figures.efficiency())
      .member("packing_factor", figures.packing_factor())
      .member("max_segments_in_row", figures.max_segments_in_row)
      .member("strategies", figures.strategies)
      .member("bound", figures.bound)
      .member("bound_kind", figures.bound_kind)
      .member("gap", figures.gap())
      .member("proven_optimal", figures.gap() == 0)
      .member("speedup_ceiling", figures.ceiling())
      .member("seconds", seconds);
}

}  // namespace shardpack
