// The check of a block passes what is right and names each kind of fault.
#include "core/row_check.h"

#include <functional>
#include <string>

#include "support/catch.h"
#include "support/packed_sample.h"

using namespace shardpack;

namespace {

/// Rows 10 and 11 of a shard: segments of 3 and 5 tokens, then one of 7 with BOS and EOS.
RowBlock good_block() {
  RowBlock block;
  block.first_row = 10;
  block.first_segment = 25;
  block.rows = 2;
  block.row_tokens = 12;
  block.ids.resize(2 * 12 * 2);
  block.row_begin = {0, 2, 3};
  block.segments.resize(3);
  block.segments[0].tokens = 3;
  block.segments[0].slots = 4;
  block.segments[1].tokens = 5;
  block.segments[1].slots = 8;
  block.segments[2].tokens = 7;
  block.segments[2].slots = 12;
  block.segments[2].added = kAddedBos | kAddedEos;
  return block;
}

struct Fault {
  std::string says;
  long long row;
  std::function<void(RowBlock&)> make;
};

}  // namespace

TEST_CASE("a right block has no issues") {
  CHECK(check_rows(good_block(), 0, 4).empty());
  CHECK(check_rows(good_block(), 2, 4).empty());
  for (const Length multiple : {1, 8}) {
    const SampleRows rows = sample_rows(100, {.segment_multiple = multiple});
    CHECK(check_rows(sample_block(rows, 20, 80, 64, IdType::u16), 0, multiple).empty());
    CHECK(check_rows(sample_block(rows, 20, 80, 64, IdType::u32), 64, multiple).empty());
  }
}

TEST_CASE("each fault of a block is named with its row") {
  const std::vector<Fault> faults{
      {"no token at all", 10, [](RowBlock& b) { b.segments[0].tokens = 0; }},
      {"negative", 10, [](RowBlock& b) { b.segments[0].tokens = -3; }},
      {"negative", 11, [](RowBlock& b) { b.segments[2].file = -1; }},
      {"negative", 11, [](RowBlock& b) { b.segments[2].record = -1; }},
      {"negative", 10, [](RowBlock& b) { b.segments[1].first_token = -1; }},
      {"added-token bits 4", 10, [](RowBlock& b) { b.segments[1].added = 4; }},
      {"5 tokens in 4 slots, expected 8", 10, [](RowBlock& b) { b.segments[1].slots = 4; }},
      {"5 tokens in 12 slots, expected 8", 10, [](RowBlock& b) { b.segments[1].slots = 12; }},
      {"segment 2: 5 tokens in 7 slots", 10, [](RowBlock& b) { b.segments[1].slots = 7; }},
      {"segments take 16 slots of 12", 10, [](RowBlock& b) { b.segments[0].tokens = 8, b.segments[0].slots = 8; }},
      {"row offsets 0 and 3 do not rise within 0 to 2", 10,
       [](RowBlock& b) {
         b.row_begin = {0, 3, 2}, b.segments.pop_back();
       }},
      {"row offsets do not run from 0", -1, [](RowBlock& b) { b.row_begin[0] = 1; }},
      {"row offsets do not run from 0", -1, [](RowBlock& b) { b.row_begin.back() = 2; }},
      {"row offsets do not run from 0", -1, [](RowBlock& b) { b.row_begin.pop_back(); }},
      {"47 bytes of ids for 2 rows of 12 slots", -1, [](RowBlock& b) { b.ids.pop_back(); }},
      {"48 bytes of ids for 3 rows", -1, [](RowBlock& b) { b.rows = 3; }},
      {"48 bytes of ids", -1, [](RowBlock& b) { b.id_type = IdType::u32; }},
      {"impossible shape", -1, [](RowBlock& b) { b.id_type = IdType::i64; }},
      {"impossible shape", -1, [](RowBlock& b) { b.row_tokens = 0; }},
      {"impossible shape", -1, [](RowBlock& b) { b.rows = -1; }},
      {"impossible shape", -1, [](RowBlock& b) { b.first_row = -1; }},
  };
  for (const Fault& fault : faults) {
    INFO(fault.says);
    RowBlock block = good_block();
    fault.make(block);
    const std::vector<Issue> issues = check_rows(block, 0, 4);
    REQUIRE_FALSE(issues.empty());
    CHECK(issues.front().kind == "row");
    CHECK(issues.front().row == fault.row);
    INFO(issues.front().message);
    CHECK(issues.front().message.find(fault.says) != std::string::npos);
  }
}

TEST_CASE("rows of a batch are as wide as their segments, which take equally many slots") {
  const auto batches = [] {
    RowBlock block = good_block();
    block.row_tokens = 0;
    block.segments[0].slots = block.segments[1].slots = 6;
    block.segments[2].slots = 11;
    block.slot_begin = {0, 12, 23};
    block.ids.resize(23 * 2);
    return block;
  };
  CHECK(check_rows(batches(), 0, 0).empty());
  const std::vector<Fault> faults{
      {"5 tokens in 7 slots, expected 6", 10, [](RowBlock& b) { b.segments[1].slots = 7; }},
      {"9 tokens in 8 slots", 11,
       [](RowBlock& b) {
         b.segments[2].slots = 8, b.slot_begin = {0, 12, 20}, b.ids.resize(40);
       }},
      {"segments take 12 slots of 13", 10, [](RowBlock& b) { b.slot_begin[1] = 13; }},
      {"46 bytes of ids", -1, [](RowBlock& b) { b.slot_begin[2] = 24; }},
      {"impossible shape", -1,
       [](RowBlock& b) {
         b.slot_begin = {0, 23, 12};
       }},
      {"impossible shape", -1, [](RowBlock& b) { b.slot_begin.pop_back(); }},
  };
  for (const Fault& fault : faults) {
    INFO(fault.says);
    RowBlock block = batches();
    fault.make(block);
    const std::vector<Issue> issues = check_rows(block, 0, 0);
    REQUIRE_FALSE(issues.empty());
    CHECK(issues.front().row == fault.row);
    INFO(issues.front().message);
    CHECK(issues.front().message.find(fault.says) != std::string::npos);
  }
  RowBlock ragged = batches();
  ragged.segments[0].slots = 3, ragged.segments[1].slots = 5, ragged.segments[2].slots = 9;
  ragged.slot_begin = {0, 8, 17};
  ragged.ids.resize(17 * 2);
  CHECK(check_rows(ragged, 0, 1).empty());
}

TEST_CASE("the segment limit and the multiple are the caller's") {
  CHECK(check_rows(good_block(), 1, 4).front().message == "2 segments, at most 1 allowed");
  CHECK(check_rows(good_block(), 0, 1).size() == 3);
  CHECK(check_rows(good_block(), 0, 0).size() == 1);
}
