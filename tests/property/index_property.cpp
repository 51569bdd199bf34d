// pack --as index beside pack: rows that are rebuilt from the index and the sources are those that pack writes, value by value,
// whatever the sources' format; verify and unpack find in them what was packed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/arrow_support.h"
#include "io/file.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPad = 7, kEos = 2, kBos = 1;

std::string read_all(const std::string& path) { return fs::exists(path) ? read_small_file(path) : std::string(); }

/// The values of X.npy in all shards, one after the other, as they are stored. Knows of NPY that the header's length is in bytes
/// 8 and 9.
template <class T>
std::vector<T> array_of(const std::string& dataset, const Manifest& manifest, const std::string& name) {
  std::vector<T> values;
  for (const ManifestShard& shard : manifest.shards) {
    const std::string file = read_all(dataset + "/" + shard.folder + "/" + name + ".npy");
    if (file.empty()) continue;
    const auto* const head = reinterpret_cast<const unsigned char*>(file.data());
    const std::size_t begin = 10 + head[8] + std::size_t{256} * head[9], old = values.size();
    values.resize(old + (file.size() - begin) / sizeof(T));
    std::memcpy(values.data() + old, file.data() + begin, file.size() - begin);
  }
  return values;
}

/// Ids [begin, begin + count) of a file, counted from its first byte.
std::vector<std::int64_t> ids_at(const std::string& file, const std::string& dtype, std::int64_t begin, std::int64_t count) {
  const int width = dtype.back() - '0';
  std::vector<std::int64_t> ids;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, file.data() + i * width, static_cast<std::size_t>(width));
    ids.push_back(id);
  }
  return ids;
}

/// The rows of an index, slot by slot: where seq_begin does not say where tokens lie, they are those of the record.
std::vector<std::int64_t> rebuild(const std::string& dataset, const Manifest& manifest, const std::string& sources,
                                  const Sequences& sequences) {
  const auto offsets = array_of<std::int64_t>(dataset, manifest, "row_offsets"),
             source = array_of<std::int64_t>(dataset, manifest, "seq_source"),
             begins = array_of<std::int64_t>(dataset, manifest, "seq_begin");
  const auto lengths = array_of<std::int32_t>(dataset, manifest, "seq_lengths"),
             slots = array_of<std::int32_t>(dataset, manifest, "seq_slots");
  const auto added = array_of<std::uint8_t>(dataset, manifest, "seq_added");
  std::vector<std::string> files;
  std::vector<std::size_t> first_sequence{0};
  for (const ManifestSource& from : manifest.sources) {
    files.push_back(read_all(sources + "/" + from.name));
    first_sequence.push_back(first_sequence.back() + static_cast<std::size_t>(from.sequences));
  }
  std::vector<std::int64_t> rows;
  std::size_t segment = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] == 0 && offsets[i - 1] > 0) continue;  // the next shard begins
    const std::size_t row_end = rows.size() + static_cast<std::size_t>(manifest.row_tokens);
    for (std::int64_t left = offsets[i] - offsets[i - 1]; left > 0; --left, ++segment) {
      const std::size_t end = rows.size() + static_cast<std::size_t>(slots.empty() ? lengths[segment] : slots[segment]);
      const int bits = added.empty() ? 0 : added[segment];
      const std::int64_t tokens = lengths[segment] - (bits & 1) - (bits >> 1);
      const auto file = static_cast<std::size_t>(source[3 * segment]);
      if ((bits & 1) != 0) rows.push_back(kBos);
      if (!begins.empty() && begins[segment] >= 0) {
        const auto ids = ids_at(files[file], *manifest.sources[file].ids_dtype, begins[segment], tokens);
        rows.insert(rows.end(), ids.begin(), ids.end());
      } else {
        const auto& record = sequences[first_sequence[file] + static_cast<std::size_t>(source[3 * segment + 1])];
        const auto from = record.begin() + source[3 * segment + 2];
        rows.insert(rows.end(), from, from + tokens);
      }
      if ((bits & 2) != 0) rows.push_back(kEos);
      rows.resize(end, kPad);
    }
    rows.resize(row_end, kPad);
  }
  return rows;
}

PackOptions any_options() {
  PackOptions options;
  options.policy.segment_multiple = *rc::gen::element<Length>(1, 1, 4);
  options.policy.row_tokens = options.packing.row_tokens = 4 * *rc::gen::inRange<Length>(2, 6);
  options.policy.overlong = *rc::gen::element(Overlong::split, Overlong::truncate, Overlong::drop);
  options.policy.truncate_side = *rc::gen::element(TruncateSide::end, TruncateSide::start);
  options.policy.min_tokens = *rc::gen::element<Length>(0, 0, 3);
  options.policy.append_eos = *rc::gen::arbitrary<bool>();
  options.policy.prepend_bos = *rc::gen::arbitrary<bool>();
  options.read.eos_id = kEos;
  options.read.bos_id = kBos;
  options.read.columns.which = ColumnChoice::Which::none;
  options.packer = *rc::gen::elementOf(std::vector<std::string>{"auto", "nnlshp", "ffd", "sequential", "concat"});
  if (options.packer == "concat") options.policy.segment_multiple = 1;
  options.pad_id = kPad;
  options.partition_tokens = *rc::gen::element<std::int64_t>(40, 1 << 20);
  options.partition_order = *rc::gen::element(PartitionOrder::input, PartitionOrder::shuffled);
  options.shard_bytes = *rc::gen::element<std::int64_t>(300, 1 << 20);
  options.rows_multiple = *rc::gen::element<std::int64_t>(1, 5);
  options.tail = *rc::gen::element(Tail::repeat, Tail::drop);
  options.seed = *rc::gen::inRange<std::uint64_t>(0, 100);
  return options;
}

/// JSON lines of records, empty ones among them. \return the records
Sequences write_records(const TempFolder& folder) {
  Sequences all;
  const auto files = *rc::gen::inRange(1, 4);
  const bool wide = *rc::gen::arbitrary<bool>();
  for (int f = 0; f < files; ++f) {
    std::string lines;
    const auto records = *rc::gen::inRange(1, 12);
    for (int r = 0; r < records; ++r) {
      std::vector<std::uint32_t>& ids = all.emplace_back();
      const auto tokens = *rc::gen::inRange(0, 30);
      for (int t = 0; t < tokens; ++t)
        ids.push_back(static_cast<std::uint32_t>(3 + (f * 131 + r * 17 + t) % 400 * (wide ? 999 : 1)));
      lines += fmt::format("{{\"input_ids\":[{}]}}\n", fmt::join(ids, ","));
    }
    folder.write(fmt::format("records/part-{}.jsonl", f), lines);
  }
  return all;
}

TEST_CASE("rows of an index and its sources are the rows of a pack") {
  ThreadPool pool(2);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  std::vector<UnpackFormat> formats{UnpackFormat::jsonl, UnpackFormat::npy, UnpackFormat::megatron};
  if (has_arrow()) formats.insert(formats.end(), {UnpackFormat::arrow, UnpackFormat::parquet});
  CHECK(rc::check([&] {
    // The same records in one of the formats, which unpack writes.
    const TempFolder folder;
    const Sequences sequences = write_records(folder);
    PackOptions whole;
    whole.policy.row_tokens = whole.packing.row_tokens = 64;
    pack({folder.path("records")}, folder.path("whole"), whole, context);
    const UnpackFormat format = *rc::gen::elementOf(formats);
    const std::string sources = folder.path("sources");
    unpack(folder.path("whole"), sources, {.format = format}, context);
    fs::remove(sources + "/manifest.json");

    PackOptions options = any_options();
    const std::string native = folder.path("native"), index = folder.path("index");
    const Manifest packed = pack({sources}, native, options, context).manifest;
    options.container = Container::index;
    const Manifest manifest = pack({sources}, index, options, context).manifest;
    RC_ASSERT(!manifest.packed_fingerprint.has_value());
    RC_ASSERT(manifest.tokens == packed.tokens);
    RC_ASSERT(manifest.sequences == packed.sequences);
    RC_ASSERT(read_all(index + "/removed.csv") == read_all(native + "/removed.csv"));
    const bool decoded = format == UnpackFormat::jsonl || format == UnpackFormat::parquet;
    const bool any_token = manifest.source_tokens > 0;
    RC_ASSERT(manifest.has_begins() == (!decoded && any_token));
    std::vector<std::int64_t> expected;
    if (packed.id_type == IdType::u16) {
      for (const std::uint16_t id : array_of<std::uint16_t>(native, packed, "input_ids")) expected.push_back(id);
    } else {
      for (const std::uint32_t id : array_of<std::uint32_t>(native, packed, "input_ids")) expected.push_back(id);
    }
    RC_ASSERT(rebuild(index, manifest, sources, sequences) == expected);

    for (const std::vector<std::string>& against : {std::vector<std::string>(), {sources}}) {
      const std::vector<Issue> issues = verify(index, {.against = against}, context).issues;
      RC_LOG() << (issues.empty() ? "" : issues.front().file + ": " + issues.front().message);
      RC_ASSERT(issues.empty());
    }
    unpack(native, folder.path("back"), {}, context);
    unpack(index, folder.path("back-of-index"), {.against = {sources}}, context);
    std::map<std::string, std::string> one = folder_bytes(folder.path("back")),
                                       other = folder_bytes(folder.path("back-of-index"));
    one.erase("manifest.json");
    other.erase("manifest.json");
    RC_ASSERT(one == other);

    // The same from a saved scan, which has no token read at all.
    const ScanResult scanned = scan(
        {sources}, options.read, context,
        {.record_lengths = false,
         .save =
             SaveOptions{.cut = {.tokens = options.partition_tokens, .order = options.partition_order, .seed = options.seed}}});
    options.scan = folder.write("scan", scanned.saved);
    pack({sources}, folder.path("scanned"), options, context);
    RC_ASSERT(folder_bytes(folder.path("scanned")) == folder_bytes(index));
  }));
}

}  // namespace
}  // namespace shardpack
