// Any bytes as the files of a folder that shardpack made: verified, shown and unpacked, joined, or packed by. Each comes to an
// end or is refused, and what was found to be whole is used without complaint.
//
// Input: a byte that chooses the task, then the files: a byte with the length of the name, two (little-endian) with that of the
// bytes, the name, the bytes. Manifests, journals and scans are without their checksums, which are put on.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/ltd_files.h"
#include "io/owned_folder.h"
#include "io/part_notes.h"
#include "io/safe_name.h"
#include "jobs/part_run.h"
#include "shardpack/inspect.h"
#include "shardpack/jobs.h"
#include "shardpack/ltd.h"

using namespace shardpack;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 40;
constexpr std::string_view kRunName = "run.json", kFirstJournal = "partition-00000.journal", kScanName = "x.scan";

std::string sealed(const std::string& name, std::string_view bytes) {
  if (name == kManifestName || name == kRunName) return sealed_manifest(bytes);
  if (name.ends_with(".journal")) return sealed_lines(bytes);
  if (name.ends_with(".scan")) return sealed_scan(bytes);
  return std::string(bytes);
}

void write_files_of(std::string_view input, const fs::path& folder) {
  fs::create_directories(folder);
  for (std::size_t file = 0; file < kMostFiles && input.size() > 3; ++file) {
    const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(input[at])); };
    const std::size_t name_bytes = byte(0), bytes = byte(1) | byte(2) << 8;
    input.remove_prefix(3);
    const std::string name(input.substr(0, name_bytes));
    input.remove_prefix(std::min(name_bytes, input.size()));
    if (is_plain_relative_path(name)) {
      const fs::path path = folder / name;
      std::error_code is_a_file_already;
      fs::create_directories(path.parent_path(), is_a_file_already);
      write_input(path, sealed(path.filename().string(), input.substr(0, bytes)));
    }
    input.remove_prefix(std::min(bytes, input.size()));
  }
}

/// `task` does what it does, or blames the input; but not where there is nothing to blame.
template <class Task>
void use(bool whole, Task task) {
  try {
    task();
  } catch (const Error& error) {
    if (!whole || error.code() != ErrorCode::bad_data) throw;
    throw Error(ErrorCode::internal, std::string("nothing was wrong with it, but ") + error.what());
  }
}

void verify_and_use(const fs::path& folder, const RunContext& context) {
  const bool whole = verify(folder.string(), {}, context).ok();
  const auto also = [&](auto task) { only_blames_the_input([&] { use(whole, task); }); };
  also([&] { inspect(folder.string(), {}, context); });
  also([&] { inspect(folder.string(), {.read = {}, .row = 0, .sequence = {}}, context); });
  also([&] { inspect(folder.string(), {.read = {}, .row = {}, .sequence = 0}, context); });
  const LtdOptions schedule{
      .kept_start = 1, .ramp_steps = 2, .layers = 4, .micro_batch = 1, .total_steps = 2, .write_indices = true};
  if (!is_ltd_folder(folder.string()))
    only_blames_the_input([&] { ltd({folder.string()}, (fuzz_folder() / "schedule").string(), schedule, context); });
  if (!has_manifest_of(folder.string(), kPackedFormat)) return;
  BatchJobOptions of_rows;
  of_rows.plan.batch_size = 2;
  also([&] { batch({folder.string()}, (fuzz_folder() / "batched").string(), of_rows, context); });
  also([&] { unpack(folder.string(), (fuzz_folder() / "unpacked").string(), {}, context); });
}

/// `folder` is what parts have left; its run.json is named by what the first journal says of the run.
void join_and_verify(const fs::path& folder, const RunContext& context) {
  const fs::path parts = folder / kPartsFolder;
  std::error_code not_there;
  if (fs::exists(parts / kFirstJournal, not_there) && fs::exists(parts / kRunName, not_there)) {
    const File journal((parts / kFirstJournal).string(), File::Mode::read);
    fs::rename(parts / kRunName, parts / part_run_name(Journal(journal).identity()), not_there);
  }
  write_input(folder / kOwnerMarker, "");
  const fs::path joined = fuzz_folder() / "joined";
  fs::rename(folder, joined.string() + ".partial");
  join(joined.string(), {}, context);
  verify_and_use(joined, context);
}

/// Packs the folder's other files by its scan. What a scan says is not believed: the rows are right or there are none.
void pack_by_scan(const fs::path& folder, const RunContext& context) {
  const fs::path scan = fuzz_folder() / kScanName;
  std::error_code not_there;
  fs::rename(folder / kScanName, scan, not_there);
  PackOptions options;
  options.scan = scan.string();
  options.policy.row_tokens = 8;
  options.policy.overlong = Overlong::split;
  const std::string packed = (fuzz_folder() / "packed").string();
  pack({folder.string()}, packed, options, context);
  use(true, [&] {
    const VerifyResult result = verify(packed, {.against = {folder.string()}}, context);
    if (!result.ok()) throw Error(ErrorCode::internal, "packed by a scan, and not right: " + result.issues.front().message);
  });
}

// seeds.py names these by their place in the list.
constexpr std::array<void (*)(const fs::path&, const RunContext&), 3> kTasks{verify_and_use, join_and_verify, pack_by_scan};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fs::path folder = fuzz_folder() / "dataset";
  write_files_of({reinterpret_cast<const char*>(data) + 1, size - 1}, folder);
  FuzzRun run;
  only_blames_the_input([&] { kTasks[data[0] % kTasks.size()](folder, run.context()); });
  for (const fs::directory_entry& entry : fs::directory_iterator(fuzz_folder())) fs::remove_all(entry.path());
  return 0;
}
