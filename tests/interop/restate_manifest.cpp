// Makes the manifest of a packed dataset say what its files are now, sizes and hashes and all: tampering that only logic can
// find.
//
//   restate_manifest FOLDER
#include <cstdio>

#include "io/packed_dataset.h"
#include "support/tiny_dataset.h"

using namespace shardpack;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const PackedDataset dataset(argv[1]);
    write_manifest_of_what_is_there(dataset.folder(), dataset.manifest());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
