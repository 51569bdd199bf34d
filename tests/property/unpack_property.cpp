// pack, then unpack: the sources come back value for value, whatever packed them and however they were stored.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/column_values.h"
#include "io/arrow_support.h"
#include "io/column_choice.h"
#include "io/file.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

/// A record with something of every kind.
struct Record {
  std::vector<std::uint32_t> ids;
  std::vector<std::int32_t> labels;
  std::vector<double> weights;
  std::int64_t number = 0;
  std::vector<std::int64_t> list;
  std::vector<std::int64_t> places, marks;  // of tokens, ascending: pieces of a record come back in its order
  std::string text;

  friend bool operator==(const Record&, const Record&) = default;
};
using Records = std::vector<Record>;

Record any_record(std::uint32_t id_limit) {
  Record record;
  const std::size_t tokens = *rc::gen::weightedOneOf<std::size_t>({{1, rc::gen::just<std::size_t>(0)},
                                                                   {8, rc::gen::inRange<std::size_t>(1, 12)},
                                                                   {2, rc::gen::inRange<std::size_t>(12, 60)}});
  for (std::size_t i = 0; i < tokens; ++i) {
    record.ids.push_back(*rc::gen::inRange<std::uint32_t>(3, id_limit));
    record.labels.push_back(*rc::gen::element<std::int32_t>(-100, 0, 7, 70'000));
    record.weights.push_back(*rc::gen::element(0.0, 0.5, 1.0, 0.1, -2.25));
  }
  if (tokens == 0) return record;  // what belongs to no token is not in any row
  record.number = *rc::gen::arbitrary<std::int32_t>();
  record.list = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 4),
                                                               rc::gen::inRange<std::int64_t>(-3, 300));
  for (std::size_t i = 0; i < tokens; ++i) {
    if (*rc::gen::inRange(0, 4) != 0) continue;
    record.places.push_back(static_cast<std::int64_t>(i));
    record.marks.push_back(*rc::gen::inRange<std::int64_t>(0, 70'000));
  }
  record.text =
      *rc::gen::element<std::string>("", "plain", "a \"quoted\" \\ line\nand more", "\xC3\xA9t\xC3\xA9 \xF0\x9F\x8E\x89", "\x01");
  return record;
}

template <class T>
std::string json_list(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  return "[" + text + "]";
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\u{:04x}", static_cast<int>(c)) : std::string(1, c);
  }
  return quoted + "\"";
}

std::string json_lines(const Records& records) {
  std::string lines;
  for (const Record& record : records) {
    lines += fmt::format(
        "{{\"input_ids\":{},\"labels\":{},\"number\":{},\"list\":{},\"text\":{},\"loss_weights\":{},\"mark_places\":{},"
        "\"mark_ids\":{}}}\n",
        json_list(record.ids), json_list(record.labels), record.number, json_list(record.list), json_text(record.text),
        json_list(record.weights), json_list(record.places), json_list(record.marks));
  }
  return lines;
}

template <class T>
std::vector<T> as_numbers(ValueType type, const std::byte* bytes, std::int64_t count) {
  std::vector<T> numbers;
  visit_values(type, bytes, count, [&](auto typed) {
    for (const auto value : typed) numbers.push_back(static_cast<T>(value));
  });
  return numbers;
}

/// What is in opened sources, by the columns that they have.
Records records_of(const SequenceSource& source) {
  Records all;
  for (const std::vector<std::uint32_t>& ids : ShardOpener::sequences_of(source)) {
    Record record;
    record.ids = ids;
    const auto sequence = static_cast<SequenceId>(all.size());
    for (std::size_t c = 0; c < source.columns().size(); ++c) {
      const Column& column = source.columns()[c];
      if (column.kind == ColumnKind::token) {
        const auto tokens = static_cast<std::int64_t>(ids.size());
        std::vector<std::byte> bytes(ids.size() * static_cast<std::size_t>(info(column.type).bytes));
        const std::vector<TokenRequest> request{{.sequence = sequence, .first_token = 0, .tokens = tokens, .destination = 0}};
        source.read_tokens(c, request, bytes.data());
        if (column.name == "labels") record.labels = as_numbers<std::int32_t>(column.type, bytes.data(), tokens);
        if (column.name == "loss_weights") record.weights = as_numbers<double>(column.type, bytes.data(), tokens);
        continue;
      }
      const std::vector<SequenceId> one{sequence};
      const ColumnValues values = source.read_values(c, one);
      const auto count = static_cast<std::int64_t>(values.bytes.size()) / info(column.type).bytes;
      if (column.name == "number") record.number = as_numbers<std::int64_t>(column.type, values.bytes.data(), count).front();
      if (column.name == "mark_places") record.places = as_numbers<std::int64_t>(column.type, values.bytes.data(), count);
      if (column.name == "mark_ids") record.marks = as_numbers<std::int64_t>(column.type, values.bytes.data(), count);
      if (column.name == "list") record.list = as_numbers<std::int64_t>(column.type, values.bytes.data(), count);
      if (column.name == "text") record.text.assign(reinterpret_cast<const char*>(values.bytes.data()), values.bytes.size());
    }
    all.push_back(std::move(record));
  }
  return all;
}

PackOptions any_options(bool wide_ids) {
  PackOptions options;
  const Length multiple = *rc::gen::element<Length>(1, 1, 2, 4);
  options.policy.row_tokens = options.packing.row_tokens = multiple * *rc::gen::inRange<Length>(4, 12);
  options.policy.segment_multiple = multiple;
  options.policy.overlong = Overlong::split;
  options.policy.append_eos = *rc::gen::arbitrary<bool>();
  options.policy.prepend_bos = *rc::gen::arbitrary<bool>();
  options.read.eos_id = 2;
  options.read.bos_id = wide_ids ? 70'001 : 1;
  options.packer = *rc::gen::elementOf(std::vector<std::string>{"auto", "optimal", "nnlshp", "spfhp", "lpfhp", "bfd", "ffd",
                                                                "sorted-greedy", "sequential", "concat"});
  options.partition_tokens = *rc::gen::element<std::int64_t>(50, 1 << 20);
  options.shard_bytes = *rc::gen::element<std::int64_t>(4'000, 1 << 20);  // every file is synced to disk: few of them
  options.zstd_level = *rc::gen::element(0, 0, 1);
  options.derived = *rc::gen::arbitrary<bool>();
  options.rows_multiple = *rc::gen::element<std::int64_t>(1, 1, 5);
  options.tail = *rc::gen::element(Tail::repeat, Tail::fill);
  options.seed = *rc::gen::inRange<std::uint64_t>(0, 100);
  return options;
}

class Runs {
 public:
  explicit Runs(int threads) : pool_(threads) {}
  RunContext context() { return {.pool = pool_, .stop = {}, .progress = progress_, .diagnostics = diagnostics_, .temp_dir = {}}; }

 private:
  ThreadPool pool_;
  NoProgress progress_;
  KeptDiagnostics diagnostics_;
};

TEST_CASE("unpack gives back what was packed, value for value") {
  Runs runs(2);
  ShardOpener opener;
  CHECK(rc::check([&] {
    const TempFolder folder;
    const bool wide_ids = *rc::gen::arbitrary<bool>();
    UnpackOptions how;
    how.format = *rc::gen::element(UnpackFormat::jsonl, UnpackFormat::jsonl, UnpackFormat::npy, UnpackFormat::megatron,
                                   UnpackFormat::arrow, UnpackFormat::parquet);
    if (!has_arrow() && how.format >= UnpackFormat::arrow) how.format = UnpackFormat::jsonl;
    const bool flat = how.format == UnpackFormat::npy || how.format == UnpackFormat::megatron;
    if (how.format == UnpackFormat::jsonl) how.zstd_level = *rc::gen::element(0, 1);
    std::vector<Records> files(*rc::gen::inRange<std::size_t>(1, 4));
    std::vector<std::string> inputs;
    for (std::size_t f = 0; f < files.size(); ++f) {
      files[f].resize(*rc::gen::inRange<std::size_t>(1, 9));
      for (Record& record : files[f]) record = any_record(wide_ids ? 70'000 : 500);
      inputs.push_back(folder.write(fmt::format("in/{}/part-{}.jsonl", f % 2, f), json_lines(files[f])));
    }
    PackOptions options = any_options(wide_ids);
    // Flat files hold what is numbers.
    options.read.columns = parse_column_choice(!flat ? "all,list:list" : "labels,number,loss_weights");
    if (!flat) options.read.positions_columns = {"mark_places"};
    const Manifest packed = pack(inputs, folder.path("packed"), options, runs.context()).manifest;
    const UnpackResult result = unpack(folder.path("packed"), folder.path("out"), how, runs.context());

    ReadOptions read;
    read.columns = options.read.columns;
    read.positions_columns = options.read.positions_columns;
    std::vector<std::string> sources;
    for (const ManifestFile& file : result.files) {
      const bool is_data = !flat || file.name.ends_with(".bin") || std::count(file.name.begin(), file.name.end(), '.') == 1;
      if (is_data && !file.name.ends_with(".idx")) sources.push_back(folder.path("out/" + file.name));
    }
    RC_ASSERT(sources.size() == files.size());
    std::int64_t sequences = 0;
    for (std::size_t f = 0; f < files.size(); ++f) {
      RC_ASSERT(sources[f].find(fmt::format("part-{}.", f)) != std::string::npos);
      const Records found = records_of(*opener.open({sources[f]}, read).source);
      RC_ASSERT(found.size() == files[f].size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        RC_LOG() << sources[f] << " record " << i;
        RC_ASSERT(found[i].ids == files[f][i].ids);
        RC_ASSERT(found[i].labels == files[f][i].labels);
        RC_ASSERT(found[i].weights == files[f][i].weights);
        RC_ASSERT(found[i].number == files[f][i].number);
        if (flat) continue;
        RC_ASSERT(found[i].list == files[f][i].list);
        RC_ASSERT(found[i].places == files[f][i].places);
        RC_ASSERT(found[i].marks == files[f][i].marks);
        RC_ASSERT(found[i].text == files[f][i].text);
      }
      sequences += static_cast<std::int64_t>(found.size());
    }
    RC_ASSERT(result.sequences == sequences);
    RC_ASSERT(opener.open(sources, read).totals.fingerprint == packed.source_fingerprint);
    // A folder of inputs like any other.
    RC_ASSERT(opener.open({folder.path("out")}, read).source->index().sequences() == sequences);
  }));
}

}  // namespace
}  // namespace shardpack
