// What the command line says, once it is understood: one struct that the handlers read and the option table fills.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "shardpack/jobs.h"
#include "shardpack/lint.h"
#include "shardpack/ltd.h"
#include "shardpack/parallelism.h"
#include "shardpack/sweep.h"

namespace shardpack {

enum class Command : std::uint8_t { scan, plan, sweep, pack, join, batch, verify, inspect, unpack, ltd, lint, formats, version };

/// A page of text that is asked for instead of the command.
enum class Page : std::uint8_t { none, version, brief, full };

struct Settings {
  Command command = Command::version;
  std::vector<std::string> inputs;
  std::string output;  ///< "-" = standard output

  PackOptions pack;                        ///< its parts serve scan, plan and sweep too
  std::optional<Length> segment_multiple;  ///< as given; pack.policy has what it comes to with `parallelism`
  Parallelism parallelism;
  SweepOptions sweep;                ///< its lists
  std::optional<double> fail_under;  ///< percent
  std::string write_lengths;         ///< scan: NPY file of all lengths, in input order
  std::string save_scan;             ///< scan: what pack --scan goes by
  BatchJobOptions batch;             ///< its plan; what it reads and the policy are those of `pack`
  std::string tail;                  ///< as typed: pack and batch know different ones
  Length max_length = 0;             ///< batches: the longest sequence, 0 = no limit
  bool batching = false;             ///< sweep: batching strategies
  std::string calibrate;             ///< batches: CSV file of measured times
  VerifyOptions verify;
  std::optional<std::int64_t> row, sequence;  ///< inspect
  std::string as;                             ///< as typed: pack and unpack write different files
  UnpackFormat unpack_format = UnpackFormat::jsonl;
  LtdOptions ltd;                    ///< force, dry run and seed are those of `pack`
  std::optional<KeptPlace> kept_at;  ///< ltd: show one kept set, write nothing
  LintOptions lint;

  int threads = 0;                ///< 0 = the processors that this process may use
  std::int64_t memory_bytes = 0;  ///< budget for blocks in flight
  std::int64_t memory_limit = 0;  ///< for all that the run holds; 0 = none
  std::string temp_dir;
  std::string formats_for;  ///< formats: the preset whose page is asked for
  bool csv = false;         ///< sweep: a line a cell
  bool json = false, quiet = false, verbose = false;
  When progress = When::automatic, color = When::automatic;
  std::string config_file, files_from, stats_file, stamp_file, depfile;
  bool print_config = false;
  Page page = Page::none;
};

}  // namespace shardpack
