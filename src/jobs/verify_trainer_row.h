// Does a row of a trainer's files hold, column by column, what its preset says of such segments? And what did the sources have
// where the preset changed it? Shares no code with core/trainer_rows.h, which made it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/trainer_row.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_rows.h"

namespace shardpack {

/// One row at a time; what it gives is of the row that was taken last.
class TrainerRowCheck {
 public:
  /// `rules` must have an output.
  explicit TrainerRowCheck(const RowRules& rules);

  /// Compare every value of row `row` of the block with what these segments make of it; but for the token ids themselves, which
  /// are checked as those of any row.
  /// \return whether there are as many values as the segments ask for: if not, nothing is said of them
  bool take(const StoredRows& rows, std::int64_t row, std::span<const SlotRun> segments, IssueList& issues);

  std::span<const std::int64_t> ids() const { return row_.ids(); }
  /// Slot by slot what the dataset's label column had; only where it has one.
  std::span<const std::int64_t> source_labels() const { return source_labels_; }
  /// Labels that took part in the loss before the preset hid them.
  std::int64_t hidden_labels() const { return hidden_labels_; }

 private:
  bool widths_fit();
  void check_column(std::size_t c);
  void take_labels();
  template <class Value>
  void expect_slots(std::size_t c, std::int64_t padding, Value value);
  template <class Value>
  void expect_labels(std::size_t c, Value value);
  void expect_list(std::size_t c);
  void expect_tokens(std::size_t c);
  void expect_entries(std::size_t c);
  void expect_segments(std::size_t c);
  void compare_filled(std::size_t c);
  std::vector<std::int64_t> values_of_segment(std::size_t column, std::size_t segment) const;
  void compare(std::size_t c, std::string_view kind, std::string_view place);
  std::int64_t expected_label(std::int64_t token, std::int64_t stated) const;

  const RowRules& rules_;
  const OutputRules& output_;
  const Column* const label_column_;  // null where ids are the labels
  TrainerRow row_;
  std::span<const SlotRun> segments_;
  const StoredRows* rows_ = nullptr;
  std::int64_t row_in_block_ = 0;
  std::size_t first_segment_ = 0;  // of the row, in the block
  std::string_view file_;
  std::int64_t number_ = 0;  // of the row in its file
  IssueList* issues_ = nullptr;
  std::vector<std::int64_t> stated_, labels_, source_labels_, first_values_, expected_;
  std::int64_t hidden_labels_ = 0;
};

}  // namespace shardpack
