#include "io/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "core/column_values.h"
#include "exec/ordered_map.h"
#include "io/column_pass.h"
#include "io/file_stamp.h"
#include "io/formats/group_column.h"
#include "io/input_list.h"
#include "io/scan_pass.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

bool is_standard_input(const std::string& path) { return path == "-"; }

/// A file that was rewritten while it was read explains any fault in it.
template <class Read>
auto read_unchanged(const std::vector<FileStamp>& stamps, Read read) {
  try {
    return read();
  } catch (const Error&) {
    for (const FileStamp& stamp : stamps) check_stamp(stamp);
    throw;
  }
}

// ---- the source -------------------------------------------------------------------------------------------------------------

class ShardSource final : public SequenceSource {
 public:
  ShardSource(SequenceIndex index, std::vector<TokenTable> tables, std::vector<Column> columns,
              std::vector<std::vector<ColumnTable>> column_tables, std::vector<FileStamp> stamps)
      : index_(std::move(index)),
        tables_(std::move(tables)),
        columns_(std::move(columns)),
        column_tables_(std::move(column_tables)),
        stamps_(std::move(stamps)) {}

  const SequenceIndex& index() const override { return index_; }

  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override {
    ensure(type == IdType::u16 || type == IdType::u32, "ids are read as u16 or u32");
    // Sequences are numbered in the order of files and places, so this is the order of the disk.
    std::sort(requests.begin(), requests.end(), [](const TokenRequest& a, const TokenRequest& b) {
      return std::pair(a.sequence, a.first_token) < std::pair(b.sequence, b.first_token);
    });
    read_unchanged(stamps_, [&] { for_each_stretch(requests, [&](const Stretch& stretch) { read(stretch, type, ids); }); });
  }

  std::span<const Column> columns() const override { return columns_; }

  void read_tokens(std::size_t column, std::span<const TokenRequest> requests, std::byte* values) const override {
    const ValueType type = columns_[column].type;
    const auto read_stretch = [&](const Stretch& stretch) {
      table(column, stretch.file)
          .values.read(stretch.first, stretch.tokens, type, values + stretch.destination * info(type).bytes);
    };
    read_unchanged(stamps_, [&] { for_each_stretch(requests, read_stretch); });
  }

  ColumnValues read_values(std::size_t column, std::span<const SequenceId> sequences) const override {
    const Column& wanted = columns_[column];
    const auto width = static_cast<std::size_t>(info(wanted.type).bytes);
    ColumnValues result;
    read_unchanged(stamps_, [&] {
      if (wanted.kind == ColumnKind::sequence) {
        result.bytes.resize(sequences.size() * width);
        for (std::size_t i = 0; i < sequences.size(); ++i) {
          const SequencePlace place = index_.place(sequences[i]);
          table(column, place.file).values.read(place.record, 1, wanted.type, result.bytes.data() + i * width);
        }
        return;
      }
      result.begin.push_back(0);
      for (const SequenceId sequence : sequences) {
        const SequencePlace place = index_.place(sequence);
        const ColumnTable& list = table(column, place.file);
        const std::int64_t first = list.begin[static_cast<std::size_t>(place.record)];
        const std::int64_t count = list.begin[static_cast<std::size_t>(place.record) + 1] - first;
        const std::size_t before = result.bytes.size();
        result.bytes.resize(before + static_cast<std::size_t>(count) * width);
        list.values.read(first, count, wanted.type, result.bytes.data() + before);
        result.begin.push_back(result.begin.back() + count);
      }
    });
    return result;
  }

  std::int64_t value_count(std::size_t column, SequenceId sequence) const override {
    const SequencePlace place = index_.place(sequence);
    const std::vector<std::int64_t>& begin = table(column, place.file).begin;
    return begin[static_cast<std::size_t>(place.record) + 1] - begin[static_cast<std::size_t>(place.record)];
  }

  void check_unchanged() const override {
    for (const FileStamp& stamp : stamps_) check_stamp(stamp);
  }

 private:
  /// Tokens that lie together both in a file and in the buffer.
  struct Stretch {
    std::int32_t file = 0;
    std::int64_t first = 0, tokens = 0, destination = 0;

    bool continues_with(const Stretch& next) const {
      return file == next.file && first + tokens == next.first && destination + tokens == next.destination;
    }
  };

  template <class Visit>
  void for_each_stretch(std::span<const TokenRequest> requests, Visit visit) const {
    Stretch stretch;
    for (const TokenRequest& request : requests) {
      const SequencePlace place = index_.place(request.sequence);
      ensure(request.first_token >= 0 && request.tokens >= 0 && request.first_token <= place.tokens - request.tokens,
             "the tokens asked for are in the sequence");
      const Stretch next{place.file, place.first_token + request.first_token, request.tokens, request.destination};
      if (stretch.continues_with(next)) {
        stretch.tokens += next.tokens;
        continue;
      }
      if (stretch.tokens > 0) visit(stretch);
      stretch = next;
    }
    if (stretch.tokens > 0) visit(stretch);
  }

  const ColumnTable& table(std::size_t column, std::int32_t file) const {
    return column_tables_[static_cast<std::size_t>(file)][column];
  }

  void read(const Stretch& stretch, IdType type, void* ids) const {
    const TokenTable& table = tables_[static_cast<std::size_t>(stretch.file)];
    ensure(table.file != nullptr, "the source was opened for random access");
    const auto tokens = static_cast<std::size_t>(stretch.tokens);
    if (type == IdType::u16) {
      table.read(stretch.first, std::span(static_cast<std::uint16_t*>(ids) + stretch.destination, tokens));
    } else {
      table.read(stretch.first, std::span(static_cast<std::uint32_t*>(ids) + stretch.destination, tokens));
    }
  }

  SequenceIndex index_;
  std::vector<TokenTable> tables_;  // by file
  std::vector<Column> columns_;
  std::vector<std::vector<ColumnTable>> column_tables_;  // by file, then as columns_
  std::vector<FileStamp> stamps_;
};

// ---- opening ----------------------------------------------------------------------------------------------------------------

/// Every shard keeps a descriptor open, some two, and the usual soft limit is 1,024.
void allow_open_files(std::size_t shards) {
  constexpr rlim_t kOthers = 64;
  const rlim_t wanted = 2 * static_cast<rlim_t>(shards) + kOthers;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (const rlim_t needed = static_cast<rlim_t>(shards) + kOthers; limit.rlim_cur < needed) {
    throw Error(ErrorCode::limit, fmt::format("{} open files are needed, one a shard and {} others, but the system grants {} "
                                              "(ulimit -Hn)",
                                              with_commas(static_cast<std::int64_t>(needed)), kOthers,
                                              with_commas(static_cast<std::int64_t>(limit.rlim_cur))));
  }
}

/// Only the first `records` records.
void cut_to_records(OpenedShard& shard, std::int64_t records) {
  if (static_cast<std::int64_t>(shard.record_begin.size()) - 1 <= records) return;
  ensure(!shard.facts, "formats that decode every token honour the limit themselves");
  for (ColumnTable& column : shard.columns) {
    ensure(!column.facts, "formats that decode every value honour the limit themselves");
    if (!column.begin.empty()) column.begin.resize(static_cast<std::size_t>(records) + 1);
  }
  shard.record_begin.resize(static_cast<std::size_t>(records) + 1);
  shard.record_begin.shrink_to_fit();
  if (!shard.groups.of_record.empty()) shard.groups.of_record.resize(static_cast<std::size_t>(records));
}

std::vector<OpenedFile> open_all(const std::vector<InputFile>& inputs, const ReadOptions& options, const ScanNeeds& needs,
                                 const RunContext& context) {
  allow_open_files(inputs.size());
  OpenContext open_context{.pool = context.pool,
                           .stop = context.stop,
                           .progress = context.progress,
                           .temp_dir = context.temp_dir.empty() ? "." : context.temp_dir,
                           .spool = needs.random_access || needs.ends || needs.loss_places != LossSide::none,
                           .memory_bytes = context.memory_bytes,
                           .first_record = 0};
  std::vector<OpenedFile> opened;
  for (const InputFile& input : inputs) {
    throw_if_stopped(context.stop);
    if (options.limit > 0 && open_context.first_record >= options.limit) break;
    std::optional<FileStamp> before;
    if (!is_standard_input(input.path)) before = stamp_of(input.path, input.name);
    const Format& format = detect_format(input, options);

    std::vector<FileStamp> stamps;
    if (before) stamps.push_back(*before);
    OpenedShard shard = read_unchanged(stamps, [&] { return format.open(input, options, open_context); });
    OpenedFile file{input, std::string(format.summary.name), std::move(shard), std::move(stamps), open_context.first_record};
    if (!options.group_column.empty() && !format.named_columns) read_group_file(file.shard, input, options.group_column);
    if (options.limit > 0) cut_to_records(file.shard, options.limit - open_context.first_record);
    for (std::size_t i = 1; i < file.shard.files.size(); ++i) {
      const std::filesystem::path sidecar = file.shard.files[i];
      file.stamps.push_back(
          stamp_of(sidecar.string(), std::filesystem::path(input.name).replace_filename(sidecar.filename()).string()));
    }
    for (const std::string& warning : file.shard.warnings) context.diagnostics.warn(warning);
    open_context.first_record = checked_add(open_context.first_record, file.records(), "the number of sequences");
    opened.push_back(std::move(file));
  }
  return opened;
}

/// All shards' group columns as one, for the index.
void take_groups(std::vector<OpenedFile>& files, SequenceIndex& index) {
  std::vector<GroupColumn*> columns;
  for (OpenedFile& file : files) columns.push_back(&file.shard.groups);
  std::vector<GroupKey> keys = merge_groups(columns);
  std::vector<std::int32_t> groups;
  groups.reserve(static_cast<std::size_t>(index.sequences()));
  for (const GroupColumn* column : columns) groups.insert(groups.end(), column->of_record.begin(), column->of_record.end());
  index.set_groups(std::move(keys), std::move(groups));
}

/// Begun on construction, ended whatever happens.
class Stage {
 public:
  Stage(ProgressSink& progress, std::string_view name, std::int64_t total, std::string_view unit) : progress_(progress) {
    progress_.begin_stage(name, total, unit);
  }
  ~Stage() { progress_.end_stage(); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  ProgressSink& progress_;
};

/// Formats without columns of lists have none that --positions-columns could mean.
void check_positions_columns(const std::vector<OpenedFile>& files, const ReadOptions& options) {
  for (const OpenedFile& file : files) {
    if (file.records() == 0) continue;
    for (const std::string& name : options.positions_columns) {
      const bool carried = std::any_of(file.shard.columns.begin(), file.shard.columns.end(),
                                       [&](const ColumnTable& table) { return table.column.name == name; });
      if (!carried)
        throw Error(ErrorCode::usage, fmt::format("--positions-columns {}: no such lists are read from it", name),
                    file.input.name);
    }
  }
}

/// The column that tells the loss. \throws Error{usage}
std::size_t find_loss(const std::vector<Column>& columns, const std::set<std::string>& not_carried) {
  if (const int loss = loss_column(columns); loss >= 0) return static_cast<std::size_t>(loss);
  throw Error(
      ErrorCode::usage,
      fmt::format("--drop-unlabeled: no column that is carried says which tokens take part in the loss, as labels and loss_mask "
                  "do{}",
                  not_carried.empty() ? "" : fmt::format("; not carried: {}", fmt::join(not_carried, ", "))));
}

std::int64_t total_bytes(const std::vector<InputFile>& inputs) {
  std::int64_t total = 0;
  for (const InputFile& input : inputs) {
    if (!is_standard_input(input.path))
      total = checked_add(total, stamp_of(input.path, input.name).bytes, "the bytes of the inputs");
  }
  return total;
}

}  // namespace

ScannedSource open_source(const std::vector<std::string>& inputs, const ReadOptions& asked, const ScanNeeds& needs,
                          const RunContext& context) {
  ReadOptions options = asked;
  if (!needs.columns) {
    options.columns = {.which = ColumnChoice::Which::none, .names = {}};
    options.positions_columns.clear();
  }
  const std::vector<InputFile> list = list_inputs(inputs, asked);
  const Stage stage(context.progress, "scanning", total_bytes(list), "bytes");
  std::vector<OpenedFile> files = open_all(list, options, needs, context);
  check_positions_columns(files, options);
  std::optional<EndIds> end_ids;
  if (needs.ends) end_ids = {options.bos_id, options.eos_id};
  std::vector<FileStamp> all_stamps;
  for (const OpenedFile& file : files) all_stamps.insert(all_stamps.end(), file.stamps.begin(), file.stamps.end());
  ScanPassResult pass = read_unchanged(all_stamps, [&] { return run_scan_pass(files, end_ids, context); });

  const std::vector<ColumnFacts> column_facts = read_unchanged(all_stamps, [&] { return run_column_pass(files, context); });

  ScannedSource scanned;
  std::vector<SourceFile> sources;
  std::vector<TokenTable> tables;
  std::vector<std::vector<ColumnTable>> column_tables;
  std::vector<Column> columns = columns_of(files, column_facts);
  for (const ColumnFacts& facts : column_facts) scanned.totals.fingerprint += facts.fingerprint;
  if (const int loss = loss_column(columns); loss >= 0) {
    scanned.loss_tokens = column_facts[static_cast<std::size_t>(loss)].loss_tokens;
  }
  std::vector<std::uint32_t> places;
  std::vector<FileStamp> stamps;
  std::set<std::string> not_carried;
  for (const OpenedFile& file : files) not_carried.insert(file.shard.not_carried.begin(), file.shard.not_carried.end());
  if (needs.loss_places != LossSide::none && !files.empty()) {
    places = loss_places(files, find_loss(columns, not_carried), needs.loss_places, context);
  }
  if (const int loss = loss_column(columns); needs.loss_counts && loss >= 0) {
    scanned.loss_counts = loss_counts(files, static_cast<std::size_t>(loss), *needs.loss_counts, context);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    OpenedFile& file = files[i];
    SourceFile source;
    source.name = std::move(file.input.name);
    source.format = std::move(file.format);
    for (FileStamp& stamp : file.stamps) {
      source.bytes += stamp.bytes;
      stamps.push_back(std::move(stamp));
    }
    source.hash = std::move(pass.facts[i].hash);
    source.record_begin = std::move(file.shard.record_begin);
    source.null_records = file.shard.null_records;
    sources.push_back(std::move(source));

    tables.push_back(std::move(file.shard.ids));
    column_tables.push_back(std::move(file.shard.columns));
    merge(scanned.totals, pass.facts[i]);
    scanned.padding.sequences += file.shard.padding.sequences;
    scanned.padding.tokens += file.shard.padding.tokens;
    scanned.padding.loss_tokens += file.shard.padding.loss_tokens;
    scanned.null_records += file.shard.null_records;
  }
  scanned.not_carried.assign(not_carried.begin(), not_carried.end());
  SequenceIndex index(std::move(sources), std::move(pass.ends));
  if (!options.group_column.empty()) take_groups(files, index);
  if (!places.empty()) index.set_loss_places(std::move(places));
  scanned.source = std::make_unique<ShardSource>(std::move(index), std::move(tables), std::move(columns),
                                                 std::move(column_tables), std::move(stamps));
  scanned.source->check_unchanged();
  return scanned;
}

}  // namespace shardpack
