// Blocks of rows: places of segments, added tokens, padding, and the fingerprint of what lies in the rows.
#include "core/row_block.h"

#include <vector>

#include "support/catch.h"
#include "support/memory_source.h"

using namespace shardpack;

TEST_CASE("a block holds what its segments say, between padding and added tokens") {
  const MemorySource source({{10, 11, 12}, {20}, {30, 31}});
  std::vector<Item> items{
      {.sequence = 0, .first_token = 1, .tokens = 2, .slots = 4, .segments = 1, .added = kAddedBos | kAddedEos},
      {.sequence = 1, .first_token = 0, .tokens = 1, .slots = 2, .segments = 1, .added = 0},
      {.sequence = 2, .first_token = 0, .tokens = 2, .slots = 2, .segments = 1, .added = 0}};
  Assignment rows;
  rows.items = {2, 0, 1};
  rows.begin = {0, 2, 3};
  std::vector<TokenRequest> requests;
  RowBlock block = lay_out_rows(items, rows, source.index(), 7, IdType::u32, 0, 2, 0, requests);
  source.read_block(requests, block.id_type, block.ids.data());
  fill_gaps(block, {.pad = 9, .bos = 1, .eos = 2});

  const auto* ids = reinterpret_cast<const std::uint32_t*>(block.ids.data());
  const std::vector<std::uint32_t> expected{30, 31, 1, 11, 12, 2, 9,  //
                                            20, 9,  9, 9,  9,  9, 9};
  CHECK(std::vector<std::uint32_t>(ids, ids + 14) == expected);
  CHECK(block.row_begin == std::vector<std::int64_t>{0, 2, 3});

  const DatasetKeys all_keys(3, {});
  const FingerprintKeys& keys = all_keys.ids;
  Fingerprint by_hand;
  const std::vector<std::uint32_t> a{30, 31}, b{11, 12}, c{20};
  by_hand += keys.of(2, 0, std::span<const std::uint32_t>(a));
  by_hand += keys.of(0, 1, std::span<const std::uint32_t>(b));
  by_hand += keys.of(1, 0, std::span<const std::uint32_t>(c));
  CHECK(fingerprint_of(block, all_keys, source.index()) == by_hand);
}

TEST_CASE("rows of a batch lie one after the other, each as wide as its items") {
  const MemorySource source({{10, 11, 12}, {20}, {30, 31}});
  const std::vector<Item> items{{.sequence = 0, .first_token = 0, .tokens = 3, .slots = 4},
                                {.sequence = 1, .first_token = 0, .tokens = 1, .slots = 2},
                                {.sequence = 2, .first_token = 0, .tokens = 2, .slots = 4}};
  Assignment rows;
  rows.items = {1, 2, 0};
  rows.begin = {0, 1, 3};
  std::vector<TokenRequest> requests;
  RowBlock block = lay_out_rows(items, rows, source.index(), 0, IdType::u16, 0, 2, 0, requests);
  CHECK(block.slot_begin == std::vector<std::int64_t>{0, 2, 10});
  source.read_block(requests, block.id_type, block.ids.data());
  fill_gaps(block, {.pad = 9});
  const auto* ids = reinterpret_cast<const std::uint16_t*>(block.ids.data());
  CHECK(std::vector<std::uint16_t>(ids, ids + 10) == std::vector<std::uint16_t>{20, 9, 30, 31, 9, 9, 10, 11, 12, 9});
  RowBlock second = lay_out_rows(items, rows, source.index(), 0, IdType::u16, 1, 1, 0, requests);
  CHECK(second.slot_begin == std::vector<std::int64_t>{0, 8});
  CHECK(second.first_segment == 1);
}

TEST_CASE("a fingerprint adds up over any cut and feels every change") {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 300; ++i) ids.push_back(i * i % 71);
  const FingerprintKeys keys(100), longer(300);  // beyond the table, keys are drawn one by one
  const std::span<const std::uint32_t> all(ids);
  const Fingerprint whole = longer.of(5, 0, all);
  CHECK(keys.of(5, 0, all) == whole);
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, std::size_t{99}, std::size_t{100}, std::size_t{101}, std::size_t{300}}) {
    CHECK(keys.of(5, 0, all.first(cut)) + keys.of(5, static_cast<std::int64_t>(cut), all.subspan(cut)) == whole);
  }
  CHECK_FALSE(keys.of(6, 0, all) == whole);
  CHECK_FALSE(keys.of(5, 1, all) == whole);
  CHECK_FALSE(FingerprintKeys(100, "labels").of(5, 0, all) == whole);
  std::vector<std::uint32_t> swapped = ids;
  std::swap(swapped[10], swapped[11]);
  CHECK_FALSE(keys.of(5, 0, std::span<const std::uint32_t>(swapped)) == whole);
  CHECK(Fingerprint::from_hex(whole.hex()) == whole);
}
