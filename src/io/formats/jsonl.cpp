// Blocks of whole lines are read in order, parsed by the workers (one document a line, so that a fault has a line number and
// nothing can merge two lines or lose a cut one) and collected in order. Columns that are not read are skipped over, not judged:
// Python writes NaN into them.
#include "io/formats/jsonl.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "base/units.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "io/byte_stream.h"
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

struct ParsedBlock {
  std::int64_t lines = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // of each record, in ids
  GroupColumn groups;
  std::int64_t null_records = 0;
  RemovedCount padding;
  std::set<std::string, std::less<>> other_columns;
  std::uint32_t id_min = std::numeric_limits<std::uint32_t>::max(), id_max = 0;
  std::optional<LineFault> fault;  // the lines before it are not worth keeping
};

/// Parses the lines of one block.
class BlockParser {
 public:
  explicit BlockParser(const ReadOptions& options) : options_(options) {}

  ParsedBlock parse(const TextBlock& block) {
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
    return std::move(result_);
  }

 private:
  void parse_line(std::string_view line, bool cut_short) {
    line_ = line;
    cut_short_ = cut_short;
    std::optional<std::size_t> mask_entries;
    std::optional<GroupKey> group;
    bool ids_found = false, ids_null = false, mask_null = false, group_found = false;
    const bool grouped = !options_.group_column.empty();
    const std::size_t first = result_.ids.size();

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
      } else if (result_.other_columns.find(name) == result_.other_columns.end()) {
        result_.other_columns.emplace(name);
      }
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) throw LineFault{"more than one JSON value on the line"};
    if (!ids_found) fail_no_ids();
    const bool group_null = grouped && !group;
    if (group_null && options_.null_row == NullRow::error) fail_no_group(group_found);

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
    } else if (mask_entries) {
      remove_padding(first);
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
  ParsedBlock result_;
  ondemand::parser parser_;
  GroupNumbering numbering_;  // of the block
  std::vector<std::uint8_t> mask_;
  std::string_view line_;
  bool cut_short_ = false;
};

/// Puts the blocks of a file together, in order.
class ShardCollector {
 public:
  ShardCollector(const InputFile& file, const OpenContext& context) : file_(file), first_record_(context.first_record) {
    shard_.ids.type = IdType::u32;
    shard_.ids.big_endian = std::endian::native == std::endian::big;
    shard_.files = {file.path};
    shard_.record_begin = {0};
    if (context.spool) spool_ = std::make_shared<File>(File::temporary(context.temp_dir));
  }

  void add(const ParsedBlock& block) {
    if (block.fault) fail(*block.fault, records() == 0 && block.lengths.empty());
    lines_ += block.lines;
    constexpr auto kIdBytes = static_cast<std::int64_t>(sizeof(std::uint32_t));
    const std::int64_t place = shard_.ids.tokens * kIdBytes;
    if (spool_) spool_->write_at(place, std::as_bytes(std::span(block.ids)));
    add_fingerprint(block);
    for (const std::int64_t length : block.lengths) shard_.record_begin.push_back(shard_.record_begin.back() + length);
    shard_.ids.append(static_cast<std::int64_t>(block.ids.size()), place);
    add_groups(block.groups, numbering_, shard_.groups);
    shard_.null_records += block.null_records;
    shard_.padding.sequences += block.padding.sequences;
    shard_.padding.tokens += block.padding.tokens;
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

  void add_fingerprint(const ParsedBlock& block) {
    const auto longest = block.lengths.empty() ? 0 : *std::max_element(block.lengths.begin(), block.lengths.end());
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
  std::set<std::string, std::less<>> other_columns_;
  std::shared_ptr<File> spool_;
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
  ShardCollector collector(file, context);

  int in_flight = default_in_flight(context.pool);
  if (budgeted) in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / kBlockMemory, 1, in_flight));
  std::int64_t reported_bytes = 0;
  const auto read_block = [&] {
    std::optional<TextBlock> block = reader.next();
    context.progress.advance(stream.stored_bytes() - std::exchange(reported_bytes, stream.stored_bytes()));
    return block;
  };
  ordered_map(
      context.pool, in_flight, context.stop, read_block, [&](TextBlock&& block) { return BlockParser(options).parse(block); },
      [&](ParsedBlock&& block) { collector.add(block); });
  stream.skip_rest();  // a limit may have left some
  return collector.finish(stream.stored_hash());
}

}  // namespace shardpack
