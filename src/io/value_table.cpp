#include "io/value_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"

namespace shardpack {

namespace {

void swap_values(std::vector<std::byte>& values, std::size_t width) {
  for (std::size_t at = 0; at + width <= values.size(); at += width) {
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(at), values.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

/// IEEE 754 binary16 is sign, 5 bits of exponent, 10 of fraction.
float widen_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  float value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

}  // namespace

void ValueTable::append(std::int64_t count, std::int64_t begin_bytes, ValueType type) {
  if (count == 0) return;
  const bool continues = !stretches.empty() && stretches.back().type == type &&
                         stretches.back().begin_bytes + (values - stretches.back().first) * info(type).bytes == begin_bytes;
  if (!continues) stretches.push_back({values, begin_bytes, type});
  values += count;
}

ValueTable::Run ValueTable::next_run(std::int64_t first, std::int64_t count) const {
  ensure(first >= 0 && count > 0 && first + count <= values, "the values are in the table");
  const auto after = std::upper_bound(stretches.begin(), stretches.end(), first,
                                      [](std::int64_t value, const Stretch& stretch) { return value < stretch.first; });
  const Stretch& stretch = *(after - 1);
  const std::int64_t end = after == stretches.end() ? values : after->first;
  const int bytes = info(stretch.type).bytes;
  const std::int64_t here = std::min({count, end - first, kCloseBytes / bytes});
  return {stretch.begin_bytes + (first - stretch.first) * bytes, here * bytes, here, stretch.type};
}

void ValueTable::load(const Run& run, std::vector<std::byte>& stored) const {
  stored.resize(static_cast<std::size_t>(run.bytes));
  file->read_at(run.begin_bytes, stored);
}

ValueType ValueTable::settle(const Run& run, std::vector<std::byte>& stored) const {
  const auto width = static_cast<std::size_t>(info(run.type).bytes);
  if (big_endian && width > 1) swap_values(stored, width);
  if (run.type != ValueType::f16) return run.type;

  std::vector<std::byte> wide(static_cast<std::size_t>(run.count) * sizeof(float));
  for (std::size_t i = 0; i < static_cast<std::size_t>(run.count); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, &stored[i * width], width);
    const float value = widen_half(half);
    std::memcpy(&wide[i * sizeof value], &value, sizeof value);
  }
  stored = std::move(wide);
  return ValueType::f32;
}

void ValueTable::read(std::int64_t first, std::int64_t count, ValueType type, std::byte* out) const {
  const TableRange range{first, count, 0};
  read(std::span(&range, 1), type, out);
}

void ValueTable::read(std::span<const TableRange> ranges, ValueType type, std::byte* wanted) const {
  std::vector<Run> runs;
  runs.reserve(ranges.size());
  for (const TableRange& range : ranges) {
    for (std::int64_t done = 0; done < range.count;) {
      runs.push_back(next_run(range.first + done, range.count - done));
      runs.back().destination = range.destination + done;
      done += runs.back().count;
    }
  }
  if (runs.empty()) return;  // such a table may have no file
  const auto out = [&](const Run& run) { return wanted + run.destination * info(type).bytes; };
  const auto place = [&](const Run& run) {
    const bool as_it_lies = run.type == type && !big_endian;
    return as_it_lies ? std::span(out(run), static_cast<std::size_t>(run.bytes)) : std::span<std::byte>();
  };
  std::vector<std::byte> buffer;
  read_close(*file, std::span<const Run>(runs), place, [&](const Run& run, std::span<const std::byte> stored) {
    if (!place(run).empty()) return;
    buffer.assign(stored.begin(), stored.end());
    const ValueType settled = settle(run, buffer);
    convert_values(settled, buffer.data(), run.count, type, out(run));
  });
}

}  // namespace shardpack
