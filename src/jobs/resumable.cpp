#include "jobs/resumable.h"

#include "base/units.h"
#include "io/json.h"

namespace shardpack {

void add_inputs(RunIdentity& identity, const std::vector<ManifestSource>& sources) {
  identity.emplace_back("the number of inputs", std::to_string(sources.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const ManifestSource& source = sources[i];
    identity.emplace_back(fmt::format("input {}", i + 1),
                          fmt::format("{} ({}, {} bytes, {} sequences)", as_utf8(source.name), source.format,
                                      with_commas(source.bytes), with_commas(source.sequences)));
    identity.emplace_back(fmt::format("the hash of input {}", i + 1), source.hash.empty() ? kNotKnownYet : source.hash);
  }
}

}  // namespace shardpack
