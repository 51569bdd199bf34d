// --drop-unlabeled: what goes is counted, listed and verified, and nothing else goes.
#include <functional>
#include <string>
#include <vector>

#include "io/file.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/progress.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

struct Case {
  Case() {
    options.policy.row_tokens = options.packing.row_tokens = 8;
    options.policy.drop_unlabeled = true;
  }

  /// One line a string of `.` (no loss) and `x` (loss).
  void write(const std::vector<std::string>& sequences) {
    std::string lines;
    for (const std::string& marks : sequences) {
      std::string ids, labels;
      for (const char mark : marks) {
        ids += (ids.empty() ? "" : ",") + std::to_string(++id);
        labels += (labels.empty() ? "" : ",") + std::string(mark == 'x' ? "7" : "-100");
      }
      lines += "{\"input_ids\":[" + ids + "],\"labels\":[" + labels + "]}\n";
    }
    input = folder.write("in/a.jsonl", lines);
  }

  template <class Job>
  auto run(Job job) {
    ThreadPool pool(2);
    NoProgress progress;
    NoDiagnostics quiet;
    return job(RunContext{.pool = pool, .stop = {}, .progress = progress, .diagnostics = quiet, .temp_dir = {}});
  }
  Manifest pack() {
    options.force = true;
    Manifest manifest =
        run([&](const RunContext& context) { return shardpack::pack({input}, folder.path("out"), options, context); }).manifest;
    for (const std::vector<std::string>& against : {std::vector<std::string>{}, {input}}) {
      const VerifyResult verified =
          run([&](const RunContext& context) { return verify(folder.path("out"), {.against = against}, context); });
      for (const Issue& issue : verified.issues) UNSCOPED_INFO(issue.message);
      CHECK(verified.ok());
    }
    return manifest;
  }
  RemovedCount unlabeled(const Manifest& manifest) const {
    return manifest.removed[static_cast<std::size_t>(RemovalCause::unlabeled)];
  }
  std::string removed() const { return read_small_file(folder.path("out/removed.csv")); }

  TempFolder folder;
  std::string input;
  PackOptions options;
  int id = 0;
};

TEST_CASE("sequences without a loss token are dropped, counted and listed") {
  Case is;
  is.write({"x..", "...", ".x", "", "....", "x"});
  const Manifest manifest = is.pack();
  CHECK(manifest.sequences == 3);
  CHECK(is.unlabeled(manifest).sequences == 2);
  CHECK(is.unlabeled(manifest).tokens == 7);
  CHECK(is.unlabeled(manifest).loss_tokens == 0);
  CHECK(manifest.loss_tokens == 3);
  CHECK(is.removed() == "source,record,first_token,tokens,cause\na.jsonl,1,0,3,unlabeled\na.jsonl,4,0,4,unlabeled\n");
  is.options.policy.drop_unlabeled = false;
  CHECK(is.pack().sequences == 5);
}

TEST_CASE("what truncation leaves counts, and its loss tokens go with an unlabeled sequence") {
  Case is;
  is.write({"........xx", "x.........", "xx........", ".......x..", "xxxx"});
  is.options.policy.overlong = Overlong::truncate;
  Manifest manifest = is.pack();
  CHECK(is.unlabeled(manifest).sequences == 1);
  CHECK(is.unlabeled(manifest).tokens == 10);
  CHECK(is.unlabeled(manifest).loss_tokens == 2);
  CHECK(manifest.removed[static_cast<std::size_t>(RemovalCause::truncated)].sequences == 3);
  // An added EOS takes the place of the only one that is left of the fourth.
  is.options.policy.append_eos = true;
  is.options.read.eos_id = 99;
  CHECK(is.unlabeled(is.pack()).sequences == 2);
  is.options.policy.append_eos = false;
  is.options.policy.truncate_side = TruncateSide::start;
  manifest = is.pack();
  CHECK(is.unlabeled(manifest).sequences == 2);
  CHECK(is.unlabeled(manifest).loss_tokens == 3);
}

TEST_CASE("a split sequence stays for the sake of any of its pieces, but not of one that is too short") {
  Case is;
  is.write({"........x.", "..........", "x"});
  is.options.policy.overlong = Overlong::split;
  CHECK(is.unlabeled(is.pack()).sequences == 1);
  is.options.policy.split_min_tokens = 3;
  const Manifest manifest = is.pack();
  CHECK(is.unlabeled(manifest).sequences == 2);
  CHECK(is.unlabeled(manifest).loss_tokens == 1);
  is.options.policy.split_min_tokens = 0;
  is.options.packer = "concat";
  CHECK(is.unlabeled(is.pack()).sequences == 1);
}

TEST_CASE("a unit goes when none of its sequences has a loss token") {
  Case is;
  is.write({"..", "x", "..", "...", ".x", "."});
  is.options.policy.keep_together = 2;
  const Manifest manifest = is.pack();
  CHECK(manifest.sequences == 4);
  CHECK(is.unlabeled(manifest).sequences == 2);
  CHECK(is.unlabeled(manifest).tokens == 5);
}

TEST_CASE("a plan of shards drops the same sequences, and pack takes it for these alone") {
  Case is;
  is.write({"x..", "...", ".x", "....", "x"});
  const PlanOptions options{.policy = is.options.policy, .packer = "auto", .packing = is.options.packing};
  const PlanResult result = is.run([&](const RunContext& context) { return plan({is.input}, {}, options, context); });
  CHECK(result.policy.counts[static_cast<std::size_t>(RemovalCause::unlabeled)].sequences == 2);
  CHECK(result.plan.policy.drop_unlabeled);
}

TEST_CASE("without a column that tells the loss nothing can be dropped") {
  Case is;
  const auto message = [&](const std::function<void(const RunContext&)>& job) -> std::string {
    try {
      is.run([&](const RunContext& context) {
        job(context);
        return 0;
      });
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return error.what();
    }
    return "no error";
  };
  is.write({"x..", "..."});
  is.options.read.columns.which = ColumnChoice::Which::none;
  const std::string none =
      message([&](const RunContext& context) { pack({is.input}, is.folder.path("out"), is.options, context); });
  CHECK(none.find("--drop-unlabeled: no column that is carried") != std::string::npos);
  CHECK(none.find("not carried: labels") != std::string::npos);
  const std::string histogram = is.folder.write("lengths.csv", "length,count\n3,2\n");
  const PlanOptions options{.policy = is.options.policy, .packer = "auto", .packing = is.options.packing};
  CHECK(message([&](const RunContext& context) { plan({histogram}, {}, options, context); }).find("give the shards") !=
        std::string::npos);
}

}  // namespace
}  // namespace shardpack
