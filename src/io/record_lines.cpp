// Records as JSON lines, plain or in frames of seekable zstd. Workers make the text of blocks of records; values are written so
// that reading them gives the same value and the same kind of number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "exec/ordered_map.h"
#include "io/hashed_file.h"
#include "io/json.h"
#include "io/record_blocks.h"
#include "io/record_sinks.h"
#include "io/zstd_seekable.h"
#include "shardpack/byte_buffer.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;  // what the reader of JSON lines takes

/// Of one block, as they are stored.
struct StoredValues {
  ByteBuffer bytes;
  std::int64_t first = 0;  // number of the first value
};

StoredValues read_values(const File& file, std::int64_t first, std::int64_t last, int width) {
  StoredValues values{{}, first};
  values.bytes.resize(static_cast<std::size_t>((last - first) * width));
  file.read_at(first * width, values.bytes);
  return values;
}

class LineWriter {
 public:
  LineWriter(const RecordSinkSettings& settings, const RecordSpool& spool) : settings_(settings), spool_(spool) {
    for (const Column& column : settings.columns) keys_.push_back(fmt::format(",{}", key(column.name)));
    ids_key_ = fmt::format("{{{}", key(settings.ids_column));
  }

  std::string text(RecordBlock block) const {
    const int id_bytes = info(spool_.id_type).bytes;
    const StoredValues ids = read_values(spool_.ids, at(block.first), at(block.last), id_bytes);
    std::vector<StoredValues> columns;
    for (const RecordSpool::Values& values : spool_.columns) {
      columns.push_back(read_values(values.file, spool_.value_begin(values, block.first), spool_.value_begin(values, block.last),
                                    info(values.column.type).bytes));
    }
    const ValueType id_type = spool_.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32;
    fmt::memory_buffer out;
    for (std::int64_t record = block.first; record < block.last; ++record) {
      const std::size_t line = out.size();
      append(out, ids_key_);
      append_list(out, id_type, ids, at(record), at(record + 1));
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const RecordSpool::Values& values = spool_.columns[c];
        append(out, keys_[c]);
        append_values(out, values.column, columns[c], spool_.value_begin(values, record), spool_.value_begin(values, record + 1));
      }
      append(out, "}\n");
      if (out.size() - line > kMaxLineBytes) {
        throw Error(ErrorCode::limit,
                    fmt::format("a record of {} tokens makes a line of more than {}, which could not be read again; "
                                "--as npy",
                                with_commas(at(record + 1) - at(record)), short_bytes(kMaxLineBytes)));
      }
    }
    return fmt::to_string(out);
  }

 private:
  static std::string key(const std::string& name) { return JsonWriter().value(name).take() + ":"; }
  std::int64_t at(std::int64_t record) const { return spool_.begin[static_cast<std::size_t>(record)]; }

  static void append(fmt::memory_buffer& out, std::string_view text) { out.append(text.data(), text.data() + text.size()); }

  void append_values(fmt::memory_buffer& out, const Column& column, const StoredValues& stored, std::int64_t first,
                     std::int64_t last) const {
    const std::byte* const values = stored.bytes.data() + (first - stored.first) * info(column.type).bytes;
    if (column.kind == ColumnKind::text) {
      append(out, JsonWriter()
                      .value(std::string_view(reinterpret_cast<const char*>(values), static_cast<std::size_t>(last - first)))
                      .text());
    } else if (column.kind == ColumnKind::sequence) {
      append_numbers(out, column.type, values, 1);
    } else {
      append_list(out, column.type, stored, first, last);
    }
  }

  static void append_list(fmt::memory_buffer& out, ValueType type, const StoredValues& stored, std::int64_t first,
                          std::int64_t last) {
    out.push_back('[');
    append_numbers(out, type, stored.bytes.data() + (first - stored.first) * info(type).bytes, last - first);
    out.push_back(']');
  }

  static void append_numbers(fmt::memory_buffer& out, ValueType type, const std::byte* values, std::int64_t count) {
    visit_values(type, values, count, [&out](auto typed) {
      bool first = true;
      for (const auto value : typed) {
        if (!std::exchange(first, false)) out.push_back(',');
        if constexpr (std::is_integral_v<std::remove_const_t<decltype(value)>>) {
          append(out, fmt::format_int(value).c_str());
        } else {
          append_fraction(out, value);
        }
      }
    });
  }

  /// Always with a point or an exponent: a fraction that is whole stays one.
  static void append_fraction(fmt::memory_buffer& out, double value) {
    if (!std::isfinite(value)) {
      throw Error(ErrorCode::usage, fmt::format("a column holds {}, which JSON cannot; --as npy can", value));
    }
    const std::size_t begin = out.size();
    fmt::format_to(std::back_inserter(out), "{}", value);
    if (std::string_view(out.data() + begin, out.size() - begin).find_first_of(".e") == std::string_view::npos) append(out, ".0");
  }

  const RecordSinkSettings& settings_;
  const RecordSpool& spool_;
  std::string ids_key_;
  std::vector<std::string> keys_;
};

class LineSink final : public RecordSink {
 public:
  LineSink(const RecordSinkSettings& settings, const std::string& folder, const std::string& stem, const RunContext& context)
      : settings_(settings), name_(record_files(settings, stem).front()), context_(context), file_(folder + "/" + name_) {}

  void add(const RecordSpool& spool, std::int64_t first, std::int64_t last) override {
    const LineWriter writer(settings_, spool);
    RecordBlocks blocks(spool, first, last);
    const auto produce = [&] { return blocks.next(); };
    const auto make = [&](RecordBlock block) { return encoded(writer.text(block)); };
    ordered_map(context_.pool, default_in_flight(context_.pool), context_.stop, produce, make,
                [&](ByteBuffer&& bytes) { write(bytes); });
  }

  std::vector<ManifestFile> finish() override {
    if (settings_.zstd_level > 0) {
      if (file_.bytes() == 0) write(encoded(""));  // a file of no frame would be taken for one cut short
      file_.append(table_.bytes());
    }
    return {file_.finish(name_)};
  }

 private:
  ByteBuffer encoded(const std::string& text) const {
    const auto bytes = std::as_bytes(std::span(text));
    if (settings_.zstd_level > 0) return ZstdCompressor(settings_.zstd_level).frame(bytes);
    return ByteBuffer(bytes.begin(), bytes.end());
  }
  void write(const ByteBuffer& bytes) {
    if (settings_.zstd_level > 0) table_.add(bytes);
    file_.append(bytes);
  }

  const RecordSinkSettings& settings_;
  const std::string name_;
  const RunContext& context_;
  HashedFile file_;
  ZstdSeekTable table_;
};

}  // namespace

std::unique_ptr<RecordSink> make_line_sink(const RecordSinkSettings& settings, const std::string& folder, const std::string& stem,
                                           const RunContext& context) {
  return std::make_unique<LineSink>(settings, folder, stem, context);
}

}  // namespace shardpack
