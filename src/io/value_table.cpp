#include "io/value_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"

namespace shardpack {

namespace {

constexpr std::int64_t kRunBytes = 256 << 10;  // read and converted at a time: stays in the second-level cache

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
  return {stretch.begin_bytes + (first - stretch.first) * bytes, std::min({count, end - first, kRunBytes / bytes}), stretch.type};
}

ValueType ValueTable::load(const Run& run, std::vector<std::byte>& buffer) const {
  const auto width = static_cast<std::size_t>(info(run.type).bytes);
  buffer.resize(static_cast<std::size_t>(run.count) * width);
  file->read_at(run.begin_bytes, buffer);
  if (big_endian && width > 1) swap_values(buffer, width);
  if (run.type != ValueType::f16) return run.type;

  std::vector<std::byte> wide(static_cast<std::size_t>(run.count) * sizeof(float));
  for (std::size_t i = 0; i < static_cast<std::size_t>(run.count); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, &buffer[i * width], width);
    const float value = widen_half(half);
    std::memcpy(&wide[i * sizeof value], &value, sizeof value);
  }
  buffer = std::move(wide);
  return ValueType::f32;
}

void ValueTable::read(std::int64_t first, std::int64_t count, ValueType type, std::byte* out) const {
  const auto width = static_cast<std::size_t>(info(type).bytes);
  while (count > 0) {
    const Run run = next_run(first, count);
    if (run.type == type && !big_endian) {
      file->read_at(run.begin_bytes, std::span(out, static_cast<std::size_t>(run.count) * width));
    } else {
      std::vector<std::byte> buffer;
      const ValueType stored = load(run, buffer);
      convert_values(stored, buffer.data(), run.count, type, out);
    }
    out += static_cast<std::size_t>(run.count) * width;
    first += run.count;
    count -= run.count;
  }
}

}  // namespace shardpack
