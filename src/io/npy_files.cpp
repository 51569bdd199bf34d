// NumPy arrays of a trainer: NAME.COLUMN.npy for each column, one row of the array a packed row.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "io/hashed_file.h"
#include "io/npy.h"
#include "io/trainer_files.h"

namespace shardpack {

namespace {

struct NpyRows final : EncodedRows {
  explicit NpyRows(TrainerRows&& rows_) : rows(std::move(rows_)) {}
  TrainerRows rows;
};

class NpyFiles final : public TrainerFiles {
 public:
  NpyFiles(const OutputRules& rules, const std::string& folder, const std::string& name, std::int64_t rows) : rows_left_(rows) {
    ensure(!rules.preset->ragged, "the rows of an array are equally long");
    for (const OutputColumn& column : rules.columns) {
      names_.push_back(name + "." + std::string(column.name) + ".npy");
      const std::int64_t width = rules.width(column.source);
      const std::string header = make_npy_header(info(column.type).numpy, {rows, width});
      files_.emplace_back(folder + "/" + names_.back(), std::ssize(header) + rows * width * info(column.type).bytes);
      files_.back().append(std::as_bytes(std::span(header)));
    }
  }

  std::unique_ptr<EncodedRows> encode(TrainerRows&& rows) const override { return std::make_unique<NpyRows>(std::move(rows)); }

  void write(EncodedRows& rows) override {
    const TrainerRows& block = static_cast<NpyRows&>(rows).rows;
    for (std::size_t c = 0; c < files_.size(); ++c) files_[c].append(block.columns[c].values);
    rows_left_ -= block.rows;
  }

  std::vector<ManifestFile> finish() override {
    ensure(rows_left_ == 0, "an array has the rows that its header says");
    std::vector<ManifestFile> files;
    for (std::size_t c = 0; c < files_.size(); ++c) files.push_back(files_[c].finish(names_[c]));
    std::sort(files.begin(), files.end(), [](const ManifestFile& a, const ManifestFile& b) { return a.name < b.name; });
    return files;
  }

 private:
  std::int64_t rows_left_;
  std::vector<std::string> names_;  // as the columns
  std::vector<HashedFile> files_;
};

}  // namespace

std::unique_ptr<TrainerFiles> make_npy_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                             std::int64_t rows) {
  return std::make_unique<NpyFiles>(rules, folder, name, rows);
}

}  // namespace shardpack
