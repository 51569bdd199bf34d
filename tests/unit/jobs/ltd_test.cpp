// ltd: options from everywhere, the folder that they make, and verify on it whole and damaged.
#include "shardpack/ltd.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/hash.h"
#include "io/json.h"
#include "io/ltd_files.h"
#include "io/npy.h"
#include "io/packed_dataset.h"
#include "jobs/ltd_rows.h"
#include "shardpack/error.h"
#include "shardpack/inspect.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

/// A job's surroundings.
struct Place {
  explicit Place(int threads = 1) : pool(threads) {}
  RunContext context() {
    return {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .memory_bytes = 0, .temp_dir = {}};
  }
  ThreadPool pool;
  NoProgress progress;
  NoDiagnostics diagnostics;
};

LtdOptions small_run() {
  LtdOptions options;
  options.kept_start = 4;
  options.kept_step = 4;
  options.ramp_steps = 6;
  options.layers = 4;
  options.micro_batch = 2;
  options.accumulation = 2;
  options.seq_length = 16;
  options.total_steps = 8;
  return options;
}

LtdResult make(const std::string& output, const LtdOptions& options, const std::vector<std::string>& rows = {}, int threads = 1) {
  Place place(threads);
  return ltd(rows, output, options, place.context());
}

VerifyResult verified(const std::string& folder, const std::vector<std::string>& against = {}) {
  Place place;
  return verify(folder, {.against = against}, place.context());
}

std::string refusal(const LtdOptions& options, ErrorCode code = ErrorCode::usage, const std::vector<std::string>& rows = {}) {
  const TempFolder folder;
  try {
    make(folder.path("out"), options, rows);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(files_below(folder.path()).empty());
    return error.message();
  }
  return "accepted";
}

/// Write the manifest of a changed folder anew, so that what is wrong is for logic to find.
void reseal(const std::string& folder) {
  LtdManifest manifest = ltd_manifest_from_json(read_file(folder + "/manifest.json"), "manifest.json");
  for (ManifestFile& file : manifest.files) {
    const std::string bytes = read_file(folder + "/" + file.name);
    file.bytes = static_cast<std::int64_t>(bytes.size());
    file.hash = hash_hex(bytes);
  }
  write_file(folder + "/manifest.json", to_json(manifest));
}

const std::string kGpt2 =
    R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},
  "data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {"enabled": true, "total_layer_num": 12,
  "random_ltd_layer_num": 10, "random_ltd_layer_id": [1,2,3,4,5,6,7,8,9,10], "model_mask_name": "attention_mask", "model_type": "decoder",
  "hidden_state_order": "batch_seq_dim", "random_ltd_schedule": {"min_value": 128, "max_value": 1024, "schedule_type": "fixed_linear",
  "schedule_config": {"require_steps": 400, "seq_per_step": 8}}}}}})";

TEST_CASE("the released GPT-2 example through its config") {
  const TempFolder folder;
  LtdOptions options;
  options.deepspeed = folder.write("ds.json", kGpt2);
  options.total_tokens = 524 * 4096;
  const LtdResult result = make(folder.path("out"), options);
  CHECK(result.manifest.budget.micro_step == 1344);
  CHECK(result.manifest.budget.tokens == 2'148'032);
  CHECK(result.manifest.setup.schedule.accumulation == 2);
  CHECK(result.manifest.warnings.empty());
  const Json merged = Json::parse(read_file(folder.path("out/ds_config.json")), "merged");
  CHECK(merged.at("optimizer").at("params").at("lr").as_double() == 1e-4);  // the base stays
  CHECK(merged.at("gradient_accumulation_steps").as_int() == 2);
  CHECK(verified(folder.path("out")).ok());

  options.kept_start = 256;  // a flag wins, and is in the config
  const LtdResult flagged = make(folder.path("flagged"), options);
  CHECK(flagged.manifest.setup.schedule.growth.start == 256);
  CHECK(read_file(folder.path("flagged/ds_config.json")).find("\"min_value\": 256") != std::string::npos);
  options.layers = 24;  // and takes the layer list with it
  CHECK(make(folder.path("deep"), options).manifest.setup.layer_ids.size() == 22);
}

TEST_CASE("a curriculum in the config composes") {
  const TempFolder folder;
  std::string text = kGpt2;
  text.insert(
      1, R"("curriculum_learning": {"enabled": true, "curriculum_type": "seqlen", "min_difficulty": 64, "max_difficulty": 1024,
    "schedule_type": "fixed_linear", "schedule_config": {"total_curriculum_step": 100, "difficulty_step": 8}}, )");
  LtdOptions options;
  options.deepspeed = folder.write("ds.json", text);
  options.total_steps = 120;
  const LtdResult result = make(folder.path("out"), options);
  CHECK(result.manifest.setup.schedule.curriculum.kind == CurriculumKind::fixed_linear);
  CHECK(result.plateaus.front().shape == StepShape{72, 1, 72});  // 64 + 960 / 100
  CHECK(verified(folder.path("out")).ok());
  options.curriculum_use = CurriculumUse::reshape;
  CHECK(make(folder.path("reshaped"), options).plateaus.front().shape == StepShape{72, 14, 72});
}

TEST_CASE("equal runs give equal bytes, whatever the threads") {
  const TempFolder folder;
  LtdOptions options = small_run();
  options.write_indices = true;
  for (const int threads : {1, 2, 8}) make(folder.path("t" + std::to_string(threads)), options, {}, threads);
  const std::vector<std::string> files = files_below(folder.path("t1"));
  CHECK(files.size() == 8);
  for (const std::string& other : {"t2", "t8"}) {
    CHECK(files_below(folder.path(other)) == files);
    for (const std::string& file : files)
      CHECK(read_file(folder.path(other + "/" + file)) == read_file(folder.path("t1/" + file)));
  }
}

TEST_CASE("the world size changes nothing about what is kept") {
  LtdOptions options = small_run();
  Place place;
  const auto at = [&](std::int64_t micro, std::int64_t accumulation, std::int64_t world, const KeptPlace& where) {
    options.micro_batch = micro;
    options.accumulation = accumulation;
    options.world = world;
    return ltd_kept_at({}, options, where, place.context()).slots;
  };
  for (std::int64_t row = 0; row < 8; ++row) {
    const KeptPlace where{2, 1, row};
    const auto one = at(8, 1, 1, where);
    CHECK(one.size() == 8);
    CHECK(at(1, 1, 8, where) == one);
    CHECK(at(2, 2, 2, where) == one);
  }
}

TEST_CASE("indices in the folder are those of one place after the other") {
  const TempFolder folder;
  LtdOptions options = small_run();
  options.write_indices = true;
  options.window = StepWindow{1, 5};
  const LtdResult result = make(folder.path("out"), options);
  std::int64_t sets = 0;
  Place place;
  for (const LtdPlateau& plateau : result.plateaus) {
    const std::int64_t first = std::max<std::int64_t>(plateau.first_step, 1);
    const std::string name = folder.path("out/" + kept_file_name(first));
    if (!std::filesystem::exists(name)) continue;
    const PackedArray array(name);
    const std::vector<std::int64_t>& shape = array.shape();
    REQUIRE(shape.size() == 4);
    const auto numbers = array.read_all<std::uint16_t>();
    std::size_t at = 0;
    for (std::int64_t step = first; step < first + shape[0]; ++step) {
      for (std::int64_t layer = 1; layer <= 2; ++layer) {
        for (std::int64_t row = 0; row < 4; ++row, ++sets) {
          const auto kept = ltd_kept_at({}, options, {step, layer, row}, place.context()).slots;
          REQUIRE(static_cast<std::int64_t>(kept.size()) == shape[3]);
          for (const std::uint32_t slot : kept) CHECK(numbers[at++] == slot);
        }
      }
    }
  }
  CHECK(sets == 5 * 2 * 4);
}

TEST_CASE("a packed dataset gives real lengths, and no shard is touched") {
  const TempFolder folder;
  const std::string packed = folder.path("packed");
  std::filesystem::create_directory(packed);
  TinyOptions tiny;
  tiny.policy.segment_multiple = 2;
  const Manifest dataset = write_tiny_dataset(packed, tiny);
  std::vector<std::string> before;
  for (const std::string& file : files_below(packed)) before.push_back(read_file(packed + "/" + file));

  LtdOptions options = small_run();
  options.write_indices = true;
  const LtdResult result = make(folder.path("out"), options, {packed});
  CHECK(result.manifest.dataset->rows == dataset.rows);
  CHECK(result.manifest.dataset->tokens == dataset.tokens);
  CHECK(result.manifest.setup.mode == KeptMode::quota);

  // LayerTokens by hand: rows in turn, real tokens.
  Place place;
  const LtdRowTable rows = read_ltd_rows({packed}, place.context()).table;
  std::int64_t total = 0;
  for (std::int64_t step = 0; step < 8; ++step) {
    const std::int64_t kept = kept_at(result.manifest.setup.schedule.growth, step);
    for (std::int64_t row = 0; row < 4; ++row) {
      const std::int64_t tokens = rows.at((step * 4 + row) % dataset.rows).tokens;
      total += 2 * tokens + 2 * std::min(kept, tokens);
    }
  }
  CHECK(result.manifest.layer_tokens == total);

  std::vector<std::string> after;
  for (const std::string& file : files_below(packed)) after.push_back(read_file(packed + "/" + file));
  CHECK(after == before);
  CHECK(verified(packed).ok());
  CHECK(verified(folder.path("out")).ok());
  CHECK(verified(folder.path("out"), {packed}).ok());

  // Boundaries end at what is kept, list after list.
  const PackedArray boundaries(folder.path("out/cu_seqlens.npy")), offsets(folder.path("out/cu_offsets.npy"));
  const auto numbers = boundaries.read_all<std::uint16_t>();
  const auto begin = offsets.read_all<std::int64_t>();
  REQUIRE(begin.size() == 8 * 4 + 1);
  for (std::size_t list = 0; list + 1 < begin.size(); ++list) {
    CHECK(numbers[static_cast<std::size_t>(begin[list])] == 0);
    const auto kept = kept_at(result.manifest.setup.schedule.growth, static_cast<std::int64_t>(list / 4));
    CHECK(numbers[static_cast<std::size_t>(begin[list + 1]) - 1] == std::min<std::int64_t>(kept, 16));
  }

  // Another dataset is not the one that it was made for.
  const std::string other = folder.path("other");
  std::filesystem::create_directory(other);
  tiny.lengths.push_back(6);
  write_tiny_dataset(other, tiny);
  CHECK(verified(folder.path("out"), {other}).issues.front().kind == "dataset");
}

TEST_CASE("verify finds what does not follow from the options") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  LtdOptions options = small_run();
  options.write_indices = true;
  options.total_steps.reset();
  options.total_layer_tokens = 1500;
  make(out, options);
  const VerifyResult whole = verified(out);
  REQUIRE(whole.ok());
  CHECK(whole.checked.size() == 5);
  const auto kinds = [&] {
    std::string text;
    for (const Issue& issue : verified(out).issues) text += issue.kind + " " + issue.file + ";";
    return text;
  };
  const auto change = [&](const std::string& name, const std::function<void(std::string&)>& edit) {
    std::string bytes = read_file(out + "/" + name);
    edit(bytes);
    write_file(out + "/" + name, bytes);
  };
  SECTION("a byte of any file") {
    for (const std::string& file : files_below(out)) {
      const std::string bytes = read_file(out + "/" + file);
      change(file, [](std::string& text) { text[text.size() / 2] ^= 1; });
      CHECK(!verified(out).ok());
      write_file(out + "/" + file, bytes);
    }
    CHECK(verified(out).ok());
  }
  SECTION("a file too many, a file too few") {
    write_file(out + "/kept/mine", "x");
    CHECK(kinds() == "extra kept/mine;");
    std::filesystem::remove(out + "/kept/mine");
    std::filesystem::remove(out + "/steps.npy");
    CHECK(kinds() == "missing steps.npy;");
  }
  SECTION("steps") {
    for (const std::size_t field : {4, 6, 14, 22, 37}) {  // kept, LayerTokens, cumulative, effective tokens, learning rate
      const std::string bytes = read_file(out + "/steps.npy");
      change("steps.npy", [&](std::string& text) { text[text.size() - 2 * 38 + field] ^= 4; });
      reseal(out);
      CHECK(kinds().find("steps steps.npy;") != std::string::npos);
      write_file(out + "/steps.npy", bytes);
    }
  }
  SECTION("plateaus, samples, indices, the config") {
    change("plateaus.json", [](std::string& text) { text.replace(text.find("\"steps\": "), 10, "\"steps\": 7"); });
    reseal(out);
    CHECK(kinds() == "plateaus plateaus.json;");
    change("selection.json", [](std::string& text) { text.replace(text.find("\"sum\": "), 8, "\"sum\": 9"); });
    reseal(out);
    CHECK(kinds() == "plateaus plateaus.json;selection selection.json;");
    change("ds_config.json", [](std::string& text) { text = "{}"; });
    reseal(out);
    CHECK(kinds().find("config ds_config.json;") != std::string::npos);
  }
  SECTION("indices") {
    change("kept/00000002.npy", [](std::string& text) { text.back() ^= 1; });
    reseal(out);
    CHECK(kinds() == "indices kept/00000002.npy;");
  }
  SECTION("a budget that is not reached") {
    LtdManifest manifest = ltd_manifest_from_json(read_file(out + "/manifest.json"), "manifest.json");
    manifest.setup.budget.amount *= 2;
    write_file(out + "/manifest.json", to_json(manifest));
    CHECK(kinds().find("budget") != std::string::npos);
  }
  SECTION("inspect looks without judging") {
    Place place;
    const InspectResult view = inspect(out, {}, place.context());
    REQUIRE(view.ltd);
    CHECK(static_cast<std::int64_t>(view.ltd->plateaus.size()) == view.ltd->manifest.plateaus);
    CHECK_THROWS_AS(inspect(out, {.read = {}, .row = 1, .sequence = {}}, place.context()), Error);
  }
}

TEST_CASE("verify finds what does not follow from a batch plan") {
  const TempFolder folder;
  Place place;
  const std::string lengths = folder.write("lengths.txt", "9\n16\n3\n12\n7\n16\n5\n11\n2\n8\n14\n6\n");
  const std::string plan = folder.path("plan"), out = folder.path("out");
  BatchJobOptions batching;
  batching.plan.strategy = parse_batch_strategy("tokens:36");
  batching.plan.world = 2;
  batch({lengths}, plan, batching, place.context());
  LtdOptions options = small_run();
  options.micro_batch.reset();
  options.accumulation.reset();
  options.seq_length.reset();
  options.kept_max = 8;
  options.write_indices = true;
  const LtdManifest made = make(out, options, {plan}).manifest;
  CHECK(made.dataset->kind == LtdRowSource::batches);
  CHECK(made.dataset->tokens == 109);
  CHECK(verified(out).ok());
  CHECK(verified(out, {plan}).ok());
  CHECK(to_json(ltd_manifest_from_json(read_file(out + "/manifest.json"), "manifest.json")) == read_file(out + "/manifest.json"));

  const auto found = [&] {
    std::string text;
    for (const Issue& issue : verified(out, {plan}).issues) text += issue.kind + " " + issue.file + ";";
    return text;
  };
  for (const std::string name : {"kept/00000000.npy", "kept_offsets.npy", "cu_seqlens.npy", "cu_offsets.npy"}) {
    const std::string bytes = read_file(out + "/" + name);
    std::string damaged = bytes;
    damaged[damaged.size() - 8] ^= 1;
    write_file(out + "/" + name, damaged);
    reseal(out);
    CHECK(found() == "indices " + name + ";");
    CHECK(verified(out).ok());  // without the plan nobody can tell
    write_file(out + "/" + name, bytes);
    reseal(out);
  }
  for (const auto& change : std::vector<std::function<void(LtdManifest&)>>{
           [](LtdManifest& m) { ++m.dataset->rows; }, [](LtdManifest& m) { ++m.dataset->tokens; },
           [](LtdManifest& m) { ++m.dataset->segments; }, [](LtdManifest& m) { ++m.dataset->batches; },
           [](LtdManifest& m) { ++m.dataset->steps; }, [](LtdManifest& m) { ++m.dataset->row_tokens; },
           [](LtdManifest& m) { ++m.real.layer_tokens; }, [](LtdManifest& m) { ++m.padded.layer_tokens; },
           [](LtdManifest& m) { ++m.real.dense_layer_tokens; }, [](LtdManifest& m) { ++m.padded.dense_layer_tokens; }}) {
    LtdManifest changed = made;
    change(changed);
    write_file(out + "/manifest.json", to_json(changed));
    CHECK(found() == "manifest manifest.json;");
  }
  write_file(out + "/manifest.json", to_json(made));

  for (const auto& change : std::vector<std::function<void(LtdManifest&)>>{
           [](LtdManifest& m) { m.setup.schedule.accumulation = 9; }, [](LtdManifest& m) { m.setup.schedule.world = 1; },
           [](LtdManifest& m) { m.setup.schedule.seq_length = 15; }}) {
    LtdManifest changed = made;
    change(changed);
    write_file(out + "/manifest.json", to_json(changed));
    CHECK(found() == "options manifest.json;");
  }
  write_file(out + "/manifest.json", to_json(made));

  // A share of each batch may be more than the kept length itself where that ends below the widest batch.
  options.kept_length = KeptLength::ratio;
  options.total_steps = 20;
  make(folder.path("shares"), options, {plan});
  CHECK(verified(folder.path("shares")).ok());
  CHECK(verified(folder.path("shares"), {plan}).ok());

  // A plan that is damaged where its manifest cannot tell names the batch.
  std::string widths = read_file(plan + "/pad_length.npy");
  widths[widths.size() - 4] = 1;
  const std::string whole = read_file(plan + "/pad_length.npy");
  write_file(plan + "/pad_length.npy", widths);
  CHECK(refusal(options, ErrorCode::bad_data, {plan}).find("it is padded to 1, but a row of it needs") != std::string::npos);
  write_file(plan + "/pad_length.npy", whole);

  // The plan decides the shape of training; a config's sizes count where batches are equal.
  options = small_run();
  options.micro_batch = 2;
  options.accumulation.reset();
  options.seq_length.reset();
  batching.plan.strategy = parse_batch_strategy("sorted");
  batching.plan.batch_size = 3;
  batch({lengths}, folder.path("equal"), batching, place.context());
  CHECK(refusal(options, ErrorCode::usage, {folder.path("equal")}).find("has 3 rows in a batch") != std::string::npos);
  options = LtdOptions{};
  options.total_steps = 4;
  options.deepspeed = folder.write("ds.json", kGpt2);  // batches of 2, and accumulation unsaid
  CHECK(refusal(options, ErrorCode::usage, {folder.path("equal")}).find("has 3 rows in a batch") != std::string::npos);
  CHECK(refusal(options, ErrorCode::usage, {plan}) == "accepted");
}

TEST_CASE("the manifest reads back as it was written") {
  const TempFolder folder;
  LtdOptions options = small_run();
  options.seed = 0xFFFFFFFFFFFFFFFF;
  options.hidden_size = 64;
  options.rate = {
      .peak = 1.5e-7, .min = 1e-9, .warmup_layer_tokens = 10, .decay_layer_tokens = 0, .decay = LrDecay::linear, .lag = 1};
  options.curriculum = Curriculum{.kind = CurriculumKind::fixed_discrete, .lengths = {8, 16}, .until = {3}};
  make(folder.path("out"), options);
  const std::string text = read_file(folder.path("out/manifest.json"));
  const LtdManifest manifest = ltd_manifest_from_json(text, "manifest.json");
  CHECK(to_json(manifest) == text);
  CHECK(manifest.setup.seed == options.seed);
  CHECK(manifest.setup.rate.peak == 1.5e-7);
  CHECK(manifest.setup.rate.lag == 1);
  CHECK(verified(folder.path("out")).ok());
}

TEST_CASE("options that do not fit together") {
  LtdOptions options = small_run();
  CHECK(refusal(options) == "accepted");
  options.global_batch = 7;
  CHECK(refusal(options).find("the shape disagrees") != std::string::npos);
  options.global_batch = 8;
  options.accumulation.reset();  // follows from the rest
  CHECK(refusal(options) == "accepted");
  options = small_run();
  options.micro_batch.reset();
  options.accumulation.reset();
  CHECK(refusal(options).find("how many rows") != std::string::npos);
  options = small_run();
  options.write_indices = true;
  options.index_cap = 700;
  CHECK(refusal(options, ErrorCode::limit).find("take 768 bytes") != std::string::npos);
  options.window = StepWindow{0, 2};
  CHECK(refusal(options) == "accepted");
  options = small_run();
  options.total_steps.reset();
  CHECK(refusal(options).find("when does the run end") != std::string::npos);
  options.total_tokens = std::int64_t{1} << 62;
  CHECK(refusal(options, ErrorCode::limit) != "accepted");

  const TempFolder folder;
  std::filesystem::create_directory(folder.path("packed"));
  write_tiny_dataset(folder.path("packed"));
  options = small_run();
  options.mode = KeptMode::quota_min1;
  options.kept_step = 1;
  options.kept_start = 1;
  CHECK(refusal(options, ErrorCode::usage, {folder.path("packed")}).find("quota-min1 keeps a token of each segment") !=
        std::string::npos);
  options = small_run();
  options.seq_length = 32;
  CHECK(refusal(options, ErrorCode::usage, {folder.path("packed")}).find("the dataset's rows have 16 slots") !=
        std::string::npos);
  options = small_run();
  options.curriculum = Curriculum{.kind = CurriculumKind::fixed_discrete, .lengths = {8}};
  CHECK(refusal(options, ErrorCode::usage, {folder.path("packed")}).find("packed rows and batches are whole") !=
        std::string::npos);
}

TEST_CASE("a run in which no layer drops tokens, and layers that are none") {
  LtdOptions options = small_run();
  options.layers = 2;
  CHECK(refusal(options) ==
        "no layer drops tokens: the first and the last of 2 are kept whole; give --layer-ids, or 3 layers and more");
  options.layer_ids = {1};
  CHECK(refusal(options) == "accepted");
  options.layer_ids = {2};
  CHECK(refusal(options) == "--layer-ids: 2 is none of the 2 layers (0 to 1)");
  options.layer_ids = {1, 1};
  CHECK(refusal(options) == "--layer-ids: 1 is listed twice");
  options.layer_ids.clear();
  options.ltd_layers = 0;  // asked for: a run to compare with
  CHECK(refusal(options) == "accepted");
}

TEST_CASE("what is wrong in the config is not blamed on a flag") {
  const TempFolder folder;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kGpt2;
    text.replace(text.find(from), from.size(), to);
    return folder.write("ds.json", text);
  };
  LtdOptions options;
  options.total_steps = 8;
  Place place;
  const auto fault = [&]() -> std::string {
    try {
      ltd({}, folder.path("out"), options, place.context());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  options.deepspeed = changed("[1,2,3,4,5,6,7,8,9,10]", "[1,2,13]");
  CHECK(fault() == options.deepspeed +
                       ": data_efficiency.data_routing.random_ltd.random_ltd_layer_id: 13 is none of the 12 layers (0 to 11); "
                       "see: shardpack lint " +
                       options.deepspeed);
  options.deepspeed = changed("[1,2,3,4,5,6,7,8,9,10]", "[1,2,2]");
  CHECK(fault().find("random_ltd_layer_id: 2 is listed twice") != std::string::npos);
  options.deepspeed = changed("\"min_value\": 128", "\"min_value\": 4");
  CHECK(fault().find("(what no flag gives is taken from " + options.deepspeed + ")") != std::string::npos);
}

TEST_CASE("a place after the run's last step has no kept slots") {
  LtdOptions options = small_run();
  Place place;
  const auto fault = [&](std::int64_t step) -> std::string {
    try {
      ltd_kept_at({}, options, {step, 1, 0}, place.context());
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  CHECK(fault(7) == "accepted");
  CHECK(fault(8) == "--kept-at: the run has the steps 0 to 7");
  options.total_steps.reset();
  CHECK(fault(1000) == "accepted");  // without a budget every step may be asked for
  CHECK(fault(std::int64_t{1} << 32) == "--kept-at: steps count to 2^32 - 1");
  options.total_layer_tokens = 1500;
  const TempFolder folder;
  const std::int64_t steps = make(folder.path("out"), options).manifest.steps;
  CHECK(fault(steps - 1) == "accepted");
  CHECK(fault(steps) == "--kept-at: the run has the steps 0 to " + std::to_string(steps - 1));
}

TEST_CASE("shards are no packed rows, and the warning of packed rows says what to do") {
  const TempFolder folder;
  const std::string file = folder.write("data.jsonl", "{}\n");
  CHECK(refusal(small_run(), ErrorCode::bad_data, {file}) ==
        "neither a packed dataset nor a batch plan; make one: shardpack pack " + file + " -L N -o packed, or shardpack batch " +
            file + " --batch-size N -o batches");
  CHECK(refusal(small_run(), ErrorCode::bad_data, {folder.path()}).find("make one: shardpack pack") != std::string::npos);

  const std::string packed = folder.path("packed");
  std::filesystem::create_directory(packed);
  write_tiny_dataset(packed);
  LtdOptions options = small_run();
  options.kept_step = 8;
  options.kept_start = 8;
  const std::vector<std::string> warnings = make(folder.path("out"), options, {packed}).manifest.warnings;
  const auto about = [](const std::string& warning) { return warning.starts_with("ds_config.json: model_type: "); };
  const auto found = std::find_if(warnings.begin(), warnings.end(), about);
  REQUIRE(found != warnings.end());
  CHECK(found->find("cu_seqlens.npy") != std::string::npos);
  CHECK(found->size() < 260);
}

}  // namespace
}  // namespace shardpack
