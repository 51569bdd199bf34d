// Any bytes as a document: read or refused, and what was read is written and read again the same.
//
// Input: a byte that chooses the document, then its text.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "fuzz.h"
#include "io/histogram_file.h"
#include "io/journal.h"
#include "io/ltd_files.h"
#include "io/plan_file.h"
#include "io/saved_scan.h"
#include "io/times_file.h"
#include "jobs/ltd_setup.h"
#include "jobs/part_run.h"
#include "jobs/partition_record.h"
#include "jobs/scan_options.h"
#include "shardpack/batch_manifest.h"
#include "shardpack/lint.h"
#include "shardpack/ltd_manifest.h"
#include "shardpack/manifest.h"

using namespace shardpack;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void read_plan(const std::string& text) {
  const PlanFile plan = plan_from_json(text, "plan.json");
  const std::string again = to_json(plan.plan, plan.items);
  const PlanFile second = plan_from_json(again, "plan.json");
  require(to_json(second.plan, second.items) == again, "a plan changed on its way through a file");
  check_exact_cover(plan.plan, plan.items);
}

/// A file of this text, while it is alive.
class TextFile {
 public:
  explicit TextFile(const std::string& text) { write_input(path_, text); }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_ = fuzz_folder() / "document.csv";
};

void read_histogram_text(const std::string& text) {
  const TextFile file(text);
  const auto histogram = read_histogram(file.path());
  if (histogram) require(histogram->sequences() >= 0 && histogram->tokens() >= 0, "a total below zero");
}

void read_times_text(const std::string& text) {
  const TextFile file(text);
  for (const TimedWork& work : read_times(file.path())) require(work.minutes >= 0, "a time below zero");
}

void read_journal(const std::string& records) {
  const TextFile written(sealed_lines(records));
  const File file(written.path(), File::Mode::read);
  const Journal journal(file);
  require(journal.begun() || journal.shards().empty(), "shards of a journal that was not begun");
}

/// Text that is read, written and read again is the same then.
template <class Read, class Write>
void read_again(const std::string& text, Read read, Write write, const char* what) {
  const std::string again = write(read(text, "document.json"));
  require(write(read(again, "document.json")) == again, what);
}

template <class Read>
void read_manifest(const std::string& bare, Read read) {
  const auto write = [](const auto& manifest) { return to_json(manifest); };
  read_again(sealed_manifest(bare), read, write, "a manifest changed on its way through a file");
}

void read_record(const std::string& text) {
  const auto write = [](const PartitionRecord& record) { return to_json(record); };
  read_again(text, partition_record_from_json, write, "what a part noted of a partition changed on its way through a file");
}

void read_part_run(const std::string& bare) {
  read_again(sealed_manifest(bare), part_run_from_text, part_run_text,
             "what parts have in common changed on its way through a file");
}

void read_plateaus(const std::string& text) {
  read_again(text, plateaus_from_json, plateaus_to_json, "a table of plateaus changed on its way through a file");
}

void read_steps(const std::string& bytes) {
  const auto write = [](const std::vector<LtdStep>& steps) {
    std::string written;
    steps_to_npy(steps, [&](std::string_view piece) { written += piece; });
    return written;
  };
  read_again(bytes, steps_from_npy, write, "a table of steps changed on its way through a file");
}

void read_scan(const std::string& bare) {
  const TextFile file(sealed_scan(bare));
  const SavedScan scan = read_saved_scan(file.path());
  std::int64_t tokens = 0;
  for (SequenceId sequence = 0; sequence < scan.index.sequences(); ++sequence) tokens += scan.index.place(sequence).tokens;
  require(tokens == scan.index.tokens(), "the lengths of a scan do not add up to its tokens");
  PackOptions options;
  options.scan = file.path();
  adopt(options, scan);
}

void schedule_of_config(const std::string& text) {
  const TextFile file(text);
  LtdOptions options;
  options.deepspeed = file.path();
  options.total_steps = 9;
  const SettledLtd settled = settle_ltd(options, std::nullopt);
  std::vector<std::string> warnings;
  settle_deepspeed(settled, false, "ds_config.json", warnings);
}

void lint_config(const std::string& text) {
  const TextFile file(text);
  lint(file.path(), LintOptions());
}

void parse_with(const char* option, const std::string& text) {
  const TextFile file(text);
  const char* const arguments[] = {"shardpack", "pack", "tokens.bin", "-o", "packed", option, file.path().c_str()};
  parse_arguments(static_cast<int>(std::size(arguments)), arguments);
}

// seeds.py names these by their place in the list.
constexpr std::array<void (*)(const std::string&), 16> kDocuments{
    [](const std::string& text) { read_manifest(text, manifest_from_json); },
    read_plan,
    read_histogram_text,
    [](const std::string& text) { read_manifest(text, batch_manifest_from_json); },
    [](const std::string& text) { read_manifest(text, ltd_manifest_from_json); },
    read_journal,
    lint_config,
    read_times_text,
    [](const std::string& text) { parse_with("--config", text); },
    [](const std::string& text) { parse_with("--files-from", text); },
    read_scan,
    read_record,
    read_part_run,
    read_plateaus,
    read_steps,
    schedule_of_config,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  only_blames_the_input([&] { kDocuments[data[0] % kDocuments.size()](text); });
  return 0;
}
