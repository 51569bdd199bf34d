#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/arrow_support.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

class TrainerSink final : public RowSink {
 public:
  TrainerSink(ShardPlan plan, const OutputRules& rules, const SequenceIndex& index, const std::string& trainer_folder,
              const std::string& name)
      : rules_(rules),
        index_(index),
        columns_(plan.columns),
        rows_(plan.rows),
        map_(make_native_sink(map_plan(std::move(plan)))),
        files_(make_trainer_files(rules, trainer_folder, name, rows_)) {}

  EncodedBlock encode(RowBlock&& block) const override {
    TrainerRows rows = trainer_rows(block, rules_, columns_, index_);
    if (rules_.label_column >= 0) block.columns.erase(block.columns.begin() + rules_.label_column);
    if (rules_.keeps_first_values) block.columns.push_back({std::move(rows.first_values), {}});
    EncodedBlock encoded = map_->encode(std::move(block));
    encoded.hidden_labels = rows.hidden_labels;
    encoded.trainer = files_->encode(std::move(rows));
    return encoded;
  }

  void write(EncodedBlock&& block) override {
    files_->write(*block.trainer);
    hidden_labels_ += block.hidden_labels;
    map_->write(std::move(block));
  }

  std::vector<ManifestFile> finish() override {
    trainer_files_ = files_->finish();
    return map_->finish();
  }

  std::vector<ManifestFile> trainer_files() const override { return trainer_files_; }
  std::int64_t hidden_labels() const override { return hidden_labels_; }

 private:
  /// The columns that stay in the shard's folder.
  ShardPlan map_plan(ShardPlan plan) const {
    plan.slots = false;
    if (rules_.label_column < 0) return plan;
    const Column label = plan.columns[static_cast<std::size_t>(rules_.label_column)];
    plan.columns.erase(plan.columns.begin() + rules_.label_column);
    plan.list_values.erase(plan.list_values.begin() + rules_.label_column);
    if (rules_.keeps_first_values) {
      plan.columns.push_back({std::string(kFirstLabelStem), ColumnKind::sequence, label.type, label.alignment});
      plan.list_values.push_back(0);
    }
    return plan;
  }

  const OutputRules& rules_;
  const SequenceIndex& index_;
  const std::vector<Column> columns_;  // the dataset's
  const std::int64_t rows_;
  const std::unique_ptr<RowSink> map_;
  const std::unique_ptr<TrainerFiles> files_;
  std::vector<ManifestFile> trainer_files_;
  std::int64_t hidden_labels_ = 0;
};

}  // namespace

std::string trainer_file_name(const OutputRules& rules, std::int64_t number, std::int64_t count) {
  const std::string place = fmt::format("{:05}-of-{:05}", number, count);
  switch (rules.container) {
    case Container::npy:
      return fmt::format("train-{}", place);
    case Container::arrow:
      return fmt::format("data-{}.arrow", place);
    case Container::parquet:
      return fmt::format("train-{}{}", place, rules.preset->file_suffix.empty() ? ".parquet" : rules.preset->file_suffix);
    case Container::megatron:
      return fmt::format("train-{}", place);
    case Container::index:
      break;  // there is nothing that a trainer reads
  }
  return {};
}

std::vector<std::string> trainer_file_parts(const OutputRules& rules, const std::string& name) {
  if (rules.container == Container::megatron) return {name + ".bin", name + ".idx"};
  if (rules.container != Container::npy) return {name};
  std::vector<std::string> parts;
  for (const OutputColumn& column : rules.columns) parts.push_back(fmt::format("{}.{}.npy", name, column.name));
  std::sort(parts.begin(), parts.end());
  return parts;
}

void check_container(Container container) {
  if ((container == Container::arrow || container == Container::parquet) && !has_arrow()) {
    throw Error(
        ErrorCode::limit,
        fmt::format("this shardpack was built without Apache Arrow, which writes {}: ./dev build takes Arrow from the system "
                    "(libarrow-dev and libparquet-dev, 16 or newer) or from the Python package pyarrow, and says why when "
                    "it cannot",
                    info(container).name));
  }
}

std::unique_ptr<TrainerFiles> make_trainer_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                                 std::int64_t rows) {
  check_container(rules.container);
  if (rules.container == Container::npy) return make_npy_files(rules, folder, name, rows);
  if (rules.container == Container::arrow) return make_arrow_file(rules, folder, name, rows);
  if (rules.container == Container::parquet) return make_parquet_file(rules, folder, name);
  return make_megatron_files(rules, folder, name, rows);
}

std::unique_ptr<RowSink> make_trainer_sink(ShardPlan plan, const OutputRules& rules, const SequenceIndex& index,
                                           const std::string& trainer_folder, const std::string& name) {
  return std::make_unique<TrainerSink>(std::move(plan), rules, index, trainer_folder, name);
}

}  // namespace shardpack
