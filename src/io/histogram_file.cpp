// What a file is, is decided on its first 64 KiB; after that everything unexpected is an error with its line.
#include "io/histogram_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "io/byte_stream.h"
#include "io/file.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/integer_array.h"
#include "io/group_key_text.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/text_line.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 30;
constexpr std::string_view kDigits = "0123456789";

/// Neither blank nor a comment.
bool holds_data(std::string_view line) { return !line.empty() && line[0] != '#'; }

/// The fields as they are written, quotes included; a comma between quotes is part of its field.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    std::size_t close = line.find_first_not_of(' ', begin);
    if (close != std::string_view::npos && line[close] == '"') {
      close = line.find('"', close + 1);
      while (close != std::string_view::npos && close + 1 < line.size() && line[close + 1] == '"')
        close = line.find('"', close + 2);
    } else {
      close = begin;
    }
    const std::size_t end = std::min(line.find(',', std::min(close, line.size())), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

/// What a field of the group column stands for.
GroupKey group_of(std::string_view field) {
  if (!field.starts_with('"')) return group_of_field(field, false);
  if (field.size() < 2 || !field.ends_with('"'))
    throw Error(ErrorCode::bad_data, fmt::format("the group {} has no closing quote", field));
  std::string text;
  for (std::size_t at = 1; at + 1 < field.size(); ++at) {
    if (field[at] == '"') ++at;  // doubled
    text += field[at];
  }
  return group_of_field(text, true);
}

bool is_header(const std::vector<std::string_view>& fields) {
  return std::find(fields.begin(), fields.end(), "length") != fields.end();
}

/// Something meant as a number, rightly written or not.
bool looks_numeric(std::string_view field) {
  return field.find_first_of(kDigits) != std::string_view::npos &&
         field.find_first_not_of("+-.eE0123456789") == std::string_view::npos;
}

/// Is this the beginning of a CSV histogram or of a list of lengths?
bool begins_table(std::string_view head) {
  head = without_byte_order_mark(head);
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = trimmed(head.substr(0, end));
    if (holds_data(line)) {
      const std::vector<std::string_view> fields = fields_of(line);
      const bool numeric = looks_numeric(fields[0]) && (fields.size() == 1 || looks_numeric(fields[1]));
      return is_header(fields) || (numeric && fields.size() <= 3);
    }
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

/// Is this the beginning of {"schema": 1, "counts": {...}} rather than of a record?
bool begins_json_histogram(std::string_view head) {
  const auto skip_blanks = [&] { head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size())); };
  const auto skip = [&](std::string_view token) {
    skip_blanks();
    if (!head.starts_with(token)) return false;
    head.remove_prefix(token.size());
    return true;
  };
  head = without_byte_order_mark(head);
  if (!skip("{")) return false;
  skip_blanks();
  if (!head.starts_with("\"schema\"") && !head.starts_with("\"counts\"")) return false;
  const std::size_t counts = head.find("\"counts\"");
  if (counts == std::string_view::npos) return false;
  head.remove_prefix(counts);
  return skip("\"counts\"") && skip(":") && skip("{");
}

/// A count or a length in decimal digits. Errors carry no place: the caller knows it.
std::int64_t whole_number(std::string_view text, std::string_view what) {
  if (text.empty()) throw Error(ErrorCode::bad_data, fmt::format("the {} is missing", what));
  const std::string_view shown = text.substr(0, 40);
  std::int64_t value = 0;
  if (text.find_first_not_of(kDigits) != std::string_view::npos) {
    throw Error(ErrorCode::bad_data, fmt::format("the {} is {}; expected a whole number from 0", what, shown));
  }
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    throw Error(ErrorCode::limit, fmt::format("the {} is {}; numbers are below 2^63", what, shown));
  }
  return value;
}

/// Runs `action` and gives the Error it throws its place.
template <class Action>
void at_place(const std::string& path, const std::string& position, Action action) {
  try {
    action();
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), path, position);
  }
}

/// Takes what a file holds, in its order: a length, and where the file says so how many sequences have it and of which group.
using TakeLength =
    std::function<void(std::int64_t length, std::optional<std::int64_t> count, const std::optional<GroupKey>& group)>;

/// Takes the lines of a CSV histogram or of a list of lengths.
class TableReader {
 public:
  TableReader(const std::string& shown, const TakeLength& found) : shown_(shown), found_(found) {}

  void take(std::string_view line) {
    ++line_number_;
    line = trimmed(line);
    if (!holds_data(line)) return;
    at_place(shown_, fmt::format("line {}", with_commas(line_number_)), [&] {
      const std::vector<std::string_view> fields = fields_of(line);
      if (columns_ == 0) {
        columns_ = fields.size();
        if (is_header(fields)) return take_header(fields);
        if (columns_ > 2) group_column_ = 2;
      }
      if (fields.size() != columns_) {
        throw Error(ErrorCode::bad_data, fmt::format("expected {}, found '{}'",
                                                     columns_ == 1   ? "one length"
                                                     : columns_ == 2 ? "length,count"
                                                                     : "length,count,group",
                                                     line.substr(0, 40)));
      }
      const std::int64_t length = whole_number(fields[length_column_], "length");
      if (columns_ == 1) return found_(length, std::nullopt, std::nullopt);
      const std::int64_t count = whole_number(fields[count_column_], "count");
      std::optional<GroupKey> group;
      if (group_column_ != kNoColumn) group.emplace(group_of(fields[group_column_]));
      found_(length, count, group);
    });
  }

 private:
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  void take_header(const std::vector<std::string_view>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != "length" && names[i] != "count" && names[i] != "group") {
        throw Error(ErrorCode::bad_data,
                    fmt::format("the column '{}' is unknown; a histogram has length,count and perhaps group", names[i]));
      }
      if (std::count(names.begin(), names.end(), names[i]) > 1) {
        throw Error(ErrorCode::bad_data, fmt::format("the column '{}' appears twice", names[i]));
      }
      if (names[i] == "group") {
        group_column_ = i;
      } else {
        (names[i] == "length" ? length_column_ : count_column_) = i;
      }
    }
    if (group_column_ != kNoColumn && columns_ < 3)
      throw Error(ErrorCode::bad_data, "a grouped histogram has length,count,group");
  }

  const std::string& shown_;
  const TakeLength& found_;
  std::int64_t line_number_ = 0;
  std::size_t columns_ = 0;  // 0 = not known yet
  std::size_t length_column_ = 0, count_column_ = 1;
  std::size_t group_column_ = kNoColumn;
};

void read_table(ByteStream& stream, const std::string& shown, const TakeLength& found) {
  TableReader reader(shown, found);
  std::string text;  // the beginning of a line, then more
  for (bool at_begin = true, at_end = false; !at_end;) {
    const std::size_t carried = text.size();
    text.resize(carried + kHeadBytes);
    text.resize(carried + stream.read(std::as_writable_bytes(std::span(text)).subspan(carried)));
    at_end = text.size() < carried + kHeadBytes;
    std::string_view rest = text;
    if (std::exchange(at_begin, false)) rest = without_byte_order_mark(rest);
    while (!rest.empty()) {
      const std::size_t newline = rest.find('\n');
      // A line without end is passed on as it stands: no histogram has one, so it is refused with its number.
      if (newline == std::string_view::npos && !at_end && rest.size() < kMaxLineBytes) break;
      reader.take(rest.substr(0, newline));
      rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    }
    text = std::string(rest);
  }
}

void read_json(ByteStream& stream, const std::string& shown, const TakeLength& found) {
  std::string text;
  for (bool at_end = false; !at_end;) {
    const std::size_t before = text.size();
    text.resize(before + kHeadBytes);
    text.resize(before + stream.read(std::as_writable_bytes(std::span(text)).subspan(before)));
    at_end = text.size() < before + kHeadBytes;
    if (text.size() > kMaxJsonBytes) throw Error(ErrorCode::limit, "a JSON histogram is at most 1 GiB; CSV may be larger", shown);
  }
  const Json json = Json::parse(text, shown);
  if (const std::int64_t schema = json.at("schema").as_int(); schema != 1) {
    throw Error(ErrorCode::bad_data, fmt::format("expected 1, found {}: written by a later version?", schema), shown, "schema");
  }
  for (const auto& member : json.at("counts").members()) {
    at_place(shown, "counts." + member.first,
             [&] { found(whole_number(member.first, "length"), whole_number(member.second.dump(), "count"), std::nullopt); });
  }
}

/// A 1-D array of integers is one of lengths unless something beside it says that it holds tokens, or its name says offsets.
/// \return false when it is something else
bool read_npy(const std::string& path, const TakeLength& found) {
  const File file(path, File::Mode::read);
  std::string head(std::min<std::size_t>(kHeadBytes, static_cast<std::size_t>(file.size())), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  const NpyHeader header = parse_npy_header(head, file.size(), path);
  if (header.shape.size() != 1 || path.ends_with(".offsets.npy") || boundary_sidecar({path, path})) return false;
  bool big_endian = false;
  const IdType type = integer_type(header, path, big_endian);
  IntegerArray lengths(file, header.data_begin, header.elements(), type, big_endian);
  for (std::int64_t i = 0; lengths.left() > 0; ++i) {
    const std::int64_t length = lengths.next();
    if (length < 0) {
      throw Error(ErrorCode::bad_data, fmt::format("a length is {}; lengths are whole numbers from 0 and below 2^63", length),
                  path, fmt::format("element {}", with_commas(i)));
    }
    found(length, std::nullopt, std::nullopt);
  }
  return true;
}

/// \return false when the file holds no lengths by content
bool read_file(const std::string& path, const TakeLength& found) {
  std::error_code ignored;
  if (path != "-" && !std::filesystem::is_regular_file(path, ignored)) return false;  // a folder, a glob, a prefix
  const std::string shown = path == "-" ? "standard input" : path;
  const std::string head = peek_plain(path, kHeadBytes);
  if (head.starts_with(kNpyMagic)) return path != "-" && read_npy(path, found);
  const bool is_json = begins_json_histogram(head);
  if (!is_json && !begins_table(head)) return false;
  ByteStream stream(path, shown);
  is_json ? read_json(stream, shown, found) : read_table(stream, shown, found);
  return true;
}

}  // namespace

std::optional<HistogramFile> read_histogram_file(const std::string& path) {
  HistogramFile file;
  std::map<GroupKey, LengthHistogram> groups;
  const TakeLength add = [&](std::int64_t length, std::optional<std::int64_t> count, const std::optional<GroupKey>& group) {
    file.lengths.add(length, count.value_or(1));
    if (group) groups[*group].add(length, count.value_or(1));
    if (groups.size() > kMaxGroups) {
      throw Error(ErrorCode::limit, fmt::format("more than {} groups", with_commas(static_cast<std::int64_t>(kMaxGroups))));
    }
  };
  if (!read_file(path, add)) return std::nullopt;
  for (auto& [key, lengths] : groups) file.groups.push_back({key, std::move(lengths)});
  return file;
}

std::optional<LengthHistogram> read_histogram(const std::string& path) {
  std::optional<HistogramFile> file = read_histogram_file(path);
  if (!file) return std::nullopt;
  if (!file->groups.empty()) {
    throw Error(ErrorCode::usage, "a grouped histogram (a third column 'group') does not fit this command; give length,count",
                path);
  }
  return std::move(file->lengths);
}

std::optional<std::vector<std::int64_t>> read_lengths(const std::string& path) {
  std::vector<std::int64_t> lengths;
  const TakeLength add = [&](std::int64_t length, std::optional<std::int64_t> count, const std::optional<GroupKey>&) {
    if (count) {
      throw Error(ErrorCode::usage,
                  "a histogram says how many sequences have a length and not which; give the lengths, one a line or as .npy "
                  "(shardpack scan --write-lengths), or the shards");
    }
    lengths.push_back(length);
  };
  if (!read_file(path, add)) return std::nullopt;
  return lengths;
}

std::string histogram_to_csv(const LengthHistogram& histogram) {
  std::string csv = "length,count\n";
  for (const LengthCount& entry : histogram.counts()) csv += fmt::format("{},{}\n", entry.length, entry.count);
  return csv;
}

std::string grouped_histogram_to_csv(const std::vector<GroupLengths>& groups) {
  std::string csv = "length,count,group\n";
  for (const GroupLengths& group : groups) {
    const std::string field = group_field(group.key);
    for (const LengthCount& entry : group.lengths.counts()) csv += fmt::format("{},{},{}\n", entry.length, entry.count, field);
  }
  return csv;
}

std::string histogram_to_json(const LengthHistogram& histogram) {
  JsonWriter writer;
  writer.begin_object(true).member("schema", 1).key("counts").begin_object();
  for (const LengthCount& entry : histogram.counts()) writer.member(std::to_string(entry.length), entry.count);
  writer.end_object().end_object();
  return writer.take() + "\n";
}

}  // namespace shardpack
