// manifest.json of a random-LTD schedule folder: what decides its bytes, what the run comes to, and the files beside it.
// docs/ltd.md describes every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/ltd_schedule.h"
#include "shardpack/ltd_selection.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// Optimizer steps [first, first + count).
struct StepWindow {
  std::int64_t first = 0, count = 0;
};

/// All that decides the bytes of an LTD folder, besides the rows.
struct LtdSetup {
  LtdSchedule schedule;
  std::vector<std::int64_t> layer_ids = {};  ///< of the layers that drop, ascending, from 0
  Budget budget;
  LearningRate rate;  ///< decay_layer_tokens 0 = over the whole run
  KeptMode mode = KeptMode::uniform;
  std::uint64_t seed = 0;
  std::int64_t hidden_size = 0;  ///< 0 = unknown
};

/// What the rows of a run come from, known by its manifest.
enum class LtdRowSource : std::uint8_t { packed, batches };
inline constexpr std::string_view kLtdRowSources[] = {"packed", "batches"};

struct LtdDataset {
  LtdRowSource kind = LtdRowSource::packed;
  std::string hash;       ///< XXH3-128 of its manifest.json
  std::string rows_hash;  ///< batches of rows: of the packed dataset's manifest.json; else empty
  /// Of all rows that are read before the run begins again with the first: a dataset's in stored order, repeated and fill rows
  /// too; a plan's of all epochs, those of weight 0 among the rows alone.
  std::int64_t rows = 0, segments = 0, tokens = 0;
  std::int64_t row_tokens = 0;          ///< slots of a row; batches: of the widest
  std::int64_t batches = 0, steps = 0;  ///< batches: of all epochs
};

struct LtdManifest {
  std::string tool_version;
  LtdSetup setup;
  std::optional<LtdDataset> dataset;

  std::int64_t steps = 0, plateaus = 0;
  std::int64_t layer_tokens = 0, dense_layer_tokens = 0, effective_tokens = 0;
  LtdTotals real, padded;  ///< with rows: counted either way
  BudgetEnd budget;
  LtdAttention attention;
  double flop_saving = 0;  ///< with a hidden size

  std::optional<StepWindow> kept;        ///< steps whose indices are in kept/
  std::optional<StepWindow> boundaries;  ///< steps whose segments are in cu_seqlens.npy
  std::vector<std::string> warnings;
  std::vector<ManifestFile> files;

  double saving() const;  ///< of LayerTokens
};

/// The exact bytes of manifest.json, under the rules of to_json(const Manifest&).
std::string to_json(const LtdManifest& manifest);

/// Inverse of to_json(). \throws Error{bad_data} naming `path` and the key
LtdManifest ltd_manifest_from_json(const std::string& text, const std::string& path);

}  // namespace shardpack
