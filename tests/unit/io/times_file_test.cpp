// Measured times as people write them down.
#include "io/times_file.h"

#include <string>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

TEST_CASE("times: both headers, in any order, seconds or minutes") {
  const TempFolder folder;
  const auto by_batch = read_times(folder.write("a.csv", "# RTX\nbatch_size,pad_length,batches,seconds\r\n8, 64,100,30\n\n"));
  REQUIRE(by_batch.size() == 1);
  CHECK(by_batch[0].work.padded_tokens == 8 * 64 * 100);
  CHECK(by_batch[0].work.padded_squares == 8.0 * 64 * 64 * 100);
  CHECK(by_batch[0].work.batches == 100);
  CHECK(by_batch[0].minutes == 0.5);
  const auto by_sums = read_times(folder.write("b.csv", "minutes,batches,padded_squares,padded_tokens\n2,10,3e5,1e3"));
  REQUIRE(by_sums.size() == 1);
  CHECK((by_sums[0].minutes == 2 && by_sums[0].work.padded_squares == 3e5 && by_sums[0].work.padded_tokens == 1e3));
}

TEST_CASE("times: what is wrong is named with its line") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& text) {
    try {
      read_times(folder.write("times.csv", text));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_data);
      return error.position() + ": " + error.message();
    }
    return std::string("accepted");
  };
  const std::string header = "batch_size,pad_length,batches,seconds\n";
  CHECK(refusal("").find("holds no measured time") != std::string::npos);
  CHECK(refusal(header).find("holds no measured time") != std::string::npos);
  CHECK(refusal("batch_size,length,batches,seconds\n1,2,3,4\n").find("line 1: the header is") == 0);
  CHECK(refusal(header + "8,64,100\n") == "line 2: expected 4 values, found 3");
  CHECK(refusal(header + "8,64,100,0\n") == "line 2: seconds is '0'; expected a number above 0");
  CHECK(refusal(header + "8,64,x,1\n") == "line 2: batches is 'x'; expected a number above 0");
  CHECK(refusal(header + "8,64,nan,1\n") == "line 2: batches is 'nan'; expected a number above 0");
}
