#include "cli/arguments.h"

#include <sstream>
#include <tuple>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

Request parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"shardpack"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_arguments(static_cast<int>(argv.size()), argv.data());
}
Settings settings(const std::vector<std::string>& words) { return parse(words).settings; }

std::string refusal(const std::vector<std::string>& words, ErrorCode code = ErrorCode::usage) {
  try {
    check_settings(settings(words));
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

/// Everything that decides a pack, comparable.
auto decisive(const Settings& s) {
  const PackOptions& p = s.pack;
  return std::make_tuple(
      std::make_tuple(p.policy, p.packer, p.packing.row_tokens, p.packing.max_segments, p.packing.nnls_weights),
      std::make_tuple(p.seed, p.order, p.pad_id, p.position_start, p.id_type, p.derived, p.zstd_level),
      std::make_tuple(p.rows_multiple, p.tail, p.partition_tokens, p.shard_bytes, p.force, p.dry_run),
      std::make_tuple(p.read.format, p.read.ids_column, p.read.unit, p.read.null_row, p.read.dtype, p.read.eos_id, p.read.bos_id,
                      p.read.limit, p.read.allow_repeats),
      std::make_tuple(s.sweep.row_tokens, s.sweep.packers, s.sweep.max_segments, s.sweep.overlong, s.csv),
      std::make_tuple(s.output, s.fail_under, s.threads, s.memory_bytes, s.temp_dir, s.json, s.quiet, s.progress));
}

}  // namespace

TEST_CASE("the defaults of the command line are those of the library") {
  const Settings given = settings({"pack", "in"});
  Settings library;
  library.memory_bytes = given.memory_bytes;  // the library leaves it to the caller
  library.sweep = given.sweep;
  CHECK(decisive(given) == decisive(library));

  const SweepOptions swept = settings({"sweep", "in"}).sweep, standard;
  CHECK(swept.packers == standard.packers);
  CHECK(swept.max_segments == standard.max_segments);
  CHECK(swept.overlong == standard.overlong);
}

TEST_CASE("sweep takes lists: commas and repeats add up, and the other commands take one value") {
  const SweepOptions sweep = settings({"sweep", "in", "-L", "512,1024", "a", "--packer=spfhp,none", "-K3,0", "--row-tokens",
                                       "2048", "--overlong", "drop,split"})
                                 .sweep;
  CHECK(sweep.row_tokens == std::vector<Length>{512, 1024, 2048});
  CHECK(sweep.packers == std::vector<std::string>{"spfhp", "none"});
  CHECK(sweep.max_segments == std::vector<std::int32_t>{3, 0});
  CHECK(sweep.overlong == std::vector<Overlong>{Overlong::drop, Overlong::split});
  CHECK(settings({"sweep", "in", "-L", "512", "a", "b"}).inputs == std::vector<std::string>{"in", "a", "b"});

  CHECK(refusal({"sweep", "in", "-L", "512,"}) == "--seq-length: expected a whole number from 1 to 2147483647, found ''");
  CHECK(refusal({"sweep", "in", "-L", "512,1k"}) == "--seq-length: expected a whole number from 1 to 2147483647, found '1k'");
  CHECK(refusal({"sweep", "in", "--overlong", "split,drp"}) ==
        "--overlong: expected error, truncate, split or drop, found 'drp'; did you mean drop?");
  CHECK(refusal({"plan", "in", "-L", "512,1024"}) == "--seq-length: expected one number (lists are for sweep), found '512,1024'");
  CHECK(refusal({"sweep", "in"}) == "how long is a row? Give -L N, the trainer's sequence length");
  CHECK(refusal({"sweep", "in", "-L", "8", "--csv", "--json"}) == "--json or --csv, not both");
  CHECK(refusal({"sweep", "in", "-L", "8", "--csv", "-o", "-"}) == "--csv and -o - both want standard output");

  const TempFolder folder;
  const std::string config =
      folder.write("c.toml", "overlong = \"drop\"\n[sweep]\nseq-length = [512, 1024]\npacker = \"spfhp,none\"\n");
  const SweepOptions listed = settings({"sweep", "in", "--config", config, "-K", "4"}).sweep;
  CHECK(listed.row_tokens == std::vector<Length>{512, 1024});
  CHECK(listed.packers == std::vector<std::string>{"spfhp", "none"});
  CHECK(listed.overlong == std::vector<Overlong>{Overlong::drop});
  CHECK(settings({"plan", "in", "--config", config}).pack.policy.overlong == Overlong::drop);
  folder.write("c.toml", "[plan]\nseq-length = [512, 1024]\n");
  CHECK(refusal({"sweep", "in", "-L", "8", "--config", config}).find("expected one value") != std::string::npos);
}

TEST_CASE("flags fill the settings, in every spelling and on either side of the command and the files") {
  const Settings s = settings(
      {"--threads",  "3",     "-v", "pack", "-L2048",   "a.bin", "--packer=spfhp", "-K",         "16", "b.bin", "--seed", "7",
       "--overlong", "split", "-o", "out",  "--eos-id", "2",     "--append-eos",   "--id-dtype", "u32"});
  CHECK(s.inputs == std::vector<std::string>{"a.bin", "b.bin"});
  CHECK(s.threads == 3);
  CHECK(s.verbose);
  CHECK(s.pack.policy.row_tokens == 2048);
  CHECK(s.pack.packing.row_tokens == 2048);
  CHECK(s.pack.packer == "spfhp");
  CHECK(s.pack.packing.max_segments == 16);
  CHECK(s.pack.seed == 7);
  CHECK(s.pack.policy.overlong == Overlong::split);
  CHECK(s.pack.policy.append_eos);
  CHECK(s.pack.read.eos_id == 2);
  CHECK(s.pack.id_type == IdType::u32);
  CHECK(s.output == "out");
  CHECK(settings({"plan", "x", "--row-tokens", "8"}).pack.policy.row_tokens == 8);
  CHECK(settings({"pack", "x", "--seed", "18446744073709551615"}).pack.seed == ~std::uint64_t{0});
}

TEST_CASE("the last of repeated flags wins") {
  CHECK(settings({"plan", "-L", "8", "-L", "16"}).pack.policy.row_tokens == 16);
  CHECK(settings({"pack", "--force", "--force"}).pack.force);
}

TEST_CASE("files may be named like commands, look like lists, or begin with a dash after --") {
  CHECK(settings({"pack", "scan", "pack", "[ab]", "--", "-x", "--force"}).inputs ==
        std::vector<std::string>{"scan", "pack", "[ab]", "-x", "--force"});
  CHECK_FALSE(settings({"pack", "--", "--force"}).pack.force);
  CHECK(settings({"plan", "-"}).inputs == std::vector<std::string>{"-"});
}

TEST_CASE("--against takes several values and may be repeated") {
  const Settings s = settings({"verify", "packed", "--against", "a", "b", "--json", "--against", "c"});
  CHECK(s.verify.against == std::vector<std::string>{"a", "b", "c"});
  CHECK(s.inputs == std::vector<std::string>{"packed"});
}

TEST_CASE("what is not understood is one line with the nearest name and the page that helps") {
  CHECK(refusal({"pak"}) == "unknown command 'pak'; did you mean pack? see: shardpack -h");
  CHECK(refusal({"zzz"}) == "unknown command 'zzz'; see: shardpack -h");
  CHECK(refusal({"pack", "--packr", "x"}) == "unknown flag --packr; did you mean --packer? see: shardpack pack -h");
  CHECK(refusal({"pack", "--packr=x"}) == "unknown flag --packr; did you mean --packer? see: shardpack pack -h");
  CHECK(refusal({"pack", "-Z"}) == "unknown flag -Z; see: shardpack pack -h");
  CHECK(
      refusal({"verify", "--force"}) ==
      "--force is not for verify; it belongs to scan, plan, sweep, pack, join, batch, unpack and ltd; see: shardpack verify -h");
  CHECK(refusal({"-q"}) == "-q needs a command; see: shardpack -h");
  CHECK(refusal({"plan", "-L"}) == "-L needs a value; see: shardpack plan -h");
  CHECK(refusal({"plan", "--tail", "x"}).find("belongs to pack and batch;") != std::string::npos);
  CHECK(refusal({"pack", "--quantise"}).find("unknown flag --quantise") == 0);
}

TEST_CASE("values are checked where they are given") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"-L", "x"}, "--seq-length: expected a whole number from 1 to 2147483647, found 'x'"},
      {{"-L", "0"}, "--seq-length: expected a whole number from 1 to 2147483647, found '0'"},
      {{"-L", "8.0"}, "--seq-length: expected a whole number from 1 to 2147483647, found '8.0'"},
      {{"-L", "99999999999999999999"},
       "--seq-length: expected a whole number from 1 to 2147483647, found '99999999999999999999'"},
      {{"-K", "-1"}, "--max-segments: expected a whole number from 0 to 2147483647, found '-1'"},
      {{"--eos-id", "4294967296"}, "--eos-id: expected a whole number from 0 to 4294967295, found '4294967296'"},
      {{"--seed", "-3"}, "--seed: expected a whole number from 0, found '-3'"},
      {{"--overlong", "drp"}, "--overlong: expected error, truncate, split or drop, found 'drp'; did you mean drop?"},
      {{"--compress", "gzip"}, "--compress: expected zstd or zstd:LEVEL, found 'gzip'"},
      {{"--compress", "zstd:20"}, "--compress: expected zstd:LEVEL with a level from 1 to 19, found 'zstd:20'"},
      {{"--compress", "zstd3"}, "--compress: expected zstd:LEVEL with a level from 1 to 19, found 'zstd3'"},
      {{"--fail-under", "101"}, "--fail-under: expected a percentage from 0 to 100, found '101'"},
      {{"--fail-under", "nan"}, "--fail-under: expected a percentage from 0 to 100, found 'nan'"},
      {{"--force=perhaps"}, "--force: expected true or false, found 'perhaps'"},
      {{"-o", ""}, "--output: expected a value, found ''"},
  };
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> words{"pack", "in"};
    words.insert(words.end(), flags.begin(), flags.end());
    CHECK(refusal(words) == message);
  }
  CHECK(refusal({"pack", "--packer", "lpfph"}).find("lpfhp") != std::string::npos);
  CHECK(refusal({"pack", "--format", "megatrn"}).find("megatron") != std::string::npos);
  CHECK(refusal({"pack", "--shard-bytes", "5X"}).find("--shard-bytes 5X") != std::string::npos);
  CHECK(settings({"pack", "--compress", "zstd"}).pack.zstd_level == 3);
  CHECK(settings({"pack", "--compress", "zstd:19"}).pack.zstd_level == 19);
  CHECK(settings({"pack", "--fail-under", "99.5%"}).fail_under == 99.5);
  CHECK(settings({"pack", "--partition-tokens", "1Mi"}).pack.partition_tokens == 1 << 20);
}

TEST_CASE("an impossible memory budget names the one that would do") {
  CHECK(refusal({"pack", "--memory", "1M"}, ErrorCode::limit).find("the least that works is 64M") != std::string::npos);
  CHECK(settings({"pack", "--memory", "64M"}).memory_bytes == 64 << 20);
  CHECK(settings({"pack", "--memory", "100%"}).memory_bytes > 64 << 20);
  CHECK(refusal({"pack", "--memory", "101%"}).find("expected a size such as 512M or a share such as 25%") != std::string::npos);
}

TEST_CASE("options that need others, and commands that need options") {
  CHECK(refusal({"pack", "in", "-o", "out"}) == "how long is a row? Give -L N, the trainer's sequence length");
  CHECK(refusal({"plan", "in", "-L", "8", "--append-eos"}) == "--append-eos needs --eos-id N");
  CHECK(refusal({"plan", "in", "-L", "8", "--prepend-bos", "--eos-id", "1"}) == "--prepend-bos needs --bos-id N");
  CHECK(refusal({"pack", "in", "-L", "8"}) == "where to? Give -o FOLDER");
  CHECK(refusal({"pack", "in", "-L", "8", "-o", "-"}).find("is a folder") != std::string::npos);
  CHECK(refusal({"pack", "-L", "8", "-o", "out"}) == "no input; give files, folders or globs");
  CHECK(refusal({"verify", "-"}).find("standard input") == 0);
  CHECK(refusal({"plan", "-", "-L", "8"}) == "accepted");
  CHECK(refusal({"plan", "in", "-L", "8", "-o", "-", "--json"}) == "--json and -o - both want standard output");
  CHECK(refusal({"verify", "a", "b"}) == "one path at a time, found 2 of them");
  CHECK(refusal({"scan", "in", "--depfile", "d"}) == "--depfile needs a target: give --stamp FILE or -o");
  CHECK(refusal({"scan", "in", "-q", "-v"}) == "-q or -v, not both");
  CHECK(refusal({"inspect", "in", "--row", "1", "--sequence", "2"}) == "--row or --sequence, not both");
  CHECK(refusal({"formats"}) == "accepted");
}

TEST_CASE("a page is shown whatever else is wrong") {
  CHECK(settings({"pack", "--packr", "-h"}).page == Page::brief);
  CHECK(settings({"pack", "-L", "x", "-h", "--help"}).page == Page::full);
  CHECK(settings({"--help"}).page == Page::full);
  CHECK(settings({"help"}).page == Page::full);
  CHECK_FALSE(parse({"help"}).has_command);
  CHECK(settings({"help", "pack"}).page == Page::full);
  CHECK(settings({"help", "pack"}).command == Command::pack);
  CHECK(refusal({"help", "pak"}) == "unknown command 'pak'; did you mean pack? see: shardpack -h");
  CHECK(settings({"pack", "help"}).inputs == std::vector<std::string>{"help"});
  CHECK(settings({"--version"}).page == Page::version);
  CHECK_FALSE(parse({}).has_command);
}

TEST_CASE("a config file stands between defaults and flags, a section above the top") {
  const TempFolder folder;
  folder.write("pack.toml",
               "# comment\nthreads = 2\nseed = 5\noverlong = \"truncate\"\n\n[pack]\nseq-length = 2048\nseed = 6\nforce = true\n"
               "order = 'input'\n\n[plan]\nseq-length = 512\n\n[verify]\nagainst = [\"a\", \"b\"]\n");
  const std::string config = folder.path("pack.toml");
  const Settings s = settings({"pack", "in", "--config", config, "--overlong", "drop"});
  CHECK(s.threads == 2);
  CHECK(s.pack.seed == 6);
  CHECK(s.pack.policy.row_tokens == 2048);
  CHECK(s.pack.policy.overlong == Overlong::drop);
  CHECK(s.pack.force);
  CHECK(s.pack.order == RowOrder::input);
  CHECK(settings({"plan", "in", "--config", config}).pack.policy.row_tokens == 512);
  CHECK(settings({"sweep", "in", "--config", config}).pack.seed == 5);
  CHECK(settings({"verify", "p", "--config", config}).verify.against == std::vector<std::string>{"a", "b"});
  CHECK(settings({"verify", "p", "--config", config, "--against", "c"}).verify.against == std::vector<std::string>{"c"});
}

TEST_CASE("a config file is checked as a whole, and errors name it") {
  const TempFolder folder;
  const std::string config = folder.path("c.toml");
  const auto refused = [&](const std::string& text) {
    folder.write("c.toml", text);
    const std::string message = refusal({"pack", "in", "-L", "8", "-o", "out", "--config", config});
    const std::string start = config + ": ";
    return message.compare(0, start.size(), start) == 0 ? message.substr(start.size()) : message;
  };
  CHECK(refused("packr = 'spfhp'\n") == "packr: unknown option; did you mean packer?");
  CHECK(refused("[pak]\nseed = 1\n") == "pak.seed: unknown section; did you mean [pack]?");
  CHECK(refused("[verify]\npacker = 'ffd'\n") == "verify.packer: unknown option");
  CHECK(refused("config = 'x.toml'\n") == "config: unknown option");
  CHECK(refused("seed = [1, 2]\n") == "seed: expected one value");
  CHECK(refused("seed = x\n") == "--seed: expected a whole number from 0, found 'x'");
  CHECK(refused("[plan]\nseq-length = 3\n") == "accepted");
  CHECK(refusal({"pack", "in", "--config", folder.path("none.toml")}, ErrorCode::io).find("none.toml") != std::string::npos);
}

TEST_CASE("--print-config gives a file that gives the same settings again") {
  const TempFolder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"pack", "in"},
        {"pack",     "in",          "-L",           "2048",     "-o",       "a \"b\" c",    "--seed",       "9",
         "--order",  "by-strategy", "--compress",   "zstd:7",   "--memory", "1G",           "--no-derived", "--force",
         "--eos-id", "0",           "--append-eos", "--format", "jsonl",    "--fail-under", "99.5",         "-q"},
        {"plan", "in", "--packer", "ffd", "--nnls-weights", "tokens", "--segment-multiple", "4"},
        {"plan", "in", "--cp", "4", "--tp", "2", "--sp"},
        {"sweep", "in", "-L", "512", "-L", "1024,2048", "--packer", "ffd,none", "--csv"}}) {
    const Request request = parse(words);
    folder.write("printed.toml", config_text(request.settings.command, request.given));
    CHECK(decisive(settings({words[0], "in", "--config", folder.path("printed.toml")})) == decisive(request.settings));
  }
}

TEST_CASE("--cp, --tp and --sp come to a segment multiple") {
  CHECK(settings({"pack", "in"}).pack.policy.segment_multiple == 1);
  CHECK(settings({"plan", "in", "--cp", "2"}).pack.policy.segment_multiple == 4);
  CHECK(settings({"pack", "in", "--cp", "2", "--tp", "8", "--sp"}).pack.policy.segment_multiple == 16);
  CHECK(settings({"pack", "in", "--tp", "8"}).pack.policy.segment_multiple == 1);
  CHECK(settings({"pack", "in", "--segment-multiple", "32", "--cp", "2"}).pack.policy.segment_multiple == 32);
  CHECK(
      refusal({"pack", "in", "-L", "64", "-o", "out", "--segment-multiple", "2", "--cp", "2"}).find("leave it out, or give 4") !=
      std::string::npos);
  CHECK(refusal({"pack", "in", "--cp", "0"}).find("--cp: expected a whole number") == 0);
}

TEST_CASE("--files-from adds inputs, one a line") {
  const TempFolder folder;
  folder.write("list", "b c.bin\r\n\n#d.bin\ne.bin");
  CHECK(settings({"scan", "a.bin", "--files-from", folder.path("list")}).inputs ==
        std::vector<std::string>{"a.bin", "b c.bin", "#d.bin", "e.bin"});
}
