// Shards that are written in one go: of any number of threads the same bytes and the same journal; and when one fails, those
// before it are finished, and the failure that is told is the first one in the order of the rows.
#include "jobs/rewrite.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io/file.h"
#include "io/journal.h"
#include "io/manifest_parts.h"
#include "io/owned_folder.h"
#include "shardpack/error.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/memory_source.h"
#include "support/open_shards.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

constexpr std::int32_t kRows = 40, kRowTokens = 8;

Length tokens_of(std::int32_t row) { return 1 + row % kRowTokens; }

/// A sequence for each row; reading some of them fails, the first of these last.
class Source final : public SequenceSource {
 public:
  explicit Source(std::set<SequenceId> unreadable) : sequences_(all_sequences()), unreadable_(std::move(unreadable)) {}

  const SequenceIndex& index() const override { return sequences_.index(); }
  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override {
    for (const TokenRequest& request : requests) {
      if (unreadable_.count(request.sequence) == 0) continue;
      if (request.sequence == *unreadable_.begin()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw Error(ErrorCode::io, "cannot read sequence " + std::to_string(request.sequence));
    }
    sequences_.read_block(requests, type, ids);
  }

 private:
  static std::vector<std::vector<std::uint32_t>> all_sequences() {
    std::vector<std::vector<std::uint32_t>> sequences;
    for (std::int32_t row = 0; row < kRows; ++row)
      sequences.emplace_back(static_cast<std::size_t>(tokens_of(row)), static_cast<std::uint32_t>(100 + row));
    return sequences;
  }

  MemorySource sequences_;
  std::set<SequenceId> unreadable_;
};

struct Written {
  std::string error;
  std::vector<std::string> listed;     // of the shards that are returned
  std::vector<std::string> journaled;  // in the order of their completion
  std::map<std::string, std::string> bytes;
};

/// Shards of `rows` rows each.
std::vector<ShardRows> shards_of(std::int64_t rows) {
  std::vector<ShardRows> shards;
  for (std::int64_t first = 0; first < kRows; first += rows)
    shards.push_back({"shard-" + std::to_string(100 + first), first, std::min<std::int64_t>(rows, kRows - first)});
  return shards;
}

/// \param in_the_way  a folder that is there already
Written write(const std::vector<ShardRows>& shards, int threads, std::set<SequenceId> unreadable = {},
              const std::string& in_the_way = {}) {
  const TempFolder folder;
  ThreadPool pool(threads);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  const Source source(std::move(unreadable));
  OrderedRows rows;
  for (std::int32_t row = 0; row < kRows; ++row) {
    rows.items.push_back({.sequence = row, .first_token = 0, .tokens = tokens_of(row), .slots = tokens_of(row)});
    rows.rows.items.push_back(row);
    rows.rows.begin.push_back(row + 1);
  }
  StagedOutput staged(folder.path("out"), kPackedFormat, false, diagnostics);
  staged.begin_shards({}, context);
  if (!in_the_way.empty()) make_folder(staged.folder() + "/" + in_the_way);
  Written written;
  try {
    const DatasetKeys keys(kRowTokens, {});
    RewriteSettings settings;
    settings.row_tokens = kRowTokens;
    settings.max_segments_in_row = 1;
    Rewriter rewriter(source, keys, settings, staged, context);
    rewriter.write_shards(rows, shards);
    for (const ManifestShard& shard : rewriter.finish()) written.listed.push_back(shard.folder);
  } catch (const Error& error) {
    written.error = error.what();
  }
  const File marker(staged.folder() + "/" + std::string(kOwnerMarker), File::Mode::read);
  const Journal journal(marker);
  for (const ManifestShard& shard : journal.shards()) written.journaled.push_back(shard.folder);
  written.bytes = folder_bytes(staged.folder());
  return written;
}

std::vector<std::string> names(const std::vector<ShardRows>& shards, std::size_t count) {
  std::vector<std::string> result;
  for (std::size_t shard = 0; shard < count; ++shard) result.push_back(shards[shard].name);
  return result;
}

TEST_CASE("shards in one go: any number of threads gives the same bytes and the same journal") {
  const std::vector<ShardRows> shards = shards_of(GENERATE(1, 3, 40));
  const Written one = write(shards, 1);
  CHECK(one.error.empty());
  CHECK(one.listed == names(shards, shards.size()));
  CHECK(one.journaled == one.listed);
  for (const int threads : {2, 3, 12}) {
    const Written more = write(shards, threads);
    CHECK(more.error.empty());
    CHECK(more.listed == one.listed);
    CHECK(more.journaled == one.listed);
    CHECK(more.bytes == one.bytes);
  }
}

TEST_CASE("a shard that fails is the first one that does, and those before it are finished") {
  const std::vector<ShardRows> shards = shards_of(2);
  const int threads = GENERATE(1, 2, 3, 12);
  const std::size_t failing = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{9}, std::size_t{19});
  const std::int64_t row = shards[failing].first + 1;
  const auto says = [](const Written& written, const std::string& text) {
    UNSCOPED_INFO(written.error);
    return written.error.find(text) != std::string::npos;
  };

  // Its rows cannot be made, nor can those of the next one.
  const Written unreadable = write(shards, threads, {row, row + 2});
  CHECK(says(unreadable, "cannot read sequence " + std::to_string(row)));
  CHECK(unreadable.journaled == names(shards, failing));

  // It cannot be begun.
  const Written in_the_way = write(shards, threads, {}, shards[failing].name);
  CHECK(says(in_the_way, shards[failing].name));
  CHECK(in_the_way.journaled == names(shards, failing));

  // The next one cannot be begun, which comes up before its own rows do.
  if (failing + 1 < shards.size()) {
    const Written both = write(shards, threads, {row}, shards[failing + 1].name);
    CHECK(says(both, "cannot read sequence " + std::to_string(row)));
    CHECK(both.journaled == names(shards, failing));
  }
}

}  // namespace
}  // namespace shardpack
