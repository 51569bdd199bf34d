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

[[noreturn]] void fail_missing(const std::string& wanted, const ColumnsSeen& seen, const std::string& file) {
  std::vector<std::string> names;
  for (const auto& [name, what] : seen) names.push_back(name);
  const std::string near = nearest(wanted, names);
  throw Error(ErrorCode::usage,
              fmt::format("--columns {}: there is no such column{}; there are {}", wanted,
                          near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                          names.empty() ? "none beside the ids" : fmt::format("{}", fmt::join(names, ", "))),
              file);
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
      if (!seen.contains(wanted.name)) fail_missing(wanted.name, seen, name);
    }
  }
  for (const auto& [column, what] : seen) {
    const ColumnChoice::Named* const asked = named(choice, column);
    const std::optional<ColumnKind> said = asked != nullptr ? asked->kind : std::nullopt;
    const std::string why_not = obstacle(column, what, records, said);
    const ColumnKind kind = said.value_or(kind_of(column, what));
    const bool wanted = is_wanted(choice, kind, asked != nullptr);
    if (!why_not.empty() && asked != nullptr && choice.which != ColumnChoice::Which::none) {
      throw Error(ErrorCode::usage, fmt::format("--columns {}: {}", column, why_not), name);
    }
    if (!wanted || !why_not.empty()) {
      chosen.not_carried.push_back(column);
      continue;
    }
    Alignment alignment = column == "labels" && kind == ColumnKind::token ? Alignment::minus100 : Alignment::plain;
    if (asked != nullptr && asked->alignment) alignment = *asked->alignment;
    chosen.carried.push_back({column, kind, ValueType::i64, alignment});
  }
  return chosen;
}

}  // namespace shardpack
