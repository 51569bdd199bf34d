#include "io/times_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

#include "base/units.h"
#include "io/file.h"
#include "io/text_line.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

double positive(std::string_view text, std::string_view column) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value)) {
    throw Error(ErrorCode::bad_data, fmt::format("{} is '{}'; expected a number above 0", column, text.substr(0, 40)));
  }
  return value;
}

/// One line under a header.
TimedWork timed_work(const std::vector<std::string_view>& header, const std::vector<std::string_view>& fields) {
  if (fields.size() != header.size()) {
    throw Error(ErrorCode::bad_data, fmt::format("expected {} values, found {}", header.size(), fields.size()));
  }
  std::map<std::string_view, double> value;
  for (std::size_t i = 0; i < header.size(); ++i) value[header[i]] = positive(fields[i], header[i]);
  TimedWork timed;
  timed.work.batches = value["batches"];
  if (value.contains("batch_size")) {
    timed.work.padded_tokens = value["batch_size"] * value["pad_length"] * value["batches"];
    timed.work.padded_squares = timed.work.padded_tokens * value["pad_length"];
  } else {
    timed.work.padded_tokens = value["padded_tokens"];
    timed.work.padded_squares = value["padded_squares"];
  }
  timed.minutes = value.contains("minutes") ? value["minutes"] : value["seconds"] / 60;
  return timed;
}

void check_header(const std::vector<std::string_view>& header) {
  std::vector<std::string_view> sorted = header;
  std::sort(sorted.begin(), sorted.end());
  for (std::string_view time : {"seconds", "minutes"}) {
    std::vector<std::string_view> by_batch{"batch_size", "batches", time, "pad_length"};
    std::vector<std::string_view> by_sums{"batches", time, "padded_squares", "padded_tokens"};
    std::sort(by_batch.begin(), by_batch.end());
    std::sort(by_sums.begin(), by_sums.end());
    if (sorted == by_batch || sorted == by_sums) return;
  }
  throw Error(ErrorCode::bad_data, fmt::format("the header is '{}'; expected batch_size,pad_length,batches,seconds or "
                                               "padded_tokens,padded_squares,batches,seconds",
                                               fmt::join(header, ",")));
}

}  // namespace

std::vector<TimedWork> read_times(const std::string& path) {
  constexpr std::int64_t kMaxBytes = 16 << 20;
  const std::string text = read_small_file(path, kMaxBytes);
  std::vector<TimedWork> times;
  std::vector<std::string_view> header;
  std::int64_t line_number = 0;
  for (std::string_view rest = without_byte_order_mark(text); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    if (line.empty() || line.front() == '#') continue;
    try {
      if (header.empty()) {
        header = fields_of(line);
        check_header(header);
      } else {
        times.push_back(timed_work(header, fields_of(line)));
      }
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), path, fmt::format("line {}", with_commas(line_number)));
    }
  }
  if (times.empty()) throw Error(ErrorCode::bad_data, "holds no measured time", path);
  return times;
}

}  // namespace shardpack
