// Prints every sequence of its inputs, a line of ids each, for the interop tests to compare.
//
//   read_shards [--format F] [--dtype T] [--eos-id N] [--unit sequence] INPUT...
//
// An Error is one line on standard error and exit 1.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "support/open_shards.h"

using namespace shardpack;

int main(int argc, char** argv) {
  ReadOptions options;
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (argument == "--format") {
      options.format = value();
    } else if (argument == "--dtype") {
      const std::string name = value();
      for (const IdTypeInfo& type : kIdTypes) {
        if (type.name == name) options.dtype = type.type;
      }
    } else if (argument == "--eos-id") {
      options.eos_id = std::atoll(value().c_str());
    } else if (argument == "--unit") {
      options.unit = value() == "sequence" ? Unit::sequence : Unit::document;
    } else {
      inputs.emplace_back(argument);
    }
  }
  try {
    ShardOpener opener;
    for (const auto& sequence : opener.sequences(inputs, options)) {
      std::string line;
      for (const std::uint32_t id : sequence) line += (line.empty() ? "" : " ") + std::to_string(id);
      std::puts(line.c_str());
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
