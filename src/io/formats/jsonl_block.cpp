#include "io/formats/jsonl_block.h"

#include <cmath>

namespace shardpack {

namespace {

double exact_fraction(std::int64_t whole) {
  const auto fraction = static_cast<double>(whole);
  if (std::abs(fraction) > 9007199254740992.0) {  // 2^53
    throw LineFault{"a column that holds fractions also holds a whole number beyond 2^53, which no fraction can be"};
  }
  return fraction;
}

template <class Value>
void keep_values(std::vector<Value>& values, std::size_t first, const std::vector<std::uint8_t>& mask) {
  std::size_t kept = first;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) values[kept++] = values[first + i];
  }
  values.resize(kept);
}

}  // namespace

void JsonlColumn::add(std::int64_t value) { fractional_ ? fractions_.push_back(exact_fraction(value)) : whole_.push_back(value); }

void JsonlColumn::add(std::span<const std::int64_t> values) {
  if (!fractional_) {
    whole_.insert(whole_.end(), values.begin(), values.end());
    return;
  }
  for (const std::int64_t value : values) fractions_.push_back(exact_fraction(value));
}

void JsonlColumn::add(double value) {
  if (!fractional_) {
    for (const std::int64_t whole : whole_) fractions_.push_back(exact_fraction(whole));
    whole_.clear();
    fractional_ = true;
  }
  fractions_.push_back(value);
}

void JsonlColumn::resize(std::size_t size) {
  if (fractional_) {
    fractions_.resize(size);
  } else if (!text_.empty()) {
    text_.resize(size);
  } else {
    whole_.resize(size);
  }
}

void JsonlColumn::keep_masked(std::size_t first, const std::vector<std::uint8_t>& mask) {
  fractional_ ? keep_values(fractions_, first, mask) : keep_values(whole_, first, mask);
}

std::int64_t JsonlColumn::count_masked_loss(const Column& column, std::size_t first,
                                            const std::vector<std::uint8_t>& mask) const {
  const auto lost_of = [&](ValueType stored, const auto& values) {
    std::int64_t lost = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) lost += count_loss_tokens(column, stored, reinterpret_cast<const std::byte*>(&values[first + i]), 1);
    }
    return lost;
  };
  return fractional_ ? lost_of(ValueType::f64, fractions_) : lost_of(ValueType::i64, whole_);
}

void JsonlColumn::settle(ColumnKind kind) {
  if (kind == ColumnKind::text) {
    const std::span<const std::byte> text = std::as_bytes(std::span(text_));
    bytes.assign(text.begin(), text.end());
    type = ValueType::u8;
    count = static_cast<std::int64_t>(text_.size());
    facts.add(type, bytes.data(), count);
    return;
  }
  const ValueType wide = fractional_ ? ValueType::f64 : ValueType::i64;
  const std::byte* const values =
      fractional_ ? std::as_bytes(std::span(fractions_)).data() : std::as_bytes(std::span(whole_)).data();
  count = static_cast<std::int64_t>(size());
  facts.add(wide, values, count);
  type = packed_type(facts, 0);
  bytes.resize(static_cast<std::size_t>(count * info(type).bytes));
  convert_values(wide, values, count, type, bytes.data());
  whole_ = {};
  fractions_ = {};
}

}  // namespace shardpack
