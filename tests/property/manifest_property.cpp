// Any manifest and any plan are read back as they were written, and no change of a byte goes unnoticed in a manifest.
#include <rapidcheck.h>

#include <limits>
#include <string>
#include <vector>

#include "io/plan_file.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

std::int64_t any_count() { return *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max()); }
/// One of several whose sum has to fit 63 bits.
std::int64_t any_summand() { return any_count() / 64; }
std::int64_t any_id() { return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 32); }
Fingerprint any_fingerprint() { return {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()}; }
std::string any_hash() { return any_fingerprint().hex(); }
std::string any_text() { return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ09 .-_\"\\{}\n/"))); }
std::string any_name(std::size_t unique) {
  return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ09 .-_\"\\"))) + std::to_string(unique);
}

template <class Make>
auto any_list(Make make) {
  std::vector<decltype(make(std::size_t{}))> list;
  const auto size = *rc::gen::inRange<std::size_t>(0, 4);
  for (std::size_t i = 0; i < size; ++i) list.push_back(make(i));
  return list;
}

std::vector<ManifestFile> any_files() {
  return any_list([](std::size_t i) { return ManifestFile{any_name(i), any_summand(), any_hash()}; });
}

SequenceRanges any_ranges() {
  SequenceRanges ranges;
  SequenceId next = 0;
  do {
    const SequenceId first = next + *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
    next = first + *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
    ranges.append({first, next});
  } while (*rc::gen::arbitrary<bool>());
  return ranges;
}

Manifest any_manifest() {
  Manifest manifest;
  manifest.tool_version = any_text();
  manifest.solver = any_text();
  manifest.row_tokens = *rc::gen::inRange<Length>(1, std::numeric_limits<Length>::max());
  manifest.rows = any_count();
  manifest.source_sequences = any_count();
  manifest.source_tokens = any_count();
  manifest.sequences = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  manifest.segments = any_count();
  manifest.tokens = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  manifest.padding_tokens = any_count();
  manifest.max_segments_in_row = any_count();
  manifest.plan = {any_text(),  any_text(), *rc::gen::inRange<std::int32_t>(0, 1000), *rc::gen::inRange<Length>(1, 1000),
                   any_count(), any_count()};
  manifest.id_type = *rc::gen::element(IdType::u16, IdType::u32);
  manifest.id_min = any_id();
  manifest.id_max = any_id() - 1;
  manifest.pad_id = any_id();
  if (*rc::gen::arbitrary<bool>()) manifest.eos_id = any_id();
  if (*rc::gen::arbitrary<bool>()) manifest.bos_id = any_id();
  manifest.position_start = any_id();
  manifest.derived = *rc::gen::arbitrary<bool>();
  manifest.compress = any_text();
  manifest.not_carried = any_list([](std::size_t) { return any_text(); });
  manifest.options = any_list([](std::size_t i) { return std::pair(any_name(i), std::to_string(any_count())); });
  manifest.sources = any_list([](std::size_t i) {
    return ManifestSource{"d/" + any_name(i), any_text(), any_count(), any_summand(), any_summand(), any_hash()};
  });
  manifest.source_fingerprint = any_fingerprint();
  manifest.packed_fingerprint = any_fingerprint();
  manifest.removed_fingerprint = any_fingerprint();
  manifest.columns = any_list([](std::size_t i) {
    return Column{any_name(i), *rc::gen::element(ColumnKind::token, ColumnKind::sequence, ColumnKind::list, ColumnKind::text),
                  *rc::gen::element(ValueType::u8, ValueType::i32, ValueType::i64, ValueType::f32, ValueType::f64),
                  *rc::gen::element(Alignment::plain, Alignment::minus100, Alignment::target_shifted)};
  });
  for (const Column& column : manifest.columns) {
    if (column.kind == ColumnKind::token) manifest.loss_column = column.name;
  }
  const bool with_loss = !manifest.loss_column.empty();
  if (with_loss) manifest.loss_tokens = any_count();
  for (RemovedCount& removed : manifest.removed) removed = {any_count(), any_count(), with_loss ? any_count() : 0};
  manifest.added_eos = any_count();
  manifest.added_bos = any_count();
  manifest.repeated_rows = *rc::gen::inRange<std::int64_t>(0, 1 + manifest.rows / 2);
  manifest.fill_rows = *rc::gen::inRange<std::int64_t>(0, 1 + manifest.rows / 2);
  manifest.repeated_sequences = any_count();
  manifest.repeated_tokens = any_count();
  manifest.partitions = any_list([](std::size_t i) {
    return ManifestPartition{any_ranges(), any_summand(), any_summand(), any_name(i),
                             any_list([](std::size_t j) { return any_name(j); })};
  });
  manifest.shards = any_list([](std::size_t i) {
    return ManifestShard{"shard" + any_name(i), any_summand(), any_count(), any_count(),
                         any_fingerprint(),     any_files(),   {},          any_count()};
  });
  manifest.files = any_files();
  return manifest;
}

bool refused(const std::string& text) {
  try {
    manifest_from_json(text, "m");
    return false;
  } catch (const Error& error) {
    return error.code() == ErrorCode::bad_data;
  }
}

}  // namespace

TEST_CASE("any manifest is read back as it was written, and no byte of it can change") {
  CHECK(rc::check([] {
    const std::string text = to_json(any_manifest());
    RC_ASSERT(to_json(manifest_from_json(text, "m")) == text);

    std::string damaged = text;
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto byte = *rc::gen::suchThat(rc::gen::arbitrary<char>(), [&](char c) { return c != text[at]; });
    damaged[at] = byte;
    RC_ASSERT(refused(damaged));
    damaged = text;
    RC_ASSERT(refused(damaged.erase(at, 1)));
    damaged = text;
    RC_ASSERT(refused(damaged.insert(at, 1, byte)));
  }));
}

TEST_CASE("any plan is read back as it was written") {
  CHECK(rc::check([] {
    PackingPlan plan;
    plan.packer = *rc::gen::element<std::string>("none", "optimal", "lpfhp+refill", "spfhp+refill", "sequential");
    plan.row_tokens = *rc::gen::inRange<Length>(1, 5000);
    plan.max_segments = *rc::gen::inRange<std::int32_t>(0, 100);
    plan.policy.row_tokens = plan.row_tokens;
    plan.policy.overlong = *rc::gen::element(Overlong::error, Overlong::truncate, Overlong::split, Overlong::drop);
    plan.policy.truncate_side = *rc::gen::element(TruncateSide::end, TruncateSide::start);
    plan.policy.min_tokens = *rc::gen::inRange<Length>(0, 100);
    plan.policy.split_min_tokens = *rc::gen::inRange<Length>(0, 100);
    plan.policy.append_eos = *rc::gen::arbitrary<bool>();
    plan.policy.prepend_bos = *rc::gen::arbitrary<bool>();
    plan.bound = {any_count(), *rc::gen::element(BoundKind::l1, BoundKind::l2, BoundKind::cardinality, BoundKind::lp)};
    const auto strategies = *rc::gen::inRange<int>(0, 6);
    for (int s = 0; s < strategies; ++s) {
      std::vector<Length> lengths;
      Length highest = plan.row_tokens;
      do {
        lengths.push_back(highest = *rc::gen::inRange<Length>(1, highest + 1));
      } while (*rc::gen::inRange(0, 3) > 0);
      plan.add(lengths, *rc::gen::inRange<std::int64_t>(1, 1'000'000));
    }
    const LengthHistogram items = covered_items(plan);
    const std::string text = to_json(plan, items);
    const PlanFile read = plan_from_json(text, "p");
    RC_ASSERT(to_json(read.plan, read.items) == text);
    RC_ASSERT(read.items == items);
    RC_ASSERT(read.plan.policy == plan.policy);
  }));
}
