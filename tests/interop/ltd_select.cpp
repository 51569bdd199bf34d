// Kept slots for other languages to compare with: every line of standard input is
//   MODE SEED STEP LAYER ROW WIDTH KEPT [BEGIN:TOKENS ...]
// and gives a line of slots.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "shardpack/ltd_selection.h"

using namespace shardpack;

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    int mode = 0;
    std::uint64_t seed = 0;
    KeptPlace place;
    Length width = 0;
    std::int64_t kept = 0;
    words >> mode >> seed >> place.step >> place.layer >> place.row >> width >> kept;
    std::vector<RowPart> parts;
    RowPart part;
    for (char colon = 0; words >> part.begin >> colon >> part.tokens;) parts.push_back(part);
    std::vector<std::uint32_t> slots;
    select_kept(static_cast<KeptMode>(mode), seed, place, width, parts, kept, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) std::printf(i == 0 ? "%u" : " %u", slots[i]);
    std::printf("\n");
  }
  return 0;
}
