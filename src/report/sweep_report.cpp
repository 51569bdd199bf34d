#include "report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"
#include "base/wrap.h"
#include "io/json.h"
#include "report/figures.h"
#include "report/text_grid.h"

namespace shardpack {

namespace {

constexpr std::size_t kDetailsWidth = 120;
constexpr std::array<std::string_view, 4> kOverlong{"error", "truncate", "split", "drop"};
constexpr std::array<std::string_view, 4> kOrders{"", "real", "shuffled", "sampled"};

std::string_view name(Overlong overlong) { return kOverlong[static_cast<std::size_t>(overlong)]; }
std::string_view name(InputOrder order) { return kOrders[static_cast<std::size_t>(order)]; }

double ratio(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

std::int64_t non_empty(const LengthHistogram& lengths) { return lengths.sequences() - lengths.empty(); }

PackingFigures figures_of(const SweepCell& cell) {
  return {.packer = cell.planner,
          .bound_kind = std::string(name(cell.bound.kind)),
          .row_tokens = cell.row_tokens,
          .max_segments = cell.segment_limit,
          .sequences = cell.sequences,
          .segments = cell.segments,
          .tokens = cell.tokens,
          .rows = cell.rows,
          .planned_rows = cell.rows,
          .bound = cell.bound.rows,
          .max_segments_in_row = cell.max_segments_in_row,
          .strategies = cell.strategies};
}

// ---- the table --------------------------------------------------------------------------------------------------------------

/// "+9,999", "+28.2k", "+8.14M": three figures are enough to compare.
std::string short_gap(std::int64_t gap) {
  if (gap == 0) return "=";
  if (gap < 10'000) return fmt::format("+{}", with_commas(gap));
  constexpr std::array<char, 4> kUnits{'k', 'M', 'G', 'T'};
  double value = static_cast<double>(gap) / 1e3;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1e3;
  return fmt::format("+{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string short_share(double share) {
  const double percent = share * 100;
  if (percent > 0 && percent < 0.1) return "<0.1%";
  return fmt::format("{:.{}f}%", percent, percent < 9.95 ? 1 : 0);
}
std::string shorter_share(double share) { return share > 0 && share < 0.005 ? "<1%" : fmt::format("{:.0f}%", share * 100); }

/// Sequences that the packer cuts and the policy would not.
bool cuts_more(const SweepCell& cell, const OverlongCost& over) { return cell.touched_sequences > over.sequences; }

class Table {
 public:
  explicit Table(const SweepResult& result) : result_(result) {}

  std::string text() {
    if (lengths() == 1 && limits() > 1) {
      add_header(limits(), [&](std::size_t k) { return limit_label(k); });
      for (std::size_t p = 0; p < policies(); ++p) {
        add_block(p, "fewest", limits(), [&, p](std::size_t packer, std::size_t k) { return cell_at(0, p, packer, k); });
      }
    } else {
      add_header(lengths(), [&](std::size_t l) { return with_commas(result_.row_tokens[l]); });
      add_overlong();
      for (std::size_t p = 0; p < policies(); ++p) {
        for (std::size_t k = 0; k < limits(); ++k) {
          add_block(p, limits() == 1 ? "fewest" : limit_label(k), lengths(),
                    [&, p, k](std::size_t packer, std::size_t l) { return cell_at(l, p, packer, k); });
        }
      }
    }
    return grid_text(lines_, kPageWidth);
  }

  bool shows_gap = false, shows_cuts = false, shows_random_order = false, shows_overlong_error = false;

 private:
  std::size_t lengths() const { return result_.row_tokens.size(); }
  std::size_t policies() const { return result_.overlong.size(); }
  std::size_t limits() const { return result_.max_segments.size(); }

  std::string limit_label(std::size_t k) const {
    const std::int32_t limit = result_.max_segments[k];
    return limit == 0 ? "-K 0 (no limit)" : fmt::format("-K {}", limit);
  }

  struct Place {
    const SweepCell& cell;
    const OverlongCost& over;
  };
  Place cell_at(std::size_t l, std::size_t p, std::size_t packer, std::size_t k) const {
    return {result_.cell(l, p, packer, k), result_.over[l]};
  }

  template <class Label>
  void add_header(std::size_t columns, Label label) {
    GridLine line{lengths() == 1 && limits() > 1 ? "segments a row" : "row length", {}};
    for (std::size_t c = 0; c < columns; ++c) line.cells.push_back({.figure = label(c), .wide = true});
    lines_.push_back(std::move(line));
  }

  /// What over-long sequences amount to, a column a row length.
  void add_overlong() {
    if (std::none_of(result_.over.begin(), result_.over.end(), [](const OverlongCost& o) { return o.sequences > 0; })) return;
    GridLine over{"over-long", {}}, truncate{"  truncate cuts", {}}, drop{"  drop loses", {}}, split{"  split makes", {}};
    for (const OverlongCost& cost : result_.over) {
      const auto add = [&](GridLine& line, const std::string& text) {
        line.cells.push_back({.figure = cost.sequences == 0 ? "" : text, .wide = true});
      };
      const std::string share = short_share(ratio(cost.sequences, non_empty(result_.lengths)));
      over.cells.push_back({.figure = cost.sequences == 0 ? "none" : fmt::format("{} sequences", share), .wide = true});
      add(truncate, short_share(ratio(cost.truncated_tokens, result_.lengths.tokens())) + " tokens");
      add(drop, short_share(ratio(cost.tokens, result_.lengths.tokens())) + " tokens");
      add(split, fmt::format("{:.1f} pieces", ratio(cost.pieces, cost.sequences)));
    }
    lines_.push_back(std::move(over));
    const bool are_cut =
        std::any_of(result_.over.begin(), result_.over.end(), [](const OverlongCost& o) { return o.pieces > 0; });
    if (are_cut) lines_.push_back(std::move(truncate));
    lines_.push_back(std::move(drop));
    if (are_cut) lines_.push_back(std::move(split));
  }

  /// The fewest rows, and a line a packer. `at(packer, column)` is a Place.
  template <class At>
  void add_block(std::size_t policy, const std::string& label, std::size_t columns, At at) {
    if (policies() > 1 && (lines_.back().label.empty() || policy != last_policy_)) {
      lines_.push_back({fmt::format("--overlong {}", name(result_.overlong[policy])), {}});
      last_policy_ = policy;
    }
    GridLine fewest{label, {}};
    for (std::size_t c = 0; c < columns; ++c) {
      std::int64_t rows = -1;
      for (std::size_t packer = 0; packer < result_.packers.size(); ++packer) {
        const auto& [cell, over] = at(packer, c);
        if (cell.problem.empty() && !cuts_more(cell, over) && (rows < 0 || cell.rows < rows)) rows = cell.rows;
      }
      fewest.cells.push_back({.figure = rows < 0 ? "" : counted(rows, "row", "rows"), .wide = true});
    }
    lines_.push_back(std::move(fewest));
    for (std::size_t packer = 0; packer < result_.packers.size(); ++packer) {
      GridLine line{fmt::format("  {}", result_.packers[packer]), {}};
      for (std::size_t c = 0; c < columns; ++c) line.cells.push_back(grid_cell(at(packer, c)));
      lines_.push_back(std::move(line));
    }
  }

  GridCell grid_cell(const Place& place) {
    const auto& [cell, over] = place;
    if (!cell.problem.empty()) {
      shows_overlong_error |= cell.overlong == Overlong::error && over.sequences > 0;
      return {.figure = "no plan", .wide = true};
    }
    const bool is_knee = result_.knee && &cell == &result_.cells[*result_.knee];
    const bool random_order = cell.order == InputOrder::shuffled || cell.order == InputOrder::sampled;
    shows_random_order |= random_order;
    GridCell shown{.figure =
                       fmt::format("{}{}{}", is_knee ? "*" : "", random_order ? "~" : "", percent_number(cell.efficiency()))};
    if (cuts_more(cell, over)) {
      shows_cuts = true;
      shown.note = "cut " + shorter_share(ratio(cell.touched_sequences, non_empty(result_.lengths)));
    } else {
      shows_gap = true;
      shown.note = short_gap(cell.rows - cell.best_bound);
    }
    return shown;
  }

  const SweepResult& result_;
  std::vector<GridLine> lines_;
  std::size_t last_policy_ = static_cast<std::size_t>(-1);
};

std::string input_text(const SweepResult& result) {
  const LengthHistogram& lengths = result.lengths;
  std::string text =
      fmt::format("{}, {}", counted(lengths.sequences(), "sequence", "sequences"), counted(lengths.tokens(), "token", "tokens"));
  if (lengths.tokens() > 0) {
    text += fmt::format(": {} to {} each, {:.1f} on average", with_commas(lengths.min_length()),
                        with_commas(lengths.max_length()), lengths.mean_length());
  }
  return text + "\n";
}

/// With one row length the table has no place for it.
std::string overlong_text(const SweepResult& result) {
  if (result.row_tokens.size() > 1 || result.max_segments.size() == 1) return "";
  const OverlongCost& cost = result.over.front();
  const std::string row = fmt::format("rows of {} slots: ", with_commas(result.row_tokens.front()));
  if (cost.sequences == 0) return row + "no sequence is longer\n";
  const auto of_tokens = [&](std::int64_t tokens) { return short_share(ratio(tokens, result.lengths.tokens())); };
  std::string text = fmt::format("{}{} of the sequences are longer; drop loses {} of the tokens", row,
                                 short_share(ratio(cost.sequences, non_empty(result.lengths))), of_tokens(cost.tokens));
  if (cost.pieces > 0) {
    text += fmt::format(",\ntruncate cuts {}, split makes {:.1f} pieces each", of_tokens(cost.truncated_tokens),
                        ratio(cost.pieces, cost.sequences));
  }
  return text + "\n";
}

/// Problems that the table does not show already, each once.
std::vector<std::string> other_problems(const SweepResult& result) {
  std::vector<std::string> problems;
  for (std::size_t c = 0; c < result.cells.size(); ++c) {
    const SweepCell& cell = result.cells[c];
    const bool told = cell.overlong == Overlong::error && result.over_of(c).sequences > 0;
    if (cell.problem.empty() || told || std::find(problems.begin(), problems.end(), cell.problem) != problems.end()) continue;
    problems.push_back(cell.problem);
  }
  return problems;
}

std::string legend(const Table& table, const SweepResult& result) {
  std::string text = "cells: % of the slots that hold tokens";
  if (table.shows_gap) text += ", and rows over the best lower bound (= is proven optimal)";
  text += '\n';
  if (table.shows_cuts) text += "cut: share of the sequences that are cut at the end of a row\n";
  if (table.shows_random_order) {
    text += "~ a histogram has no input order: a random one";
    if (non_empty(result.lengths) > kOrderedSequences) {
      text += fmt::format(", estimated from {} sequences", with_commas(kOrderedSequences));
    }
    text += '\n';
  }
  if (table.shows_overlong_error) text += "no plan: some sequences are longer than a row, and --overlong is error\n";
  for (const std::string& problem : other_problems(result)) text += fmt::format("no plan: {}\n", problem);
  return text;
}

/// The flags that choose this cell.
std::string flags_of(const SweepCell& cell, const OverlongCost& over) {
  std::string text = fmt::format("-L {}", cell.row_tokens);
  if (cell.max_segments > 0) text += fmt::format(" -K {}", cell.max_segments);
  if (cell.packer != "auto") text += fmt::format(" --packer {}", cell.packer);
  const bool has_policy = over.sequences > 0 && !cuts_more(cell, over);
  if (has_policy) text += fmt::format(" --overlong {}", name(cell.overlong));
  return text;
}

std::string knee_text(const SweepResult& result) {
  if (!result.knee) return "";
  const SweepCell& cell = result.cells[*result.knee];
  const PackingFigures figures = figures_of(cell);
  std::string text = fmt::format("* take {}\n  {} full, {}", flags_of(cell, result.over_of(*result.knee)),
                                 percent_text(cell.efficiency()), counted(cell.rows, "row", "rows"));
  if (figures.comparable_with_padding()) {
    text +=
        fmt::format(", {:.2f} {} a row of at most {:.2f}", figures.speedup(), figures.packed_unit(), figures.speedup_ceiling());
  }
  return text + fmt::format(
                    "\n  of all choices within {:g} % of the best in lost tokens, cut sequences and fill: the shortest rows,\n"
                    "  then the lowest -K\n",
                    kKneeTolerance * 100);
}

// ---- a line a cell ----------------------------------------------------------------------------------------------------------

std::string details_text(const SweepResult& result) {
  const auto wide = [](std::string text) { return GridCell{.figure = std::move(text), .note = {}, .wide = true}; };
  std::vector<GridLine> lines;
  GridLine header{"row", {}};
  for (const char* title :
       {"overlong", "packer", "-K", "rows", "full", "bound", "kind", "gap", "segments", "most", "strategies", "time"}) {
    header.cells.push_back(wide(title));
  }
  lines.push_back(std::move(header));
  for (const SweepCell& cell : result.cells) {
    GridLine line{std::to_string(cell.row_tokens),
                  {wide(std::string(name(cell.overlong))), wide(cell.packer), wide(std::to_string(cell.max_segments))}};
    if (cell.problem.empty()) {
      const std::string_view kind = name(cell.bound.kind);
      for (std::string text : {std::to_string(cell.rows), percent_number(cell.efficiency()), std::to_string(cell.bound.rows),
                               std::string(kind.substr(0, 4)), std::to_string(cell.rows - cell.bound.rows),
                               fmt::format("{:.2f}", ratio(cell.segments, cell.rows)), std::to_string(cell.max_segments_in_row),
                               std::to_string(cell.strategies), fmt::format("{:.3f}", cell.seconds)}) {
        line.cells.push_back(wide(std::move(text)));
      }
    } else {
      line.cells.push_back(wide("no plan"));
    }
    lines.push_back(std::move(line));
  }
  return grid_text(lines, kDetailsWidth);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}

void write_cell(JsonWriter& json, const SweepResult& result, std::size_t index) {
  const SweepCell& cell = result.cells[index];
  json.begin_object();
  json.member("asked_packer", cell.packer)
      .member("asked_max_segments", cell.max_segments)
      .member("overlong", name(cell.overlong));
  if (!cell.problem.empty()) {
    json.member("row_tokens", cell.row_tokens).member("problem", as_utf8(cell.problem)).end_object();
    return;
  }
  const PackingFigures figures = figures_of(cell);
  write_figures(json, figures, cell.seconds);
  json.member("mean_segments_in_row", ratio(cell.segments, cell.rows))
      .member("ceiling_reached", figures.ceiling() > 0 ? figures.packing_factor() / figures.ceiling() : 0.0)
      .member("best_bound", cell.best_bound)
      .member("touched_sequences", cell.touched_sequences)
      .member("touched_tokens", cell.touched_tokens)
      .member("lost_tokens", cell.lost_tokens())
      .member("estimated", cell.order == InputOrder::sampled)
      .member("knee", result.knee == index);
  json.key("input_order");
  if (cell.order == InputOrder::not_needed) {
    json.null();
  } else {
    json.value(name(cell.order));
  }
  json.key("removed");
  write_removed(json, cell.removed);
  json.key("added").begin_object(true);
  json.member("eos", cell.added_eos).member("bos", cell.added_bos);
  json.end_object();
  json.end_object();
}

}  // namespace

std::string sweep_to_text(const SweepResult& result, bool details) {
  Table table(result);
  const std::string grid = table.text();
  std::string text = input_text(result) + overlong_text(result) + "\n" + grid + "\n" + legend(table, result) + knee_text(result);
  if (details) text.append("\n").append(details_text(result));
  return text;
}

std::string sweep_to_csv(const SweepResult& result) {
  std::string text = fmt::format(
      "{},asked_max_segments,packer,max_segments,sequences,tokens,rows,padding_tokens,efficiency,packing_factor,"
      "mean_segments_in_row,max_segments_in_row,strategies,bound,bound_kind,gap,proven_optimal,speedup_ceiling,ceiling_reached,"
      "best_bound,"
      "touched_sequences,touched_tokens,lost_tokens,input_order,estimated,knee,seconds,problem\n",
      kSweepCsvSignature);
  for (std::size_t c = 0; c < result.cells.size(); ++c) {
    const SweepCell& cell = result.cells[c];
    text += fmt::format("{},{},{},{},", cell.row_tokens, name(cell.overlong), cell.packer, cell.max_segments);
    if (!cell.problem.empty()) {
      text.append(25, ',').append(csv_field(cell.problem)).append("\n");
      continue;
    }
    const PackingFigures f = figures_of(cell);
    text += fmt::format("{},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{},{},{},{},{},{:.6f},{:.6f},", f.packer, f.max_segments,
                        f.sequences, f.tokens, f.rows, f.padding(), f.efficiency(), f.packing_factor(),
                        ratio(cell.segments, cell.rows), f.max_segments_in_row, f.strategies, f.bound, f.bound_kind, f.gap(),
                        f.gap() == 0, f.ceiling(), f.ceiling() > 0 ? f.packing_factor() / f.ceiling() : 0);
    text += fmt::format("{},{},{},{},{},{},{},{:.6f},\n", cell.best_bound, cell.touched_sequences, cell.touched_tokens,
                        cell.lost_tokens(), name(cell.order), cell.order == InputOrder::sampled, result.knee == c, cell.seconds);
  }
  return text;
}

std::string sweep_to_json(const SweepResult& result, double seconds) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "sweep");
  json.member("source_sequences", result.lengths.sequences()).member("source_tokens", result.lengths.tokens());
  json.key("overlong").begin_array();
  for (std::size_t l = 0; l < result.over.size(); ++l) {
    const OverlongCost& cost = result.over[l];
    json.begin_object(true);
    json.member("row_tokens", result.row_tokens[l])
        .member("sequences", cost.sequences)
        .member("tokens", cost.tokens)
        .member("longest", cost.longest)
        .member("truncate_tokens", cost.truncated_tokens)
        .member("split_pieces", cost.pieces);
    json.end_object();
  }
  json.end_array();
  json.key("results").begin_array();
  for (std::size_t c = 0; c < result.cells.size(); ++c) write_cell(json, result, c);
  json.end_array();
  json.key("knee");
  if (result.knee) {
    json.value(static_cast<std::int64_t>(*result.knee));
  } else {
    json.null();
  }
  json.member("knee_tolerance", kKneeTolerance).member("seconds", seconds);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
