// What a trainer reads of a row, column by column, on rows small enough to be written out by hand.
#include "core/trainer_rows.h"

#include <map>
#include <span>
#include <string>

#include "shardpack/error.h"
#include "support/catch.h"

namespace shardpack {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr Length kRow = 8;

template <class T>
void put(ByteBuffer& bytes, const std::vector<T>& values) {
  const std::span<const std::byte> stored = std::as_bytes(std::span(values));
  bytes.assign(stored.begin(), stored.end());
}

/// Two rows of 8: segments of 3 and 2 tokens, and one of 8. The pad id is 9.
RowBlock block_of(const std::vector<ColumnValues>& columns = {}) {
  RowBlock block;
  block.rows = 2;
  block.row_tokens = kRow;
  put<std::uint16_t>(block.ids, {11, 12, 13, 21, 22, 9, 9, 9, 31, 32, 33, 34, 35, 36, 37, 38});
  block.row_begin = {0, 2, 3};
  block.segments = {
      {.record = 4, .tokens = 3, .slots = 3}, {.record = 5, .tokens = 2, .slots = 2}, {.record = 6, .tokens = 8, .slots = 8}};
  block.columns = columns;
  return block;
}

const std::vector<Column> kLabels{{"labels", ColumnKind::token, ValueType::i32, Alignment::minus100}};
ColumnValues label_values() {
  ColumnValues values;
  put<std::int32_t>(values.bytes, {11, 12, -100, -100, 22, -100, -100, -100, -100, -100, 33, 34, 35, 36, 37, 38});
  return values;
}
const std::vector<Column> kMask{{"loss_mask", ColumnKind::token, ValueType::u8, Alignment::plain}};
ColumnValues mask_values(std::uint8_t one = 1) {
  ColumnValues values;
  put<std::uint8_t>(values.bytes, {one, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  return values;
}

SequenceIndex index_of_records() {
  SourceFile file;
  file.name = "a.jsonl";
  for (std::int64_t record = 0; record <= 7; ++record) file.record_begin.push_back(8 * record);
  return SequenceIndex({file});
}

struct Output {
  std::map<std::string, std::vector<Numbers>> columns;  // rows by name
  std::int64_t hidden = 0;
  ByteBuffer first_values;
};

template <class T>
Numbers numbers(const ListValues& list, std::size_t row) {
  const auto* const values = reinterpret_cast<const T*>(list.values.data());
  return Numbers(values + list.begin[row], values + list.begin[row + 1]);
}

Output convert(std::string_view preset, const std::vector<Column>& columns = {}, const std::vector<ColumnValues>& values = {},
               std::int64_t refused_eos = -1, std::uint32_t position_start = 0) {
  const Preset& chosen = find_preset(preset);
  OutputRules rules = output_rules(chosen, chosen.containers.front(), columns, IdType::u16);
  rules.row_tokens = kRow;
  rules.entry_width = 4;
  rules.segment_width = 3;
  rules.position_start = position_start;
  rules.refuses_inner_eos = refused_eos >= 0;
  rules.eos_id = static_cast<std::uint32_t>(refused_eos);
  RowBlock block = block_of(values);
  TrainerRows rows = trainer_rows(block, rules, columns, index_of_records());
  REQUIRE(rows.columns.size() == rules.columns.size());
  Output output{{}, rows.hidden_labels, std::move(rows.first_values)};
  for (std::size_t c = 0; c < rules.columns.size(); ++c) {
    const ListValues& list = rows.columns[c];
    REQUIRE(list.begin.size() == 3);
    for (std::size_t row = 0; row < 2; ++row) {
      std::vector<Numbers>& out = output.columns[std::string(rules.columns[c].name)];
      switch (rules.columns[c].type) {
        case ValueType::i8:
          out.push_back(numbers<std::int8_t>(list, row));
          break;
        case ValueType::u16:
          out.push_back(numbers<std::uint16_t>(list, row));
          break;
        case ValueType::i64:
          out.push_back(numbers<std::int64_t>(list, row));
          break;
        default:
          out.push_back(numbers<std::int32_t>(list, row));
      }
    }
  }
  return output;
}

std::string refusal(std::string_view preset, const std::vector<Column>& columns, const std::vector<ColumnValues>& values = {},
                    ErrorCode code = ErrorCode::usage) {
  try {
    convert(preset, columns, values);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

constexpr std::int64_t kNo = -100;
const Numbers kFirstIds{11, 12, 13, 21, 22, 9, 9, 9}, kSecondIds{31, 32, 33, 34, 35, 36, 37, 38};

TEST_CASE("without labels the ids are the labels, and the first of every segment is hidden where the model shifts") {
  const Output hf = convert("hf");
  CHECK(hf.columns.size() == 3);
  CHECK(hf.columns.at("input_ids") == std::vector<Numbers>{kFirstIds, kSecondIds});
  CHECK(hf.columns.at("position_ids") == std::vector<Numbers>{{0, 1, 2, 0, 1, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(hf.columns.at("labels") ==
        std::vector<Numbers>{{kNo, 12, 13, kNo, 22, kNo, kNo, kNo}, {kNo, 32, 33, 34, 35, 36, 37, 38}});
  CHECK(hf.hidden == 3);
  CHECK(hf.first_values.empty());
}

TEST_CASE("positions that start later do so on padding too, and nothing is below the first of a segment") {
  CHECK(convert("hf", {}, {}, -1, 2).columns.at("position_ids") ==
        std::vector<Numbers>{{2, 3, 4, 2, 3, 2, 2, 2}, {2, 3, 4, 5, 6, 7, 8, 9}});
}

TEST_CASE("an attention mask beside positions would join what they tell apart") {
  const Output axolotl = convert("axolotl");
  CHECK(axolotl.columns.size() == 3);
  CHECK(axolotl.columns.count("attention_mask") == 0);
  CHECK(axolotl.columns.at("position_ids") == std::vector<Numbers>{{0, 1, 2, 0, 1}, {0, 1, 2, 3, 4, 5, 6, 7}});
}

TEST_CASE("labels of the sources are kept, and what is hidden of them is counted and given back") {
  const Output hf = convert("hf", kLabels, {label_values()});
  CHECK(hf.columns.at("labels") ==
        std::vector<Numbers>{{kNo, 12, kNo, kNo, 22, kNo, kNo, kNo}, {kNo, kNo, 33, 34, 35, 36, 37, 38}});
  CHECK(hf.hidden == 1);
  REQUIRE(hf.first_values.size() == 3 * sizeof(std::int32_t));
  const auto* const first = reinterpret_cast<const std::int32_t*>(hf.first_values.data());
  CHECK(Numbers(first, first + 3) == Numbers{11, kNo, kNo});
}

TEST_CASE("a mask of 0 and 1 makes labels of the ids") {
  CHECK(convert("hf", kMask, {mask_values()}).columns == convert("hf", kLabels, {label_values()}).columns);
  CHECK(convert("torchtune", kMask, {mask_values()}).columns == convert("torchtune", kLabels, {label_values()}).columns);
}

TEST_CASE("TRL's rows hold no padding, and labels only where there are some") {
  const Output plain = convert("trl");
  CHECK(plain.columns.size() == 2);
  CHECK(plain.columns.at("input_ids") == std::vector<Numbers>{{11, 12, 13, 21, 22}, kSecondIds});
  CHECK(plain.columns.at("seq_lengths") == std::vector<Numbers>{{3, 2}, {8}});
  const Output labelled = convert("trl", kLabels, {label_values()});
  CHECK(labelled.columns.at("labels") == std::vector<Numbers>{{11, 12, kNo, kNo, 22}, {kNo, kNo, 33, 34, 35, 36, 37, 38}});
  CHECK(labelled.hidden == 0);
}

TEST_CASE("shifted labels end every segment with nothing to learn") {
  const Output tune = convert("torchtune", kLabels, {label_values()});
  CHECK(tune.columns.at("labels") ==
        std::vector<Numbers>{{12, kNo, kNo, 22, kNo, kNo, kNo, kNo}, {kNo, 33, 34, 35, 36, 37, 38, kNo}});
  CHECK(tune.columns.at("seq_lens") == std::vector<Numbers>{{3, 2, 3}, {8}});
  CHECK(tune.hidden == 1);
  const Output text = convert("maxtext", kLabels, {label_values()});
  CHECK(text.columns.at("targets") == std::vector<Numbers>{{12, 0, 0, 22, 0, 0, 0, 0}, {0, 33, 34, 35, 36, 37, 38, 0}});
  CHECK(text.columns.at("inputs_segmentation") == std::vector<Numbers>{{1, 1, 1, 2, 2, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}});
  CHECK(text.columns.at("targets_segmentation") == std::vector<Numbers>{{1, 0, 0, 2, 0, 0, 0, 0}, {0, 1, 1, 1, 1, 1, 1, 0}});
}

TEST_CASE("numbered masks") {
  CHECK(convert("llamafactory").columns.at("attention_mask") ==
        std::vector<Numbers>{{1, 1, 1, 2, 2, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}});
  CHECK(convert("mlm").columns.at("segment_ids") == std::vector<Numbers>{{1, 1, 1, 2, 2, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}});
}

TEST_CASE("labels that are shifted already come out as if they were not") {
  const std::vector<Column> shifted{{"labels", ColumnKind::token, ValueType::i32, Alignment::target_shifted}};
  ColumnValues values;  // each the label of the next token; -100 is none, and 0 is a token like any other
  put<std::int32_t>(values.bytes, {12, 0, -100, 22, -100, -100, -100, -100, 32, 33, 34, 35, 36, 37, 38, -100});
  const Output hf = convert("hf", shifted, {values});
  CHECK(hf.columns.at("labels") == std::vector<Numbers>{{kNo, 12, 0, kNo, 22, kNo, kNo, kNo}, {kNo, 32, 33, 34, 35, 36, 37, 38}});
  CHECK(hf.hidden == 0);
  CHECK(hf.first_values.empty());
  put<std::int32_t>(values.bytes, {12, 0, 7, 22, -100, -100, -100, -100, 32, 33, 34, 35, 36, 37, 38, -100});
  CHECK(refusal("hf", shifted, {values}).find("a.jsonl: record 4, token 2") != std::string::npos);
}

TEST_CASE("a mask of targets says with 0 that there is none") {
  const std::vector<Column> shifted{{"loss_mask", ColumnKind::token, ValueType::u8, Alignment::target_shifted}};
  ColumnValues values;
  put<std::uint8_t>(values.bytes, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0});
  const Output bridge = convert("bridge", shifted, {values});
  CHECK(bridge.columns.at("loss_mask") == std::vector<Numbers>{{1, 0, 0, 1, 0}, {1, 1, 1, 1, 1, 1, 1, 0}});
  CHECK(convert("hf", shifted, {values}).columns.at("labels")[0] == Numbers{kNo, 12, kNo, kNo, 22, kNo, kNo, kNo});
}

TEST_CASE("what a preset cannot hold is refused with a way out") {
  CHECK(refusal("mlm", kLabels).find("--columns") != std::string::npos);
  CHECK(refusal("megatron", kMask).find("no labels and no mask") != std::string::npos);
  const std::vector<Column> both{kLabels[0], kMask[0]};
  CHECK(refusal("hf", both).find("loss_mask") != std::string::npos);
  const std::vector<Column> weights{{"loss_weights", ColumnKind::token, ValueType::f32, Alignment::plain}};
  CHECK(refusal("hf", weights).find("fractions") != std::string::npos);
  CHECK(refusal("hf", kMask, {mask_values(2)}).find("a.jsonl: record 4, token 0") != std::string::npos);
}

TEST_CASE("a mask alone cannot hold labels that differ from the ids") {
  ColumnValues other = label_values();
  CHECK(refusal("bridge", kLabels, {other}).empty());
  reinterpret_cast<std::int32_t*>(other.bytes.data())[1] = 77;
  CHECK(refusal("bridge", kLabels, {other}).find("77") != std::string::npos);
  CHECK(refusal("hf", kLabels, {other}).empty());
}

TEST_CASE("an EOS inside of a sequence is found, one at its end is right") {
  CHECK_NOTHROW(convert("megatron", {}, {}, 13));
  CHECK_NOTHROW(convert("megatron", {}, {}, 9));  // padding
  try {
    convert("megatron", {}, {}, 34);
    FAIL("it is inside of record 6");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(error.position() == "record 6, token 3");
  }
}

// ---- masked tokens and next sentences -----------------------------------------------------------------------------------------

template <class T>
ColumnValues listed(const std::vector<T>& values, std::vector<std::int64_t> begin) {
  ColumnValues result;
  put(result.bytes, values);
  result.begin = std::move(begin);
  return result;
}

const std::vector<Column> kMasked{
    {"masked_lm_ids", ColumnKind::list, ValueType::u8, Alignment::plain, "masked_lm_positions"},
    {"masked_lm_positions", ColumnKind::list, ValueType::i32, Alignment::plain, "masked_lm_positions"},
    {"masked_lm_weights", ColumnKind::list, ValueType::f32, Alignment::plain, "masked_lm_positions"},
    {"next_sentence_label", ColumnKind::sequence, ValueType::u8},
    {"token_type_ids", ColumnKind::token, ValueType::u8}};

/// Behind seven values of the shard's blocks before: slots 1, then 3 and 4, of the second row 2 and once 0 of no weight.
std::vector<ColumnValues> masked_values(float weight = 1) {
  ColumnValues next, types;
  put<std::uint8_t>(next.bytes, {1, 0, 1});
  put<std::uint8_t>(types.bytes, {0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1});
  const std::vector<std::int64_t> begin{7, 8, 10, 12};
  return {listed<std::uint8_t>({51, 52, 53, 54, 99}, begin), listed<std::int32_t>({1, 3, 4, 2, 0}, begin),
          listed<float>({weight, 1, 1, 1, 0}, begin), next, types};
}

TEST_CASE("bert: masked tokens and segments have a fixed number of places in every row") {
  std::map<std::string, std::vector<Numbers>> found = convert("bert", kMasked, masked_values()).columns;
  CHECK(found["input_mask"] == std::vector<Numbers>{{1, 1, 1, 2, 2, 0, 0, 0}, Numbers(8, 1)});
  CHECK(found["token_type_ids"] == std::vector<Numbers>{{0, 1, 1, 0, 1, 0, 0, 0}, {0, 0, 0, 0, 1, 1, 1, 1}});
  CHECK(found["position_ids"][0] == Numbers{0, 1, 2, 0, 1, 0, 0, 0});
  CHECK(found["masked_lm_positions"] == std::vector<Numbers>{{1, 3, 4, 0}, {2, 0, 0, 0}});
  CHECK(found["masked_lm_ids"] == std::vector<Numbers>{{51, 52, 53, 0}, {54, 0, 0, 0}});
  CHECK(found["masked_lm_weights"] == std::vector<Numbers>{{1, 2, 2, 0}, {1, 0, 0, 0}});
  CHECK(found["next_sentence_positions"] == std::vector<Numbers>{{0, 3, 0}, {0, 0, 0}});
  CHECK(found["next_sentence_labels"] == std::vector<Numbers>{{1, 0, 0}, {1, 0, 0}});
  CHECK(found["next_sentence_weights"] == std::vector<Numbers>{{1, 2, 0}, {1, 0, 0}});
  CHECK(found.size() == 10);
}

TEST_CASE("bert: what the sources do not have is left out, or missed") {
  const std::vector<Column> least(kMasked.begin(), kMasked.begin() + 2);
  std::vector<ColumnValues> values = masked_values();
  values.resize(2);
  std::map<std::string, std::vector<Numbers>> found = convert("bert", least, values).columns;
  CHECK(found.size() == 8);
  CHECK_FALSE(found.contains("next_sentence_labels"));
  CHECK(found["masked_lm_weights"] == std::vector<Numbers>{{1, 2, 2, 0}, {1, 1, 0, 0}});
  CHECK(refusal("bert", {kMasked[1]}).find("no column masked_lm_ids") != std::string::npos);
  CHECK(refusal("bert", kMasked, masked_values(0.5F)).find("masked_lm_weights is 0.5, and there is room for 0 and 1") !=
        std::string::npos);
  std::vector<Column> apart = kMasked;
  apart[0].places.clear();
  CHECK(refusal("bert", apart).find("masked_lm_ids: a list is expected whose values go with masked_lm_positions") !=
        std::string::npos);
}

}  // namespace
}  // namespace shardpack
