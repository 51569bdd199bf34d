// Any bytes as manifest.json, plan.json or a histogram: read or refused, and what was read is written and read again the same.
//
// Input: a byte that chooses the document, then its text.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz.h"
#include "io/histogram_file.h"
#include "io/plan_file.h"
#include "shardpack/manifest.h"

using namespace shardpack;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void read_plan(const std::string& text) {
  const PlanFile plan = plan_from_json(text, "plan.json");
  const std::string again = to_json(plan.plan, plan.items);
  const PlanFile second = plan_from_json(again, "plan.json");
  require(to_json(second.plan, second.items) == again, "a plan changed on its way through a file");
  check_exact_cover(plan.plan, plan.items);
}

void read_histogram_text(const std::string& text) {
  static const std::string kPath =
      std::filesystem::temp_directory_path() / ("shardpack-fuzz-" + std::to_string(getpid()) + ".csv");
  std::ofstream(kPath, std::ios::binary) << text;
  const auto histogram = read_histogram(kPath);
  std::filesystem::remove(kPath);
  if (histogram) require(histogram->sequences() >= 0 && histogram->tokens() >= 0, "a total below zero");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  only_blames_the_input([&] {
    switch (data[0] % 3) {
      case 0:
        manifest_from_json(text, "manifest.json");
        break;
      case 1:
        read_plan(text);
        break;
      default:
        read_histogram_text(text);
        break;
    }
  });
  return 0;
}
