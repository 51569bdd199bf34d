// Blocks of whole lines are read in order, parsed by the workers (one document a line, so that a fault has a line number and
// nothing can merge two lines or lose a cut one) and collected in order. Columns that are not read are skipped over, not judged:
// Python writes NaN into them.
#include "io/formats/jsonl.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "io/byte_stream.h"
#include "io/column_choice.h"
#include "io/formats/column_names.h"
#include "io/formats/group_column.h"
#include "io/text_line.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
constexpr std::int64_t kBlockMemory = std::int64_t{4} * kBlockBytes;  // its text, ids and the parser's tables
constexpr std::int64_t kMaxLineBytes = std::int64_t{1} << 30;
constexpr std::int64_t kLineMemoryFactor = 8;  // text, index and strings of the parser, ids

/// Calls visit(line) for every line of `text`, without its newline, until it returns false.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!visit(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Whole lines, followed by the padding that the parser may read.
struct TextBlock {
  std::string text;
  std::size_t bytes = 0;  // without the padding
  bool begins_file = false;
  bool ends_file = false;
  std::int64_t line_limit = 0;  // bytes; above 0: the block is the beginning of a line that is longer than this

  std::string_view lines() const { return std::string_view(text).substr(0, bytes); }
};

/// Cuts a stream into blocks of whole lines.
class BlockReader {
 public:
  /// \param max_records  lines that are not blank after which to end; -1 = all
  BlockReader(ByteStream& stream, std::int64_t max_line_bytes, std::int64_t max_records)
      : stream_(stream), max_line_bytes_(max_line_bytes), records_left_(max_records) {}

  std::optional<TextBlock> next() {
    if (ended_ || records_left_ == 0) return std::nullopt;
    TextBlock block;
    block.begins_file = std::exchange(at_begin_, false);
    block.text = std::exchange(carried_, {});
    while (true) {
      const std::size_t before = block.text.size();
      block.text.resize(before + kBlockBytes);
      const std::size_t got = stream_.read(std::as_writable_bytes(std::span(block.text)).subspan(before));
      block.text.resize(before + got);
      if (got < kBlockBytes) {
        ended_ = block.ends_file = true;
        break;
      }
      // What was carried over has no newline.
      if (const std::size_t newline = std::string_view(block.text).substr(before).rfind('\n'); newline != std::string::npos) {
        carried_ = block.text.substr(before + newline + 1);
        block.text.resize(before + newline + 1);
        break;
      }
      if (static_cast<std::int64_t>(block.text.size()) >= max_line_bytes_) {
        block.line_limit = max_line_bytes_;
        ended_ = true;
        break;
      }
    }
    if (records_left_ > 0) cut_to_records(block);
    block.bytes = block.text.size();
    block.text.append(simdjson::SIMDJSON_PADDING, '\0');
    return block;
  }

 private:
  void cut_to_records(TextBlock& block) {
    std::size_t end = 0;
    for_each_line(block.text, [&](std::string_view line) {
      end += line.size() + 1;
      if (!trimmed(line).empty()) --records_left_;
      return records_left_ > 0;
    });
    if (records_left_ > 0 || end >= block.text.size()) return;
    block.text.resize(end);
    block.ends_file = false;
  }

  ByteStream& stream_;
  const std::int64_t max_line_bytes_;
  std::int64_t records_left_;
  std::string carried_;  // the beginning of the next block's first line
  bool at_begin_ = true, ended_ = false;
};

/// What is wrong with a line.
struct LineFault {
  std::string message;
  ErrorCode code = ErrorCode::bad_data;
  bool missing_column = false;      // one that the command line names
  std::string_view else_help = {};  // what helps where an earlier record has the column
  std::int64_t line = 0;            // in its block, from 0
};

/// A block's values of one column.
class ParsedColumn {
 public:
  void add(std::int64_t value) { fractional_ ? fractions_.push_back(exact_fraction(value)) : whole_.push_back(value); }
  /// One fraction, and all whole numbers of the block are kept as fractions.
  void add(double value) {
    if (!fractional_) {
      for (const std::int64_t whole : whole_) fractions_.push_back(exact_fraction(whole));
      whole_.clear();
      fractional_ = true;
    }
    fractions_.push_back(value);
  }
  void add(std::string_view text) { text_.insert(text_.end(), text.begin(), text.end()); }

  std::size_t size() const { return fractional_ ? fractions_.size() : whole_.size() + text_.size(); }
  void resize(std::size_t size) {
    if (fractional_) {
      fractions_.resize(size);
    } else if (!text_.empty()) {
      text_.resize(size);
    } else {
      whole_.resize(size);
    }
  }

  /// Keep of the values from `first` on those whose mask is not 0. \return those left out that take part in the loss
  std::int64_t keep_masked(const Column& column, std::size_t first, const std::vector<std::uint8_t>& mask) {
    return fractional_ ? keep_masked(column, fractions_, ValueType::f64, first, mask)
                       : keep_masked(column, whole_, ValueType::i64, first, mask);
  }

  /// The values in the narrowest type that packed rows have, for the spool.
  void settle(ColumnKind kind) {
    if (kind == ColumnKind::text) {
      const std::span<const std::byte> text = std::as_bytes(std::span(text_));
      bytes.assign(text.begin(), text.end());
      type = ValueType::u8;
      count = static_cast<std::int64_t>(text_.size());
      facts.add(type, bytes.data(), count);
      return;
    }
    const ValueType wide = fractional_ ? ValueType::f64 : ValueType::i64;
    const std::byte* const values =
        fractional_ ? std::as_bytes(std::span(fractions_)).data() : std::as_bytes(std::span(whole_)).data();
    count = static_cast<std::int64_t>(size());
    facts.add(wide, values, count);
    type = packed_type(facts, 0);
    bytes.resize(static_cast<std::size_t>(count * info(type).bytes));
    convert_values(wide, values, count, type, bytes.data());
    whole_ = {};
    fractions_ = {};
  }

  std::vector<std::int64_t> lengths;  // of each record, where the kind is list or text
  ValueType type = ValueType::i64;    // these four: once settled
  ByteBuffer bytes;
  std::int64_t count = 0;
  ColumnFacts facts;  // but for fingerprint and loss

 private:
  static double exact_fraction(std::int64_t whole) {
    const auto fraction = static_cast<double>(whole);
    if (std::abs(fraction) > 9007199254740992.0) {  // 2^53
      throw LineFault{"a column that holds fractions also holds a whole number beyond 2^53, which no fraction can be"};
    }
    return fraction;
  }

  template <class Value>
  static std::int64_t keep_masked(const Column& column, std::vector<Value>& values, ValueType type, std::size_t first,
                                  const std::vector<std::uint8_t>& mask) {
    std::int64_t lost = 0;
    std::size_t kept = first;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      const Value& value = values[first + i];
      if (mask[i] != 0) {
        values[kept++] = value;
      } else if (is_loss_column(column)) {
        lost += count_loss_tokens(column, type, reinterpret_cast<const std::byte*>(&value), 1);
      }
    }
    values.resize(kept);
    return lost;
  }

  std::vector<std::int64_t> whole_;
  std::vector<double> fractions_;
  std::vector<char> text_;
  bool fractional_ = false;
};

struct ParsedBlock {
  std::int64_t lines = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // of each record, in ids
  GroupColumn groups;
  std::int64_t null_records = 0;
  RemovedCount padding;
  std::vector<ParsedColumn> columns;  // as those carried
  std::set<std::string, std::less<>> other_columns;
  std::uint32_t id_min = std::numeric_limits<std::uint32_t>::max(), id_max = 0;
  std::optional<LineFault> fault;  // the lines before it are not worth keeping
};

/// Parses the lines of one block.
class BlockParser {
 public:
  /// `carried`: columns to be read beside the ids.
  BlockParser(const ReadOptions& options, const std::vector<Column>& carried) : options_(options), carried_(carried) {}

  /// What the first records of a file hold, up to kSettlingRecords of them or the first that has a fault.
  ColumnsSeen observe(const TextBlock& block, std::int64_t& records) {
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

  ParsedBlock parse(const TextBlock& block) {
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
    ondemand::document document = iterate();
    ondemand::object object;
    check(document.get_object().get(object));
    for (auto field : object) {
      std::string_view name;
      ondemand::value value;
      check(field.unescaped_key().get(name));
      check(field.value().get(value));
      if (name == options_.ids_column) {
        ids = count_numbers(value);
      } else if (!is_set_apart(name)) {
        Found& found = all.emplace_back(Found{std::string(name), {}, {}});
        found.entries = observe_value(value, found.column);
      }
    }
    for (Found& found : all) {
      found.column.equal_length = !found.entries || found.entries == ids;
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

    ondemand::document document = iterate();
    ondemand::object object;
    const simdjson::error_code opened = document.get_object().get(object);
    if (trimmed(line)[0] != '{') fail_not_an_object();
    check(opened);
    for (auto field : object) {
      std::string_view name;
      ondemand::value value;
      check(field.unescaped_key().get(name));
      check(field.value().get(value));
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
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) throw LineFault{"more than one JSON value on the line"};
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

  /// Appends the ids of a list to the result; false for null.
  bool read_ids(ondemand::value value) {
    const std::string_view column = options_.ids_column;
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

  void read_values(const Column& column, ondemand::value value, ParsedColumn& values) {
    if (column.kind == ColumnKind::text) {
      std::string_view text;
      if (value.get_string().get(text) != simdjson::SUCCESS) fail_kind(column, "a string", value);
      return values.add(text);
    }
    if (column.kind == ColumnKind::sequence) return read_number(column, value, -1, values);
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
  void read_number(const Column& column, ondemand::value value, std::int64_t index, ParsedColumn& values) {
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
      throw LineFault{fmt::format("{0}{1} is {2}; labels are token ids or -100, and --columns aligned,{0}:plain carries them as "
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
      ParsedColumn& values = result_.columns[c];
      if (!states_[c].found || states_[c].null) {
        throw LineFault{fmt::format("{} '{}', which the records before have; --columns names those to carry, without it",
                                    states_[c].found ? "null in the column" : "no column", column.name)};
      }
      const std::size_t count = values.size() - states_[c].first;
      if (column.kind == ColumnKind::token && count != ids) {
        throw LineFault{fmt::format("{} has {} values for {} token ids; --columns {}:list carries it as a list of its own length",
                                    column.name, with_commas(static_cast<std::int64_t>(count)),
                                    with_commas(static_cast<std::int64_t>(ids)), column.name)};
      }
      if (column.kind == ColumnKind::list || column.kind == ColumnKind::text)
        values.lengths.push_back(static_cast<std::int64_t>(count));
    }
  }

  /// For a record that is left out: nothing for its tokens, and a place among the records.
  void drop_columns() {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      ParsedColumn& values = result_.columns[c];
      values.resize(states_[c].first);
      if (carried_[c].kind == ColumnKind::sequence) values.add(std::int64_t{0});
      if (carried_[c].kind == ColumnKind::list || carried_[c].kind == ColumnKind::text) values.lengths.push_back(0);
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
      if (carried_[c].kind != ColumnKind::token) continue;
      const std::int64_t lost = result_.columns[c].keep_masked(carried_[c], states_[c].first, mask_);
      if (static_cast<int>(c) == loss_) result_.padding.loss_tokens += lost;
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
    ondemand::document document = iterate();
    ondemand::object object;
    check(document.get_object().get(object));
    for (auto field : object) {
      std::string_view name;
      check(field.unescaped_key().get(name));
      names.emplace_back(name);
    }
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
  ParsedBlock result_;
  std::vector<ColumnState> states_;  // of the record, for each of carried_
  ondemand::parser parser_;
  GroupNumbering numbering_;  // of the block
  std::vector<std::uint8_t> mask_;
  std::string_view line_;
  bool cut_short_ = false;
};

/// Puts the blocks of a file together, in order.
class ShardCollector {
 public:
  ShardCollector(const InputFile& file, const OpenContext& context, ChosenColumns columns)
      : file_(file), first_record_(context.first_record) {
    shard_.ids.type = IdType::u32;
    shard_.ids.big_endian = std::endian::native == std::endian::big;
    shard_.files = {file.path};
    shard_.record_begin = {0};
    if (context.spool) spool_ = std::make_shared<File>(File::temporary(context.temp_dir));
    for (Column& column : columns.carried) {
      ColumnTable& table = shard_.columns.emplace_back();
      if (context.spool) table.values.file = std::make_shared<File>(File::temporary(context.temp_dir));
      if (column.kind == ColumnKind::list || column.kind == ColumnKind::text) table.begin = {0};
      table.facts.emplace();
      table.column = std::move(column);
    }
    spool_ends_.resize(shard_.columns.size());
  }

  void add(const ParsedBlock& block) {
    if (block.fault) fail(*block.fault, records() == 0 && block.lengths.empty());
    lines_ += block.lines;
    constexpr auto kIdBytes = static_cast<std::int64_t>(sizeof(std::uint32_t));
    const std::int64_t place = shard_.ids.tokens * kIdBytes;
    if (spool_) spool_->write_at(place, std::as_bytes(std::span(block.ids)));
    add_fingerprint(block);
    for (std::size_t c = 0; c < shard_.columns.size(); ++c) add_column(block.columns[c], block.lengths, c);
    for (const std::int64_t length : block.lengths) shard_.record_begin.push_back(shard_.record_begin.back() + length);
    shard_.ids.append(static_cast<std::int64_t>(block.ids.size()), place);
    add_groups(block.groups, numbering_, shard_.groups);
    shard_.null_records += block.null_records;
    shard_.padding.sequences += block.padding.sequences;
    shard_.padding.tokens += block.padding.tokens;
    shard_.padding.loss_tokens += block.padding.loss_tokens;
    other_columns_.insert(block.other_columns.begin(), block.other_columns.end());
    if (block.ids.empty()) return;
    facts_.id_min = facts_.id_max < 0 ? std::int64_t{block.id_min} : std::min(facts_.id_min, std::int64_t{block.id_min});
    facts_.id_max = std::max(facts_.id_max, std::int64_t{block.id_max});
  }

  OpenedShard finish(std::string hash) {
    facts_.hash = std::move(hash);
    shard_.ids.file = spool_;
    shard_.not_carried.assign(other_columns_.begin(), other_columns_.end());
    shard_.groups.keys = numbering_.keys();
    shard_.facts = std::move(facts_);
    return std::move(shard_);
  }

 private:
  [[noreturn]] void fail(const LineFault& fault, bool first_record) const {
    // A column that the user named and no record has is a slip of the command line, not of the data.
    const bool misnamed = fault.missing_column && first_record;
    std::string message = fault.message;
    if (!first_record) message += fault.else_help;
    throw Error(misnamed ? ErrorCode::usage : fault.code, message, file_.name,
                fmt::format("line {}", with_commas(lines_ + fault.line + 1)));
  }

  /// `token_lengths`: of the block's records.
  void add_column(const ParsedColumn& block, const std::vector<std::int64_t>& token_lengths, std::size_t number) {
    ColumnTable& table = shard_.columns[number];
    if (table.values.file) table.values.file->write_at(spool_ends_[number], block.bytes);
    table.values.append(block.count, spool_ends_[number], block.type);
    spool_ends_[number] += static_cast<std::int64_t>(block.bytes.size());
    for (const std::int64_t length : block.lengths) table.begin.push_back(table.begin.back() + length);

    *table.facts += block.facts;
    if (is_loss_column(table.column)) {
      table.facts->loss_tokens += count_loss_tokens(table.column, block.type, block.bytes.data(), block.count);
    }
    const FingerprintKeys keys = keys_.of_column(table.column.name);
    const int bytes = info(block.type).bytes;
    const std::byte* values = block.bytes.data();
    for (std::size_t i = 0; i < token_lengths.size(); ++i) {
      const ColumnKind kind = table.column.kind;
      const std::int64_t count = kind == ColumnKind::token      ? token_lengths[i]
                                 : kind == ColumnKind::sequence ? 1
                                                                : block.lengths[i];
      const SequenceId record = first_record_ + records() + static_cast<SequenceId>(i);
      if (token_lengths[i] > 0) {  // a record without tokens has no place in a row
        table.facts->fingerprint +=
            kind == ColumnKind::text
                ? keys.of_text(record, {reinterpret_cast<const char*>(values), static_cast<std::size_t>(count)})
                : keys.of(record, 0, block.type, values, count);
      }
      values += count * bytes;
    }
  }

  void add_fingerprint(const ParsedBlock& block) {
    auto longest = block.lengths.empty() ? 0 : *std::max_element(block.lengths.begin(), block.lengths.end());
    for (const ParsedColumn& column : block.columns)
      for (const std::int64_t length : column.lengths) longest = std::max(longest, length);
    if (longest > keys_for_) {  // in steps, because a table costs more than a short file
      keys_for_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest)));
      keys_ = FingerprintKeys(keys_for_);
    }
    std::span<const std::uint32_t> rest(block.ids);
    SequenceId record = first_record_ + records();
    for (const std::int64_t length : block.lengths) {
      facts_.fingerprint += keys_.of(record++, 0, rest.first(static_cast<std::size_t>(length)));
      rest = rest.subspan(static_cast<std::size_t>(length));
    }
  }

  std::int64_t records() const { return static_cast<std::int64_t>(shard_.record_begin.size()) - 1; }

  const InputFile& file_;
  const SequenceId first_record_;
  std::int64_t lines_ = 0;
  std::int64_t keys_for_ = 0;  // tokens
  FingerprintKeys keys_{0};
  GroupNumbering numbering_;
  std::shared_ptr<File> spool_;
  std::vector<std::int64_t> spool_ends_;  // bytes, of each column's
  std::set<std::string, std::less<>> other_columns_;
  TokenFacts facts_;
  OpenedShard shard_;
};

}  // namespace

bool matches_jsonl(const FormatProbe& probe) {
  if (probe.file.path == "-") return true;
  // What the probe holds of a compressed file may decode to nothing. A damaged one is told by its name, and opening says why.
  const bool compressed = compression_of(probe.head) != Compression::none;
  const std::string decoded = compressed ? peek_plain(probe.file.path, 4096) : std::string();
  const std::string_view text = without_byte_order_mark(compressed ? decoded : probe.head);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return true;

  std::string_view name = probe.file.path;
  for (const std::string_view suffix : {".gz", ".zst", ".zstd"}) {
    if (name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
      break;
    }
  }
  return name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson");
}

OpenedShard open_jsonl(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  const bool budgeted = context.memory_bytes > 0;
  ByteStream stream(file.path, file.name, context.memory_bytes / 2);
  const std::int64_t max_line_bytes =
      budgeted ? std::clamp(context.memory_bytes / kLineMemoryFactor, kBlockMemory, kMaxLineBytes) : kMaxLineBytes;
  const std::int64_t max_records = options.limit > 0 ? std::max<std::int64_t>(options.limit - context.first_record, 0) : -1;
  BlockReader reader(stream, max_line_bytes, max_records);
  std::optional<TextBlock> first = reader.next();
  std::int64_t settling_records = 0;
  const std::vector<Column> no_columns;
  const ColumnsSeen seen = first ? BlockParser(options, no_columns).observe(*first, settling_records) : ColumnsSeen();
  ChosenColumns chosen = choose_columns(seen, settling_records, options, file.name);
  const std::vector<Column> carried = chosen.carried;
  ShardCollector collector(file, context, std::move(chosen));

  int in_flight = default_in_flight(context.pool);
  if (budgeted) in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / kBlockMemory, 1, in_flight));
  std::int64_t reported_bytes = 0;
  const auto read_block = [&] {
    std::optional<TextBlock> block = first ? std::exchange(first, std::nullopt) : reader.next();
    context.progress.advance(stream.stored_bytes() - std::exchange(reported_bytes, stream.stored_bytes()));
    return block;
  };
  ordered_map(
      context.pool, in_flight, context.stop, read_block,
      [&](TextBlock&& block) { return BlockParser(options, carried).parse(block); },
      [&](ParsedBlock&& block) { collector.add(block); });
  stream.skip_rest();  // a limit may have left some
  return collector.finish(stream.stored_hash());
}

}  // namespace shardpack
