#include "shardpack/parallelism.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <string>

#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The flags that ask for a multiple: "--cp 2 --tp 4 --sp".
std::string flags_of(const Parallelism& parallelism) {
  std::string flags;
  if (parallelism.context > 1) flags += fmt::format("--cp {} ", parallelism.context);
  if (parallelism.sequence) flags += fmt::format("--tp {} --sp ", parallelism.tensor);
  flags.pop_back();
  return flags;
}

}  // namespace

Length segment_multiple_for(const Parallelism& parallelism) {
  const std::int64_t context = parallelism.context, tensor = parallelism.tensor;
  if (context < 1 || tensor < 1) throw Error(ErrorCode::usage, "--cp and --tp count devices, from 1");
  if (parallelism.sequence && tensor == 1) {
    throw Error(ErrorCode::usage, "--sp spreads a row over the tensor parallel devices; give their number with --tp N");
  }
  const std::int64_t halves = context > 1 ? 2 * context : 1;
  const std::int64_t shares = parallelism.sequence ? context * tensor : 1;
  const std::int64_t multiple = halves / std::gcd(halves, shares) * shares;
  if (multiple > std::numeric_limits<Length>::max()) {
    throw Error(ErrorCode::usage, fmt::format("{}: no row is long enough for so many devices", flags_of(parallelism)));
  }
  return static_cast<Length>(multiple);
}

Length resolve_segment_multiple(std::optional<Length> given, const Parallelism& parallelism) {
  const Length needed = segment_multiple_for(parallelism);
  if (!given) return needed;
  if (*given % needed == 0) return *given;
  throw Error(ErrorCode::usage,
              fmt::format("--segment-multiple {} does not suit {}, which needs a multiple of {}; leave it out, or give {}",
                          *given, flags_of(parallelism), needed, std::lcm(std::int64_t{*given}, std::int64_t{needed})));
}

}  // namespace shardpack
