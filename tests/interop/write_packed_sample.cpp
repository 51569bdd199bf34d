// Writes a small packed dataset for readers in other languages: write_packed_sample FOLDER makes FOLDER and FOLDER.tokens, the
// tokens of all segments one after the other as little-endian 32-bit numbers.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "support/packed_sample.h"

using namespace shardpack;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const std::string folder = argv[1];
    std::filesystem::create_directory(folder);
    write_sample_dataset(folder);
    std::vector<std::uint32_t> tokens;
    for (const std::vector<RowSegment>& row : sample_rows(kSampleDatasetRows, kSampleDatasetOptions)) {
      for (const RowSegment& segment : row) {
        for (std::int64_t place = 0; place < segment.length(); ++place) tokens.push_back(sample_id(segment, place));
      }
    }
    File file(folder + ".tokens", File::Mode::create);
    file.write_at(0, std::as_bytes(std::span(tokens)));
    file.close();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
