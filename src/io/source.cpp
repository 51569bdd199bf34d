#include "io/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "core/column_values.h"
#include "exec/ordered_map.h"
#include "io/column_pass.h"
#include "io/formats/group_column.h"
#include "io/input_list.h"
#include "io/open_file.h"
#include "io/scan_pass.h"
#include "io/shard_source.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

// ---- opening ----------------------------------------------------------------------------------------------------------------

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
    OpenedFile file = open_file(input, options, open_context);
    for (const std::string& warning : file.shard.warnings) context.diagnostics.warn(warning);
    open_context.first_record = checked_add(open_context.first_record, file.records(), "the number of sequences");
    opened.push_back(std::move(file));
  }
  return opened;
}

/// All shards' group columns as one, for the index.
void take_groups(std::vector<OpenedFile>& files, SequenceIndex& index) {
  std::vector<GroupColumn*> columns;
  columns.reserve(files.size());
  for (OpenedFile& file : files) columns.push_back(&file.shard.groups);
  std::vector<GroupKey> keys = merge_groups(columns);
  std::vector<std::int32_t> groups;
  groups.reserve(static_cast<std::size_t>(index.sequences()));
  for (const GroupColumn* column : columns) groups.insert(groups.end(), column->of_record.begin(), column->of_record.end());
  index.set_groups(std::move(keys), std::move(groups));
}

/// The boundaries of all files, which go on to use those of the index.
SequenceIndex index_of(std::vector<OpenedFile>& files) {
  std::vector<SourceFile> sources;
  for (OpenedFile& file : files) {
    SourceFile& source = sources.emplace_back();
    source.name = file.input.name;
    source.format = file.format;
    for (const FileStamp& stamp : file.stamps) source.bytes += stamp.bytes;
    source.record_begin = std::move(file.shard.record_begin);
    source.ids_dtype = file.shard.ids.numpy_type();
    source.null_records = file.shard.null_records;
  }
  SequenceIndex index(std::move(sources));
  for (std::size_t i = 0; i < files.size(); ++i) files[i].in_index = &index.files()[i].record_begin;
  return index;
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

/// What is done while tokens are read, or behind it where no thread can be had. Asked to stop, and waited for, when reading
/// fails.
class Meanwhile {
 public:
  Meanwhile(const ScanNeeds& needs, const SequenceIndex& index, const std::stop_token& stop)
      : on_stop_(stop, [this] { stop_.request_stop(); }),
        done_(std::async(std::launch::async | std::launch::deferred,
                         [&needs, &index, token = stop_.get_token()] { return needs.meanwhile(index, token); })) {}
  ~Meanwhile() {
    stop_.request_stop();
    done_.wait();
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

  bool done() const { return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  bool went_well() const { return done() && done_.get(); }

  void finish(ProgressSink& progress, std::string_view name) {
    const Stage stage(progress, name, 0, "");
    done_.wait();
  }

 private:
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> on_stop_;
  std::shared_future<bool> done_;
};

bool has_columns(const std::vector<OpenedFile>& files) {
  return std::ranges::any_of(files, [](const OpenedFile& file) { return !file.shard.columns.empty(); });
}

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
    if (input.path != "-") total = checked_add(total, stamp_of(input.path, input.name).bytes, "the bytes of the inputs");
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
  std::optional<Stage> stage(std::in_place, context.progress, "scanning", total_bytes(list), "bytes");
  std::vector<OpenedFile> files = open_all(list, options, needs, context);
  check_positions_columns(files, options);
  std::optional<EndIds> end_ids;
  if (needs.ends) end_ids = {options.bos_id, options.eos_id};
  std::vector<FileStamp> all_stamps;
  for (const OpenedFile& file : files) all_stamps.insert(all_stamps.end(), file.stamps.begin(), file.stamps.end());

  SequenceIndex index = index_of(files);
  const bool complete = !needs.ends && needs.loss_places == LossSide::none && options.group_column.empty();
  std::optional<Meanwhile> meanwhile;
  if (needs.meanwhile && complete && !context.pool.inline_only()) meanwhile.emplace(needs, index, context.stop);

  ScanPass pass(files, end_ids);
  std::function<bool()> enough;
  if (needs.in_passing && meanwhile && !has_columns(files)) enough = [&] { return meanwhile->went_well(); };
  read_unchanged(all_stamps, [&] { pass.run(context, enough); });
  const std::vector<ColumnFacts> column_facts = read_unchanged(all_stamps, [&] { return run_column_pass(files, context); });

  ScannedSource scanned;
  std::vector<FileTables> tables;
  std::vector<Column> columns = columns_of(files, column_facts);
  for (const ColumnFacts& facts : column_facts) scanned.totals.fingerprint += facts.fingerprint;
  if (const int loss = loss_column(columns); loss >= 0) {
    scanned.loss_tokens = column_facts[static_cast<std::size_t>(loss)].loss_tokens;
  }
  std::vector<std::uint32_t> places;
  std::set<std::string> not_carried;
  for (const OpenedFile& file : files) not_carried.insert(file.shard.not_carried.begin(), file.shard.not_carried.end());
  if (needs.loss_places != LossSide::none && !files.empty()) {
    places = loss_places(files, find_loss(columns, not_carried), needs.loss_places, context);
  }
  if (const int loss = loss_column(columns); needs.loss_counts && loss >= 0) {
    scanned.loss_counts = loss_counts(files, static_cast<std::size_t>(loss), *needs.loss_counts, context);
  }
  stage.reset();
  if (meanwhile) meanwhile->finish(context.progress, needs.meanwhile_stage);
  meanwhile.reset();

  for (OpenedFile& file : files) {
    scanned.stamps.push_back(file.stamps);
    tables.push_back({pass.complete() ? std::move(file.shard.ids) : file.shard.ids, std::move(file.shard.columns)});
    scanned.padding += file.shard.padding;
    scanned.null_records += file.shard.null_records;
  }
  scanned.not_carried.assign(not_carried.begin(), not_carried.end());
  if (!options.group_column.empty()) take_groups(files, index);
  if (!places.empty()) index.set_loss_places(std::move(places));
  if (pass.complete()) merge(scanned.totals, settle(pass.take_result(), index));
  auto source = std::make_unique<ShardSource>(std::move(index), std::move(tables), std::move(columns), std::move(all_stamps));
  if (!pass.complete()) {
    source->scan_in_passing(std::make_unique<PassingScan>(std::move(files), std::move(pass)));
    scanned.passing = source.get();
  }
  scanned.source = std::move(source);
  scanned.source->check_unchanged();
  return scanned;
}

void finish_scan(ScannedSource& scanned, const RunContext& context) {
  if (scanned.passing == nullptr) return;
  const Stage stage(context.progress, "scanning the rest", 0, "bytes");
  merge(scanned.totals, scanned.passing->finish_pass(context));
  scanned.passing = nullptr;
}

}  // namespace shardpack
