#include "io/ltd_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/npy.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxU16 = 0xFFFF;

/// The fields of a row of steps.npy, one after the other without gaps.
std::string steps_descr(bool wide) {
  return fmt::format(
      "[('step', '<u4'), ('kept', '<u{}'), ('layer_tokens', '<u8'), ('cumulative', '<u8'), "
      "('effective_tokens', '<u8'), ('lr', '<f8')]",
      wide ? 4 : 2);
}
constexpr std::size_t step_bytes(bool wide) { return 4 + (wide ? 4 : 2) + 4 * 8; }

/// Copies fields to or from a row of bytes.
template <class Byte>
class Fields {
 public:
  explicit Fields(Byte* at) : at_(at) {}
  template <class T>
  void put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  Byte* at_;
};

}  // namespace

bool is_ltd_folder(const std::string& path) { return has_manifest_of(path, kLtdFormat); }

std::string plateaus_to_json(const std::vector<LtdPlateau>& plateaus) {
  JsonWriter json;
  json.begin_array();
  for (const LtdPlateau& plateau : plateaus) {
    json.begin_object(true);
    json.member("kept", plateau.shape.kept).member("row_tokens", plateau.shape.row_tokens).member("pieces", plateau.shape.pieces);
    json.member("first_step", plateau.first_step).member("steps", plateau.steps);
    json.key("layer_tokens_per_step");
    if (plateau.layer_tokens_per_step >= 0) {
      json.value(plateau.layer_tokens_per_step);
    } else {
      json.null();
    }
    json.member("layer_tokens", plateau.layer_tokens);
    json.end_object();
  }
  json.end_array();
  return json.take() + "\n";
}

std::vector<LtdPlateau> plateaus_from_json(const std::string& text, const std::string& path) {
  const Json list = Json::parse(text, path);
  std::vector<LtdPlateau> plateaus(list.size());
  for (std::size_t p = 0; p < plateaus.size(); ++p) {
    const Json json = list.at(p);
    LtdPlateau& plateau = plateaus[p];
    plateau.shape = {read_count(json, "row_tokens"), read_count(json, "pieces"), read_count(json, "kept")};
    plateau.first_step = read_count(json, "first_step");
    plateau.steps = read_count(json, "steps");
    if (!json.at("layer_tokens_per_step").is_null()) plateau.layer_tokens_per_step = read_count(json, "layer_tokens_per_step");
    plateau.layer_tokens = read_count(json, "layer_tokens");
  }
  return plateaus;
}

void steps_to_npy(const std::vector<LtdStep>& steps, const std::function<void(std::string_view)>& use) {
  constexpr std::size_t kPieceSteps = 1 << 16;
  const bool wide = std::any_of(steps.begin(), steps.end(), [](const LtdStep& step) { return step.kept > kMaxU16; });
  use(make_npy_header(steps_descr(wide), {static_cast<std::int64_t>(steps.size())}));
  std::string piece;
  for (std::size_t begin = 0; begin < steps.size(); begin += kPieceSteps) {
    const std::size_t end = std::min(begin + kPieceSteps, steps.size());
    piece.resize((end - begin) * step_bytes(wide));
    Fields fields(piece.data());
    for (std::size_t s = begin; s < end; ++s) {
      const LtdStep& step = steps[s];
      fields.put(static_cast<std::uint32_t>(s));
      if (wide) {
        fields.put(static_cast<std::uint32_t>(step.kept));
      } else {
        fields.put(static_cast<std::uint16_t>(step.kept));
      }
      fields.put(static_cast<std::uint64_t>(step.layer_tokens));
      fields.put(static_cast<std::uint64_t>(step.cumulative));
      fields.put(static_cast<std::uint64_t>(step.effective_tokens));
      fields.put(step.learning_rate);
    }
    use(piece);
  }
}

std::vector<LtdStep> steps_from_npy(std::string_view bytes, const std::string& path) {
  const NpyHeader header = parse_npy_header(bytes, static_cast<std::int64_t>(bytes.size()), path);
  const bool wide = header.descr == steps_descr(true);
  if (!wide && header.descr != steps_descr(false)) throw Error(ErrorCode::bad_data, "not the fields of a table of steps", path);
  const std::string_view data = bytes.substr(static_cast<std::size_t>(header.data_begin));
  if (header.shape.size() != 1 || data.size() % step_bytes(wide) != 0 ||
      static_cast<std::int64_t>(data.size() / step_bytes(wide)) != header.shape[0]) {
    throw Error(ErrorCode::bad_data, "the header's shape and the bytes after it differ", path);
  }
  std::vector<LtdStep> steps(data.size() / step_bytes(wide));
  Fields fields(data.data());
  const auto count = [&](std::size_t s) {
    const auto value = fields.take<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::bad_data, "a count above 2^63", path,
                  fmt::format("step {}", with_commas(static_cast<std::int64_t>(s))));
    }
    return static_cast<std::int64_t>(value);
  };
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto number = fields.take<std::uint32_t>();
    if (number != s) {
      throw Error(ErrorCode::bad_data, fmt::format("expected step {}, found {}", s, number), path, fmt::format("entry {}", s));
    }
    steps[s].kept = wide ? fields.take<std::uint32_t>() : fields.take<std::uint16_t>();
    steps[s].layer_tokens = count(s);
    steps[s].cumulative = count(s);
    steps[s].effective_tokens = count(s);
    steps[s].learning_rate = fields.take<double>();
  }
  return steps;
}

std::string selection_to_json(const LtdSetup& setup, const std::vector<KeptSample>& samples) {
  JsonWriter json;
  json.begin_object();
  json.member("format", "shardpack-ltd-selection").member("format_version", 1);
  json.member("rng", "philox4x32-10").key("seed").raw(std::to_string(setup.seed));
  json.member("key", "low 32 bits of the seed, high 32 bits of the seed");
  json.member("counter", "slot >> 1, row of the global batch, layer, step");
  json.member("slot_key", "even slot: word1 << 32 | word0; odd slot: word3 << 32 | word2");
  json.member("rule", "the smallest keys are kept, in ascending order of slots");
  json.member("mode", kKeptModes[static_cast<std::size_t>(setup.mode)]);
  json.member("quota_offset", "counter 0xffffffff, row, 0xffffffff, step; ((word1 << 32 | word0) * tokens) >> 64");
  json.member("global_batch", setup.schedule.global_batch()).member("row_tokens", setup.schedule.seq_length);
  json.key("layer_ids").begin_array(true);
  for (const std::int64_t id : setup.layer_ids) json.value(id);
  json.end_array();
  json.key("samples").begin_array();
  for (const KeptSample& sample : samples) {
    std::int64_t sum = 0;
    for (const std::uint32_t slot : sample.slots) sum += slot;
    const std::string_view bytes(reinterpret_cast<const char*>(sample.slots.data()), sample.slots.size() * sizeof(std::uint32_t));
    json.begin_object(true);
    json.member("step", sample.place.step).member("layer", sample.place.layer).member("row", sample.place.row);
    json.member("kept", static_cast<std::int64_t>(sample.slots.size()));
    json.key("first").begin_array();
    for (std::size_t i = 0; i < std::min<std::size_t>(sample.slots.size(), 8); ++i) json.value(std::int64_t{sample.slots[i]});
    json.end_array().member("sum", sum).member("xxh3_128", hash_hex(bytes));
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

IdType slot_type(std::int64_t row_tokens) { return row_tokens <= kMaxU16 ? IdType::u16 : IdType::u32; }

std::string kept_file_name(std::int64_t step) { return fmt::format("{}/{:08}.npy", kKeptFolder, step); }

}  // namespace shardpack
