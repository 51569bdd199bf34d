#include "io/shard_source.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace shardpack {

ShardSource::ShardSource(SequenceIndex index, std::vector<FileTables> tables, std::vector<Column> columns,
                         std::vector<FileStamp> stamps)
    : index_(std::move(index)), tables_(std::move(tables)), columns_(std::move(columns)), stamps_(std::move(stamps)) {}

void ShardSource::add_file(std::size_t file, FileTables tables, const std::vector<FileStamp>& stamps) {
  tables_[file] = std::move(tables);
  stamps_.insert(stamps_.end(), stamps.begin(), stamps.end());
}

const FileTables& ShardSource::tables(std::int32_t file) const { return tables_[static_cast<std::size_t>(file)]; }

template <class Visit>
void ShardSource::for_each_stretch(std::span<const TokenRequest> requests, Visit visit) const {
  // Looked up before the first is read: memory answers many such questions at once, but only one between two reads.
  std::vector<SequencePlace> places(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) places[i] = index_.place(requests[i].sequence);
  Stretch stretch;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const TokenRequest& request = requests[i];
    const SequencePlace& place = places[i];
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

void ShardSource::read(const Stretch& stretch, IdType type, void* ids) const {
  const TokenTable& table = tables(stretch.file).ids;
  ensure(table.file != nullptr, "the source was opened for random access");
  const auto tokens = static_cast<std::size_t>(stretch.tokens);
  if (type == IdType::u16) {
    table.read(stretch.first, std::span(static_cast<std::uint16_t*>(ids) + stretch.destination, tokens));
  } else {
    table.read(stretch.first, std::span(static_cast<std::uint32_t*>(ids) + stretch.destination, tokens));
  }
}

void ShardSource::read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const {
  ensure(type == IdType::u16 || type == IdType::u32, "ids are read as u16 or u32");
  // Sequences are numbered in the order of files and places, so this is the order of the disk.
  std::sort(requests.begin(), requests.end(), [](const TokenRequest& a, const TokenRequest& b) {
    return std::pair(a.sequence, a.first_token) < std::pair(b.sequence, b.first_token);
  });
  read_unchanged(stamps_, [&] { for_each_stretch(requests, [&](const Stretch& stretch) { read(stretch, type, ids); }); });
}

std::optional<std::int64_t> ShardSource::place_in_file(SequenceId sequence, std::int64_t first_token, std::int64_t tokens) const {
  const SequencePlace place = index_.place(sequence);
  if (index_.files()[static_cast<std::size_t>(place.file)].ids_dtype.empty()) return std::nullopt;  // its file may not be open
  return tables(place.file).ids.place_in_file(place.first_token + first_token, tokens);
}

void ShardSource::read_tokens(std::size_t column, std::span<const TokenRequest> requests, std::byte* values) const {
  const ValueType type = columns_[column].type;
  const auto read_stretch = [&](const Stretch& stretch) {
    table(column, stretch.file).values.read(stretch.first, stretch.tokens, type, values + stretch.destination * info(type).bytes);
  };
  read_unchanged(stamps_, [&] { for_each_stretch(requests, read_stretch); });
}

ColumnValues ShardSource::read_values(std::size_t column, std::span<const SequenceId> sequences) const {
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

std::int64_t ShardSource::value_count(std::size_t column, SequenceId sequence) const {
  const SequencePlace place = index_.place(sequence);
  const std::vector<std::int64_t>& begin = table(column, place.file).begin;
  return begin[static_cast<std::size_t>(place.record) + 1] - begin[static_cast<std::size_t>(place.record)];
}

void ShardSource::check_unchanged() const {
  for (const FileStamp& stamp : stamps_) check_stamp(stamp);
}

}  // namespace shardpack
