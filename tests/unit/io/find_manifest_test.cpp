// Where the manifest of an output is found, and what is told of it.
#include <filesystem>

#include "io/manifest_parts.h"
#include "support/catch.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

const std::string kPacked = "{\n  \"format\": \"shardpack-packed\",\n  \"format_version\": 1";

TEST_CASE("a manifest is found beside the files, in the hidden folder, and by its own name") {
  const TempFolder folder;
  folder.write("native/manifest.json", kPacked);
  folder.write("hf/.shardpack/manifest.json", kPacked);
  const auto expect = [&](const std::string& given, const std::string& holder, const std::string& output) {
    INFO(given);
    const std::optional<FoundManifest> found = find_manifest(folder.path(given));
    REQUIRE(found);
    CHECK(found->path == folder.path(holder + "/manifest.json"));
    CHECK(found->folder == folder.path(holder));
    CHECK(found->output == folder.path(output));
    CHECK(found->format == kPackedFormat);
    CHECK(has_manifest_of(folder.path(given), kPackedFormat));
    CHECK_FALSE(has_manifest_of(folder.path(given), kLtdFormat));
  };
  expect("native", "native", "native");
  expect("native/", "native", "native");
  expect("native/manifest.json", "native", "native");
  expect("hf", "hf/.shardpack", "hf");
  expect("hf/.shardpack", "hf/.shardpack", "hf");
  expect("hf/.shardpack/manifest.json", "hf/.shardpack", "hf");
}

TEST_CASE("what is no manifest of ours is not found") {
  const TempFolder folder;
  folder.write("other/manifest.json", "{\"format\": \"webextension\"}");
  folder.write("state/state.json", kPacked);
  folder.write("linked/x.json", kPacked);
  std::filesystem::create_symlink(folder.path("linked/x.json"), folder.path("linked/manifest.json"));
  for (const char* name : {"other", "other/manifest.json", "state", "state/state.json", "linked", "nothing"}) {
    INFO(name);
    CHECK_FALSE(find_manifest(folder.path(name)));
  }
}

}  // namespace
}  // namespace shardpack
