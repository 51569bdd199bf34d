// Arrow reads through our files: complete, within bounds, and a file that was cut short is an error.
#include <arrow/buffer.h>

#include <filesystem>

#include "io/arrow/arrow_file.h"
#include "io/arrow_support.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

TEST_CASE("Arrow reads our files at any place, and no further than their end") {
  const TempFolder folder;
  folder.write("a", "0123456789");
  const auto input = arrow_input(std::make_shared<File>(folder.path("a"), File::Mode::read));
  CHECK(has_arrow());
  CHECK(input->GetSize().ValueOrDie() == 10);
  CHECK(input->ReadAt(3, 4).ValueOrDie()->ToString() == "3456");
  CHECK(input->ReadAt(8, std::int64_t{1} << 60).ValueOrDie()->ToString() == "89");
  CHECK(input->ReadAt(11, 5).ValueOrDie()->size() == 0);
  CHECK_FALSE(input->ReadAt(-1, 4).ok());
  CHECK_FALSE(input->ReadAt(0, -4).ok());
  CHECK(input->Read(6).ValueOrDie()->ToString() == "012345");
  CHECK(input->Read(6).ValueOrDie()->ToString() == "6789");

  std::filesystem::resize_file(folder.path("a"), 4);
  try {
    (void)input->ReadAt(3, 4);
    FAIL("a file that was cut short was read");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
  }
}

TEST_CASE("Arrow's failures are one line of ours") {
  try {
    check_arrow(arrow::Status::Invalid("first\nsecond"), "a.arrow", "record batch 3");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(std::string(error.what()) == "a.arrow: record batch 3: damaged or cut short: first second");
  }
  try {
    check_arrow(arrow::Status::OutOfMemory("no more"), "a.arrow");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::limit);
  }
}
