// Opened shards as one SequenceSource: where every token and value lies, file by file.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "io/file_stamp.h"
#include "io/passing_scan.h"
#include "io/token_table.h"
#include "io/value_table.h"
#include "shardpack/error.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// What a file holds: its tokens and, as the source's columns, their values.
struct FileTables {
  TokenTable ids;  ///< without a file where it was not opened for random access
  std::vector<ColumnTable> columns;
};

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

class ShardSource final : public SequenceSource {
 public:
  /// \param tables  by file of the index
  ShardSource(SequenceIndex index, std::vector<FileTables> tables, std::vector<Column> columns, std::vector<FileStamp> stamps);

  const SequenceIndex& index() const override { return index_; }
  std::span<const Column> columns() const override { return columns_; }
  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override;
  std::optional<std::int64_t> place_in_file(SequenceId sequence, std::int64_t first_token, std::int64_t tokens) const override;
  void read_tokens(std::size_t column, std::span<const TokenRequest> requests, std::byte* values) const override;
  ColumnValues read_values(std::size_t column, std::span<const SequenceId> sequences) const override;
  std::int64_t value_count(std::size_t column, SequenceId sequence) const override;
  void check_unchanged() const override;

  /// A file that is opened later; `stamps` are of all that was read of it. Before anything reads.
  void add_file(std::size_t file, FileTables tables, const std::vector<FileStamp>& stamps);

  /// Whatever read_block() reads as u32 takes the pass along, which is over these very files. Before anything reads.
  void scan_in_passing(std::unique_ptr<PassingScan> pass) { passing_ = std::move(pass); }
  /// The pass to its end, the files' hashes into the index. \return what it found in all files. Nothing reads meanwhile.
  TokenFacts finish_pass(const RunContext& context);

 private:
  void read_in_passing(std::span<const TokenRequest> requests, std::uint32_t* ids) const;
  /// Calls visit(file, ranges) with the tokens that are asked for of each file; those that lie together both there and in the
  /// buffer are one range.
  template <class Visit>
  void for_each_file(std::span<const TokenRequest> requests, Visit visit) const;
  const FileTables& tables(std::int32_t file) const;
  const ColumnTable& table(std::size_t column, std::int32_t file) const { return tables(file).columns[column]; }
  void read_ids(std::int32_t file, std::span<const TableRange> ranges, IdType type, void* ids) const;

  SequenceIndex index_;
  std::vector<FileTables> tables_;  // by file
  std::vector<Column> columns_;
  std::vector<FileStamp> stamps_;
  std::unique_ptr<PassingScan> passing_;  // none: the pass is over
};

}  // namespace shardpack
