// Histogram files: CSV "length,count", JSON {"schema":1,"counts":{...}}, a plain list of lengths, or a 1-D integer .npy of
// lengths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardpack/length_histogram.h"

namespace shardpack {

/// A histogram file's contents.
struct HistogramFile {
  LengthHistogram lengths;
  std::vector<GroupLengths> groups;  ///< ascending by key; empty: a plain histogram
};

/// The histogram in `path` ("-" = standard input), or nothing when the file is not one by content (then it is a shard). A third
/// column "group" (of a CSV) makes it a grouped one.
/// \throws Error{bad_data} with the line for a negative number, a fraction, a missing count, an unknown column.
std::optional<HistogramFile> read_histogram_file(const std::string& path);

/// The same for those who know no groups: a grouped histogram is Error{usage}.
std::optional<LengthHistogram> read_histogram(const std::string& path);

/// The lengths in `path` ("-" = standard input) in their order, or nothing when the file holds no lengths by content. A
/// histogram, which has no order, is Error{usage}. \throws what read_histogram() throws
std::optional<std::vector<std::int64_t>> read_lengths(const std::string& path);

/// CSV text with header, ascending lengths.
std::string histogram_to_csv(const LengthHistogram& histogram);
/// With a third column "group", by group and length.
std::string grouped_histogram_to_csv(const std::vector<GroupLengths>& groups);
std::string histogram_to_json(const LengthHistogram& histogram);

}  // namespace shardpack
