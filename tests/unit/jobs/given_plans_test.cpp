// pack --plan: the same bytes as the plan's own run, and nothing packed by a plan that is not of these data and options.
#include "jobs/given_plans.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/plan_file.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

struct Shards {
  Shards() {
    std::string lines;
    for (int record = 0; record < 60; ++record) {
      lines += "{\"input_ids\": [" + std::to_string(record);
      for (int token = 0; token < record * 37 % 50; ++token) lines += ", " + std::to_string(token);
      lines += "]}\n";
    }
    folder.write("in.jsonl", lines);
    options.policy = {.row_tokens = 64, .min_tokens = 2, .append_eos = true, .segment_multiple = 2};
    options.packing.row_tokens = 64;
    options.read.eos_id = 2;
  }

  PackResult pack_into(const std::string& name) { return pack({folder.path("in.jsonl")}, folder.path(name), options, context); }
  std::map<std::string, std::string> bytes(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const std::string& file : files_below(folder.path(name))) files[file] = read_file(folder.path(name + "/" + file));
    return files;
  }
  std::string refusal() {
    try {
      pack_into("refused");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_data);
      CHECK(files_below(folder.path()).size() == files);
      return error.message();
    }
    return "accepted";
  }
  void write_plan(const std::string& from, const std::string& to) {
    std::string text = read_file(folder.path("plan.json"));
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    folder.write("plan.json", text.replace(at, from.size(), to));
  }

  TempFolder folder;
  PackOptions options;
  std::size_t files = 0;  // in the folder before
  ThreadPool pool{2};
  NoProgress progress;
  NoDiagnostics diagnostics;
  RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
};

}  // namespace

TEST_CASE("a plan made beforehand gives the bytes of planning on the way") {
  Shards shards;
  for (const std::string packer : {"auto", "spfhp", "nnlshp", "bfd"}) {
    shards.options.packer = packer;
    shards.options.plan.clear();
    shards.pack_into("own-" + packer);
    const PlanResult made =
        plan({shards.folder.path("in.jsonl")}, shards.options.read,
             {.policy = shards.options.policy, .packer = packer, .packing = shards.options.packing}, shards.context);
    shards.options.plan = shards.folder.write("plan-" + packer + ".json", to_json(made.plan, made.items));
    shards.pack_into("given-" + packer);
    CHECK(shards.bytes("own-" + packer) == shards.bytes("given-" + packer));
  }
}

TEST_CASE("a packed dataset's own plans do for several partitions, and give the row length") {
  Shards shards;
  shards.options.partition_tokens = 300;
  REQUIRE(shards.pack_into("first").partitions > 3);
  shards.options.plan = shards.folder.path("first");
  shards.options.policy.row_tokens = shards.options.packing.row_tokens = 0;
  shards.pack_into("second");
  CHECK(shards.bytes("first") == shards.bytes("second"));

  shards.files = files_below(shards.folder.path()).size();
  shards.options.partition_tokens = 100'000;
  CHECK(shards.refusal().find("plans for one partition") != std::string::npos);
  shards.options.partition_tokens = 300;
  std::filesystem::remove(shards.folder.path("first/plan-00001.json"));
  --shards.files;
  CHECK(shards.refusal().find("plan-00001.json is not among them") != std::string::npos);

  shards.options.plan = shards.folder.path("named");
  std::filesystem::create_directory(shards.options.plan);
  const std::string named = shards.folder.path("named/plan-opt.json");
  std::filesystem::copy_file(shards.folder.path("first/plan-00000.json"), named);
  ++shards.files;
  CHECK(shards.refusal().find("1 plan in it, and plan-00000.json is not among them; give " + named + " itself") !=
        std::string::npos);
}

TEST_CASE("a plan of other data or other options is refused by the field that differs") {
  Shards shards;
  const PlanResult made =
      plan({shards.folder.path("in.jsonl")}, shards.options.read,
           {.policy = shards.options.policy, .packer = "lpfhp", .packing = shards.options.packing}, shards.context);
  const std::string text = to_json(made.plan, made.items);
  shards.options.plan = shards.folder.write("plan.json", text);
  shards.files = 2;
  const bool dry_run = GENERATE(false, true);
  shards.options.dry_run = dry_run;

  SECTION("groups") {
    std::string grouped = to_json("lang", {{.key = std::string("web"), .plan = made.plan, .items = made.items}});
    shards.options.plan = shards.folder.write("plan.json", grouped);
    CHECK(shards.refusal().find("the plan was made with --group-column lang; give it here too") == 0);
  }
  SECTION("no plan at all") {
    shards.options.plan = shards.folder.write("plan.json", "length,count\n3,4\n");
    CHECK(shards.refusal().find("not a plan; make one: shardpack plan") == 0);
  }
  SECTION("policy") {
    shards.options.policy.overlong = Overlong::drop;
    CHECK(shards.refusal().find("overlong is \"error\" in the plan and \"drop\" here") == 0);
  }
  SECTION("row length") {
    shards.options.policy.row_tokens = 128;
    CHECK(shards.refusal().find("row_tokens is 64 in the plan and 128 here") == 0);
  }
  SECTION("segment limit") {
    shards.options.packing.max_segments = 4;
    CHECK(shards.refusal().find("max_segments is 0 in the plan and 4 here") == 0);
  }
  SECTION("packer") {
    shards.options.packer = "spfhp";
    CHECK(shards.refusal().find("packer is lpfhp in the plan and spfhp here") == 0);
  }
  SECTION("segment multiple") {
    shards.options.policy.segment_multiple = 4;
    CHECK(shards.refusal().find("segment_multiple is 2 in the plan and 4 here") == 0);
  }
  SECTION("counts") {
    shards.options.read.limit = 59;
    CHECK(shards.refusal().find("the plan has 3 items of 36 slots, the data have 2; ") == 0);
  }
  SECTION("damage: a row that is not there") {
    shards.write_plan("\"count\": 1 ", "\"count\": 2 ");
    CHECK(shards.refusal() == "expected 27, the sum of the entries' counts, found 26");
  }
  SECTION("damage: no cover") {
    LengthHistogram items = made.items;
    items.add(50);
    shards.folder.write("plan.json", to_json(made.plan, items));
    CHECK(shards.refusal().find("the plan does not hold: length 50: 1 items without a place") == 0);
  }
  SECTION("damage: not a plan") {
    shards.folder.write("plan.json", text.substr(0, text.size() / 2));
    CHECK(shards.refusal() != "accepted");
  }
  SECTION("input order") {
    shards.write_plan("\"lpfhp\"", "\"sequential\"");
    CHECK(shards.refusal().find("pack with --packer sequential instead of --plan") != std::string::npos);
  }
}

}  // namespace shardpack
