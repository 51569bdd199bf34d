// Any dataset that is packed right holds, with the same verdict for any number of threads; any bit flipped in it is found and
// the file named.
#include <rapidcheck.h>

#include <algorithm>

#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

VerifyResult run_verify(const std::string& path, ThreadPool& pool) {
  NoProgress progress;
  NoDiagnostics diagnostics;
  return verify(path, {}, {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}});
}

TinyOptions any_options() {
  TinyOptions options;
  options.lengths = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 13),
                                                                   rc::gen::inRange<std::int64_t>(0, 60));
  const Length multiple = *rc::gen::element<Length>(1, 1, 2, 4);
  options.policy.row_tokens = multiple * *rc::gen::inRange<Length>(3, 12);
  options.policy.segment_multiple = multiple;
  options.policy.overlong = *rc::gen::element(Overlong::truncate, Overlong::split, Overlong::drop);
  options.policy.truncate_side = *rc::gen::element(TruncateSide::end, TruncateSide::start);
  options.policy.append_eos = *rc::gen::arbitrary<bool>();
  options.policy.prepend_bos = *rc::gen::arbitrary<bool>();
  options.policy.min_tokens = *rc::gen::element<Length>(0, 0, 4);
  options.packer = *rc::gen::elementOf(std::vector<std::string>{"lpfhp", "spfhp", "ffd", "none", "concat"});
  if (options.packer == "concat") options.policy.overlong = Overlong::split;
  if (options.policy.overlong == Overlong::split) options.policy.split_min_tokens = *rc::gen::element<Length>(0, 2);
  options.max_segments = options.packer == "none" ? 0 : *rc::gen::element(0, 0, 1, 3);
  options.shard_rows = *rc::gen::element<std::int64_t>(4, 1000);  // every file is synced to disk: few of them
  options.position_start = *rc::gen::element<std::int64_t>(0, 0, 2, 65'530);
  options.derived = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  options.zstd_level = *rc::gen::element(0, 0, 1);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      options.repeated_rows = *rc::gen::inRange<std::int64_t>(1, 12);
      break;
    case 1:
      options.fill_rows = *rc::gen::inRange<std::int64_t>(1, 12);
      break;
    default:
      options.partition_sequences = *rc::gen::inRange<std::int64_t>(6, 30);
  }
  return options;
}

std::string show(const std::vector<Issue>& issues) {
  std::string text;
  for (const Issue& issue : issues) text += issue.kind + ": " + issue.file + ": " + issue.message + "\n";
  return text;
}

TEST_CASE("any dataset that was packed right holds, and any bit flipped in it is found, for any number of threads") {
  ThreadPool one(1), three(3);
  CHECK(rc::check([&] {
    const TempFolder folder;
    const Manifest manifest = write_tiny_dataset(folder.path(), any_options());
    const VerifyResult whole = run_verify(folder.path(), one), again = run_verify(folder.path(), three);
    RC_LOG() << show(whole.issues);
    RC_ASSERT(whole.ok());
    RC_ASSERT(again.ok());
    RC_ASSERT(whole.tokens == manifest.tokens);
    RC_ASSERT(whole.checked == again.checked);

    for (int flip = 0; flip < 5; ++flip) {
      const std::string file = *rc::gen::elementOf(files_below(folder.path()));
      const std::string bytes = read_file(folder.path(file));
      const auto at = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, static_cast<std::int64_t>(bytes.size())));
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << *rc::gen::inRange(0, 8)));
      write_file(folder.path(file), damaged);
      const VerifyResult result = run_verify(folder.path(), one);
      RC_LOG() << file << ", byte " << at << "\n" << show(result.issues);
      RC_ASSERT(std::any_of(result.issues.begin(), result.issues.end(), [&](const Issue& issue) { return issue.file == file; }));
      RC_ASSERT(show(result.issues) == show(run_verify(folder.path(), three).issues));
      write_file(folder.path(file), bytes);
    }
  }));
}

}  // namespace
}  // namespace shardpack
