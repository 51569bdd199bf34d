#include "jobs/verify_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "io/file.h"
#include "io/trainer_files.h"
#include "jobs/verify_folder.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockSlots = std::int64_t{1} << 20;
constexpr std::int64_t kBlockSegments = std::int64_t{1} << 18;
constexpr std::int64_t kChunkBytes = std::int64_t{4} << 20;

std::string offsets_stem(const Column& column) { return column.name + std::string(kOffsetsSuffix); }

/// The arrays that any shard has, by file name without its suffix.
struct KnownArray {
  std::string_view stem;
  enum class Of : std::uint8_t {
    slots,     // where the rows lie here, and not in a trainer's files or in the sources
    derived,   // the same, unless it was left out
    segments,  // always
    begins,    // where the rows lie in the sources, and some of them can be read at random
  } of;
  bool needed;
};
constexpr KnownArray kArrays[]{{"input_ids", KnownArray::Of::slots, true},      {"segment_ids", KnownArray::Of::derived, true},
                               {"position_ids", KnownArray::Of::derived, true}, {"row_offsets", KnownArray::Of::segments, true},
                               {"seq_lengths", KnownArray::Of::segments, true}, {"seq_source", KnownArray::Of::segments, true},
                               {"seq_begin", KnownArray::Of::begins, true},     {"seq_added", KnownArray::Of::segments, false},
                               {"seq_slots", KnownArray::Of::segments, false}};

bool belongs(const KnownArray& array, const Manifest& manifest, const OutputRules& output) {
  switch (array.of) {
    case KnownArray::Of::slots:
      return output.native() && output.holds_tokens();
    case KnownArray::Of::derived:
      return output.native() && output.holds_tokens() && manifest.derived;
    case KnownArray::Of::segments:
      return true;
    case KnownArray::Of::begins:
      return !output.holds_tokens() && manifest.has_begins();
  }
  return false;
}

template <class T>
std::span<T> first_of(std::vector<T>& buffer, std::int64_t count) {
  if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
  return std::span(buffer).first(static_cast<std::size_t>(count));
}

std::string show_shape(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::int64_t block_bytes(const Manifest& manifest, const OutputRules& output) {
  std::int64_t slot_bytes = 3 * info(manifest.id_type).bytes;
  for (const Column& column : manifest.columns) slot_bytes += info(column.type).bytes;
  if (!output.native()) {
    for (const OutputColumn& column : output.columns) slot_bytes += info(column.type).bytes;
  }
  return std::max<std::int64_t>(kBlockSlots, manifest.row_tokens) * slot_bytes + kBlockSegments * 33;
}

ShardFiles::ShardFiles(const PackedDataset& dataset, const ManifestShard& listed, const OutputRules& output,
                       const std::string& trainer_name, const std::set<std::string, std::less<>>& whole, IssueList& issues)
    : manifest_(dataset.manifest()), listed_(listed), output_(output) {
  open_files(dataset, whole, issues);
  open_trainer_files(dataset, whole);
  find_column_slots();
  readable_ = arrays_are_there(issues) && shapes_fit(issues) && read_offsets(issues) &&
              (output_.native() || trainer_rows_open(dataset, trainer_name, issues));
  for (CheckedFile& file : files_) {
    if (!hashed_with_rows(file)) continue;
    hash_header(file);
    if (file.stem == "row_offsets") file.hash.update(std::as_bytes(std::span(offsets_)));
    for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
      if (is_listed(manifest_.columns[c]) && file.stem == offsets_stem(manifest_.columns[c]))
        file.hash.update(std::as_bytes(std::span(value_offsets_[c])));
    }
  }
}

void ShardFiles::open_files(const PackedDataset& dataset, const std::set<std::string, std::less<>>& whole, IssueList& issues) {
  for (const ManifestFile& listed : listed_.files) {
    const std::string shown = relative_name(listed_.folder, listed.name);
    if (!whole.contains(shown)) continue;
    CheckedFile& file = files_.emplace_back();
    file.listed = &listed;
    file.shown = shown;
    file.path = dataset.file_path(listed_.folder, listed.name);
    file.compressed = listed.name.ends_with(".npy.zst");
    if (!file.compressed && !listed.name.ends_with(".npy")) continue;
    file.stem = listed.name.substr(0, listed.name.rfind(".npy"));
    try {
      file.array.emplace(file.path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      issues.add("header", shown, without_path(error));
    }
  }
}

void ShardFiles::open_trainer_files(const PackedDataset& dataset, const std::set<std::string, std::less<>>& whole) {
  for (const ManifestFile& listed : listed_.trainer_files) {
    if (!whole.contains(listed.name)) continue;
    CheckedFile& file = files_.emplace_back();
    file.listed = &listed;
    file.shown = listed.name;
    file.path = dataset.trainer_path(listed.name);
  }
}

/// The trainer's files are those of this shard, all there, and can be read.
bool ShardFiles::trainer_rows_open(const PackedDataset& dataset, const std::string& trainer_name, IssueList& issues) {
  const std::vector<std::string> expected = trainer_file_parts(output_, trainer_name);
  std::vector<std::string> names;
  std::size_t there = 0;
  for (const ManifestFile& file : listed_.trainer_files) {
    names.push_back(file.name);
    there += std::any_of(files_.begin(), files_.end(), [&](const CheckedFile& open) { return open.listed == &file; }) ? 1 : 0;
  }
  if (names != expected) {
    issues.add("manifest", kManifestName,
               fmt::format("{}: trainer_files are [{}], expected [{}]", listed_.folder, fmt::join(names, ", "),
                           fmt::join(expected, ", ")));
    return false;
  }
  if (there < names.size()) return false;  // said already
  try {
    reader_ = open_rows(dataset, listed_, output_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("header", error.path().substr(error.path().rfind('/') + 1), without_path(error));
    return false;
  }
  if (reader_->rows() == listed_.rows) return true;
  issues.add("header", names.front(),
             fmt::format("{} rows, expected {}", with_commas(reader_->rows()), with_commas(listed_.rows)));
  return false;
}

/// Every array that belongs to a shard is listed and open; nothing else is listed.
bool ShardFiles::arrays_are_there(IssueList& issues) const {
  const std::string suffix = manifest_.compress.empty() ? ".npy" : ".npy.zst";
  std::set<std::string, std::less<>> listed;
  for (const ManifestFile& file : listed_.files) listed.insert(file.name);
  const auto wrong_list = [&](const std::string& name, std::string_view what) {
    issues.add("manifest", kManifestName, fmt::format("{} {}", relative_name(listed_.folder, name), what));
  };
  bool open = true;
  const auto expect = [&](std::string_view stem, bool needed) {
    const std::string name = std::string(stem) + suffix;
    if (listed.erase(name) > 0) {
      open = open && find(stem) != nullptr;
    } else if (needed) {
      wrong_list(name, "is not listed");
      open = false;
    }
  };
  for (const KnownArray& array : kArrays) {
    if (belongs(array, manifest_, output_)) expect(array.stem, array.needed);
  }
  for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
    if (!is_stored(c)) continue;
    expect(manifest_.columns[c].name, true);
    if (is_listed(manifest_.columns[c])) expect(offsets_stem(manifest_.columns[c]), true);
  }
  if (output_.keeps_first_values) expect(kFirstLabelStem, true);
  for (const std::string& name : listed) wrong_list(name, "is listed, and no such file belongs to a shard");
  return open;
}

/// Tokens that take no slot have a place in columns all the same, and those say for how many.
void ShardFiles::find_column_slots() {
  const Length unslotted = unslotted_tokens(output_.preset->slot_rule);
  column_slots_ = manifest_.row_tokens + unslotted * manifest_.max_segments_in_row;
  for (const Column& column : manifest_.columns) {
    const CheckedFile* const file = find(column.name);
    if (unslotted > 0 && column.kind == ColumnKind::token && file != nullptr)
      column_slots_ = std::max(column_slots_, file->array->row_elements());
  }
}

bool ShardFiles::shapes_fit(IssueList& issues) const {
  const std::int64_t rows = listed_.rows, segments = listed_.segments;
  const std::vector<std::int64_t> slots{rows, manifest_.row_tokens};
  bool fit = true;
  const auto expect = [&](std::string_view stem, const std::vector<std::int64_t>& shape, const std::vector<ValueType>& types) {
    const CheckedFile* const file = find(stem);
    if (file == nullptr) return;
    const PackedArray& array = *file->array;
    if (array.shape() != shape) {
      issues.add("header", file->shown, fmt::format("shape {}, expected {}", show_shape(array.shape()), show_shape(shape)));
      fit = false;
    }
    if (std::find(types.begin(), types.end(), array.type()) == types.end()) {
      issues.add("header", file->shown,
                 fmt::format("values are {}, expected {}", info(array.type()).name, info(types.front()).name));
      fit = false;
    }
  };
  expect("input_ids", slots, {manifest_.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32});
  expect("segment_ids", slots, {ValueType::u16, ValueType::u32});
  expect("position_ids", slots, {ValueType::u16, ValueType::u32});
  expect("row_offsets", {rows + 1}, {ValueType::i64});
  expect("seq_lengths", {segments}, {ValueType::i32});
  expect("seq_source", {segments, 3}, {ValueType::i64});
  expect("seq_begin", {segments}, {ValueType::i64});
  expect("seq_added", {segments}, {ValueType::u8});
  expect("seq_slots", {segments}, {ValueType::i32});
  if (output_.keeps_first_values)
    expect(kFirstLabelStem, {segments}, {manifest_.columns[static_cast<std::size_t>(output_.label_column)].type});
  for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
    const Column& column = manifest_.columns[c];
    if (!is_stored(c)) continue;
    if (column.kind == ColumnKind::token) expect(column.name, {rows, column_slots_}, {column.type});
    if (column.kind == ColumnKind::sequence) expect(column.name, {segments}, {column.type});
    if (!is_listed(column)) continue;
    const CheckedFile* const file = find(column.name);
    expect(column.name, {file == nullptr ? 0 : file->array->rows()}, {column.type});
    expect(offsets_stem(column), {segments + 1}, {ValueType::i64});
  }
  return fit;
}

bool ShardFiles::read_offsets(IssueList& issues) {
  bool sound = read_offsets("row_offsets", listed_.segments, offsets_, issues);
  value_offsets_.resize(manifest_.columns.size());
  for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
    const Column& column = manifest_.columns[c];
    if (is_listed(column))
      sound = read_offsets(offsets_stem(column), find(column.name)->array->rows(), value_offsets_[c], issues) && sound;
  }
  return sound;
}

/// An array of offsets that rise from 0 to `last`.
bool ShardFiles::read_offsets(std::string_view stem, std::int64_t last, std::vector<std::int64_t>& offsets,
                              IssueList& issues) const {
  const CheckedFile& file = *find(stem);
  try {
    offsets = file.array->read_all<std::int64_t>();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("header", file.shown, without_path(error));
    return false;
  }
  if (offsets.front() != 0 || offsets.back() != last) {
    issues.add("offsets", file.shown, fmt::format("from {} to {}, expected 0 to {}", offsets.front(), offsets.back(), last));
    return false;
  }
  const auto fall = std::adjacent_find(offsets.begin(), offsets.end(), std::greater<>());
  if (fall != offsets.end()) {
    issues.add("offsets", file.shown, fmt::format("{} is followed by {}", fall[0], fall[1]), fall - offsets.begin());
    return false;
  }
  return true;
}

/// The bytes before the data.
void ShardFiles::hash_header(CheckedFile& file) const {
  const std::int64_t data = file.array->rows() * file.array->row_elements() * info(file.array->type()).bytes;
  std::vector<std::byte> header(static_cast<std::size_t>(file.listed->bytes - data));
  File(file.path, File::Mode::read, file.shown).read_at(0, header);
  file.hash.update(header);
}

std::vector<Range> ShardFiles::chunks(std::size_t file) const {
  std::vector<Range> ranges;
  if (hashed_with_rows(files_[file])) return ranges;
  const std::int64_t bytes = files_[file].listed->bytes;
  for (std::int64_t at = 0; at < bytes; at += kChunkBytes) ranges.push_back({at, std::min(kChunkBytes, bytes - at)});
  return ranges;
}

void ShardFiles::read_chunk(std::size_t file, Range bytes, BlockBuffers& to) const {
  File(files_[file].path, File::Mode::read, files_[file].shown).read_at(bytes.first, first_of(to.chunk, bytes.count));
}

void ShardFiles::hash_chunk(std::size_t file, Range bytes, BlockBuffers& from) {
  files_[file].hash.update(first_of(from.chunk, bytes.count));
}

std::vector<Range> ShardFiles::blocks() const {
  std::vector<Range> ranges;
  if (!readable_) return ranges;
  const std::int64_t most = std::max<std::int64_t>(1, kBlockSlots / column_slots_);
  for (std::int64_t first = 0; first < listed_.rows;) {
    std::int64_t end = first + 1;
    const std::int64_t last = reader_ ? reader_->end_of_run(first) : listed_.rows;
    while (end < last && end - first < most && offset(end + 1) - offset(first) <= kBlockSegments) ++end;
    ranges.push_back({first, end - first});
    first = end;
  }
  return ranges;
}

StoredRows ShardFiles::read_rows(Range rows, BlockBuffers& to) const {
  const std::int64_t first_segment = offset(rows.first), segments = offset(rows.first + rows.count) - first_segment;
  const auto read = [&](std::string_view stem, std::int64_t first, std::int64_t count, auto& buffer) {
    const CheckedFile* const file = find(stem);
    const auto out = first_of(buffer, file == nullptr ? 0 : count);
    if (!out.empty()) file->array->read_bytes(first, std::as_writable_bytes(out));
    return out;
  };
  const auto read_ids = [&](std::string_view stem, std::vector<std::byte>& buffer) {
    const CheckedFile* const file = find(stem);
    if (file == nullptr) return StoredIds{};
    return StoredIds{file->array->type() == ValueType::u16 ? IdType::u16 : IdType::u32,
                     read(stem, rows.first, ids_bytes(*file, rows.count), buffer)};
  };
  StoredRows result;
  result.shard = listed_.folder;
  result.slots_file = reader_ ? std::string_view(listed_.trainer_files.front().name) : result.shard;
  result.first_row = rows.first;
  result.rows = rows.count;
  result.column_slots = column_slots_;
  result.offsets = std::span(offsets_).subspan(static_cast<std::size_t>(rows.first), static_cast<std::size_t>(rows.count) + 1);
  result.lengths = read("seq_lengths", first_segment, segments, to.lengths);
  result.slots = read("seq_slots", first_segment, segments, to.slots);
  result.source = read("seq_source", first_segment, 3 * segments, to.source);
  result.added = read("seq_added", first_segment, segments, to.added);
  result.begins = read("seq_begin", first_segment, segments, to.begins);
  result.ids = read_ids("input_ids", to.ids);
  result.segment_ids = read_ids("segment_ids", to.segment_ids);
  result.position_ids = read_ids("position_ids", to.position_ids);
  to.columns.resize(manifest_.columns.size());
  for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
    const Column& column = manifest_.columns[c];
    const Range values = column_values(c, rows);
    StoredColumn& stored = result.columns.emplace_back();
    if (!is_stored(c)) continue;
    stored.bytes = read(column.name, values.first, column_bytes(c, values.count), to.columns[c]);
    if (!is_listed(column)) continue;
    stored.offsets =
        std::span(value_offsets_[c]).subspan(static_cast<std::size_t>(first_segment), static_cast<std::size_t>(segments) + 1);
  }
  if (output_.keeps_first_values) {
    const Column& label = manifest_.columns[static_cast<std::size_t>(output_.label_column)];
    result.first_labels = read(kFirstLabelStem, first_segment, segments * info(label.type).bytes, to.first_labels);
  }
  if (reader_) {
    to.trainer = reader_->read(rows.first, rows.count);
    result.trainer = to.trainer;
  }
  return result;
}

void ShardFiles::hash_rows(Range rows, BlockBuffers& from) {
  const std::int64_t segments = offset(rows.first + rows.count) - offset(rows.first);
  for (CheckedFile& file : files_) {
    if (!hashed_with_rows(file)) continue;
    if (file.stem == "input_ids") file.hash.update(first_of(from.ids, ids_bytes(file, rows.count)));
    if (file.stem == "segment_ids") file.hash.update(first_of(from.segment_ids, ids_bytes(file, rows.count)));
    if (file.stem == "position_ids") file.hash.update(first_of(from.position_ids, ids_bytes(file, rows.count)));
    if (file.stem == "seq_lengths") file.hash.update(std::as_bytes(first_of(from.lengths, segments)));
    if (file.stem == "seq_slots") file.hash.update(std::as_bytes(first_of(from.slots, segments)));
    if (file.stem == "seq_source") file.hash.update(std::as_bytes(first_of(from.source, 3 * segments)));
    if (file.stem == "seq_begin") file.hash.update(std::as_bytes(first_of(from.begins, segments)));
    if (file.stem == "seq_added") file.hash.update(std::as_bytes(first_of(from.added, segments)));
    if (file.stem == kFirstLabelStem) file.hash.update(first_of(from.first_labels, segments * info(file.array->type()).bytes));
    for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
      if (is_stored(c) && file.stem == manifest_.columns[c].name)
        file.hash.update(first_of(from.columns[c], column_bytes(c, column_values(c, rows).count)));
    }
  }
}

std::int64_t ShardFiles::finish(IssueList& issues) const {
  std::int64_t bytes = 0;
  for (const CheckedFile& file : files_) {
    if (file.hash.hex() != file.listed->hash) issues.add("checksum", file.shown, std::string(kDamagedBytes));
    bytes += file.listed->bytes;
  }
  return bytes;
}

const ShardFiles::CheckedFile* ShardFiles::find(std::string_view stem) const {
  for (const CheckedFile& file : files_) {
    if (file.stem == stem && file.array) return &file;
  }
  return nullptr;
}

/// The first dimension's indices that `rows` take up in a column's array.
Range ShardFiles::column_values(std::size_t column, Range rows) const {
  if (manifest_.columns[column].kind == ColumnKind::token) return rows;
  std::int64_t first = offset(rows.first), last = offset(rows.first + rows.count);
  if (is_listed(manifest_.columns[column])) {
    const std::vector<std::int64_t>& offsets = value_offsets_[column];
    first = offsets[static_cast<std::size_t>(first)];
    last = offsets[static_cast<std::size_t>(last)];
  }
  return {first, last - first};
}

/// \param values  of the first dimension
std::int64_t ShardFiles::column_bytes(std::size_t column, std::int64_t values) const {
  const bool of_slots = manifest_.columns[column].kind == ColumnKind::token;
  return values * (of_slots ? column_slots_ : 1) * info(manifest_.columns[column].type).bytes;
}

std::int64_t ShardFiles::ids_bytes(const CheckedFile& file, std::int64_t rows) const {
  return rows * manifest_.row_tokens * info(file.array->type()).bytes;
}

}  // namespace shardpack
