#include "cli/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/memory.h"
#include "io/column_choice.h"
#include "shardpack/error.h"
#include "shardpack/formats.h"
#include "shardpack/packer.h"
#include "shardpack/presets.h"

namespace shardpack {

// ---- commands ---------------------------------------------------------------------------------------------------------------
namespace {

constexpr std::array<CommandInfo, 13> kCommands{{
    {Command::scan,
     "scan",
     "lengths, token id range, fingerprint, and what is wrong with the data",
     "INPUT... [options]",
     {"scan shards/", "scan train-*.bin -o lengths.csv --json"}},
    {Command::plan,
     "plan",
     "how a histogram or shards would be packed: strategies, rows, bound; writes no data",
     "INPUT... -L N [options]",
     {"plan lengths.csv -L 2048 -o plan.json", "plan shards/ -L 8192 --packer spfhp -K 16 --json"}},
    {Command::sweep,
     "sweep",
     "what if? packers x row lengths x segment limits x over-long policies in one table",
     "INPUT... -L N,N,... | --batching --batch-size N [options]",
     {"sweep lengths.csv -L 512,1024,2048,4096", "sweep shards/ -L 2048,8192 --packer auto,nnlshp,concat -K 0,3,8 --csv"},
     "The choice to take has a *: of all that lose tokens, cut sequences and fill rows within 0.5 % of the\n"
     "best, the shortest rows, then the lowest -K, then the fewest rows. -v adds a line for each choice."},
    {Command::pack,
     "pack",
     "write shards as full rows with segment and position ids (the main job)",
     "INPUT... -L N -o FOLDER [options]",
     {"pack shards/ -L 2048 -o packed/", "pack 'train-*.jsonl.gz' -L 8192 -o packed/ --overlong split --eos-id 2 --append-eos"}},
    {Command::join,
     "join",
     "publish what the parts of a distributed pack have made (pack --part I/N)",
     "FOLDER [options]",
     {"join packed/", "join packed/ --force --json"},
     "FOLDER is the parts' -o. All of it is read once and compared with its hashes; a part that is\n"
     "missing, unfinished, damaged or of another run is named, with what mends it (exit 3). The bytes\n"
     "are those of one machine's pack. See docs/cluster.md."},
    {Command::batch,
     "batch",
     "plan uniform-length batches with dynamic padding, and which rank takes which",
     "INPUT... --batch-size N -o FOLDER [options]",
     {"batch shards/ --batch-size 64 --world 8 --epochs 3 -o batches/",
      "batch lengths.npy --strategy tokens:8192 --pad-multiple 8 --max-length 512 -o batches/"}},
    {Command::verify,
     "verify",
     "prove that a packed dataset or any plan is whole and true; exit 1 when it is not",
     "FOLDER|plan.json [options]",
     {"verify packed/", "verify packed/ --against shards/"},
     "It takes a packed dataset, a plan, a batch plan or a random-LTD folder."},
    {Command::inspect,
     "inspect",
     "one screen on a packed dataset, a plan or a shard; a row as a picture",
     "PATH [options]",
     {"inspect packed/", "inspect packed/ --row 7"},
     "It takes a packed dataset, a plan, a batch plan, a random-LTD folder, a histogram or a shard."},
    {Command::unpack,
     "unpack",
     "the sources of a packed dataset back, in their own order",
     "FOLDER -o FOLDER [options]",
     {"unpack packed/ -o sources/", "unpack packed/ -o sources/ --as npy"},
     "A file for each source file, under its relative name. What pack's options removed is missing; the\n"
     "summary and removed.csv say what that is."},
    {Command::ltd,
     "ltd",
     "random layerwise token dropping: schedule, LayerToken learning rate, kept indices",
     "[DATASET|BATCHES [DATASET]] [options] -o FOLDER",
     {"ltd --deepspeed ds_config.json --total-tokens 300e9 --peak-lr 2e-4 -o ltd/",
      "ltd packed/ --deepspeed ds_config.json --total-steps 12000 --window 0:100 -o ltd/"},
     "DATASET is a packed dataset, BATCHES a batch plan; a plan of a dataset's rows needs both."},
    {Command::lint,
     "lint",
     "mistakes in a DeepSpeed config's random-LTD and batch settings; exit 1 on errors",
     "ds_config.json [options]",
     {"lint ds_config.json", "lint ds_config.json --packed --world 8 --loader-batch 512"}},
    {Command::formats,
     "formats",
     "input formats, packers and output presets; how to train with each",
     "[options]",
     {"formats", "formats --for trl"}},
    {Command::version, "version", "versions of shardpack and everything linked", "[options]", {"version", "version --json"}},
}};

}  // namespace

std::span<const CommandInfo> commands() { return kCommands; }
const CommandInfo& info(Command command) { return kCommands[static_cast<std::size_t>(command)]; }

std::string_view title(Section section) {
  constexpr std::array<std::string_view, 10> kTitles{"Rows",   "Training", "Batches", "Sequences", "Random-LTD",
                                                     "Output", "Reading",  "Checks",  "Run",       "Shared"};
  return kTitles[static_cast<std::size_t>(section)];
}

// ---- values -----------------------------------------------------------------------------------------------------------------
namespace {

/// \param meant  the nearest of the right values, or ""
[[noreturn]] void refuse(const OptionValue& value, std::string_view expected, const std::string& meant = {}) {
  throw Error(ErrorCode::usage, fmt::format("--{}: expected {}, found '{}'{}", value.option.name(), expected, value.text(),
                                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

constexpr std::int64_t kMaxLength = std::numeric_limits<Length>::max();
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxId = std::numeric_limits<std::uint32_t>::max();

template <class Number>
Number whole(const OptionValue& value, Number least, Number most) {
  const std::string& text = value.text();
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && end == text.data() + text.size() && number >= least && number <= most) return number;
  if (value.option.list.commands != 0 && text.find(',') != std::string::npos) {  // where it is a list there is no comma left
    refuse(value, "one number (lists are for sweep)");
  }
  if (most == std::numeric_limits<Number>::max()) refuse(value, fmt::format("a whole number from {}", least));
  refuse(value, fmt::format("a whole number from {} to {}", least, most));
}
std::int64_t count(const OptionValue& value, std::int64_t least = 0) { return whole(value, least, kMaxCount); }
std::int64_t token_id(const OptionValue& value) { return whole(value, std::int64_t{0}, kMaxId); }
Length length(const OptionValue& value, std::int64_t least) { return static_cast<Length>(whole(value, least, kMaxLength)); }

/// 0 = auto.
std::int64_t rows_multiple(const OptionValue& value) {
  if (value.text() == "auto") return 0;
  if (value.text().find_first_not_of("0123456789") != std::string::npos) refuse(value, "a whole number from 1, or auto");
  return count(value, 1);
}

double percent(const OptionValue& value) {
  std::string_view text = value.text();
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (problem != std::errc{} || end != text.data() + text.size() || !(number >= 0 && number <= 100)) {
    refuse(value, "a percentage from 0 to 100");
  }
  return number;
}

std::int64_t size(const OptionValue& value, std::int64_t least) {
  const std::int64_t number = parse_size(value.text(), "--" + value.option.name());
  if (number < least) refuse(value, fmt::format("a size of at least {}", least));
  return number;
}

/// The place of the value among the option's choices "a|b|c".
std::size_t choice(const OptionValue& value) {
  std::vector<std::string> choices;
  std::string_view rest = value.option.value;
  for (std::size_t bar = 0; bar != std::string_view::npos; rest.remove_prefix(bar == std::string_view::npos ? 0 : bar + 1)) {
    bar = rest.find('|');
    choices.emplace_back(rest.substr(0, bar));
  }
  const auto found = std::find(choices.begin(), choices.end(), value.text());
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  const std::string meant = nearest(value.text(), choices);
  const std::string last = choices.back();
  choices.pop_back();
  refuse(value, fmt::format("{} or {}", fmt::join(choices, ", "), last), meant);
}

/// The elements of a list, or the one value of an option that is none in this command.
template <class Understand>
auto each(const OptionValue& value, Understand understand) {
  std::vector<decltype(understand(value))> values;
  for (const std::string& element : value.texts) {
    const std::vector<std::string> one{element};
    values.push_back(understand({.option = value.option, .texts = one}));
  }
  return values;
}

/// "3M" as digits; "" for what is no such thing.
std::string without_unit(const std::string& text) {
  constexpr std::string_view kUnits = "kKmMbBgGtT";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const std::string digits = text.substr(0, text.size() - std::min<std::size_t>(text.size(), 1));
  if (unit == std::string_view::npos || digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return {};
  constexpr std::array<std::size_t, 5> kZeros{3, 6, 9, 9, 12};
  return digits + std::string(kZeros[unit / 2], '0');
}

/// A count that may be long: digits, or a whole number in scientific notation.
std::int64_t amount(const OptionValue& value, std::int64_t least) {
  const std::string& text = value.text();
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) return count(value, least);
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr double kExact = 9007199254740992;  // 2^53: every whole number up to here
  const bool whole = text.find_first_of("eE") != std::string::npos && problem == std::errc{} &&
                     end == text.data() + text.size() && number >= 0 && number <= kExact &&
                     number == static_cast<double>(static_cast<std::int64_t>(number));
  if (!whole || number < static_cast<double>(least))
    refuse(value, fmt::format("a whole number from {}, as in 300000000 or 3e8", least), without_unit(text));
  return static_cast<std::int64_t>(number);
}

double rate(const OptionValue& value) {
  const std::string& text = value.text();
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size() || !(number >= 0 && number <= 1e6))
    refuse(value, "a rate from 0, as in 2e-4");
  return number;
}

/// Whole numbers from 0 with `separator` between them; `many` of them unless that is 0.
std::vector<std::int64_t> numbers(const OptionValue& value, std::string_view text, char separator, std::size_t many,
                                  std::string_view expected) {
  std::vector<std::int64_t> all;
  for (const char *at = text.data(), *const end = at + text.size();;) {
    std::int64_t number = 0;
    const auto [stop, problem] = std::from_chars(at, end, number);
    if (problem != std::errc{} || number < 0 || (stop != end && *stop != separator)) refuse(value, expected);
    all.push_back(number);
    if (stop == end) break;
    at = stop + 1;
  }
  if (many != 0 && all.size() != many) refuse(value, expected);
  return all;
}
std::vector<std::int64_t> numbers(const OptionValue& value, char separator, std::size_t many = 0) {
  return numbers(value, value.text(), separator, many, value.option.value);
}

Curriculum curriculum(const OptionValue& value) {
  constexpr std::string_view kLinear = "fixed_linear:START:MAX:STEP:STEPS", kRoot = "fixed_root:START:MAX:STEP:STEPS:DEGREE",
                             kDiscrete = "fixed_discrete:LENGTH,...:LAST_STEP,...";
  const std::string_view text = value.text(), name = text.substr(0, text.find(':'));
  const std::string_view rest = name.size() < text.size() ? text.substr(name.size() + 1) : std::string_view();
  Curriculum result;
  if (name == "fixed_discrete") {
    result.kind = CurriculumKind::fixed_discrete;
    const std::size_t colon = rest.find(':');
    result.lengths = numbers(value, rest.substr(0, colon), ',', 0, kDiscrete);
    if (colon != std::string_view::npos) result.until = numbers(value, rest.substr(colon + 1), ',', 0, kDiscrete);
    return result;
  }
  const bool root = name == "fixed_root";
  if (!root && name != "fixed_linear") refuse(value, fmt::format("{}, {} or {}", kLinear, kRoot, kDiscrete));
  const std::vector<std::int64_t> given = numbers(value, rest, ':', root ? 5 : 4, root ? kRoot : kLinear);
  result.kind = root ? CurriculumKind::fixed_root : CurriculumKind::fixed_linear;
  result.start = given[0];
  result.max = given[1];
  result.granularity = given[2];
  result.ramp_steps = given[3];
  if (root) result.root_degree = given[4];
  return result;
}

bool on(const OptionValue& value) {
  if (value.text() == "true") return true;
  if (value.text() == "false") return false;
  refuse(value, "true or false");
}

std::string text(const OptionValue& value) {
  if (value.text().empty()) refuse(value, "a value");
  return value.text();
}

std::string format_name(const OptionValue& value) {
  std::vector<std::string> names;
  for (const FormatSummary& format : input_format_summaries()) names.emplace_back(format.name);
  if (std::find(names.begin(), names.end(), value.text()) != names.end()) return value.text();
  refuse(value, "a name that 'shardpack formats' lists", nearest(value.text(), names));
}

int zstd_level(const OptionValue& value) {
  constexpr std::string_view kName = "zstd";
  std::string_view rest = value.text();
  if (rest.substr(0, kName.size()) != kName) refuse(value, "zstd or zstd:LEVEL");
  rest.remove_prefix(kName.size());
  if (rest.empty()) return 3;  // the library's own default
  int level = 0;
  const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), level);
  if (rest[0] != ':' || problem != std::errc{} || end != rest.data() + rest.size() || level < 1 || level > 19) {
    refuse(value, "zstd:LEVEL with a level from 1 to 19");
  }
  return level;
}

std::optional<IdType> id_type(const OptionValue& value) {
  constexpr std::array<std::optional<IdType>, 3> kTypes{std::nullopt, IdType::u16, IdType::u32};
  return kTypes[choice(value)];
}
IdType raw_type(const OptionValue& value) {
  constexpr std::array<IdType, 5> kTypes{IdType::u8, IdType::u16, IdType::u32, IdType::i32, IdType::i64};
  return kTypes[choice(value)];
}

/// "64,128,512", ascending.
std::vector<Length> ascending_lengths(const OptionValue& value) {
  std::vector<Length> lengths;
  const std::string& text = value.text();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    Length number = 0;
    const auto [parsed, problem] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (problem != std::errc{} || parsed != text.data() + end || number <= (lengths.empty() ? 0 : lengths.back())) {
      refuse(value, "ascending lengths, such as 64,128,512");
    }
    lengths.push_back(number);
    begin = end + 1;
  }
  return lengths;
}

/// pack and batch fill the last step in ways of their own; check_settings() refuses the other's.
void set_tail(Settings& settings, const OptionValue& value) {
  settings.tail = value.text();
  constexpr std::array<std::optional<Tail>, 4> kPackTails{Tail::repeat, Tail::fill, Tail::drop, std::nullopt};
  constexpr std::array<std::optional<BatchTail>, 4> kBatchTails{BatchTail::repeat, std::nullopt, BatchTail::drop,
                                                                BatchTail::short_step};
  const std::size_t chosen = choice(value);
  settings.pack.tail = kPackTails[chosen].value_or(Tail::repeat);
  settings.batch.plan.tail = kBatchTails[chosen].value_or(BatchTail::short_step);
}

/// pack and unpack write different files; check_settings() refuses what the other writes.
void set_as(Settings& settings, const OptionValue& value) {
  settings.as = value.text();
  constexpr std::array<std::optional<Container>, 6> kContainers{Container::npy,      Container::arrow, Container::parquet,
                                                                Container::megatron, Container::index, std::nullopt};
  constexpr std::array<std::optional<UnpackFormat>, 6> kUnpacked{
      UnpackFormat::npy, UnpackFormat::arrow, UnpackFormat::parquet, UnpackFormat::megatron, std::nullopt, UnpackFormat::jsonl};
  const std::size_t chosen = choice(value);
  settings.pack.container = kContainers[chosen];
  settings.unpack_format = kUnpacked[chosen].value_or(UnpackFormat::jsonl);
}

// ---- options ----------------------------------------------------------------------------------------------------------------
constexpr CommandSet kScan = set_of(Command::scan), kPlan = set_of(Command::plan), kSweep = set_of(Command::sweep),
                     kPack = set_of(Command::pack), kJoin = set_of(Command::join), kBatch = set_of(Command::batch),
                     kVerify = set_of(Command::verify), kInspect = set_of(Command::inspect), kUnpack = set_of(Command::unpack),
                     kLtd = set_of(Command::ltd), kLint = set_of(Command::lint), kFormats = set_of(Command::formats);
constexpr CommandSet kOnePath = kJoin | kVerify | kInspect | kUnpack | kLint;
constexpr CommandSet kPlanned = kPlan | kSweep | kPack, kReaders = kScan | kPlanned | kBatch, kBatching = kBatch | kSweep,
                     kWorkers = kReaders | kOnePath | kLtd, kAll = kWorkers | kFormats | set_of(Command::version), kNone = 0;

using S = Settings;
using V = OptionValue;

// An entry is three lines: how it is typed and where it belongs, what it means, what it sets.
// clang-format off
constexpr Option kOptions[] = {
    // ---- rows
    {"-L,--seq-length,--row-tokens", "N", nullptr, Section::rows, kPlanned | kLtd, kPlanned | kLtd, Kind::plain,
     "slots in a row: the trainer's sequence length; required",
     [](S& s, const V& v) {
       s.sweep.row_tokens = each(v, [](const V& one) { return length(one, 1); });
       s.pack.policy.row_tokens = s.pack.packing.row_tokens = s.sweep.row_tokens.back();
       s.ltd.seq_length = s.pack.policy.row_tokens;
     },
     {kSweep, nullptr},
     {{kSweep, "slots in a row: the trainer's sequence length; required without --batching"},
      {kPack, "slots in a row: the trainer's sequence length; required without --plan"},
      {kLtd, "slots in a row: the trainer's sequence length; default: the dataset's, or of a batch plan's longest batch, or "
             "--kept-max"}}},
    {"--packer", "NAME", "auto", Section::rows, kPlanned, kPlanned, Kind::plain,
     "how rows are chosen: auto, optimal, nnlshp, spfhp, lpfhp, bfd, ffd, sorted-greedy, none; in input order: sequential, concat "
     "(see 'shardpack formats')",
     [](S& s, const V& v) {
       s.sweep.packers = each(v, [](const V& one) { return std::string(find_packer(one.text()).name); });
       s.pack.packer = s.sweep.packers.back();
     },
     {kSweep, "auto,lpfhp,spfhp,none,sequential,concat"}},
    {"-K,--max-segments", "N", "0", Section::rows, kPlanned, kPlanned, Kind::plain,
     "at most N segments a row; 0 = no limit (nnlshp: 3)",
     [](S& s, const V& v) {
       s.sweep.max_segments = each(v, [](const V& one) { return length(one, 0); });
       s.pack.packing.max_segments = s.sweep.max_segments.back();
     },
     {kSweep, "0"}},
    {"--segment-multiple", "M", nullptr, Section::rows, kPlanned, kNone, Kind::plain,
     "each segment starts on a multiple of M slots, and M divides the row length; 1, or what --cp, --tp and --sp need",
     [](S& s, const V& v) { s.segment_multiple = length(v, 1); }},
    {"--cp", "N", nullptr, Section::rows, kPlanned, kNone, Kind::plain,
     "context parallel devices of the trainer: segments take a multiple of 2 N slots",
     [](S& s, const V& v) { s.parallelism.context = length(v, 1); }},
    {"--tp", "N", nullptr, Section::rows, kPlanned, kNone, Kind::plain,
     "tensor parallel devices of the trainer; matters with --sp",
     [](S& s, const V& v) { s.parallelism.tensor = length(v, 1); }},
    {"--sp", nullptr, nullptr, Section::rows, kPlanned, kNone, Kind::plain,
     "the trainer is sequence parallel: segments take a multiple of --cp times --tp slots",
     [](S& s, const V& v) { s.parallelism.sequence = on(v); }},
    {"--plan-effort", "fast|normal|thorough", "normal", Section::rows, kPlanned, kNone, Kind::plain,
     "how hard optimal tries, and when auto turns to it",
     [](S& s, const V& v) { s.pack.packing.effort = static_cast<PlanEffort>(choice(v)); }},
    {"--keep-together", "N", "1", Section::rows, kPlanned, kNone, Kind::plain,
     "every N consecutive records of a file share a row, side by side and never cut: pairs, or the turns of a dialogue",
     [](S& s, const V& v) { s.pack.policy.keep_together = length(v, 1); }},
    {"--group-column", "C", nullptr, Section::rows, kScan | kPlan | kPack, kPlan | kPack, Kind::plain,
     "rows never mix two values of C: a field of JSON lines, or X.C.npy beside X, a whole number for each sequence",
     [](S& s, const V& v) { s.pack.read.group_column = text(v); },
     {},
     {{kScan, "count sequences for each value of C: a field of JSON lines, or X.C.npy beside X, a whole number for each sequence"}},
     {kSweep, "run plan --group-column for each -L"}},
    {"--plan", "FILE|FOLDER", nullptr, Section::rows, kPack, kNone, Kind::plain,
     "use this plan, or the plan-00000.json, ... of this folder (such as a packed dataset), instead of planning",
     [](S& s, const V& v) { s.pack.plan = text(v); }},
    {"--nnls-weights", "paper|tokens", "paper", Section::rows, kPlanned, kNone, Kind::plain,
     "weighting of nnlshp: the published one, or by tokens",
     [](S& s, const V& v) { s.pack.packing.nnls_weights = static_cast<NnlsWeights>(choice(v)); }},

    // ---- training
    {"--world", "N", nullptr, Section::training, kPack | kBatching | kLtd | kLint, kPack | kBatch | kLtd | kLint, Kind::plain,
     "data-parallel ranks; default 1",
     [](S& s, const V& v) {
       s.pack.shape.world = s.batch.plan.world = whole(v, std::int64_t{1}, kMaxRanks);
       s.ltd.world = s.lint.world = s.pack.shape.world;
     },
     {},
     {{kBatching, "data-parallel ranks, which get equal numbers of batches, of near-equal cost; default 1"}}},
    {"--accumulation", "N", nullptr, Section::training, kPack | kBatching | kLtd, kLtd, Kind::plain,
     "micro-batches a rank takes in an optimizer step; default 1",
     [](S& s, const V& v) {
       s.pack.shape.accumulation = s.batch.plan.accumulation = whole(v, std::int64_t{1}, kMaxRanks);
       s.ltd.accumulation = s.pack.shape.accumulation;
     }},
    {"--micro-batch", "N", nullptr, Section::training, kPack | kLtd, kPack | kLtd, Kind::plain,
     "rows of a rank and micro-step",
     [](S& s, const V& v) {
       s.pack.shape.micro_batch = whole(v, std::int64_t{1}, kMaxRanks);
       s.ltd.micro_batch = s.pack.shape.micro_batch;
     },
     {},
     {{kPack, "rows of a rank and micro-step; default 1"}}},
    {"--global-batch", "N", nullptr, Section::training, kLtd, kNone, Kind::plain,
     "rows of an optimizer step: the product of the three",
     [](S& s, const V& v) { s.ltd.global_batch = count(v, 1); }},

    // ---- batches
    {"--strategy", "NAME", "sorted", Section::batches, kBatch, kBatch, Kind::plain,
     "how sequences share a batch: sorted, dynamic, fixed, gist, mega:M, pool:M, buckets:B1,B2,... or buckets:auto:N, tokens:T, "
     "quad:T:Q (see 'shardpack formats')",
     [](S& s, const V& v) { s.batch.plan.strategy = parse_batch_strategy(v.text()); }},
    {"--batch-size", "N", nullptr, Section::batches, kBatching, kBatch, Kind::plain,
     "sequences in a batch, on one rank; not with tokens and quad, whose budget decides",
     [](S& s, const V& v) { s.batch.plan.batch_size = whole(v, std::int64_t{1}, kMaxLength); }},
    {"--max-batch", "N", "0", Section::batches, kBatch, kNone, Kind::plain,
     "at most N sequences in a batch under a budget; 0 = no limit",
     [](S& s, const V& v) { s.batch.plan.max_batch = whole(v, std::int64_t{0}, kMaxLength); }},
    {"--size-multiple", "N", "1", Section::batches, kBatch, kNone, Kind::plain,
     "batches larger than N hold a multiple of N sequences",
     [](S& s, const V& v) { s.batch.plan.size_multiple = whole(v, std::int64_t{1}, kMaxLength); }},
    {"--pad-multiple", "N", "1", Section::batches, kBatching, kBatch, Kind::plain,
     "padded lengths are rounded up to a multiple of N",
     [](S& s, const V& v) { s.batch.plan.pad.multiple = length(v, 1); }},
    {"--shapes", "A,B,C", nullptr, Section::batches, kBatching, kNone, Kind::plain,
     "padded lengths are rounded up to one of these, for compilers that want few shapes",
     [](S& s, const V& v) { s.batch.plan.pad.shapes = ascending_lengths(v); }},
    {"--epochs", "N", "1", Section::batches, kBatch, kBatch, Kind::plain,
     "epochs to plan: ties, cuts and the order of groups are drawn anew in each",
     [](S& s, const V& v) { s.batch.epochs = whole(v, std::int64_t{1}, std::int64_t{100'000}); }},
    {"--batching", nullptr, nullptr, Section::batches, kSweep, kSweep, Kind::plain,
     "padding, waiting ranks and time of every batching strategy instead of rows; needs --batch-size, and no -L",
     [](S& s, const V& v) { s.batching = on(v); }},
    {"--write-shards", "padded|ragged", nullptr, Section::batches, kBatch, kBatch, Kind::plain,
     "write the batches themselves, each in one piece, every epoch's: sequences padded to the batch's length, or one after the other",
     [](S& s, const V& v) { s.batch.write_shards.emplace().layout = static_cast<BatchLayout>(choice(v)); }},
    {"--oom-first", nullptr, nullptr, Section::batches, kBatch, kNone, Kind::plain,
     "begin each epoch with the costliest group, so that memory runs out at once or never",
     [](S& s, const V& v) { s.batch.plan.oom_first = on(v); }},
    {"--calibrate", "FILE", nullptr, Section::batches, kBatching, kNone, Kind::plain,
     "measured times as CSV (batch_size,pad_length,batches,seconds): what predictions are made from",
     [](S& s, const V& v) { s.calibrate = text(v); }},

    // ---- sequences
    {"--max-length", "N", "0", Section::sequences, kBatching, kBatch, Kind::plain,
     "the longest sequence that a batch takes, in tokens, and what --strategy fixed pads to; 0 = no limit",
     [](S& s, const V& v) { s.max_length = length(v, 0); }},
    {"--overlong", "error|truncate|split|drop", "error", Section::sequences, kPlanned | kBatch, kPlanned | kBatch, Kind::plain,
     "sequences longer than a row; error says how many there are and what each other choice costs",
     [](S& s, const V& v) {
       s.sweep.overlong = each(v, [](const V& one) { return static_cast<Overlong>(choice(one)); });
       s.pack.policy.overlong = s.sweep.overlong.back();
     },
     {kSweep, nullptr},
     {{kSweep, "sequences longer than a row; default split, and drop with --keep-together. With --batching: longer than --max-length; "
               "default error, never split"},
      {kBatch, "sequences longer than --max-length: error says how many there are and what truncate and drop cost; a batch holds no "
               "pieces, so not split"}}},
    {"--truncate-side", "end|start", "end", Section::sequences, kScan | kPlanned | kBatch, kNone, Kind::plain,
     "the side that --overlong truncate cuts off",
     [](S& s, const V& v) { s.pack.policy.truncate_side = static_cast<TruncateSide>(choice(v)); },
     {},
     {{kScan, "with --drop-unlabeled: the side that pack will cut off"}}},
    {"--split-min-tokens", "N", "0", Section::sequences, kPlanned, kNone, Kind::plain,
     "--overlong split drops a last piece with fewer tokens",
     [](S& s, const V& v) { s.pack.policy.split_min_tokens = length(v, 0); }},
    {"--min-tokens", "N", "0", Section::sequences, kPlanned | kBatch, kNone, Kind::plain,
     "drop sequences with fewer tokens",
     [](S& s, const V& v) { s.pack.policy.min_tokens = length(v, 0); }},
    {"--drop-unlabeled", nullptr, nullptr, Section::sequences, kScan | kPlan | kPack, kNone, Kind::plain,
     "drop sequences of which no token that is left takes part in the loss, by labels (-100), a mask (0) or weights of masked tokens (0)",
     [](S& s, const V& v) { s.pack.policy.drop_unlabeled = on(v); },
     {},
     {{kScan, "with --save: note where each sequence's loss lies, for pack --drop-unlabeled"}}},
    {"--append-eos", nullptr, nullptr, Section::sequences, kPlanned, kNone, Kind::plain,
     "end every sequence in --eos-id, where it does not already",
     [](S& s, const V& v) { s.pack.policy.append_eos = on(v); }},
    {"--prepend-bos", nullptr, nullptr, Section::sequences, kPlanned, kNone, Kind::plain,
     "begin every sequence with --bos-id, where it does not already",
     [](S& s, const V& v) { s.pack.policy.prepend_bos = on(v); }},

    // ---- ltd
    {"--kept-start", "N", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "tokens of a row that the dropping layers keep at first; required",
     [](S& s, const V& v) { s.ltd.kept_start = length(v, 1); }},
    {"--kept-max", "N", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "tokens kept at last; default: the row",
     [](S& s, const V& v) { s.ltd.kept_max = length(v, 1); }},
    {"--kept-length", "absolute|ratio", "absolute", Section::ltd, kLtd, kNone, Kind::plain,
     "with a batch plan: batches keep equally many tokens, and shorter ones drop none; or all keep the same share",
     [](S& s, const V& v) { s.ltd.kept_length = static_cast<KeptLength>(choice(v)); }},
    {"--kept-step", "N", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "kept tokens are rounded down to a multiple of N; default 8",
     [](S& s, const V& v) { s.ltd.kept_step = length(v, 1); }},
    {"--ramp-steps", "N", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "optimizer steps from --kept-start to --kept-max; required",
     [](S& s, const V& v) { s.ltd.ramp_steps = count(v, 1); }},
    {"--layers", "N", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "layers of the model; required",
     [](S& s, const V& v) { s.ltd.layers = count(v, 1); }},
    {"--ltd-layers", "N", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "how many of them drop tokens, the middle ones; default: all but the first and the last",
     [](S& s, const V& v) { s.ltd.ltd_layers = count(v); }},
    {"--layer-ids", "A,B,...", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "which layers drop tokens, counted from 0",
     [](S& s, const V& v) { s.ltd.layer_ids = numbers(v, ','); }},
    {"--total-steps", "N", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "the run ends after N optimizer steps",
     [](S& s, const V& v) { s.ltd.total_steps = amount(v, 1); }},
    {"--total-tokens", "N", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "the run ends after N effective tokens (LayerTokens / layers), as in 300e9",
     [](S& s, const V& v) { s.ltd.total_tokens = amount(v, 1); }},
    {"--total-layer-tokens", "N", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "the run ends after N LayerTokens",
     [](S& s, const V& v) { s.ltd.total_layer_tokens = amount(v, 1); }},
    {"--count", "real|padded", "real", Section::ltd, kLtd, kNone, Kind::plain,
     "with a dataset or batch plan: LayerTokens and tokens of the budget, the learning rate and steps.npy count real tokens, or every slot "
     "that the layers compute",
     [](S& s, const V& v) { s.ltd.count = static_cast<TokenCount>(choice(v)); }},
    {"--curriculum", "SPEC", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "row lengths that grow as well: fixed_linear:START:MAX:STEP:STEPS, fixed_root:START:MAX:STEP:STEPS:DEGREE or "
     "fixed_discrete:LENGTH,...:LAST_STEP,...",
     [](S& s, const V& v) { s.ltd.curriculum = curriculum(v); }},
    {"--curriculum-use", "truncate|reshape", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "a row is cut to the curriculum's length, or into as many rows of it as it holds; default truncate",
     [](S& s, const V& v) { s.ltd.curriculum_use = static_cast<CurriculumUse>(choice(v)); }},
    {"--peak-lr", "RATE", "1", Section::ltd, kLtd, kLtd, Kind::plain,
     "learning rate after the warm-up; 1 gives factors",
     [](S& s, const V& v) { s.ltd.rate.peak = rate(v); }},
    {"--min-lr", "RATE", "0", Section::ltd, kLtd, kNone, Kind::plain,
     "learning rate at the end of the decay",
     [](S& s, const V& v) { s.ltd.rate.min = rate(v); }},
    {"--warmup-layer-tokens", "N", "0", Section::ltd, kLtd, kLtd, Kind::plain,
     "LayerTokens of the warm-up from 0 (tokens times --layers)",
     [](S& s, const V& v) { s.ltd.rate.warmup_layer_tokens = amount(v, 0); }},
    {"--decay", "cosine|linear|constant", "cosine", Section::ltd, kLtd, kNone, Kind::plain,
     "how the learning rate falls after the warm-up",
     [](S& s, const V& v) { s.ltd.rate.decay = static_cast<LrDecay>(choice(v)); }},
    {"--decay-layer-tokens", "N", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "LayerTokens at which the decay ends; default: the budget, or all of the run",
     [](S& s, const V& v) { s.ltd.rate.decay_layer_tokens = amount(v, 1); }},
    {"--lr-lag", "0|1", "0", Section::ltd, kLtd, kNone, Kind::plain,
     "the rate of a step counts all steps before it (0), or all but the last of them, as Megatron does (1)",
     [](S& s, const V& v) { s.ltd.rate.lag = static_cast<int>(choice(v)); }},
    {"--deepspeed", "FILE", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "take what is not given from a DeepSpeed config, and merge the schedule into it",
     [](S& s, const V& v) { s.ltd.deepspeed = text(v); }},
    {"--selection", "uniform|quota|quota-min1", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "which tokens are kept: any of the row; of each segment its share; the same after one of each segment; default uniform, and quota "
     "for a dataset",
     [](S& s, const V& v) { s.ltd.mode = static_cast<KeptMode>(choice(v)); }},
    {"--hidden-size", "N", nullptr, Section::ltd, kLtd | kLint, kNone, Kind::plain,
     "of the model: tells the saving in FLOPs",
     [](S& s, const V& v) {
       s.ltd.hidden_size = count(v, 1);
       s.lint.hidden_size = s.ltd.hidden_size;
     },
     {},
     {{kLint, "of the model: checks what the kernels can copy"}}},
    {"--kept-at", "STEP:LAYER:ROW", nullptr, Section::ltd, kLtd, kLtd, Kind::plain,
     "print the kept slots of one row of a step's global batch, and write nothing",
     [](S& s, const V& v) {
       const std::vector<std::int64_t> place = numbers(v, ':', 3);
       s.kept_at = KeptPlace{place[0], place[1], place[2]};
     }},
    {"--write-indices", nullptr, nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "write the kept slots of every step, layer and row",
     [](S& s, const V& v) { s.ltd.write_indices = on(v); }},
    {"--window", "FIRST:COUNT", nullptr, Section::ltd, kLtd, kNone, Kind::plain,
     "write indices and boundaries of these steps only",
     [](S& s, const V& v) {
       const std::vector<std::int64_t> window = numbers(v, ':', 2);
       s.ltd.window = StepWindow{window[0], window[1]};
     }},
    {"--index-cap", "SIZE", "1G", Section::ltd, kLtd, kNone, Kind::plain,
     "refuse to write more indices than this",
     [](S& s, const V& v) { s.ltd.index_cap = size(v, 1); }},

    // ---- output
    {"-o,--output", "PATH", nullptr, Section::output, kReaders | kUnpack | kLtd, kReaders | kUnpack | kLtd, Kind::plain,
     "the folder to make; required",
     [](S& s, const V& v) { s.output = text(v); },
     {},
     {{kScan, "write the histogram here (.csv or .json; '-' = standard output)"},
      {kPlan, "write plan.json here ('-' = standard output)"},
      {kSweep, "write every figure here (.csv or .json; '-' = standard output)"},
      {kBatch, "the folder of the batch plan; required"},
      {kLtd, "the folder of the schedule; required, but with --kept-at"}}},
    {"--force", nullptr, nullptr, Section::output, kReaders | kJoin | kUnpack | kLtd, kPlanned | kBatch, Kind::plain,
     "replace an output that shardpack made before, never anything else",
     [](S& s, const V& v) { s.pack.force = on(v); }},
    {"--resume", nullptr, nullptr, Section::output, kPack | kBatch, kPack, Kind::plain,
     "go on after an interrupted run with the same inputs and options: its finished shards are checked and kept",
     [](S& s, const V& v) { s.pack.resume = on(v); }, {}, {{kBatch, "with --write-shards: go on after an interrupted run with the same inputs and options"}}},
    {"-n,--dry-run", nullptr, nullptr, Section::output, kReaders | kJoin | kUnpack | kLtd, kPack | kBatch, Kind::plain,
     "do everything but the writing",
     [](S& s, const V& v) { s.pack.dry_run = on(v); }},
    {"--write-lengths", "FILE", nullptr, Section::output, kScan, kScan, Kind::plain,
     "the length of every sequence in input order, as a .npy file",
     [](S& s, const V& v) { s.write_lengths = text(v); }},
    {"--save", "FILE", nullptr, Section::output, kScan, kScan, Kind::plain,
     "all that pack needs to know of the inputs before it reads their tokens, for pack --scan",
     [](S& s, const V& v) { s.save_scan = text(v); }},
    {"--scan", "FILE", nullptr, Section::output, kPack, kNone, Kind::plain,
     "go by this saved scan of the inputs (scan --save) instead of a pass over them",
     [](S& s, const V& v) { s.pack.scan = text(v); }},
    {"--part", "I/N", nullptr, Section::output, kPack, kNone, Kind::plain,
     "do the I-th of N shares of the partitions, for several machines; needs --scan. All share one -o, 'shardpack join' publishes it",
     [](S& s, const V& v) {
       const std::vector<std::int64_t> given = numbers(v, '/', 2);
       if (given[0] < 1 || given[0] > given[1]) refuse(v, "I/N with I from 1 to N");
       s.pack.part = PackOptions::Part{.index = given[0], .of = given[1]};
     }},
    {"--for", "PRESET", nullptr, Section::output, kPack | kPlan | kFormats, kPack, Kind::plain,
     "write what a trainer reads: hf, trl, megatron, ... (see 'shardpack formats'); default native",
     [](S& s, const V& v) { s.pack.preset = s.formats_for = std::string(find_preset(v.text()).name); },
     {}, {{kFormats, "how to train with this preset's output"}, {kPlan, "as the rows of this output preset would be"}}},
    {"--as", "npy|arrow|parquet|megatron|index|jsonl", nullptr, Section::output, kPack | kUnpack, kUnpack, Kind::plain,
     "the files to write it in, where the preset knows more than one; default: its first. index: no tokens, but where they lie in "
     "the sources",
     [](S& s, const V& v) { set_as(s, v); },
     {},
     {{kUnpack, "the format of the files: jsonl (the default), arrow and parquet hold every column; npy (X.npy, X.lengths.npy) "
                "and megatron (X.bin, X.idx) hold numbers, in X.COLUMN.npy"}}},
    {"--allow-inner-eos", nullptr, nullptr, Section::output, kPack, kNone, Kind::plain,
     "for megatron: let an EOS inside of a sequence cut it in two for the trainer",
     [](S& s, const V& v) { s.pack.allow_inner_eos = on(v); }},
    {"--max-predictions", "N", nullptr, Section::output, kPack, kNone, Kind::plain,
     "--for bert: a row has room for N + K masked tokens, K its segments; unless given, the least N that is enough for rows of "
     "these sequences",
     [](S& s, const V& v) { s.pack.max_predictions = count(v); }},
    {"--pad-id", "N", nullptr, Section::output, kPack | kBatch, kNone, Kind::plain,
     "token id of padding; default 0, and the EOS id for megatron",
     [](S& s, const V& v) { s.pack.pad_id = token_id(v); }, {}, {{kBatch, "with --write-shards: token id of padding; default 0"}}},
    {"--position-start", "N", "0", Section::output, kPack, kNone, Kind::plain,
     "first position id of every segment",
     [](S& s, const V& v) { s.pack.position_start = whole(v, std::int64_t{0}, kMaxLength); }},
    {"--id-dtype", "auto|u16|u32", "auto", Section::output, kPack | kBatch, kNone, Kind::plain,
     "how token ids are stored; auto is u16 when every id fits",
     [](S& s, const V& v) { s.pack.id_type = id_type(v); }},
    {"--compress", "zstd[:LEVEL]", nullptr, Section::output, kPack | kBatch | kUnpack, kUnpack, Kind::plain,
     "write .npy.zst, seekable; level 1 to 19 (3)",
     [](S& s, const V& v) { s.pack.zstd_level = zstd_level(v); },
     {},
     {{kUnpack, "write .jsonl.zst; level 1 to 19 (3)"}}},
    {"--shard-bytes", "SIZE", "512M", Section::output, kPack | kBatch, kNone, Kind::plain,
     "target size of a shard",
     [](S& s, const V& v) { s.pack.shard_bytes = size(v, 1); }},
    {"--no-derived", nullptr, nullptr, Section::output, kPack, kNone, Kind::plain,
     "leave out segment and position ids, which follow from the lengths",
     [](S& s, const V& v) { s.pack.derived = !on(v); }},
    {"--order", "shuffled|windowed|by-strategy|input|balanced", nullptr, Section::output, kPack, kNone, Kind::plain,
     "order of rows within a partition; windowed: rows of sequences that lie near each other, shuffled within windows of 2 Mi slots, "
     "which reads the inputs in their order; balanced: steps of --world x --accumulation x --micro-batch rows of near-equal attention "
     "cost, shuffled; default shuffled, windowed for presets whose trainer shuffles rows, and input for sequential and concat",
     [](S& s, const V& v) { s.pack.order = static_cast<RowOrder>(choice(v)); }},
    {"--balance", "none|attention", "none", Section::output, kPack, kNone, Kind::plain,
     "attention: exchange sets of segments of equal length between rows, so that rows of the same fill cost alike in any order",
     [](S& s, const V& v) { s.pack.balance_attention = choice(v) == 1; }},
    {"--rows-multiple", "N|auto", "1", Section::output, kPack, kNone, Kind::plain,
     "make the number of rows a multiple of N, in the way of --tail; auto: of the rows of a step, --world x --accumulation x --micro-batch",
     [](S& s, const V& v) { s.pack.rows_multiple = rows_multiple(v); }},
    {"--tail", "repeat|fill|drop|short", nullptr, Section::output, kPack | kBatch, kNone, Kind::plain,
     "extra rows repeat the first ones (the default), or are all padding (fill), or the last rows are left out (drop); short is "
     "for batch",
     [](S& s, const V& v) { set_tail(s, v); },
     {},
     {{kBatch, "the last step is spread over all ranks (short, the default), filled with sequences that count once more (repeat), "
               "or left out (drop); fill is for pack"}}},
    {"--partition-tokens", "SIZE", "256M", Section::output, kScan | kPack, kNone, Kind::plain,
     "sequences are packed in partitions of at most this many tokens; part of what decides the bytes",
     [](S& s, const V& v) { s.pack.partition_tokens = size(v, 1); }},
    {"--partition-order", "input|shuffled", "input", Section::output, kScan | kPack, kNone, Kind::plain,
     "what a partition holds: consecutive sequences, or blocks from all over the sources, dealt by --seed, so that rows are shuffled "
     "over all of them",
     [](S& s, const V& v) { s.pack.partition_order = static_cast<PartitionOrder>(choice(v)); }},

    // ---- reading
    {"--format", "NAME", nullptr, Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "input format ('shardpack formats' lists them); found by content unless given",
     [](S& s, const V& v) { s.pack.read.format = format_name(v); }},
    {"--split", "NAME", nullptr, Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "the split of a Hugging Face dataset that has several",
     [](S& s, const V& v) { s.pack.read.split = text(v); }},
    {"--ids-column", "NAME", "input_ids", Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "the column that holds the token ids (JSON lines: the key)",
     [](S& s, const V& v) { s.pack.read.ids_column = text(v); }},
    {"--columns", "A,B", "aligned", Section::reading, kScan | kPack | kBatch, kNone, Kind::plain,
     "columns to carry beside the ids: aligned (those with a value for each token, and single numbers), all, none, or names; "
     "aligned,NAME adds one. NAME:KIND says what it is (token, sequence, list, text), NAME:KIND:ALIGNMENT what its values speak "
     "of (plain, minus100, target-shifted)",
     [](S& s, const V& v) { s.pack.read.columns = parse_column_choice(text(v)); }},
    {"--positions-columns", "A,B", nullptr, Section::reading, kScan | kPack, kNone, Kind::plain,
     "lists of token positions in their sequence, as masked_lm_positions: packed as positions in the row, and cut with the tokens "
     "together with the lists that go with them (masked_lm_ids)",
     [](S& s, const V& v) { s.pack.read.positions_columns = parse_positions_columns(text(v)); }},
    {"--unit", "document|sequence", "document", Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "Megatron: what is one sequence",
     [](S& s, const V& v) { s.pack.read.unit = static_cast<Unit>(choice(v)); }},
    {"--dtype", "u8|u16|u32|i32|i64", nullptr, Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "raw files: how token ids are stored",
     [](S& s, const V& v) { s.pack.read.dtype = raw_type(v); }},
    {"--eos-id", "N", nullptr, Section::reading, kReaders | kInspect, kPack, Kind::plain,
     "end-of-sequence id: the delimiter of raw files, and what --append-eos adds",
     [](S& s, const V& v) { s.pack.read.eos_id = token_id(v); },
     {},
     {{kScan | kBatch | kInspect, "end-of-sequence id: the delimiter of raw files"}}},
    {"--bos-id", "N", nullptr, Section::reading, kScan | kPlanned, kNone, Kind::plain,
     "begin-of-sequence id: what --prepend-bos adds",
     [](S& s, const V& v) { s.pack.read.bos_id = token_id(v); }},
    {"--null-row", "error|drop", "error", Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "records without ids",
     [](S& s, const V& v) { s.pack.read.null_row = static_cast<NullRow>(choice(v)); }},
    {"--limit", "N", "0", Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "only the first N sequences; 0 = all",
     [](S& s, const V& v) { s.pack.read.limit = count(v); }},
    {"--allow-repeats", nullptr, nullptr, Section::reading, kReaders | kInspect, kNone, Kind::plain,
     "take a file that is given more than once more than once",
     [](S& s, const V& v) { s.pack.read.allow_repeats = on(v); }},
    {"--files-from", "FILE", nullptr, Section::reading, kReaders, kNone, Kind::plain,
     "more inputs, one a line ('-' = standard input)",
     [](S& s, const V& v) { s.files_from = text(v); }},

    // ---- checks
    {"--fail-under", "PCT", nullptr, Section::checks, kPack, kNone, Kind::plain,
     "exit 1 when fewer slots than this hold tokens (the output stays, the stamp is not made)",
     [](S& s, const V& v) { s.fail_under = percent(v); }},
    {"--against", "SOURCE", nullptr, Section::checks, kVerify | kUnpack, kVerify, Kind::several,
     "read again and compare: the sources of a packed dataset or batch plan (several values, may be repeated), or the dataset of "
     "an LTD folder",
     [](S& s, const V& v) { s.verify.against = v.texts; },
     {},
     {{kUnpack, "what a dataset of pack --as index was packed from, where its tokens are (several values, may be repeated)"}}},
    {"--packed", nullptr, nullptr, Section::checks, kLint, kLint, Kind::plain,
     "the rows hold several sequences, or padding",
     [](S& s, const V& v) { s.lint.packed = on(v); }},
    {"--loader-batch", "N", nullptr, Section::checks, kLint, kLint, Kind::plain,
     "rows a step that the data loader really gives",
     [](S& s, const V& v) { s.lint.loader_batch = count(v, 1); }},
    {"--layer-prefix", "TEXT", nullptr, Section::checks, kLint, kLint, Kind::plain,
     "names of the model's layers up to their number, as in transformer.h. (digits in it can bind the wrong layers)",
     [](S& s, const V& v) { s.lint.layer_prefix = text(v); }},
    {"--row", "N", nullptr, Section::checks, kInspect, kInspect, Kind::plain,
     "show row N as a picture of its segments; of a batch plan: batch N",
     [](S& s, const V& v) { s.row = count(v); }},
    {"--sequence", "N", nullptr, Section::checks, kInspect, kInspect, Kind::plain,
     "show where sequence N (counted over all inputs, from 0) went",
     [](S& s, const V& v) { s.sequence = count(v); }},

    // ---- run
    {"--threads", "N", "0", Section::run, kWorkers, kPack, Kind::plain,
     "0 = all processors; changes speed only",
     [](S& s, const V& v) { s.threads = static_cast<int>(whole(v, std::int64_t{0}, std::int64_t{1024})); }},
    {"--memory", "SIZE", "auto", Section::run, kWorkers, kNone, Kind::plain,
     "all that the run may hold: K, M, G, T or % of the machine's; auto: 256M of blocks in flight, and what lengths and plans take; "
     "changes speed only",
     [](S& s, const V& v) {
       const bool is_auto = v.text() == "auto";
       s.memory_bytes = parse_memory(is_auto ? kStandardMemory : v.text());
       s.memory_limit = is_auto ? 0 : s.memory_bytes;
     }},
    {"--temp-dir", "FOLDER", nullptr, Section::run, kWorkers, kNone, Kind::plain,
     "for temporary files; default: the output's own folder",
     [](S& s, const V& v) { s.temp_dir = text(v); }},
    {"--seed", "N", "0", Section::run, kScan | kSweep | kPack | kBatch | kLtd, kPack | kBatch, Kind::plain,
     "decides the shuffles: equal seeds give equal bytes",
     [](S& s, const V& v) { s.pack.seed = s.batch.plan.seed = whole(v, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()); }},
    {"--stats", "FILE", nullptr, Section::run, kWorkers, kNone, Kind::plain,
     "write run facts as JSON: seconds a stage, tokens a second, peak memory, threads, bytes",
     [](S& s, const V& v) { s.stats_file = text(v); }},
    {"--stamp", "FILE", nullptr, Section::run, kWorkers, kNone, Kind::plain,
     "make: an empty file, written when all went well",
     [](S& s, const V& v) { s.stamp_file = text(v); }},
    {"--depfile", "FILE", nullptr, Section::run, kWorkers, kNone, Kind::plain,
     "make: a rule from the inputs to the stamp (or the output)",
     [](S& s, const V& v) { s.depfile = text(v); }},

    // ---- shared
    {"--csv", nullptr, nullptr, Section::shared, kSweep, kSweep, Kind::plain,
     "every figure, a line for each choice, on standard output",
     [](S& s, const V& v) { s.csv = on(v); }},
    {"--json", nullptr, nullptr, Section::shared, kAll, kReaders | kVerify, Kind::plain,
     "the report as one JSON object on standard output",
     [](S& s, const V& v) { s.json = on(v); }},
    {"-q,--quiet", nullptr, nullptr, Section::shared, kAll, kNone, Kind::plain,
     "errors only: no summary, no warnings",
     [](S& s, const V& v) { s.quiet = on(v); }},
    {"-v,--verbose", nullptr, nullptr, Section::shared, kAll, kNone, Kind::plain,
     "more messages: stages, choices made",
     [](S& s, const V& v) { s.verbose = on(v); }},
    {"--progress", "auto|always|never", "auto", Section::shared, kAll, kNone, Kind::plain,
     "a progress bar on a terminal; elsewhere a line at the start and end of each stage, with -v or always",
     [](S& s, const V& v) { s.progress = static_cast<When>(choice(v)); }},
    {"--color", "auto|always|never", "auto", Section::shared, kAll, kNone, Kind::plain,
     "coloured messages on a terminal; NO_COLOR and FORCE_COLOR are honoured",
     [](S& s, const V& v) { s.color = static_cast<When>(choice(v)); }},
    {"--config", "FILE", nullptr, Section::shared, kAll, kNone, Kind::local,
     "options from a TOML or INI file: a section a command, common ones at the top; flags win",
     [](S& s, const V& v) { s.config_file = text(v); }},
    {"--print-config", nullptr, nullptr, Section::shared, kAll, kNone, Kind::local,
     "print the effective options as a config file, and do nothing else",
     [](S& s, const V& v) { s.print_config = on(v); }},
    {"-h", nullptr, nullptr, Section::shared, kAll, kAll, Kind::page,
     "a short page",
     [](S& s, const V&) { s.page = std::max(s.page, Page::brief); }},
    {"--help", nullptr, nullptr, Section::shared, kAll, kAll, Kind::page,
     "the full page",
     [](S& s, const V&) { s.page = std::max(s.page, Page::full); }},
    {"--version", nullptr, nullptr, Section::shared, kAll, kNone, Kind::page,
     "the version, on one line",
     [](S& s, const V&) { s.page = std::max(s.page, Page::version); }},
};
// clang-format on

}  // namespace

std::span<const Option> options() { return kOptions; }

std::vector<std::string> Option::flags() const {
  std::vector<std::string> flags;
  const std::string_view all = names;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    flags.emplace_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return flags;
}

const char* Option::help_of(Command command) const {
  for (const HelpUse& own : own_help) {
    if ((own.commands & set_of(command)) != 0) return own.help;
  }
  return help;
}

std::vector<std::string> list_elements(std::string_view text) {
  std::vector<std::string> elements;
  while (true) {
    const std::size_t comma = text.find(',');
    elements.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return elements;
    text.remove_prefix(comma + 1);
  }
}

std::string Option::name() const {
  for (const std::string& flag : flags()) {
    if (flag.compare(0, 2, "--") == 0) return flag.substr(2);
  }
  return flags().front().substr(1);
}

const Option* find_option(std::string_view name) {
  for (const Option& option : options()) {
    for (const std::string& flag : option.flags()) {
      if (flag == name || flag.substr(flag.find_first_not_of('-')) == name) return &option;
    }
  }
  return nullptr;
}

void check_settings(const Settings& settings) {
  const auto refuse_use = [&](const std::string& message) { throw Error(ErrorCode::usage, message); };
  const LengthPolicy& policy = settings.pack.policy;
  const CommandSet command = set_of(settings.command);

  if ((command & (kWorkers & ~kLtd)) != 0 && settings.inputs.empty()) refuse_use("no input; give files, folders or globs");
  if ((command & kOnePath) != 0 && settings.inputs.size() > 1) {
    refuse_use(fmt::format("one path at a time, found {} of them", settings.inputs.size()));
  }
  if ((command & (kOnePath | kLtd)) != 0 && !settings.inputs.empty() && settings.inputs.front() == "-") {
    refuse_use("standard input ('-') cannot be read twice; give a file or folder");
  }
  if ((command & kPlanned) != 0 && policy.row_tokens == 0 && settings.pack.plan.empty() && !settings.batching)
    refuse_use("how long is a row? Give -L N, the trainer's sequence length");
  if (policy.append_eos && !settings.pack.read.eos_id) refuse_use("--append-eos needs --eos-id N");
  if (policy.prepend_bos && !settings.pack.read.bos_id) refuse_use("--prepend-bos needs --bos-id N");
  if (settings.command == Command::pack) {
    if (settings.output.empty()) refuse_use("where to? Give -o FOLDER");
    if (settings.output == "-") refuse_use("a packed dataset is a folder and cannot go to standard output");
  }
  if (settings.command == Command::pack && settings.pack.part && settings.pack.scan.empty())
    refuse_use("--part needs --scan FILE, which all parts share; 'shardpack scan --save FILE' makes it");
  const bool reads_pipe = std::find(settings.inputs.begin(), settings.inputs.end(), "-") != settings.inputs.end();
  if (reads_pipe && (!settings.save_scan.empty() || !settings.pack.scan.empty()))
    refuse_use("standard input ('-') cannot be read again, as a saved scan supposes; give files");
  if (settings.command == Command::pack && settings.as == "jsonl")
    refuse_use("--as jsonl is for unpack; pack writes npy, arrow, parquet, megatron or index");
  if (settings.command == Command::unpack) {
    if (settings.output.empty()) refuse_use("where to? Give -o FOLDER");
    if (settings.as == "index") refuse_use("--as index is for pack; unpack writes jsonl, npy, megatron, arrow or parquet");
    if (settings.output == "-") refuse_use("the sources are files in a folder and cannot go to standard output");
  }
  if (settings.json && settings.csv) refuse_use("--json or --csv, not both");
  if (settings.csv && settings.output == "-") refuse_use("--csv and -o - both want standard output");
  if (settings.command == Command::ltd) {
    if (settings.output.empty() && !settings.kept_at && !settings.pack.dry_run)
      refuse_use("where to? Give -o FOLDER, or --kept-at");
    if (settings.output == "-") refuse_use("a schedule is a folder and cannot go to standard output");
    if (settings.ltd.curriculum_use && !settings.ltd.curriculum && settings.ltd.deepspeed.empty()) {
      refuse_use("--curriculum-use needs --curriculum or --deepspeed");
    }
  }
  if (settings.command == Command::pack && settings.tail == "short") {
    refuse_use("--tail short is for batch; pack knows repeat, fill and drop");
  }
  if (settings.command == Command::sweep) {
    const BatchOptions& plan = settings.batch.plan;
    if (settings.batching && policy.row_tokens > 0) refuse_use("--batching has no rows; --max-length N limits sequences, not -L");
    if (settings.batching) check_batch_options(plan);
    if (!settings.batching && (plan.batch_size > 0 || settings.max_length > 0)) {
      refuse_use("--batch-size and --max-length are for batches; add --batching");
    }
  }
  if (settings.command == Command::batch) {
    if (settings.output.empty()) refuse_use("where to? Give -o FOLDER");
    if (settings.output == "-") refuse_use("a batch plan is a folder and cannot go to standard output");
    if (settings.tail == "fill") refuse_use("--tail fill is for pack; batch knows short, repeat and drop");
    check_batch_options(settings.batch.plan);
    if (!settings.batch.write_shards && (settings.pack.pad_id || settings.pack.id_type || settings.pack.zstd_level > 0))
      refuse_use("--pad-id, --id-dtype and --compress say how shards are written; add --write-shards padded or ragged");
  }
  if (settings.json && settings.output == "-") refuse_use("--json and -o - both want standard output");
  if (settings.row && settings.sequence) refuse_use("--row or --sequence, not both");
  if (!settings.depfile.empty() && settings.stamp_file.empty() && (settings.output.empty() || settings.output == "-")) {
    refuse_use("--depfile needs a target: give --stamp FILE or -o");
  }
  if (settings.quiet && settings.verbose) refuse_use("-q or -v, not both");
}

}  // namespace shardpack
