#include "io/column_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "base/units.h"
#include "core/column_values.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

ColumnSeen& ColumnSeen::operator+=(const ColumnSeen& later) {
  records += later.records;
  number = number || later.number;
  text = text || later.text;
  list = list || later.list;
  other = other || later.other;
  equal_length = equal_length && later.equal_length;
  lengths.insert(lengths.end(), later.lengths.begin(), later.lengths.end());
  return *this;
}

namespace {

/// Aligned with the ids by their names, beside those of the loss.
constexpr std::array<std::string_view, 5> kAlignedNames{"token_type_ids", "special_tokens_mask", "position_ids", "segment_ids",
                                                        "attention_mask"};

/// Files of a shard that are not a column's, and what is worked out anew for packed rows.
constexpr std::array<std::string_view, 11> kOwnNames{"input_ids",     "segment_ids",        "position_ids", "row_offsets",
                                                     "seq_source",    "seq_lengths",        "seq_added",    "seq_slots",
                                                     "batch_offsets", "batch_slot_offsets", kFirstLabelStem};

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A column's name is a file's name.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  return !name.empty() && name.size() <= 200 && name[0] != '.' && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

/// Why it cannot be carried; "" when it can.
std::string obstacle(std::string_view name, const ColumnSeen& seen, std::int64_t records, std::optional<ColumnKind> kind) {
  if (is_one_of(name, kOwnNames)) return "packed rows have their own";
  if (!is_plain_name(name)) return "its name cannot be a file's; rename it to letters, digits, _, - and .";
  if (name.ends_with(kOffsetsSuffix)) return fmt::format("names ending in {} are those of lists' offsets", kOffsetsSuffix);
  const bool listed = kind ? *kind == ColumnKind::list || *kind == ColumnKind::text : seen.text || !seen.equal_length;
  if (listed && is_one_of(fmt::format("{}{}", name, kOffsetsSuffix), kOwnNames))
    return "its offsets would have the name of packed rows' own";
  if (seen.other || int{seen.number} + int{seen.text} + int{seen.list} > 1)
    return "it holds neither numbers, lists of numbers nor strings throughout";
  if (seen.records < records) {
    return fmt::format("it is missing or null in {} of the first {} records", with_commas(records - seen.records),
                       with_commas(records));
  }
  if (!kind) return "";
  const bool fits = *kind == ColumnKind::token || *kind == ColumnKind::list ? seen.list
                    : *kind == ColumnKind::text                             ? seen.text
                                                                            : seen.number;
  if (records > 0 && !fits) return fmt::format("it is not of kind {}", kColumnKinds[static_cast<std::size_t>(*kind)]);
  return "";
}

ColumnKind kind_of(std::string_view name, const ColumnSeen& seen) {
  if (seen.text) return ColumnKind::text;
  if (seen.number) return ColumnKind::sequence;
  return seen.equal_length || is_aligned_name(name) ? ColumnKind::token : ColumnKind::list;
}

const ColumnChoice::Named* named(const ColumnChoice& choice, std::string_view name) {
  const auto found =
      std::find_if(choice.names.begin(), choice.names.end(), [&](const auto& entry) { return entry.name == name; });
  return found == choice.names.end() ? nullptr : &*found;
}

bool is_wanted(const ColumnChoice& choice, ColumnKind kind, bool has_name) {
  switch (choice.which) {
    case ColumnChoice::Which::aligned:
      return has_name || kind == ColumnKind::token || kind == ColumnKind::sequence;
    case ColumnChoice::Which::all:
      return true;
    case ColumnChoice::Which::none:
      return false;
    case ColumnChoice::Which::named:
      return has_name;
  }
  return false;
}

[[noreturn]] void fail_missing(std::string_view option, const std::string& wanted, const ColumnsSeen& seen,
                               const std::string& file) {
  std::vector<std::string> names;
  for (const auto& [name, what] : seen) names.push_back(name);
  const std::string near = nearest(wanted, names);
  throw Error(ErrorCode::usage,
              fmt::format("{} {}: there is no such column{}; there are {}", option, wanted,
                          near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                          names.empty() ? "none beside the ids" : fmt::format("{}", fmt::join(names, ", "))),
              file);
}

// ---- values that belong to tokens -------------------------------------------------------------------------------------------

/// Of BERT pre-training data everywhere.
constexpr std::string_view kMaskedPositions = "masked_lm_positions";

bool goes_with(std::string_view column, std::string_view positions) {
  const std::string_view stem = stem_of_positions(positions);
  return column == positions || (!stem.empty() && column.starts_with(stem));
}

std::ptrdiff_t common_letters(std::string_view a, std::string_view b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// The positions column that a column goes with (Column::places): by its name, else by lists of equal lengths throughout.
std::string places_of(const std::string& name, const ColumnsSeen& seen, const ReadOptions& options) {
  const ColumnSeen& what = seen.find(name)->second;
  const ColumnChoice::Named* const asked = named(options.columns, name);
  const std::optional<ColumnKind> said = asked != nullptr ? asked->kind : std::nullopt;
  if (!what.list || (said && *said != ColumnKind::list)) return "";
  if (is_one_of(name, options.positions_columns)) return name;
  std::string best;
  for (const std::string& positions : options.positions_columns) {
    const auto found = seen.find(positions);
    if (found == seen.end()) continue;
    const bool equal = found->second.lengths == what.lengths && !what.lengths.empty();
    const bool per_token = is_aligned_name(name) || (what.equal_length && !equal);
    if (per_token) continue;
    if (goes_with(name, positions)) return positions;
    const bool free = !said && !what.equal_length;  // neither said nor seen to be something else
    if (free && equal && (best.empty() || common_letters(name, positions) > common_letters(name, best))) best = positions;
  }
  return best;
}

/// Can the columns of --positions-columns be what it says?
void check_positions(const ColumnsSeen& seen, std::int64_t records, const ReadOptions& options, const std::string& file) {
  for (const std::string& name : options.positions_columns) {
    const auto fail = [&](std::string_view why) {
      throw Error(ErrorCode::usage, fmt::format("--positions-columns {}: {}", name, why), file);
    };
    if (is_excluded(options.columns, name)) fail("--columns leaves it out");
    if (records == 0) continue;
    const auto found = seen.find(name);
    if (found == seen.end()) fail_missing("--positions-columns", name, seen, file);
    if (!found->second.list) fail("it is not a list of numbers in every record");
    const ColumnChoice::Named* const asked = named(options.columns, name);
    const std::optional<ColumnKind> said = asked != nullptr ? asked->kind : std::nullopt;
    if (said && *said != ColumnKind::list) fail("--columns says that it is of another kind than list");
    if (const std::string why = obstacle(name, found->second, records, said); !why.empty()) fail(why);
  }
}

constexpr std::array<std::string_view, 3> kWhich{"aligned", "all", "none"};  // the first of ColumnChoice::Which

/// The part before `separator`, which goes with it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

ColumnChoice::Named parse_name(std::string_view entry) {
  const auto fail = [entry](std::string_view why) {
    throw Error(ErrorCode::usage,
                fmt::format("--columns: '{}' {}; a column is NAME, NAME:KIND or NAME:KIND:ALIGNMENT with KIND one "
                            "of {} and ALIGNMENT one of {}",
                            entry, why, fmt::join(kColumnKinds, ", "), fmt::join(kAlignments, ", ")));
  };
  std::string_view rest = entry;
  ColumnChoice::Named named{std::string(take(rest, ':')), {}, {}};
  if (named.name.empty()) fail("has no name");
  while (!rest.empty()) {
    const std::string_view word = take(rest, ':');
    const auto kind = std::find(kColumnKinds.begin(), kColumnKinds.end(), word);
    const auto alignment = std::find(kAlignments.begin(), kAlignments.end(), word);
    if (kind != kColumnKinds.end() && !named.kind) {
      named.kind = static_cast<ColumnKind>(kind - kColumnKinds.begin());
    } else if (alignment != kAlignments.end() && !named.alignment) {
      named.alignment = static_cast<Alignment>(alignment - kAlignments.begin());
    } else {
      fail(fmt::format("says '{}'", word));
    }
  }
  if (named.alignment && named.kind && *named.kind != ColumnKind::token) fail("has an alignment, which only kind token has");
  return named;
}

}  // namespace

ColumnChoice parse_column_choice(std::string_view text) {
  ColumnChoice choice;
  std::string_view rest = text;
  bool first = true;
  do {
    const std::string_view entry = take(rest, ',');
    const auto which = std::find(kWhich.begin(), kWhich.end(), entry);
    if (first) choice.which = ColumnChoice::Which::named;
    if (which != kWhich.end()) {
      if (!first) throw Error(ErrorCode::usage, fmt::format("--columns {}: '{}' stands first or not at all", text, entry));
      choice.which = static_cast<ColumnChoice::Which>(which - kWhich.begin());
    } else {
      choice.names.push_back(parse_name(entry));
    }
    first = false;
  } while (!rest.empty());
  if (choice.which == ColumnChoice::Which::none && !choice.names.empty())
    throw Error(ErrorCode::usage, fmt::format("--columns {}: none and names contradict each other", text));
  return choice;
}

std::string to_text(const ColumnChoice& choice) {
  std::string text;
  if (choice.which != ColumnChoice::Which::named) text = kWhich[static_cast<std::size_t>(choice.which)];
  for (const ColumnChoice::Named& named : choice.names) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", named.name);
    if (named.kind) text += fmt::format(":{}", kColumnKinds[static_cast<std::size_t>(*named.kind)]);
    if (named.alignment) text += fmt::format(":{}", kAlignments[static_cast<std::size_t>(*named.alignment)]);
  }
  return text;
}

std::vector<std::string> parse_positions_columns(std::string_view text) {
  std::vector<std::string> names;
  std::string_view rest = text;
  do {
    std::string name(take(rest, ','));
    if (name.empty() || is_one_of(name, names))
      throw Error(ErrorCode::usage, fmt::format("--positions-columns {}: names of columns, each once", text));
    names.push_back(std::move(name));
  } while (!rest.empty());
  return names;
}

std::string unequal_lists(std::string_view column, std::int64_t values, std::string_view positions, std::int64_t places) {
  return fmt::format("{} has {} values for {} of {}, with which it goes, value by value", column, with_commas(values),
                     with_commas(places), positions);
}

std::string unequal_to_ids(std::string_view column, std::int64_t values, std::int64_t ids) {
  return fmt::format("{} has {} values for {} token ids; --columns {}:list carries it as a list of its own length", column,
                     with_commas(values), with_commas(ids), column);
}

bool is_placed_name(std::string_view column, const std::vector<std::string>& positions_columns) {
  return goes_with(column, kMaskedPositions) ||
         std::any_of(positions_columns.begin(), positions_columns.end(),
                     [&](const std::string& positions) { return goes_with(column, positions); });
}

bool is_named(const ColumnChoice& choice, std::string_view column) { return named(choice, column) != nullptr; }

bool is_excluded(const ColumnChoice& choice, std::string_view column) {
  return choice.which == ColumnChoice::Which::none || (choice.which == ColumnChoice::Which::named && !is_named(choice, column));
}

bool is_aligned_name(std::string_view column) { return is_loss_name(column) || is_one_of(column, kAlignedNames); }

ChosenColumns choose_columns(const ColumnsSeen& seen, std::int64_t records, const ReadOptions& options, const std::string& name) {
  const ColumnChoice& choice = options.columns;
  ChosenColumns chosen;
  if (records > 0) {
    for (const ColumnChoice::Named& wanted : choice.names) {
      if (!seen.contains(wanted.name)) fail_missing("--columns", wanted.name, seen, name);
    }
  }
  check_positions(seen, records, options, name);
  for (const auto& [column, what] : seen) {
    const ColumnChoice::Named* const asked = named(choice, column);
    const std::optional<ColumnKind> said = asked != nullptr ? asked->kind : std::nullopt;
    const std::string why_not = obstacle(column, what, records, said);
    std::string places = places_of(column, seen, options);
    const ColumnKind kind = places.empty() ? said.value_or(kind_of(column, what)) : ColumnKind::list;
    const bool wanted = is_wanted(choice, kind, asked != nullptr || (!places.empty() && !is_excluded(choice, column)));
    if (!why_not.empty() && asked != nullptr && choice.which != ColumnChoice::Which::none) {
      throw Error(ErrorCode::usage, fmt::format("--columns {}: {}", column, why_not), name);
    }
    if (!wanted || !why_not.empty()) {
      chosen.not_carried.push_back(column);
      continue;
    }
    Alignment alignment = column == "labels" && kind == ColumnKind::token ? Alignment::minus100 : Alignment::plain;
    if (asked != nullptr && asked->alignment) alignment = *asked->alignment;
    chosen.carried.push_back({column, kind, ValueType::i64, alignment, std::move(places)});
  }
  return chosen;
}

}  // namespace shardpack
