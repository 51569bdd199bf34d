// One document a line, so that a fault has a line number and nothing can merge two lines or lose a cut one. Columns that are not
// read are skipped over, not judged: Python writes NaN into them.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "base/units.h"
#include "core/placed_values.h"
#include "io/formats/column_names.h"
#include "io/formats/group_column.h"
#include "io/formats/integer_list.h"
#include "io/formats/jsonl_block.h"
#include "io/text_line.h"

namespace shardpack {

namespace {

namespace ondemand = simdjson::ondemand;

static_assert(kLineBlockPadding >= simdjson::SIMDJSON_PADDING, "the parser reads beyond a block's text");

/// Parses the lines of one block.
class BlockParser {
 public:
  /// `carried`: columns to be read beside the ids.
  BlockParser(const ReadOptions& options, const std::vector<Column>& carried) : options_(options), carried_(carried) {}

  /// What the first records of a file hold, up to kSettlingRecords of them or the first that has a fault.
  ColumnsSeen observe(const LineBlock& block, std::int64_t& records) {
    ColumnsSeen seen;
    records = 0;
    const std::string_view lines = block.begins_file ? without_byte_order_mark(block.lines()) : block.lines();
    try {
      for_each_line(lines, [&](std::string_view line) {
        if (trimmed(line).empty()) return true;
        observe_line(line, seen);
        return ++records < kSettlingRecords;
      });
    } catch (const LineFault&) {  // parse() comes across it, and says where it is
    }
    return seen;
  }

  JsonlBlock parse(const LineBlock& block) {
    result_.columns.resize(carried_.size());
    result_.ids.reserve(block.bytes / 5);  // an id of four digits and its comma
    const std::string_view lines = block.begins_file ? without_byte_order_mark(block.lines()) : block.lines();
    const char* const end = lines.data() + lines.size();
    try {
      if (block.line_limit > 0) fail_too_long(block.line_limit);
      for_each_line(lines, [&](std::string_view line) {
        const bool cut_short = block.ends_file && line.data() + line.size() == end;  // it has no newline
        if (!trimmed(line).empty()) parse_line(line, cut_short);
        ++result_.lines;
        return true;
      });
    } catch (LineFault& fault) {
      fault.line = result_.lines;
      result_.fault = std::move(fault);
    }
    result_.groups.keys = numbering_.keys();
    if (result_.fault) return std::move(result_);
    for (std::size_t c = 0; c < carried_.size(); ++c) result_.columns[c].settle(carried_[c].kind);
    return std::move(result_);
  }

 private:
  bool is_set_apart(std::string_view name) const {
    return name == options_.ids_column || name == kMaskColumn ||
           (!options_.group_column.empty() && name == options_.group_column);
  }

  void observe_line(std::string_view line, ColumnsSeen& seen) {
    line_ = line;
    cut_short_ = false;
    std::optional<std::int64_t> ids;
    struct Found {
      std::string name;
      ColumnSeen column;
      std::optional<std::int64_t> entries;  // of a list of numbers
    };
    std::vector<Found> all;  // of a line that turns out faulty nothing counts
    for_each_field([&](std::string_view name, ondemand::value value) {
      if (name == options_.ids_column) {
        ids = count_numbers(value);
      } else if (!is_set_apart(name)) {
        Found& found = all.emplace_back(Found{std::string(name), {}, {}});
        found.entries = observe_value(value, found.column);
      }
    });
    for (Found& found : all) {
      found.column.equal_length = !found.entries || found.entries == ids;
      if (found.entries) found.column.lengths = {*found.entries};
      seen[found.name] += found.column;
    }
  }

  /// \return the entries of a list of numbers
  std::optional<std::int64_t> observe_value(ondemand::value value, ColumnSeen& column) {
    const std::string_view text = token(value);
    if (text == "null") return std::nullopt;
    ++column.records;
    if (text.starts_with('[')) {
      if (const std::optional<std::int64_t> entries = count_numbers(value)) {
        column.list = true;
        return entries;
      }
      column.other = true;
    } else if (text.starts_with('{')) {
      column.other = true;
    } else if (text.starts_with('"')) {
      column.text = true;
    } else {
      column.number = true;
    }
    return std::nullopt;
  }

  /// Entries of a list; none when it is no list, or holds something but numbers, true and false.
  std::optional<std::int64_t> count_numbers(ondemand::value value) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return std::nullopt;
    std::int64_t entries = 0;
    bool numbers = true;
    for (auto element : array) {
      ondemand::value entry;
      check(element.get(entry));
      const std::string_view text = token(entry);
      numbers = numbers && !text.empty() && std::string_view("[{\"n").find(text[0]) == std::string_view::npos;
      ++entries;
    }
    return numbers ? std::optional(entries) : std::nullopt;
  }

  void parse_line(std::string_view line, bool cut_short) {
    line_ = line;
    cut_short_ = cut_short;
    std::optional<std::size_t> mask_entries;
    std::optional<GroupKey> group;
    bool ids_found = false, ids_null = false, mask_null = false, group_found = false;
    const bool grouped = !options_.group_column.empty();
    const std::size_t first = result_.ids.size();
    begin_columns();

    for_each_field([&](std::string_view name, ondemand::value value) {
      if (name == options_.ids_column) {
        if (std::exchange(ids_found, true)) fail_repeated(name);
        ids_null = !read_ids(value);
      } else if (name == kMaskColumn) {
        if (mask_entries) fail_repeated(name);
        mask_null = !read_mask(value);
        mask_entries = mask_.size();
      } else if (grouped && name == options_.group_column) {
        if (std::exchange(group_found, true)) fail_repeated(name);
        group = group_key(value);
      } else {
        read_column(name, value);
      }
    });
    if (!ids_found) fail_no_ids();
    const bool group_null = grouped && !group;
    if (group_null && options_.null_row == NullRow::error) fail_no_group(group_found);

    if (group_null || ids_null) drop_columns();
    if (group_null) {  // without a group it has no place in a row
      result_.ids.resize(first);
      ++result_.null_records;
    } else if (ids_null) {
      if (options_.null_row == NullRow::error) {
        throw LineFault{fmt::format("{} is null; --null-row drop leaves such records out", options_.ids_column)};
      }
      ++result_.null_records;
    } else if (mask_null) {
      throw LineFault{fmt::format("{} is null; expected as many 0 and 1 as token ids", kMaskColumn)};
    } else {
      check_columns(result_.ids.size() - first);
      if (mask_entries) remove_padding(first);
    }
    result_.lengths.push_back(static_cast<std::int64_t>(result_.ids.size() - first));
    if (grouped) result_.groups.of_record.push_back(group ? numbering_.number_of(*group) : -1);
    for (std::size_t i = first; i < result_.ids.size(); ++i) {
      result_.id_min = std::min(result_.id_min, result_.ids[i]);
      result_.id_max = std::max(result_.id_max, result_.ids[i]);
    }
  }

  ondemand::document iterate() {
    if (line_.size() > parser_.capacity()) {  // in steps: growing for every longer line would be quadratic
      const std::size_t capacity = std::max(std::bit_ceil(line_.size()), std::size_t{1} << 16);
      if (parser_.allocate(capacity) != simdjson::SUCCESS) throw std::bad_alloc();
    }
    ondemand::document document;
    check(parser_.iterate(line_.data(), line_.size(), line_.size() + simdjson::SIMDJSON_PADDING).get(document));
    return document;
  }

  /// Calls visit(name, value) for the fields of the line's one object.
  template <class Visit>
  void for_each_field(Visit visit) {
    ondemand::document document = iterate();
    ondemand::object object;
    const simdjson::error_code opened = document.get_object().get(object);
    if (trimmed(line_)[0] != '{') fail_not_an_object();
    check(opened);
    for (auto field : object) {
      std::string_view name;
      ondemand::value value;
      check(field.unescaped_key().get(name));
      check(field.value().get(value));
      visit(name, value);
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) throw LineFault{"more than one JSON value on the line"};
  }

  /// The text from the value on, with what may be read behind the line. Does not step over the value.
  const char* text_of(ondemand::value value) const { return value.raw_json_token().data(); }

  /// Appends the ids of a list to the result; false for null.
  bool read_ids(ondemand::value value) {
    if (read_integer_list(text_of(value), result_.ids)) return true;
    const std::string_view column = options_.ids_column;  // something else is there: step by step, to say what
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      if (token(value) == "null") return false;
      throw LineFault{fmt::format("{} is {}; expected a list of token ids", column, described(value))};
    }
    std::int64_t index = 0;
    for (auto element : array) {
      std::uint64_t id = 0;
      const simdjson::error_code error = element.get_uint64().get(id);
      if (error != simdjson::SUCCESS || id > std::numeric_limits<std::uint32_t>::max()) {
        ondemand::value found;
        check(element.get(found));
        fail_id(index, found);
      }
      result_.ids.push_back(static_cast<std::uint32_t>(id));
      ++index;
    }
    return true;
  }

  // ---- columns --------------------------------------------------------------------------------------------------------------

  /// Where a record's values of a column begin, and whether it has any.
  struct ColumnState {
    std::size_t first = 0;
    bool found = false, null = false;
  };

  void begin_columns() {
    states_.assign(carried_.size(), {});
    for (std::size_t c = 0; c < carried_.size(); ++c) states_[c].first = result_.columns[c].size();
  }

  /// Take the value in when the column is carried, else note its name.
  void read_column(std::string_view name, ondemand::value value) {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (carried_[c].name != name) continue;
      if (std::exchange(states_[c].found, true)) fail_repeated(name);
      states_[c].null = token(value) == "null";
      if (!states_[c].null) read_values(carried_[c], value, result_.columns[c]);
      return;
    }
    if (result_.other_columns.find(name) == result_.other_columns.end()) result_.other_columns.emplace(name);
  }

  void read_values(const Column& column, ondemand::value value, JsonlColumn& values) {
    if (column.kind == ColumnKind::text) {
      std::string_view text;
      if (value.get_string().get(text) != simdjson::SUCCESS) fail_kind(column, "a string", value);
      return values.add(text);
    }
    if (column.kind == ColumnKind::sequence) return read_number(column, value, -1, values);
    whole_.clear();
    if (read_integer_list(text_of(value), whole_)) return values.add(whole_);
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) fail_kind(column, "a list of numbers", value);
    std::int64_t index = 0;
    for (auto element : array) {
      ondemand::value entry;
      check(element.get(entry));
      read_number(column, entry, index++, values);
    }
  }

  /// `index`: in its list; -1 = it is in none.
  void read_number(const Column& column, ondemand::value value, std::int64_t index, JsonlColumn& values) {
    std::int64_t whole = 0;
    double fraction = 0;
    bool flag = false;
    if (value.get_int64().get(whole) == simdjson::SUCCESS) return values.add(whole);
    if (value.get_bool().get(flag) == simdjson::SUCCESS) return values.add(std::int64_t{flag});
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (token(value) == "NaN") return values.add(std::numeric_limits<double>::quiet_NaN());  // as Python writes them
    if (token(value) == "Infinity") return values.add(kInfinity);
    if (token(value) == "-Infinity") return values.add(-kInfinity);
    const bool written_as_fraction = token(value).find_first_of(".eE") != std::string_view::npos;
    const std::string place = index < 0 ? "" : fmt::format("[{}]", with_commas(index));
    if (written_as_fraction && value.get_double().get(fraction) == simdjson::SUCCESS) {
      if (column.alignment != Alignment::minus100) return values.add(fraction);
      throw LineFault{
          fmt::format("{0}{1} is {2}; labels are token ids or -100, and --columns aligned,{0}:plain carries them as "
                      "any other column",
                      column.name, place, described(value))};
    }
    throw LineFault{fmt::format("{}{} is {}; expected a number, whole ones within 64 bits, or true or false", column.name, place,
                                described(value))};
  }

  [[noreturn]] void fail_kind(const Column& column, std::string_view expected, ondemand::value value) {
    throw LineFault{
        fmt::format("{} is {}; expected {}, which it is in the first records", column.name, described(value), expected)};
  }

  /// Every column is there and as long as it should be for a record of `ids` ids.
  void check_columns(std::size_t ids) {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const Column& column = carried_[c];
      JsonlColumn& values = result_.columns[c];
      if (!states_[c].found || states_[c].null) {
        throw LineFault{fmt::format("{} '{}', which the records before have; --columns names those to carry, without it",
                                    states_[c].found ? "null in the column" : "no column", column.name)};
      }
      const std::size_t count = values.size() - states_[c].first;
      if (column.kind == ColumnKind::token && count != ids) {
        throw LineFault{unequal_to_ids(column.name, static_cast<std::int64_t>(count), static_cast<std::int64_t>(ids))};
      }
      if (is_listed(column)) values.lengths.push_back(static_cast<std::int64_t>(count));
    }
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (is_placed(carried_[c])) check_placed(c, static_cast<std::int64_t>(ids));
    }
  }

  /// A value for each position, and positions in the sequence.
  void check_placed(std::size_t c, std::int64_t ids) const {
    const std::size_t where = places_column(carried_, carried_[c]);
    const std::int64_t count = result_.columns[c].lengths.back(), places = result_.columns[where].lengths.back();
    if (count != places) throw LineFault{unequal_lists(carried_[c].name, count, carried_[where].name, places)};
    if (c != where) return;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::optional<std::int64_t> place = result_.columns[c].whole(states_[c].first + static_cast<std::size_t>(i));
      if (place && *place >= 0 && *place < ids) continue;
      throw LineFault{fmt::format("{}[{}] is {}; it is a position in a sequence of {} tokens", carried_[c].name, with_commas(i),
                                  place ? std::to_string(*place) : "no whole number", with_commas(ids))};
    }
  }

  /// For a record that is left out: nothing for its tokens, and a place among the records.
  void drop_columns() {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      JsonlColumn& values = result_.columns[c];
      values.resize(states_[c].first);
      if (carried_[c].kind == ColumnKind::sequence) values.add(std::int64_t{0});
      if (is_listed(carried_[c])) values.lengths.push_back(0);
    }
  }

  /// Nothing for null.
  std::optional<GroupKey> group_key(ondemand::value value) {
    std::string_view text;
    std::int64_t number = 0;
    bool flag = false;
    if (value.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
    if (value.get_int64().get(number) == simdjson::SUCCESS) return number;
    if (value.get_bool().get(flag) == simdjson::SUCCESS) return flag;
    if (token(value) == "null") return std::nullopt;
    throw LineFault{fmt::format("{} is {}; groups are told by a string, a whole number, true or false", options_.group_column,
                                described(value))};
  }

  [[noreturn]] void fail_no_group(bool found) {
    constexpr std::string_view kLeaveOut = "; --null-row drop leaves such records out";
    if (found) throw LineFault{fmt::format("{} is null{}", options_.group_column, kLeaveOut)};
    LineFault fault{fmt::format("no column '{}'; there are {}", options_.group_column, quoted_list(column_names()))};
    fault.missing_column = true;
    fault.else_help = kLeaveOut;
    throw fault;
  }

  [[noreturn]] void fail_id(std::int64_t index, ondemand::value value) {
    const std::string_view text = token(value);
    std::string rule = "token ids are whole numbers from 0";
    if (text.find_first_not_of("0123456789") == std::string_view::npos && (text == "0" || text[0] != '0')) {
      rule = "token ids are below 2^32";
    } else if (text.find_first_of(".eE") != std::string_view::npos &&
               text.find_first_not_of("+-.eE0123456789") == std::string_view::npos) {
      rule += ", written without a fraction or exponent";
    }
    throw LineFault{fmt::format("{}[{}] is {}; {}", options_.ids_column, with_commas(index), described(value), rule)};
  }

  /// Reads the mask into mask_; false for null.
  bool read_mask(ondemand::value value) {
    mask_.clear();
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      if (token(value) == "null") return false;
      throw LineFault{fmt::format("{} is {}; expected a list of 0 and 1", kMaskColumn, described(value))};
    }
    for (auto element : array) {
      std::uint64_t number = 0;
      bool flag = false;
      if (element.get_uint64().get(number) == simdjson::SUCCESS && number <= 1) {
        mask_.push_back(static_cast<std::uint8_t>(number));
      } else if (element.get_bool().get(flag) == simdjson::SUCCESS) {
        mask_.push_back(flag ? 1 : 0);
      } else {
        ondemand::value found;
        check(element.get(found));
        throw LineFault{fmt::format("{}[{}] is {}; expected 0 or 1", kMaskColumn,
                                    with_commas(static_cast<std::int64_t>(mask_.size())), described(found))};
      }
    }
    return true;
  }

  /// Takes the ids from `first` on whose mask is 0 out of the result.
  void remove_padding(std::size_t first) {
    std::vector<std::uint32_t>& ids = result_.ids;
    if (mask_.size() != ids.size() - first) {
      throw LineFault{fmt::format("{} has {} entries for {} token ids", kMaskColumn,
                                  with_commas(static_cast<std::int64_t>(mask_.size())),
                                  with_commas(static_cast<std::int64_t>(ids.size() - first)))};
    }
    std::size_t kept = first;
    for (std::size_t i = 0; i < mask_.size(); ++i) {
      if (mask_[i] != 0) ids[kept++] = ids[first + i];
    }
    if (kept == ids.size()) return;
    ++result_.padding.sequences;
    result_.padding.tokens += static_cast<std::int64_t>(ids.size() - kept);
    ids.resize(kept);
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (holds_places(carried_[c])) remove_placed(c);
      if (carried_[c].kind == ColumnKind::token) keep_masked(c, mask_);
    }
  }

  /// Of column `c`, what belongs to the line; what goes is counted where it tells the loss.
  void keep_masked(std::size_t c, const std::vector<std::uint8_t>& mask) {
    JsonlColumn& column = result_.columns[c];
    if (static_cast<int>(c) == loss_)
      result_.padding.loss_tokens += column.count_masked_loss(carried_[c], states_[c].first, mask);
    column.keep_masked(states_[c].first, mask);
  }

  /// Takes the positions out whose mask is 0, and what goes with them; the others count what is left.
  void remove_placed(std::size_t where) {
    std::vector<std::int64_t> kept_before(mask_.size());
    for (std::size_t i = 1; i < mask_.size(); ++i) kept_before[i] = kept_before[i - 1] + mask_[i - 1];
    JsonlColumn& places = result_.columns[where];
    std::vector<std::uint8_t> keep;
    for (std::size_t i = states_[where].first; i < places.size(); ++i) {
      const auto place = static_cast<std::size_t>(*places.whole(i));
      keep.push_back(mask_[place]);
      places.set_whole(i, kept_before[place]);
    }
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (carried_[c].places != carried_[where].name) continue;
      keep_masked(c, keep);
      result_.columns[c].lengths.back() = static_cast<std::int64_t>(result_.columns[c].size() - states_[c].first);
    }
  }

  void check(simdjson::error_code error) const {
    if (error == simdjson::SUCCESS) return;
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error == simdjson::UTF8_ERROR) throw LineFault{"not valid UTF-8"};
    if (trimmed(line_) == "{") {
      throw LineFault{"an object over several lines is not JSON Lines; convert with: jq -c . FILE > NEW.jsonl"};
    }
    if (cut_short_) throw LineFault{"not a complete JSON object, and the last line has no newline: the file may be cut short"};
    throw LineFault{fmt::format("not a complete JSON object: {}", simdjson::error_message(error))};
  }

  [[noreturn]] void fail_not_an_object() const {
    if (trimmed(line_)[0] == '[') {
      throw LineFault{
          "a list, where JSON Lines have one object a line; convert a list of objects with: jq -c '.[]' FILE > NEW.jsonl"};
    }
    throw LineFault{"not a JSON object; JSON Lines have one object a line"};
  }

  [[noreturn]] static void fail_too_long(std::int64_t limit) {
    const std::string_view help = limit < kMaxLineBytes ? ", which is what the memory budget allows; raise --memory" : "";
    throw LineFault{fmt::format("the line is longer than {}{}", short_bytes(limit), help), ErrorCode::limit};
  }

  [[noreturn]] static void fail_repeated(std::string_view name) {
    throw LineFault{fmt::format("the column '{}' appears twice in one object", name)};
  }

  std::vector<std::string> column_names() {
    std::vector<std::string> names;
    for_each_field([&](std::string_view name, ondemand::value) { names.emplace_back(name); });
    return names;
  }

  [[noreturn]] void fail_no_ids() {
    const std::vector<std::string> names = column_names();
    constexpr std::string_view kLoader = "datasets.load_dataset('json', data_files=FILE, split='train')";
    std::string message = no_ids_message(options_.ids_column, names, kLoader, "to_json");
    LineFault fault{std::move(message)};
    fault.missing_column = options_.ids_column != ReadOptions{}.ids_column;
    throw fault;
  }

  /// The JSON text of a scalar, or the bracket that opens a list or object.
  static std::string_view token(ondemand::value value) { return trimmed(value.raw_json_token()); }

  static std::string described(ondemand::value value) {
    const std::string_view text = token(value);
    switch (text.empty() ? ' ' : text[0]) {
      case '"':
        return "a string";
      case '[':
        return "a list";
      case '{':
        return "an object";
      default:
        return std::string(text.substr(0, 40));
    }
  }

  const ReadOptions& options_;
  const std::vector<Column>& carried_;
  const int loss_ = loss_column(carried_);
  JsonlBlock result_;
  std::vector<ColumnState> states_;  // of the record, for each of carried_
  ondemand::parser parser_;
  GroupNumbering numbering_;  // of the block
  std::vector<std::uint8_t> mask_;
  std::vector<std::int64_t> whole_;  // of one list
  std::string_view line_;
  bool cut_short_ = false;
};

}  // namespace

JsonlBlock parse_jsonl(const LineBlock& block, const ReadOptions& options, const std::vector<Column>& carried) {
  return BlockParser(options, carried).parse(block);
}

ColumnsSeen observe_jsonl(const LineBlock& first, const ReadOptions& options, std::int64_t& records) {
  const std::vector<Column> no_columns;
  return BlockParser(options, no_columns).observe(first, records);
}

}  // namespace shardpack
