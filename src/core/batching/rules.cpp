// The rules that every strategy keeps: padding, sizes, and options that fit together.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "base/wide.h"
#include "shardpack/batch_plan.h"
#include "shardpack/error.h"

namespace shardpack {

Length PadRule::padded(std::int64_t longest) const {
  if (!shapes.empty()) {
    const auto shape = std::lower_bound(shapes.begin(), shapes.end(), longest);
    if (shape != shapes.end()) return *shape;
    throw Error(ErrorCode::limit, fmt::format("{} tokens do not fit the largest of --shapes, {}", with_commas(longest),
                                              with_commas(shapes.back())));
  }
  const std::int64_t rounded = (longest + multiple - 1) / multiple * multiple;
  if (rounded > std::numeric_limits<Length>::max()) {
    throw Error(ErrorCode::limit, fmt::format("{} tokens, rounded up, leave 31 bits", with_commas(longest)));
  }
  return static_cast<Length>(rounded);
}

std::int64_t BatchOptions::most(Length padded) const {
  if (!strategy.has_budget()) return batch_size;
  const std::int64_t limit = max_batch > 0 ? max_batch : std::numeric_limits<std::int64_t>::max();
  if (padded == 0) return limit;
  if (strategy.kind == BatchKind::tokens) return std::min(limit, strategy.amount / padded);
  // count * (d + d * d / Q) <= T, in whole numbers
  const Int128 d = padded, q = strategy.quadratic;
  return std::min<std::int64_t>(limit, static_cast<std::int64_t>(Int128{strategy.amount} * q / (d * q + d * d)));
}

void check_batch_options(const BatchOptions& options) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorCode::usage, message); };
  const std::string name = to_text(options.strategy);
  if (options.strategy.has_budget()) {
    if (options.batch_size > 0) refuse(fmt::format("--strategy {} sets the size of batches; --max-batch N limits it", name));
  } else {
    if (options.batch_size < 1) refuse(fmt::format("how many sequences make a batch? --strategy {} needs --batch-size N", name));
    if (options.max_batch > 0) refuse(fmt::format("--max-batch is for budgets; --strategy {} has --batch-size", name));
    if (options.batch_size % options.size_multiple != 0) {
      refuse(fmt::format("--batch-size {} is not a multiple of --size-multiple {}", options.batch_size, options.size_multiple));
    }
  }
  if (!options.pad.shapes.empty() && options.pad.multiple > 1) refuse("--shapes or --pad-multiple, not both");
  if (options.world < 1 || options.accumulation < 1 || options.world > (std::int64_t{1} << 20) ||
      options.accumulation > (std::int64_t{1} << 20)) {
    refuse("--world and --accumulation are from 1 to 1,048,576");
  }
}

}  // namespace shardpack
