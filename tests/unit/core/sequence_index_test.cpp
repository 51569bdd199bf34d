#include "shardpack/sequence_index.h"

#include <vector>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
SourceFile file_of(std::vector<std::int64_t> record_begin) {
  SourceFile file;
  file.record_begin = std::move(record_begin);
  return file;
}
}  // namespace

TEST_CASE("a sequence's place skips files without records and keeps empty ones") {
  const SequenceIndex index({file_of({0}), file_of({0, 3, 3, 10}), file_of({0}), file_of({0, 5})}, {1, 2, 3, 0});
  CHECK(index.sequences() == 4);
  CHECK(index.tokens() == 15);
  CHECK(index.first_sequence(0) == 0);
  CHECK(index.first_sequence(3) == 3);

  const SequencePlace first = index.place(0);
  CHECK(first.file == 1);
  CHECK(first.record == 0);
  CHECK(first.first_token == 0);
  CHECK(first.tokens == 3);
  CHECK(index.place(1).tokens == 0);
  CHECK(index.place(2).first_token == 3);
  CHECK(index.place(2).tokens == 7);
  CHECK(index.place(3).file == 3);
  CHECK(index.place(3).record == 0);
  CHECK(index.ends(2) == (SequenceIndex::kBeginsWithBos | SequenceIndex::kEndsWithEos));
  CHECK_THROWS_AS(index.place(4), Error);
  CHECK_THROWS_AS(index.place(-1), Error);
}

TEST_CASE("an index without files has no sequences") {
  CHECK(SequenceIndex().sequences() == 0);
  CHECK(SequenceIndex(std::vector<SourceFile>()).tokens() == 0);
}

TEST_CASE("the longest sequence is that of all files") {
  CHECK(longest_record({0}) == 0);
  CHECK(longest_record({0, 0, 0}) == 0);
  CHECK(longest_record({0, 3, 12, 15}) == 9);
  CHECK(SequenceIndex().longest_sequence() == 0);
  CHECK(SequenceIndex({file_of({0}), file_of({0, 3, 3, 10}), file_of({0, 5, 13})}).longest_sequence() == 8);
}
