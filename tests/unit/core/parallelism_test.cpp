// What parallel trainers ask of segments, against the two conditions themselves.
#include "shardpack/parallelism.h"

#include <string>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
std::string refusal(std::optional<Length> given, const Parallelism& parallelism) {
  try {
    resolve_segment_multiple(given, parallelism);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("the segment multiple is the least that context and sequence parallel can both divide") {
  for (std::int32_t context = 1; context <= 12; ++context) {
    for (std::int32_t tensor = 1; tensor <= 12; ++tensor) {
      for (const bool sequence : {false, true}) {
        if (sequence && tensor == 1) continue;
        Length least = 1;
        while ((context > 1 && least % (2 * context) != 0) || (sequence && least % (context * tensor) != 0)) ++least;
        CHECK(segment_multiple_for({context, tensor, sequence}) == least);
      }
    }
  }
  CHECK(segment_multiple_for({2, 4, true}) == 8);
  CHECK(segment_multiple_for({4, 2, true}) == 8);
  CHECK(segment_multiple_for({2, 3, true}) == 12);
}

TEST_CASE("a multiple that is given must suit the trainer") {
  CHECK(resolve_segment_multiple(std::nullopt, {}) == 1);
  CHECK(resolve_segment_multiple(16, {}) == 16);
  CHECK(resolve_segment_multiple(std::nullopt, {2, 1, false}) == 4);
  CHECK(resolve_segment_multiple(16, {2, 1, false}) == 16);  // FP8 wants 16 whatever the devices
  CHECK(refusal(6, {2, 1, false}) ==
        "--segment-multiple 6 does not suit --cp 2, which needs a multiple of 4; leave it out, or give 12");
  CHECK(refusal(4, {2, 4, true}) ==
        "--segment-multiple 4 does not suit --cp 2 --tp 4 --sp, which needs a multiple of 8; leave it out, or give 8");
}

TEST_CASE("degrees that make no sense are usage errors") {
  CHECK(refusal(std::nullopt, {2, 1, true}).find("give their number with --tp N") != std::string::npos);
  CHECK(refusal(std::nullopt, {0, 1, false}) == "--cp and --tp count devices, from 1");
  CHECK(refusal(std::nullopt, {1, 0, true}) == "--cp and --tp count devices, from 1");
  CHECK(refusal(std::nullopt, {2'000'000'000, 2'000'000'000, true}).find("no row is long enough") != std::string::npos);
}
