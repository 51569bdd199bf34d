// The files of a shard as a trainer reads them: one implementation a container, chosen in one place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/trainer_rows.h"
#include "shardpack/manifest.h"
#include "shardpack/row_sink.h"

namespace shardpack {

/// Number `number` of `count` files or, of Megatron and NumPy arrays, of what they begin with: "data-00000-of-00004.arrow".
std::string trainer_file_name(const OutputRules& rules, std::int64_t number, std::int64_t count);

/// The files that these are of, sorted.
std::vector<std::string> trainer_file_parts(const OutputRules& rules, const std::string& name);

/// As RowSink: encode() is thread-safe and does the work, write() takes the blocks in row order.
class TrainerFiles {
 public:
  virtual ~TrainerFiles() = default;
  virtual std::unique_ptr<EncodedRows> encode(TrainerRows&& rows) const = 0;
  virtual void write(EncodedRows& rows) = 0;
  /// \return name, bytes and hash of every file, sorted by name
  virtual std::vector<ManifestFile> finish() = 0;
};

/// Creates the files `name` in `folder` for so many rows. \throws Error{io}, Error{limit} for a container that this program was
/// built without
std::unique_ptr<TrainerFiles> make_trainer_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                                 std::int64_t rows);

std::unique_ptr<TrainerFiles> make_npy_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                             std::int64_t rows);
std::unique_ptr<TrainerFiles> make_arrow_file(const OutputRules& rules, const std::string& folder, const std::string& name,
                                              std::int64_t rows);
std::unique_ptr<TrainerFiles> make_parquet_file(const OutputRules& rules, const std::string& folder, const std::string& name);
std::unique_ptr<TrainerFiles> make_megatron_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                                  std::int64_t rows);

/// \throws Error{limit} for a container that this program was built without
void check_container(Container container);

/// The sink of a shard in another layout than the native one: `plan.folder` gets where everything came from and the columns that
/// the preset does not show, `trainer_folder` the files that a trainer reads.
std::unique_ptr<RowSink> make_trainer_sink(ShardPlan plan, const OutputRules& rules, const SequenceIndex& index,
                                           const std::string& trainer_folder, const std::string& name);

/// In the shard's folder: what the label column has at each segment's first token, where the preset does not show it.
inline constexpr std::string_view kFirstLabelStem = "seq_first_label";

}  // namespace shardpack
