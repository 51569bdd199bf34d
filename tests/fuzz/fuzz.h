// What a fuzz target may do with hostile bytes: succeed, or throw an Error that blames the input. All else is a finding. And what
// the targets share: where the files of an input lie, and the checksums that are put on, so that not only these are tried.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"
#include "shardpack/run_context.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

template <class Task>
void only_blames_the_input(Task task) {
  try {
    task();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::internal && error.code() != ErrorCode::cancelled) return;
    std::fprintf(stderr, "an error that blames shardpack: %s\n", error.what());
    std::abort();
  }
}

/// A folder that is gone with the process.
inline const std::filesystem::path& fuzz_folder() {
  static const struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("shardpack-fuzz-" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  } kFolder;
  return kFolder.path;
}

inline void write_input(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The parts of an input that is several files: two bytes (little-endian) of length before each but the last. Fewer than `count`
/// when it is too short for them.
inline std::vector<std::string_view> parts_of(std::string_view rest, std::size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() < count) {
    std::size_t bytes = rest.size();
    if (parts.size() + 1 < count) {
      if (rest.size() < 2) break;
      bytes = static_cast<unsigned char>(rest[0]) | static_cast<std::size_t>(static_cast<unsigned char>(rest[1])) << 8;
      rest.remove_prefix(2);
    }
    parts.push_back(rest.substr(0, bytes));
    rest.remove_prefix(parts.back().size());
  }
  return parts;
}

/// Of a manifest without its checksum and closing brace.
inline std::string sealed_manifest(std::string_view bare) { return with_checksum(std::string(bare) + "\n}"); }

/// Of the lines of a journal, each with its right hash.
inline std::string sealed_lines(std::string_view records) {
  std::string lines;
  while (!records.empty()) {
    const std::string record(records.substr(0, records.find('\n')));
    records.remove_prefix(std::min(record.size() + 1, records.size()));
    lines += hash_hex(record) + " " + record + "\n";
  }
  return lines;
}

/// Of a saved scan without the hash at its end.
inline std::string sealed_scan(std::string_view bare) { return std::string(bare) + hash_hex(bare); }

/// One thread and little memory unless more is asked for, temporary files in fuzz_folder().
class FuzzRun {
 public:
  explicit FuzzRun(int threads = 1, std::int64_t memory_bytes = std::int64_t{16} << 20)
      : pool_(threads), memory_bytes_(memory_bytes) {}

  RunContext context() {
    return {.pool = pool_,
            .stop = {},
            .progress = progress_,
            .diagnostics = diagnostics_,
            .memory_bytes = memory_bytes_,
            .temp_dir = fuzz_folder().string()};
  }

 private:
  ThreadPool pool_;
  const std::int64_t memory_bytes_;
  NoProgress progress_;
  NoDiagnostics diagnostics_;
};

}  // namespace shardpack
