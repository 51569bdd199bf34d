#include "io/saved_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file_hash.h"
#include "io/input_list.h"
#include "io/open_file.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& file) {
  throw Error(ErrorCode::bad_data, message + "; scan again with scan --save", file);
}

bool same_time(const FileStamp& a, const FileStamp& b) {
  return a.modified.tv_sec == b.modified.tv_sec && a.modified.tv_nsec == b.modified.tv_nsec;
}

/// Of the data file followed by its sidecars, as a source's hash is.
std::string hash_of(const std::vector<FileStamp>& stamps) {
  StreamHash hash;
  for (const FileStamp& stamp : stamps) hash_file(File(stamp.path, File::Mode::read, stamp.shown), hash);
  return hash.hex();
}

/// Does any of the runs hold a sequence of [first, last)?
bool meets(const SequenceRanges& sequences, SequenceId first, SequenceId last) {
  return std::ranges::any_of(sequences.runs(), [&](const SequenceRange& run) { return run.first < last && first < run.last; });
}

}  // namespace

SavedInputs::SavedInputs(const std::vector<std::string>& inputs, const ReadOptions& options, SavedScan scan)
    : options_(options),
      inputs_(list_inputs(inputs, options)),
      stamps_(std::move(scan.stamps)),
      columns_(scan.columns),
      scanned_(std::move(scan.facts)) {
  const std::vector<SourceFile>& files = scan.index.files();
  const bool as_many = options.limit > 0 ? inputs_.size() >= files.size() : inputs_.size() == files.size();
  if (!as_many) {
    refuse(fmt::format("{} input files were scanned, {} are given", with_commas(std::ssize(files)),
                       with_commas(std::ssize(inputs_))),
           inputs.front());
  }
  inputs_.resize(files.size());  // the limit was reached before the others
  for (std::size_t f = 0; f < files.size(); ++f) {
    const InputFile& input = inputs_[f];
    if (input.name != files[f].name) refuse(fmt::format("{} was scanned in its place", files[f].name), input.name);
    const std::int64_t bytes = stamp_of(input.path, input.name).bytes, expected = stamps_[f].front().bytes;
    if (bytes != expected)
      refuse(fmt::format("has {} bytes, and had {} when it was scanned", with_commas(bytes), with_commas(expected)), input.name);
  }
  auto source = std::make_unique<ShardSource>(std::move(scan.index), std::vector<FileTables>(files.size()),
                                              std::move(scan.columns), std::vector<FileStamp>());
  source_ = source.get();
  scanned_.source = std::move(source);
}

ScannedSource SavedInputs::take_source() { return std::move(scanned_); }

void SavedInputs::open(const std::vector<SequenceRanges>& sequences, LaterReading reading, const RunContext& context) {
  const SequenceIndex& index = source_->index();
  std::vector<std::size_t> wanted;
  std::int64_t bytes = 0;
  for (std::size_t f = 0; f < inputs_.size(); ++f) {
    const SequenceId first = index.first_sequence(static_cast<std::int32_t>(f)), last = first + index.files()[f].records();
    if (!std::ranges::any_of(sequences, [&](const SequenceRanges& ranges) { return meets(ranges, first, last); })) continue;
    wanted.push_back(f);
    bytes += stamps_[f].front().bytes;
  }
  allow_open_files(wanted.size());
  context.progress.begin_stage("opening", bytes, "bytes");
  for (const std::size_t number : wanted) {
    throw_if_stopped(context.stop);
    const bool decoded = index.files()[number].ids_dtype.empty() && stamps_[number].size() == 1;
    if (reading == LaterReading::places && decoded) {
      check_decoded_file(number);
    } else {
      open_file_number(number, context);
    }
  }
  context.progress.end_stage();
}

/// Nobody wants to know where its tokens lie: enough that it is the file that was scanned.
void SavedInputs::check_decoded_file(std::size_t number) {
  const std::vector<FileStamp> stamps{stamp_of(inputs_[number].path, inputs_[number].name)};
  if (!same_time(stamps.front(), stamps_[number].front()) && hash_of(stamps) != source_->index().files()[number].hash)
    refuse("is not the file that was scanned: its bytes differ", inputs_[number].name);
  source_->add_file(number, {}, stamps);
}

void SavedInputs::open_file_number(std::size_t number, const RunContext& context) {
  const SequenceIndex& index = source_->index();
  const SourceFile& scanned = index.files()[number];
  const InputFile& input = inputs_[number];
  OpenedFile opened = open_file(input, options_,
                                {.pool = context.pool,
                                 .stop = context.stop,
                                 .progress = context.progress,
                                 .temp_dir = context.temp_dir.empty() ? "." : context.temp_dir,
                                 .spool = true,
                                 .memory_bytes = context.memory_bytes,
                                 .first_record = index.first_sequence(static_cast<std::int32_t>(number))});
  if (opened.format != scanned.format)
    refuse(fmt::format("is read as {}, and was scanned as {}", opened.format, scanned.format), input.name);
  const std::vector<FileStamp>& stamps = stamps_[number];
  const bool same_sizes = std::ranges::equal(opened.stamps, stamps, {}, &FileStamp::bytes, &FileStamp::bytes);
  if (!same_sizes) refuse("its sidecars are not those that were scanned", input.name);
  bool same = true;
  if (opened.shard.facts) {
    same = opened.shard.facts->hash == scanned.hash;  // it was read whole
  } else if (!std::ranges::equal(opened.stamps, stamps, same_time)) {
    same = hash_of(opened.stamps) == scanned.hash;
  }
  if (!same || opened.shard.record_begin != scanned.record_begin)
    refuse("is not the file that was scanned: its bytes differ", input.name);
  const bool same_columns =
      std::ranges::equal(opened.shard.columns, columns_, [](const ColumnTable& table, const Column& column) {
        return table.column.name == column.name && table.column.kind == column.kind;
      });
  if (!same_columns) refuse("its columns are not those that were scanned", input.name);
  source_->add_file(number, {std::move(opened.shard.ids), std::move(opened.shard.columns)}, opened.stamps);
}

}  // namespace shardpack
