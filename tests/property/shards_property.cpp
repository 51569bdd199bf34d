// Any sequences come out of every format as they went in; any damage to any of its files is refused or read, and never crashes,
// never asks for the memory that a count in it claims, never ends in an internal error.
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

constexpr std::uint32_t kDelimiter = 500;

Sequences any_sequences() {
  const auto sequence = rc::gen::container<std::vector<std::uint32_t>>(
      rc::gen::suchThat(rc::gen::inRange<std::uint32_t>(0, 65'536), [](std::uint32_t id) { return id != kDelimiter; }));
  Sequences sequences = *rc::gen::container<Sequences>(sequence);
  for (auto& one : sequences) one.push_back(kDelimiter);
  return sequences;
}

std::string write_all(const TempFolder& folder, const ShardFiles& shard) {
  for (const auto& [name, bytes] : shard.files) folder.write(name, bytes);
  return folder.path(shard.main);
}

}  // namespace

TEST_CASE("any sequences come out of every format as they went in") {
  ShardOpener opener;
  const bool holds = rc::check("round trip of every format", [&] {
    const Sequences sequences = any_sequences();
    std::optional<Fingerprint> first;
    for (const ShardFiles& shard : every_format(sequences, kDelimiter)) {
      const TempFolder folder;
      const ScannedSource scanned = opener.open({write_all(folder, shard)}, shard.options);
      RC_ASSERT(ShardOpener::sequences_of(*scanned.source) == sequences);
      if (!first) first = scanned.totals.fingerprint;
      RC_ASSERT(scanned.totals.fingerprint == *first);
    }
  });
  CHECK(holds);
}

TEST_CASE("a damaged file is read or refused") {
  ShardOpener opener(1);
  const bool holds = rc::check("damage of every format", [&] {
    std::vector<ShardFiles> shards = every_format(any_sequences(), kDelimiter);
    ShardFiles& shard = shards[*rc::gen::inRange<std::size_t>(0, shards.size())];
    auto damaged = shard.files.begin();
    std::advance(damaged, *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(shard.files.size())));
    std::string& bytes = damaged->second;
    const int hits = *rc::gen::inRange(1, 6);
    for (int hit = 0; hit < hits && !bytes.empty(); ++hit) {
      // Headers are at the front, and there the damage does most.
      const std::size_t reach = *rc::gen::arbitrary<bool>() ? std::min<std::size_t>(bytes.size(), 40) : bytes.size();
      bytes[*rc::gen::inRange<std::size_t>(0, reach)] = *rc::gen::element('\x00', '\x01', '\x7f', '\x80', '\xff', ',', '9');
    }
    const TempFolder folder;
    const std::string path = write_all(folder, shard);
    try {
      ShardOpener::sequences_of(*opener.open({path}, shard.options).source);
    } catch (const Error& error) {
      RC_ASSERT(error.code() == ErrorCode::bad_data || error.code() == ErrorCode::usage);
      RC_ASSERT(!error.path().empty());
    }
  });
  CHECK(holds);
}
