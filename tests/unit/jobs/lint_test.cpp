// Every rule finds its mistake, at its path, and nothing else; the released examples pass.
#include "shardpack/lint.h"

#include <algorithm>

#include "shardpack/error.h"
#include "support/catch.h"

namespace shardpack {
namespace {

struct Config {
  std::string layer_ids = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", layers = "12", count = "10", mask = "\"attention_mask\"",
              type = "\"decoder\"", kept_start = "128", kept_max = "1024", schedule = "\"fixed_linear\"", ramp = "400",
              step = "8";
  std::string outer = "true", inner = "true", extra, top = "\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2";

  std::string text() const {
    return "{" + top + ", \"data_efficiency\": {\"enabled\": " + outer +
           ", \"data_routing\": {\"enabled\": true, \"random_ltd\": {\"enabled\": " + inner + ", \"total_layer_num\": " + layers +
           ", \"random_ltd_layer_num\": " + count + ", \"random_ltd_layer_id\": " + layer_ids + ", \"model_mask_name\": " + mask +
           ", \"model_type\": " + type + ", \"hidden_state_order\": \"batch_seq_dim\"" + extra +
           ", \"random_ltd_schedule\": {\"min_value\": " + kept_start + ", \"max_value\": " + kept_max +
           ", \"schedule_type\": " + schedule + ", \"schedule_config\": {\"require_steps\": " + ramp +
           ", \"seq_per_step\": " + step + "}}}}}}";
  }
};

LintResult lint_of(const Config& config, const LintOptions& options = {}) { return lint_text(config.text(), "config", options); }

/// The one finding.
Finding only(const Config& config, const LintOptions& options = {}) {
  const LintResult result = lint_of(config, options);
  REQUIRE(result.findings.size() == 1);
  const Finding& finding = result.findings.front();
  CHECK(!finding.consequence.empty());
  CHECK(!finding.fix.empty());
  return finding;
}

const std::string kLtd = "data_efficiency.data_routing.random_ltd.";
const std::string kSchedule = kLtd + "random_ltd_schedule.";

void check(const Finding& finding, Severity severity, const std::string& rule, const std::string& path) {
  CHECK(finding.severity == severity);
  CHECK(finding.rule == rule);
  CHECK(finding.path == path);
}

TEST_CASE("the released examples pass") {
  const LintResult gpt2 = lint_of({});
  CHECK(gpt2.findings.empty());
  CHECK(gpt2.random_ltd);
  Config vision;  // CIFAR: no mask, 197 tokens
  vision.mask = "null";
  vision.kept_start = "32";
  vision.kept_max = "197";
  vision.ramp = "3910";
  vision.top = "\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 32";
  CHECK(lint_of(vision).findings.empty());
  LintOptions loader;
  loader.loader_batch = 128;
  check(only(vision, loader), Severity::warning, "batch", "train_batch_size");
  CHECK(only(vision, loader).consequence.find("0.25-fold") != std::string::npos);
  Config off;
  off.inner = "false";
  off.kept_start = "0";
  CHECK(lint_of(off).findings.empty());
  CHECK(!lint_of(off).random_ltd);
  CHECK(lint_text("{}", "empty", {}).ok());
}

TEST_CASE("errors of the random-LTD section") {
  Config c;
  SECTION("learning rate") {
    c.extra = ", \"layer_token_lr_schedule\": {\"enabled\": true}";
    check(only(c), Severity::error, "lr-schedule", kLtd + "layer_token_lr_schedule.enabled");
    c.extra = ", \"layer_token_lr_schedule\": {\"enabled\": false}";
    CHECK(lint_of(c).findings.empty());
  }
  SECTION("layer count") {
    c.count = "9";
    check(only(c), Severity::error, "layer-count", kLtd + "random_ltd_layer_num");
  }
  SECTION("layer twice") {
    c.layer_ids = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 9]";
    check(only(c), Severity::error, "layer-ids", kLtd + "random_ltd_layer_id");
  }
  SECTION("layer out of range") {
    c.layer_ids = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 12]";
    check(only(c), Severity::error, "layer-ids", kLtd + "random_ltd_layer_id");
  }
  SECTION("schedule type") {
    c.schedule = "\"fixed_root\"";
    check(only(c), Severity::error, "schedule-type", kSchedule + "schedule_type");
  }
  SECTION("encoder without a mask") {
    c.type = "\"encoder\"";
    CHECK(lint_of(c).findings.empty());
    c.mask = "null";
    check(only(c), Severity::error, "mask", kLtd + "model_mask_name");
  }
  SECTION("kernel limit") {
    c.kept_max = "4096";
    check(only(c), Severity::error, "kernel-limit", kSchedule + "max_value");
    c.kept_max = "2048";
    CHECK(lint_of(c).findings.empty());
  }
  SECTION("pipeline") {
    c.top += ", \"pipeline\": {\"stages\": 2}";
    check(only(c), Severity::error, "pipeline", "pipeline");
  }
  SECTION("0 tokens kept") {
    c.kept_start = "8";
    c.step = "16";
    const Finding finding = only(c);
    check(finding, Severity::error, "kept", kSchedule + "min_value");
    CHECK(finding.consequence.find("keep 0 tokens") != std::string::npos);
  }
  SECTION("grows downwards") {
    c.kept_start = "2000";
    check(only(c), Severity::error, "kept", kSchedule + "min_value");
  }
  SECTION("a step of 0") {
    c.step = "0";
    check(only(c), Severity::error, "kept", kSchedule + "schedule_config.seq_per_step");
  }
  SECTION("a ramp of 0") {
    c.ramp = "0";
    check(only(c), Severity::error, "kept", kSchedule + "schedule_config.require_steps");
  }
  SECTION("a number that is none") {
    c.ramp = "\"auto\"";
    check(only(c), Severity::error, "keys", kSchedule + "schedule_config.require_steps");
  }
  SECTION("model type") {
    c.type = "\"decodr\"";
    check(only(c), Severity::error, "choices", kLtd + "model_type");
  }
  SECTION("hidden states that cannot be copied") {
    LintOptions options;
    options.hidden_size = 770;
    check(only(c, options), Severity::error, "hidden-bytes", kLtd + "enabled");
    options.hidden_size = 768;
    CHECK(lint_of(c, options).findings.empty());
  }
}

TEST_CASE("warnings of the random-LTD section") {
  Config c;
  LintOptions options;
  SECTION("below the minimum") {
    c.kept_start = "200";
    c.step = "16";
    const Finding finding = only(c);
    check(finding, Severity::warning, "kept", kSchedule + "min_value");
    CHECK(finding.consequence.find("192") != std::string::npos);
  }
  SECTION("digits in module names") {
    options.layer_prefix = "gpt2.h.";
    CHECK(lint_of(c, options).findings.empty());  // each number is first met in its own layer's name
    options.layer_prefix = "block1.";
    const Finding finding = only(c, options);
    check(finding, Severity::warning, "layer-binding", kLtd + "random_ltd_layer_id");
    CHECK(finding.consequence.find("layer 0") != std::string::npos);
    // A digit binds wrongly when its number is looked for before its layer: the first number is, from layer 0 on; the others
    // are looked for from the layer after the last bound one.
    for (const std::string prefix : {"h2.layer.", "h.2.", "model10x."}) {
      options.layer_prefix = prefix;
      CHECK(lint_of(c, options).findings.empty() == (prefix != "model10x."));
    }
    options.layer_prefix = "h3.layer.";
    c.layer_ids = "[1, 3, 5]";
    c.count = "3";
    CHECK(only(c, options).consequence.find("number 3 is found in the name 'h3.layer.2'") != std::string::npos);
  }
  SECTION("outer switch") {
    c.outer = "false";
    check(only(c), Severity::warning, "switches", "data_efficiency.enabled");
  }
  SECTION("switches that are no truth values are what Python takes them for") {
    c.inner = "1";
    const Finding finding = only(c);
    check(finding, Severity::warning, "switches", kLtd + "enabled");
    CHECK(finding.consequence == "1 is no truth value; the trainer takes it for true");
    c.step = "16";
    c.kept_start = "8";
    CHECK(lint_of(c).findings.front().rule == "kept");  // it is on, and its rules hold
    c.inner = "0";
    CHECK(lint_of(c).findings.empty());
    c = Config{};
    c.outer = "\"false\"";
    CHECK(only(c).consequence == "\"false\" is no truth value; the trainer takes it for true");
    c = Config{};
    c.extra = ", \"layer_token_lr_schedule\": {\"enabled\": 1}";
    CHECK(lint_of(c).findings.front().rule == "lr-schedule");
  }
  SECTION("packed rows") {
    options.packed = true;
    check(only(c, options), Severity::warning, "mask", kLtd + "model_type");
  }
  SECTION("first and last layer") {
    c.layer_ids = "[0, 2, 3, 4, 5, 6, 7, 8, 9, 11]";
    const LintResult result = lint_of(c);
    REQUIRE(result.findings.size() == 2);
    for (const Finding& finding : result.findings) check(finding, Severity::warning, "layer-ids", kLtd + "random_ltd_layer_id");
  }
  SECTION("multiple of 8") {
    c.step = "4";
    check(only(c), Severity::warning, "granularity", kSchedule + "schedule_config.seq_per_step");
  }
  SECTION("ranks") {
    c.top = "\"train_batch_size\": 16, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 2";
    check(only(c), Severity::warning, "rank-seeds", kLtd + "enabled");
  }
  SECTION("a key with a typing mistake") {
    c.extra = ", \"random_ltd_layer_ids\": 3";
    const Finding finding = only(c);
    check(finding, Severity::warning, "keys", kLtd + "random_ltd_layer_ids");
    CHECK(finding.fix == "did you mean random_ltd_layer_id?");
  }
}

TEST_CASE("batches and curricula") {
  Config c;
  c.top = "\"train_batch_size\": 5, \"train_micro_batch_size_per_gpu\": 2";
  check(only(c), Severity::error, "batch", "train_batch_size");
  CHECK(only(c).consequence == "the trainer stops: 5 is not 2 x accumulation x ranks");
  CHECK(only(c).fix == "write 4 or 6");
  // Sizes that do not multiply tell no number of ranks: the one finding is the batch's.
  c.top = "\"train_batch_size\": 60, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2";
  CHECK(only(c).consequence == "the trainer stops: 60 is not 4 x 2 x ranks");
  CHECK(only(c).fix == "write 56 or 64");
  c.top = "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2";
  CHECK(only(c).fix == "write 8");
  // Numbers that are none; "auto" is for whoever fills it in.
  for (const std::string value : {"\"4\"", "4.5", "4.0", "[4]", "true"}) {
    c.top = "\"train_batch_size\": " + value + ", \"train_micro_batch_size_per_gpu\": 2";
    check(only(c), Severity::error, "batch", "train_batch_size");
    CHECK(only(c).consequence == "the trainer computes with a whole number here, and finds " + value);
    c.top = "\"train_batch_size\": 4, \"gradient_accumulation_steps\": " + value;
    check(only(c), Severity::error, "batch", "gradient_accumulation_steps");
  }
  c.top = "\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"";
  CHECK(lint_of(c).findings.empty());
  LintOptions options;
  options.world = 1;
  c.top = "\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 2";
  check(only(c, options), Severity::error, "batch", "train_batch_size");
  CHECK(only(c, options).consequence == "the trainer stops: 8 is not 2 x 2 x 1");
  CHECK(only(c, options).fix == "write 4");
  c.top =
      "\"curriculum_learning\": {\"enabled\": true, \"curriculum_type\": \"seqlen\", \"min_difficulty\": 8, \"max_difficulty\": "
      "64, "
      "\"schedule_type\": \"fixed_cubic\", \"schedule_config\": {}}";
  check(only(c), Severity::error, "curriculum", "curriculum_learning.schedule_type");
}

TEST_CASE("errors come first, and what is no config is refused") {
  Config c;
  c.outer = "false";
  c.count = "9";
  const LintResult result = lint_of(c);
  REQUIRE(result.findings.size() == 2);
  CHECK(result.findings[0].severity == Severity::error);
  CHECK(!result.ok());
  CHECK_THROWS_AS(lint_text("[]", "list", {}), Error);
  CHECK_THROWS_AS(lint_text("{", "half", {}), Error);
}

}  // namespace
}  // namespace shardpack
