// The strategies in one table, and how they are typed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/nearest.h"
#include "shardpack/batch_plan.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::array<BatchKindInfo, 9> kKinds{{
    {BatchKind::fixed, "fixed", "", "random order, padded to --max-length (or the longest sequence)"},
    {BatchKind::dynamic, "dynamic", "", "random order, padded to the longest of the batch"},
    {BatchKind::sorted, "sorted", "", "batches of equal length, ties drawn anew every epoch: the least padding of all"},
    {BatchKind::gist, "gist", "", "the published smart batching: sorted once, cut at random places"},
    {BatchKind::mega, "mega", ":M", "sorted within random chunks of M batches, longest first"},
    {BatchKind::pool, "pool", ":M", "sorted within random chunks of M batches, shortest first"},
    {BatchKind::buckets, "buckets", ":B1,B2,...|auto:N", "random within buckets of length; auto: N buckets of equal tokens"},
    {BatchKind::tokens, "tokens", ":T", "sorted, as many sequences as stay within T padded tokens"},
    {BatchKind::quad, "quad", ":T:Q", "the same budget where d padded tokens cost d + d * d / Q: long batches are smaller"},
}};

constexpr std::int64_t kMaxAmount = std::int64_t{1} << 40;

[[noreturn]] void refuse(std::string_view text, std::string_view expected) {
  throw Error(ErrorCode::usage, fmt::format("batching strategy '{}': expected {}", text, expected));
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::int64_t amount(std::string_view digits, std::string_view text, std::string_view expected, std::int64_t most = kMaxAmount) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc{} || end != digits.data() + digits.size() || number < 1 || number > most) refuse(text, expected);
  return number;
}

}  // namespace

std::span<const BatchKindInfo> batch_kinds() { return kKinds; }

BatchStrategy parse_batch_strategy(std::string_view text) {
  const std::vector<std::string_view> parts = parts_of(text, ':');
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const BatchKindInfo& info) { return info.name == parts[0]; });
  if (found == kKinds.end()) {
    std::vector<std::string> names;
    names.reserve(kKinds.size());
    for (const BatchKindInfo& info : kKinds) names.emplace_back(info.name);
    const std::string meant = nearest(parts[0], names);
    throw Error(ErrorCode::usage, fmt::format("unknown batching strategy '{}'{}", parts[0],
                                              meant.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                                            : fmt::format("; did you mean {}?", meant)));
  }
  BatchStrategy strategy{.kind = found->kind};
  const auto need_parts = [&](std::size_t wanted, std::string_view expected) {
    if (parts.size() != wanted) refuse(text, expected);
  };
  switch (found->kind) {
    case BatchKind::fixed:
    case BatchKind::dynamic:
    case BatchKind::sorted:
    case BatchKind::gist:
      need_parts(1, "nothing after the name");
      break;
    case BatchKind::mega:
    case BatchKind::pool:
      need_parts(2, ":M after the name, the batches of a chunk (mega:50)");
      strategy.amount = amount(parts[1], text, "a whole number of batches from 1");
      break;
    case BatchKind::tokens:
      need_parts(2, ":T after the name, the padded tokens of a batch (tokens:8192)");
      strategy.amount = amount(parts[1], text, "a whole number of tokens from 1");
      break;
    case BatchKind::quad:
      need_parts(3, ":T:Q after the name (quad:8192:512)");
      strategy.amount = amount(parts[1], text, "a whole number of tokens from 1");
      strategy.quadratic = amount(parts[2], text, "a whole number of tokens from 1 for Q");
      break;
    case BatchKind::buckets:
      if (parts.size() == 3 && parts[1] == "auto") {
        strategy.amount = amount(parts[2], text, "a whole number of buckets from 1 to 65,536", 65536);
        break;
      }
      need_parts(2, "lengths or auto:N after the name (buckets:64,128 or buckets:auto:8)");
      for (const std::string_view digits : parts_of(parts[1], ',')) {
        const auto boundary = static_cast<Length>(amount(digits, text, "lengths from 1", std::numeric_limits<Length>::max()));
        if (!strategy.boundaries.empty() && boundary <= strategy.boundaries.back()) refuse(text, "ascending lengths");
        strategy.boundaries.push_back(boundary);
      }
      break;
  }
  return strategy;
}

std::string to_text(const BatchStrategy& strategy) {
  const std::string_view name = kKinds[static_cast<std::size_t>(strategy.kind)].name;
  switch (strategy.kind) {
    case BatchKind::mega:
    case BatchKind::pool:
    case BatchKind::tokens:
      return fmt::format("{}:{}", name, strategy.amount);
    case BatchKind::quad:
      return fmt::format("{}:{}:{}", name, strategy.amount, strategy.quadratic);
    case BatchKind::buckets:
      if (strategy.boundaries.empty()) return fmt::format("{}:auto:{}", name, strategy.amount);
      return fmt::format("{}:{}", name, fmt::join(strategy.boundaries, ","));
    default:
      return std::string(name);
  }
}

}  // namespace shardpack
