// The journal: what was written whole is read back, and nothing else is, wherever a crash cut it.
#include "io/journal.h"

#include "base/hash.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

ManifestShard shard(const std::string& name, std::int64_t rows) {
  return {.folder = name,
          .rows = rows,
          .tokens = 10 * rows,
          .segments = 2 * rows,
          .fingerprint = Fingerprint::from_hex(hash_hex(name)),
          .files = {{"input_ids.npy", 100 * rows, hash_hex("ids")}, {"seq_lengths.npy", 8 * rows, hash_hex("lengths")}}};
}

const RunIdentity kIdentity{{"option seed", "0"}, {"input 1", "a \"quoted\"\nname"}};

bool equal(const ManifestShard& a, const ManifestShard& b) {
  if (a.files.size() != b.files.size()) return false;
  for (std::size_t i = 0; i < a.files.size(); ++i) {
    if (a.files[i].name != b.files[i].name || a.files[i].bytes != b.files[i].bytes || a.files[i].hash != b.files[i].hash)
      return false;
  }
  return a.folder == b.folder && a.rows == b.rows && a.tokens == b.tokens && a.segments == b.segments &&
         a.fingerprint == b.fingerprint;
}

/// The journal of two shards, and where its lines end.
std::string two_shards(const TempFolder& folder, std::vector<std::size_t>& ends) {
  const std::string path = folder.path("two");
  const File file(path, File::Mode::update);
  Journal journal(file);
  CHECK_FALSE(journal.begun());
  journal.begin(kIdentity);
  ends.push_back(static_cast<std::size_t>(file.size()));
  for (int i = 1; i <= 2; ++i) {
    journal.add(shard("shard-0000" + std::to_string(i), i));
    ends.push_back(static_cast<std::size_t>(file.size()));
  }
  CHECK(journal.shards().size() == 2);
  return read_small_file(path);
}

}  // namespace

TEST_CASE("a journal that is cut anywhere holds the lines before the cut") {
  const TempFolder folder;
  std::vector<std::size_t> ends;
  const std::string text = two_shards(folder, ends);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const File file(folder.write("cut", text.substr(0, cut)), File::Mode::update);
    Journal journal(file);
    REQUIRE(journal.begun() == (cut >= ends[0]));
    if (!journal.begun()) continue;
    REQUIRE(journal.identity() == kIdentity);
    REQUIRE(journal.shards().size() == (cut >= ends[1] ? 1U : 0U) + (cut >= ends[2] ? 1U : 0U));
    for (std::size_t i = 0; i < journal.shards().size(); ++i) {
      REQUIRE(equal(journal.shards()[i], shard("shard-0000" + std::to_string(i + 1), static_cast<std::int64_t>(i) + 1)));
    }
    // It goes on behind what is whole.
    journal.add(shard("more", 7));
    const Journal again(file);
    REQUIRE(again.shards().size() == journal.shards().size());
    REQUIRE(equal(again.shards().back(), shard("more", 7)));
  }
}

TEST_CASE("a journal with any byte changed holds the lines before it") {
  const TempFolder folder;
  std::vector<std::size_t> ends;
  const std::string text = two_shards(folder, ends);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const File file(folder.write("damaged", damaged), File::Mode::update);
    const Journal journal(file);
    REQUIRE(journal.begun() == (at >= ends[0]));
    REQUIRE(journal.shards().size() == (at >= ends[1] ? 1U : 0U));
  }
}

TEST_CASE("a journal of another kind of run counts for nothing") {
  const TempFolder folder;
  for (const std::string& record : {std::string("[1, 2]"), std::string("{\"option\": 3}"), std::string("no JSON")}) {
    const File file(folder.write("other", hash_hex(record) + " " + record + "\n"), File::Mode::update);
    CHECK_FALSE(Journal(file).begun());
  }
}

TEST_CASE("what differs between two runs is named") {
  const RunIdentity then{
      {"the version", "1"}, {"option seed", "0"}, {"option packer", "\"auto\""}, {"the number of inputs", "1"}};
  CHECK(difference(then, then).empty());
  CHECK(difference(then, {{"the version", "1"}, {"option seed", "0"}}).empty());
  CHECK(difference(then, {{"the version", "1"}, {"option seed", "7"}}) == "option seed was 0 and is 7");
  CHECK(difference(then, {{"the version", "2"}, {"option seed", "7"}}) ==
        "the version was 1 and is 2, option seed was 0 and is 7");
  RunIdentity many = then;
  for (auto& [name, value] : many) value += "x";
  CHECK(difference(then, many).find("packer was \"auto\" and is \"auto\"x, and 1 more") != std::string::npos);
  many = then;
  many.emplace_back("input 2", "b");
  CHECK(difference(then, many) == "input 2 was not there and is b");
}

TEST_CASE("nothing differs from what was not known yet") {
  const std::string unknown(kNotKnownYet);
  const RunIdentity before{{"the number of inputs", "1"}, {"the hash of input 1", unknown}, {"the plan", "p"}};
  RunIdentity now{{"the number of inputs", "1"}, {"the hash of input 1", "abc"}, {"the plan", "p"}};
  CHECK(difference(before, now).empty());
  CHECK(difference(now, before).empty());
  CHECK(difference(before, before).empty());
  now.back().second = "q";
  CHECK(difference(before, now) == "the plan was p and is q");
}
