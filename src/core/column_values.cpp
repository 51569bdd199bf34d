#include "core/column_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Columns that say which tokens take part in the loss, the better known before the others.
constexpr std::array<std::string_view, 7> kLossNames{"labels",         "loss_mask",   "completion_mask", "assistant_masks",
                                                     "assistant_mask", "labels_mask", "loss_weights"};

std::ptrdiff_t loss_rank(std::string_view name) {
  return std::find(kLossNames.begin(), kLossNames.end(), name) - kLossNames.begin();
}

template <class Value>
bool is_single(Value value) {
  if constexpr (std::is_same_v<Value, double>) {
    return std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value;
  }
  return true;
}

template <class Out, class In>
void convert_run(std::span<const In> values, std::byte* out) {
  auto* const typed = reinterpret_cast<Out*>(out);
  if constexpr (std::is_same_v<In, Out>) {
    if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
  } else {
    bool exact = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto converted = static_cast<Out>(values[i]);
      exact &= static_cast<In>(converted) == values[i] || values[i] != values[i];
      typed[i] = converted;
    }
    ensure(exact, "column values fit the type that was chosen for them");
  }
}

}  // namespace

void ColumnFacts::add(ValueType type, const std::byte* values, std::int64_t count) {
  visit_values(type, values, count, [this](auto typed) {
    using Value = std::remove_const_t<typename decltype(typed)::element_type>;
    if constexpr (std::is_integral_v<Value>) {
      Value low = std::numeric_limits<Value>::max(), high = std::numeric_limits<Value>::min();
      for (const Value value : typed) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
      if (typed.empty()) return;
      if constexpr (std::is_same_v<Value, std::uint64_t>) {
        if (high > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          throw Error(ErrorCode::bad_data,
                      "a value is 2^63 or more; whole numbers of columns are within 64 bits with their sign");
      }
      least = std::min(least, static_cast<std::int64_t>(low));
      greatest = std::max(greatest, static_cast<std::int64_t>(high));
    } else {
      fractional = fractional || !typed.empty();
      for (const Value value : typed) single = single && is_single(value);
    }
  });
}

ColumnFacts& ColumnFacts::operator+=(const ColumnFacts& other) {
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
  fractional = fractional || other.fractional;
  single = single && other.single;
  loss_tokens += other.loss_tokens;
  fingerprint += other.fingerprint;
  return *this;
}

ValueType packed_type(ColumnFacts facts, std::int64_t fill) {
  if (facts.greatest < facts.least && !facts.fractional) return ValueType::i32;  // no value at all
  facts.least = std::min(facts.least, fill);
  facts.greatest = std::max(facts.greatest, fill);
  if (facts.fractional) {
    constexpr std::int64_t kWhole = std::int64_t{1} << 24;  // every whole number up to it is a float32
    return facts.single && facts.least >= -kWhole && facts.greatest <= kWhole ? ValueType::f32 : ValueType::f64;
  }
  if (facts.least >= 0 && facts.greatest <= std::numeric_limits<std::uint8_t>::max()) return ValueType::u8;
  const bool narrow =
      facts.least >= std::numeric_limits<std::int32_t>::min() && facts.greatest <= std::numeric_limits<std::int32_t>::max();
  return narrow ? ValueType::i32 : ValueType::i64;
}

bool is_loss_name(std::string_view name) { return loss_rank(name) < std::ssize(kLossNames); }

bool is_loss_column(const Column& column) { return column.kind == ColumnKind::token && is_loss_name(column.name); }

std::string_view stem_of_positions(std::string_view positions) { return positions.substr(0, positions.rfind('_') + 1); }

std::string weights_of_positions(std::string_view positions) { return std::string(stem_of_positions(positions)) + "weights"; }

int loss_column(std::span<const Column> columns) {
  int best = -1;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_loss_column(columns[i])) continue;
    if (best < 0 || loss_rank(columns[i].name) < loss_rank(columns[static_cast<std::size_t>(best)].name))
      best = static_cast<int>(i);
  }
  if (best >= 0) return best;
  const auto places = std::find_if(columns.begin(), columns.end(), holds_places);
  if (places == columns.end()) return -1;
  const auto weights = std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
    return column.places == places->name && column.name == weights_of_positions(places->name);
  });
  return static_cast<int>((weights == columns.end() ? places : weights) - columns.begin());
}

namespace {
/// visit(values, takes_part), the latter for one of them.
template <class Visit>
std::int64_t visit_loss(const Column& column, ValueType type, const std::byte* values, std::int64_t count, Visit visit) {
  const std::int64_t outside = fill_value(column);
  return visit_values(type, values, count, [outside, &column, &visit](auto typed) -> std::int64_t {
    using Value = std::remove_const_t<typename decltype(typed)::element_type>;
    using Wide = std::conditional_t<std::is_integral_v<Value>, std::int64_t, double>;
    if (holds_places(column)) return visit(typed, [](Value) { return true; });
    return visit(typed, [outside](Value value) { return static_cast<Wide>(value) != static_cast<Wide>(outside); });
  });
}
}  // namespace

std::int64_t count_loss_tokens(const Column& column, ValueType type, const std::byte* values, std::int64_t count) {
  return visit_loss(column, type, values, count, [](auto typed, auto takes_part) {
    std::int64_t tokens = 0;
    for (const auto value : typed) tokens += takes_part(value) ? 1 : 0;
    return tokens;
  });
}

std::int64_t first_loss_token(const Column& column, ValueType type, const std::byte* values, std::int64_t count) {
  return visit_loss(column, type, values, count, [](auto typed, auto takes_part) -> std::int64_t {
    const auto found = std::find_if(typed.begin(), typed.end(), takes_part);
    return found == typed.end() ? -1 : found - typed.begin();
  });
}

std::int64_t last_loss_token(const Column& column, ValueType type, const std::byte* values, std::int64_t count) {
  return visit_loss(column, type, values, count, [](auto typed, auto takes_part) -> std::int64_t {
    const auto found = std::find_if(typed.rbegin(), typed.rend(), takes_part);
    return typed.rend() - found - 1;
  });
}

void convert_values(ValueType from, const std::byte* values, std::int64_t count, ValueType to, std::byte* out) {
  visit_values(from, values, count, [&](auto typed) {
    switch (to) {
      case ValueType::u8:
        return convert_run<std::uint8_t>(typed, out);
      case ValueType::i32:
        return convert_run<std::int32_t>(typed, out);
      case ValueType::i64:
        return convert_run<std::int64_t>(typed, out);
      case ValueType::f32:
        return convert_run<float>(typed, out);
      case ValueType::f64:
        return convert_run<double>(typed, out);
      default:
        ensure(false, "a type that packed rows hold");
    }
  });
}

void fill_values(const Column& column, std::byte* out, std::int64_t count) {
  const std::int64_t value = fill_value(column);
  const auto fill = [&](auto zero) {
    std::fill_n(reinterpret_cast<decltype(zero)*>(out), count, static_cast<decltype(zero)>(value));
  };
  switch (column.type) {
    case ValueType::u8:
      return fill(std::uint8_t{});
    case ValueType::i32:
      return fill(std::int32_t{});
    case ValueType::i64:
      return fill(std::int64_t{});
    case ValueType::f32:
      return fill(float{});
    case ValueType::f64:
      return fill(double{});
    default:
      ensure(false, "a type that packed rows hold");
  }
}

}  // namespace shardpack
