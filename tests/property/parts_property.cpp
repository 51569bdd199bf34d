// Parts of any number, in any order, one of them killed and done again, make the bytes of one machine's pack; and verify and
// unpack find in them what was packed.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/stop_after.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

class Machine {
 public:
  PackResult pack(const std::vector<std::string>& inputs, const std::string& output, const PackOptions& options,
                  std::int64_t stop_after_rows = kUndisturbed) {
    std::stop_source stop;
    StopAfter progress(stop_after_rows, stop);
    return shardpack::pack(inputs, output, options, context(progress, stop.get_token()));
  }
  ScanResult scan(const std::vector<std::string>& inputs, const ReadOptions& read, const ScanWants& wants) {
    return shardpack::scan(inputs, read, context(quiet_, {}), wants);
  }
  PackResult join(const std::string& output, const JoinOptions& options = {}) {
    return shardpack::join(output, options, context(quiet_, {}));
  }
  std::vector<Issue> verify(const std::string& output, const std::vector<std::string>& against) {
    return shardpack::verify(output, {.against = against}, context(quiet_, {})).issues;
  }
  UnpackResult unpack(const std::string& output, const std::string& to) {
    return shardpack::unpack(output, to, {}, context(quiet_, {}));
  }

 private:
  RunContext context(ProgressSink& progress, std::stop_token stop) {
    return {.pool = pool_, .stop = std::move(stop), .progress = progress, .diagnostics = diagnostics_, .temp_dir = {}};
  }
  ThreadPool pool_{2};
  NoProgress quiet_;
  KeptDiagnostics diagnostics_;
};

/// A few JSON-lines files with labels, empty records among them.
std::vector<std::string> any_inputs(const TempFolder& folder) {
  std::vector<std::string> inputs;
  const auto files = *rc::gen::inRange(1, 4);
  for (int f = 0; f < files; ++f) {
    std::string lines;
    const auto records = *rc::gen::inRange(1, 14);
    for (int r = 0; r < records; ++r) {
      const auto tokens = r == 0 ? 5 : *rc::gen::inRange(0, 24);  // so that every file tells its columns
      std::string ids, labels;
      for (int t = 0; t < tokens; ++t) {
        ids += fmt::format("{}{}", t > 0 ? "," : "", 3 + (f * 131 + r * 17 + t) % 400);
        labels += fmt::format("{}{}", t > 0 ? "," : "", t % 3 == 0 ? -100 : 3 + t);
      }
      lines += fmt::format("{{\"input_ids\":[{}],\"labels\":[{}]}}\n", ids, labels);
    }
    inputs.push_back(folder.write(fmt::format("in/part-{}.jsonl", f), lines));
  }
  return inputs;
}

PackOptions any_options() {
  PackOptions options;
  options.policy.row_tokens = options.packing.row_tokens = *rc::gen::inRange<Length>(8, 20);
  options.policy.overlong = *rc::gen::element(Overlong::split, Overlong::truncate, Overlong::drop);
  options.policy.min_tokens = *rc::gen::element<Length>(0, 0, 3);
  options.policy.append_eos = *rc::gen::arbitrary<bool>();
  options.policy.drop_unlabeled = *rc::gen::element(false, false, true);
  options.read.eos_id = 2;
  options.packer = *rc::gen::elementOf(std::vector<std::string>{"auto", "nnlshp", "lpfhp", "ffd", "sequential", "concat"});
  options.order =
      *rc::gen::element<std::optional<RowOrder>>(std::nullopt, RowOrder::windowed, RowOrder::balanced, RowOrder::input);
  if (options.order == RowOrder::balanced) options.shape = {.world = 2, .accumulation = 1, .micro_batch = 1};
  options.preset = *rc::gen::elementOf(std::vector<std::string>{"native", "native", "megatron"});
  if (options.preset == "megatron") {
    options.allow_inner_eos = true;
    options.read.columns.which = ColumnChoice::Which::none;  // it has nowhere to keep them
    options.policy.drop_unlabeled = false;
  }
  if (options.preset == "native" && *rc::gen::element(true, false, false)) {
    options.container = Container::index;
    options.read.columns.which = ColumnChoice::Which::none;  // they stay in the sources
    options.policy.drop_unlabeled = false;
  }
  if (options.preset == "native") options.balance_attention = options.packer == "ffd" && *rc::gen::arbitrary<bool>();
  options.partition_tokens = *rc::gen::element<std::int64_t>(40, 100, 1 << 20);
  options.partition_order = *rc::gen::element(PartitionOrder::input, PartitionOrder::shuffled);
  options.shard_bytes = *rc::gen::element<std::int64_t>(300, 1 << 20);
  options.rows_multiple = *rc::gen::element<std::int64_t>(1, 1, 5, 40);
  options.tail = *rc::gen::element(Tail::repeat, Tail::fill, Tail::drop);
  options.seed = *rc::gen::inRange<std::uint64_t>(0, 100);
  return options;
}

/// Without what decides no byte: --part and --scan are not among the options that the manifest records.
std::string save_scan(Machine& machine, const TempFolder& folder, const std::vector<std::string>& inputs,
                      const PackOptions& options) {
  const ScanResult scanned = machine.scan(
      inputs, options.read,
      {.record_lengths = false,
       .save = SaveOptions{.cut = {.tokens = options.partition_tokens, .order = options.partition_order, .seed = options.seed},
                           .loss_side = loss_side(options.policy)}});
  return folder.write("scan", scanned.saved);
}

TEST_CASE("parts make the bytes of one machine's pack") {
  Machine machine;
  CHECK(rc::check([&] {
    const TempFolder folder;
    const std::vector<std::string> inputs = any_inputs(folder);
    const PackOptions options = any_options();
    const std::string one = folder.path("one"), out = folder.path("out");
    machine.pack(inputs, one, options);
    const std::map<std::string, std::string> expected = folder_bytes(one);

    PackOptions part = options;
    part.scan = save_scan(machine, folder, inputs, options);
    std::vector<std::int64_t> order(*rc::gen::inRange<std::size_t>(1, 7));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i) + 1;
    const std::uint64_t turn = *rc::gen::inRange<std::uint64_t>(0, order.size());
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn), order.end());
    if (*rc::gen::arbitrary<bool>()) std::reverse(order.begin(), order.end());
    const std::int64_t killed = *rc::gen::elementOf(order);
    for (const std::int64_t index : order) {
      part.part = PackOptions::Part{.index = index, .of = static_cast<std::int64_t>(order.size())};
      part.resume = false;
      if (index == killed) {
        try {
          machine.pack(inputs, out, part, *rc::gen::inRange<std::int64_t>(1, 12));
        } catch (const Error& error) {
          RC_ASSERT(error.code() == ErrorCode::cancelled);
        }
        part.resume = *rc::gen::arbitrary<bool>();
      }
      machine.pack(inputs, out, part);
    }
    RC_ASSERT(!fs::exists(out));
    machine.join(out);
    RC_ASSERT(folder_bytes(out) == expected);
    RC_ASSERT(!fs::exists(out + ".partial"));

    // A saved scan serves one machine as well.
    part.part.reset();
    part.resume = false;
    machine.pack(inputs, folder.path("scanned"), part);
    RC_ASSERT(folder_bytes(folder.path("scanned")) == expected);
    const std::vector<Issue> issues = machine.verify(out, inputs);
    RC_LOG() << (issues.empty() ? "" : issues.front().file + ": " + issues.front().message);
    RC_ASSERT(issues.empty());
  }));
}

TEST_CASE("dealt partitions hold every record once, and unpack puts the sources in order again") {
  Machine machine;
  ShardOpener opener;
  CHECK(rc::check([&] {
    const TempFolder folder;
    const std::vector<std::string> inputs = any_inputs(folder);
    PackOptions options;
    options.policy.row_tokens = options.packing.row_tokens = 24;
    options.partition_tokens = *rc::gen::inRange<std::int64_t>(20, 200);
    options.partition_order = PartitionOrder::shuffled;
    options.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const Manifest manifest = machine.pack(inputs, folder.path("packed"), options).manifest;
    std::set<SequenceId> seen;
    for (const ManifestPartition& partition : manifest.partitions) {
      for (const SequenceRange& run : partition.sequences.runs()) {
        for (SequenceId sequence = run.first; sequence < run.last; ++sequence) RC_ASSERT(seen.insert(sequence).second);
      }
    }
    RC_ASSERT(static_cast<std::int64_t>(seen.size()) == manifest.source_sequences);
    machine.unpack(folder.path("packed"), folder.path("out"));
    RC_ASSERT(opener.sequences({folder.path("out")}) == opener.sequences(inputs));
  }));
}

}  // namespace
}  // namespace shardpack
