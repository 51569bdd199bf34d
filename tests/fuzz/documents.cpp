// Any bytes as a document: read or refused, and what was read is written and read again the same.
//
// Input: a byte that chooses the document, then its text.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "cli/arguments.h"
#include "fuzz.h"
#include "io/histogram_file.h"
#include "io/journal.h"
#include "io/manifest_parts.h"
#include "io/plan_file.h"
#include "io/times_file.h"
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
  explicit TextFile(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_ = std::filesystem::temp_directory_path() / ("shardpack-fuzz-" + std::to_string(getpid()) + ".csv");
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

/// The lines as records of a journal, each with its right hash, so that not only the hash is tried.
void read_journal(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string record(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(record.size() + 1, text.size()));
    lines += hash_hex(record) + " " + record + "\n";
  }
  const TextFile written(lines);
  const File file(written.path(), File::Mode::read);
  const Journal journal(file);
  require(journal.begun() || journal.shards().empty(), "shards of a journal that was not begun");
}

/// A manifest without its checksum, which is put on, so that not only the checksum is tried. Written and read again, it is the
/// same text.
template <class Read>
void read_manifest(const std::string& bare, Read read) {
  const std::string text = with_checksum(bare + "\n}");
  const std::string again = to_json(read(text, "manifest.json"));
  require(to_json(read(again, "manifest.json")) == again, "a manifest changed on its way through a file");
}

void lint_config(const std::string& text) {
  const TextFile file(text);
  lint(file.path(), LintOptions());
}

void read_config(const std::string& text) {
  const TextFile file(text);
  const char* const arguments[] = {"shardpack", "pack", "tokens.bin", "-o", "packed", "--config", file.path().c_str()};
  parse_arguments(static_cast<int>(std::size(arguments)), arguments);
}

// seeds.py names these by their place in the list.
constexpr std::array<void (*)(const std::string&), 9> kDocuments{
    [](const std::string& text) { read_manifest(text, manifest_from_json); },
    read_plan,
    read_histogram_text,
    [](const std::string& text) { read_manifest(text, batch_manifest_from_json); },
    [](const std::string& text) { read_manifest(text, ltd_manifest_from_json); },
    [](const std::string& text) { read_journal(text); },
    lint_config,
    read_times_text,
    read_config,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  only_blames_the_input([&] { kDocuments[data[0] % kDocuments.size()](text); });
  return 0;
}
