// Columns in files beside flat token ids: which shapes they have, what is refused, what --limit and an attention mask leave.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "io/column_choice.h"
#include "io/input_list.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

const Sequences kThree{{5, 6, 7}, {8}, {9, 10}};
constexpr std::int64_t kTokens = 6;

template <class T>
std::string list_of(const std::string& descr, const std::vector<T>& values) {
  return npy_file(descr, {static_cast<std::int64_t>(values.size())}, values);
}

template <class T>
std::vector<T> typed(const ByteBuffer& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
std::vector<T> tokens_of(const SequenceSource& source, std::size_t column, SequenceId sequence) {
  const std::int64_t tokens = source.index().place(sequence).tokens;
  std::vector<T> values(static_cast<std::size_t>(tokens));
  const std::vector<TokenRequest> request{{.sequence = sequence, .first_token = 0, .tokens = tokens, .destination = 0}};
  source.read_tokens(column, request, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("columns lie beside the data file, a value a token or a value a sequence") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", kThree);
  const std::int64_t bytes_alone = opener.open({path}).source->index().files()[0].bytes;
  const std::string labels = list_of<std::int16_t>(">i2", {0x0500, 0x0600, 0x0700, 0x0800, 0x0900, 0x0A00});
  folder.write("a.labels.npy", labels);
  folder.write("a.flag.npy", list_of<std::uint8_t>("|b1", {1, 0, 1}));
  folder.write("a.weight.npy", list_of<std::uint16_t>("<f2", {0x3C00, 0x3800, 0, 0xC000, 0x3C00, 0x3C00}));
  folder.write("a.name.npy", make_npy_header("<U1", {3}) + std::string(12, '\0'));
  for (const std::string& argument : {path, folder.path("")}) {
    const ScannedSource scanned = opener.open({argument});
    const SequenceSource& source = *scanned.source;
    REQUIRE(source.columns().size() == 3);
    CHECK((source.columns()[0] == Column{"flag", ColumnKind::sequence, ValueType::u8, Alignment::plain}));
    CHECK((source.columns()[1] == Column{"labels", ColumnKind::token, ValueType::i32, Alignment::minus100}));
    CHECK((source.columns()[2] == Column{"weight", ColumnKind::token, ValueType::f32, Alignment::plain}));
    CHECK(scanned.not_carried == std::vector<std::string>{"name"});
    CHECK(scanned.loss_tokens == kTokens);
    const std::vector<SequenceId> two{0, 2};
    CHECK(typed<std::uint8_t>(source.read_values(0, two).bytes) == std::vector<std::uint8_t>{1, 1});
    CHECK(tokens_of<std::int32_t>(source, 1, 2) == std::vector<std::int32_t>{9, 10});
    CHECK(tokens_of<float>(source, 2, 0) == std::vector<float>{1, 0.5f, 0});
    // They count in the file's bytes and hash.
    CHECK(source.index().files()[0].bytes > bytes_alone);
  }
  const std::string hash = opener.open({path}).source->index().files()[0].hash;
  folder.write("a.flag.npy", list_of<std::uint8_t>("|b1", {1, 1, 1}));
  CHECK(opener.open({path}).source->index().files()[0].hash != hash);

  ReadOptions none;
  none.columns.which = ColumnChoice::Which::none;
  CHECK(opener.open({path}, none).source->columns().empty());
  CHECK(opener.open({path}, none).not_carried == std::vector<std::string>{"flag", "labels", "name", "weight"});
  CHECK(opener.open({path}, none).source->index().files()[0].bytes == bytes_alone);
  ReadOptions list;
  list.columns = {.which = ColumnChoice::Which::named, .names = {{"weight", ColumnKind::list, {}}}};
  const ScannedSource as_list = opener.open({path}, list);
  CHECK(as_list.source->columns()[0].kind == ColumnKind::list);
  const std::vector<SequenceId> last{2};
  CHECK(typed<float>(as_list.source->read_values(0, last).bytes) == std::vector<float>{1, 1});
  CHECK(as_list.source->value_count(0, 2) == 2);

  for (ReadOptions options : {ReadOptions{}, list}) {
    options.limit = 2;
    const ScannedSource cut = opener.open({path}, options);
    CHECK(cut.source->index().sequences() == 2);
    CHECK(cut.source->columns().size() == (options.columns.names.empty() ? 3u : 1u));
  }
  ReadOptions limited;
  limited.limit = 2;
  const ScannedSource cut = opener.open({path}, limited);
  CHECK(cut.loss_tokens == 4);
  CHECK(typed<std::uint8_t>(cut.source->read_values(0, std::vector<SequenceId>{1}).bytes) == std::vector<std::uint8_t>{1});
}

TEST_CASE("an array of rows has columns of the same rows") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.npy", npy_file<std::uint16_t>("<u2", {2, 3}, {1, 2, 3, 4, 5, 6}));
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {2, 3}, {1, 2, 3, 4, -100, 6}));
  folder.write("a.reward.npy", list_of<double>("<f8", {0.5, 1}));
  const ScannedSource scanned = opener.open({folder.path("")});
  CHECK(scanned.loss_tokens == 5);
  CHECK(tokens_of<std::int32_t>(*scanned.source, 0, 1) == std::vector<std::int32_t>{4, -100, 6});
  CHECK(scanned.source->columns()[1].kind == ColumnKind::sequence);
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {3, 2}, {1, 2, 3, 4, -100, 6}));
  CHECK(contains(opener.failure({path}).what, "a.labels.npy: shape (3, 2)"));
}

TEST_CASE("an attention mask beside flat ids takes padding out of them and of their columns") {
  const TempFolder folder;
  ShardOpener opener;
  folder.write("a.npy", npy_file<std::uint16_t>("<u2", {3, 3}, {1, 2, 0, 0, 5, 6, 0, 0, 0}));
  folder.write("a.attention_mask.npy", npy_file<std::uint8_t>("|u1", {3, 3}, {1, 1, 0, 0, 1, 1, 0, 0, 0}));
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {3, 3}, {1, 2, -100, 7, -100, 6, -100, -100, 8}));
  folder.write("a.score.npy", list_of<float>("<f4", {1, 2, 3}));
  const ScannedSource scanned = opener.open({folder.path("a.npy")});
  CHECK(ShardOpener::sequences_of(*scanned.source) == Sequences{{1, 2}, {5, 6}, {}});
  CHECK(scanned.padding.sequences == 3);
  CHECK(scanned.padding.tokens == 5);
  CHECK(scanned.padding.loss_tokens == 2);
  CHECK(scanned.loss_tokens == 3);
  CHECK(scanned.totals.id_min == 1);
  CHECK(tokens_of<std::int32_t>(*scanned.source, 0, 1) == std::vector<std::int32_t>{-100, 6});
  CHECK(scanned.source->columns().size() == 2);
  // The same as in JSON lines, values and fingerprint.
  const std::string lines =
      folder.write("b.jsonl",
                   "{\"input_ids\":[1,2,0],\"attention_mask\":[1,1,0],\"labels\":[1,2,-100],\"score\":1.0}\n"
                   "{\"input_ids\":[0,5,6],\"attention_mask\":[0,1,1],\"labels\":[7,-100,6],\"score\":2.0}\n"
                   "{\"input_ids\":[0,0,0],\"attention_mask\":[0,0,0],\"labels\":[-100,-100,8],\"score\":3.0}\n");
  const ScannedSource expected = opener.open({lines});
  CHECK(scanned.totals.fingerprint == expected.totals.fingerprint);
  CHECK(scanned.padding.loss_tokens == expected.padding.loss_tokens);
  CHECK(scanned.loss_tokens == expected.loss_tokens);

  // --limit reads no further, of the padding either.
  ReadOptions two;
  two.limit = 2;
  CHECK(opener.open({folder.path("a.npy")}, two).padding.tokens == 2);
  CHECK(opener.open({folder.path("a.npy")}, two).padding.loss_tokens == 1);
  CHECK(opener.open({folder.path("a.npy")}, two).totals.fingerprint == opener.open({lines}, two).totals.fingerprint);
  two.columns = parse_column_choice("aligned,labels:list");  // a list is whole, whatever the mask says
  CHECK(opener.open({folder.path("a.npy")}, two).totals.fingerprint == opener.open({lines}, two).totals.fingerprint);

  folder.write("a.attention_mask.npy", npy_file<std::uint8_t>("|u1", {3, 3}, {1, 1, 0, 0, 2, 1, 0, 0, 0}));
  CHECK(contains(opener.failure({folder.path("a.npy")}).what, "a.attention_mask.npy: element 4: 2; expected 0 or 1"));
  folder.write("a.attention_mask.npy", list_of<std::uint8_t>("|u1", {1, 1, 0}));
  CHECK(contains(opener.failure({folder.path("a.npy")}).what, "for each token of a.npy"));
}

/// The values of a list column, of every sequence.
template <class T>
std::vector<std::vector<T>> lists_of(const SequenceSource& source, std::size_t column) {
  std::vector<SequenceId> all(static_cast<std::size_t>(source.index().sequences()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<SequenceId>(i);
  const ColumnValues values = source.read_values(column, all);
  const std::vector<T> flat = typed<T>(values.bytes);
  std::vector<std::vector<T>> lists;
  for (std::size_t i = 0; i < all.size(); ++i)
    lists.emplace_back(flat.begin() + values.begin[i], flat.begin() + values.begin[i + 1]);
  return lists;
}

using Lists = std::vector<std::vector<std::int32_t>>;

TEST_CASE("an array of a row for each sequence is a list of equal length for each") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", kThree);
  folder.write("a.spans.npy", npy_file<std::int16_t>(">i2", {3, 2}, {0x0100, 0x0200, 0x0300, 0x0400, 0x0500, 0x0600}));
  CHECK(opener.open({path}).source->columns().empty());  // lists are carried on request
  CHECK(opener.open({path}).not_carried == std::vector<std::string>{"spans"});
  ReadOptions options;
  options.columns = parse_column_choice("aligned,spans");
  const ScannedSource scanned = opener.open({folder.path("")}, options);
  REQUIRE(scanned.source->columns().size() == 1);
  CHECK(scanned.source->columns()[0].kind == ColumnKind::list);
  CHECK(typed<std::uint8_t>(scanned.source->read_values(0, std::vector<SequenceId>{2, 0}).bytes) ==
        std::vector<std::uint8_t>{5, 6, 1, 2});
  const std::string lines = folder.write("b.jsonl",
                                         "{\"input_ids\":[5,6,7],\"spans\":[1,2]}\n{\"input_ids\":[8],\"spans\":[3,4]}\n"
                                         "{\"input_ids\":[9,10],\"spans\":[5,6]}\n");
  CHECK(scanned.totals.fingerprint == opener.open({lines}, options).totals.fingerprint);
  options.limit = 1;
  CHECK(opener.open({path}, options).source->value_count(0, 0) == 2);

  // As long as the ids in every sequence: a value a token, as in any format, unless it is said to be a list.
  const std::string equal = write_npy<std::uint16_t>(folder, "e", "<u2", {{1, 2}, {3, 4}});
  folder.write("e.spans.npy", npy_file<std::uint8_t>("|u1", {2, 2}, {1, 2, 3, 4}));
  options = {};
  options.columns = parse_column_choice("aligned,spans");
  CHECK(opener.open({equal}, options).source->columns()[0].kind == ColumnKind::token);
  CHECK(tokens_of<std::uint8_t>(*opener.open({equal}, options).source, 0, 1) == std::vector<std::uint8_t>{3, 4});
  options.columns = parse_column_choice("aligned,spans:list");
  CHECK(opener.open({equal}, options).source->columns()[0].kind == ColumnKind::list);

  // A list where a value a token is due.
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(contains(opener.failure({path}).what,
                 "a.labels.npy: record 0: labels has 2 values for 3 token ids; --columns labels:list carries it"));
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {3, 0}, std::vector<std::int32_t>()));
  CHECK(contains(opener.failure({path}).what, "labels has 0 values for 3 token ids"));
}

TEST_CASE("arrays of positions go with their tokens, and nothing is guessed of what fills them up") {
  const TempFolder folder;
  ShardOpener opener;
  ReadOptions options;
  options.positions_columns = {"masked_positions"};
  const std::string path = folder.write("a.npy", npy_file<std::uint16_t>("<u2", {3, 4}, {1, 2, 3, 0, 0, 5, 6, 7, 8, 0, 0, 0}));
  folder.write("a.attention_mask.npy", npy_file<std::uint8_t>("|u1", {3, 4}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0}));
  folder.write("a.masked_positions.npy", npy_file<std::uint8_t>("|u1", {3, 2}, {0, 2, 1, 3, 0, 3}));
  folder.write("a.masked_ids.npy", npy_file<std::int32_t>("<i4", {3, 2}, {10, 11, 12, 13, 14, 15}));
  const ScannedSource scanned = opener.open({folder.path("")}, options);
  const SequenceSource& source = *scanned.source;
  REQUIRE(source.columns().size() == 2);
  CHECK((source.columns()[1] ==
         Column{"masked_positions", ColumnKind::list, ValueType::i32, Alignment::plain, "masked_positions"}));
  CHECK(lists_of<std::int32_t>(source, 1) == Lists{{0, 2}, {0, 2}, {0}});
  CHECK(lists_of<std::uint8_t>(source, 0) == std::vector<std::vector<std::uint8_t>>{{10, 11}, {12, 13}, {14}});
  CHECK(scanned.padding.loss_tokens == 1);
  CHECK(scanned.loss_tokens == 5);
  const std::string lines =
      folder.write("b.jsonl",
                   "{\"input_ids\":[1,2,3,0],\"attention_mask\":[1,1,1,0],\"masked_positions\":[0,2],\"masked_ids\":[10,11]}\n"
                   "{\"input_ids\":[0,5,6,7],\"attention_mask\":[0,1,1,1],\"masked_positions\":[1,3],\"masked_ids\":[12,13]}\n"
                   "{\"input_ids\":[8,0,0,0],\"attention_mask\":[1,0,0,0],\"masked_positions\":[0,3],\"masked_ids\":[14,15]}\n");
  CHECK(scanned.totals.fingerprint == opener.open({lines}, options).totals.fingerprint);
  CHECK(scanned.padding.loss_tokens == opener.open({lines}, options).padding.loss_tokens);
  ReadOptions two = options;
  two.limit = 2;
  CHECK(opener.open({path}, two).totals.fingerprint == opener.open({lines}, two).totals.fingerprint);
  CHECK(lists_of<std::int32_t>(*opener.open({path}, two).source, 1) == Lists{{0, 2}, {0, 2}});

  const auto refused = [&](const std::string& part) {
    const ShardOpener::Failure failed = opener.failure({path}, options);
    CHECK(failed.code == ErrorCode::bad_data);
    CHECK(contains(failed.what, part));
  };
  folder.write("a.masked_positions.npy", npy_file<std::uint8_t>("|u1", {3, 2}, {0, 2, 1, 0, 0, 0}));
  refused("a.masked_positions.npy: record 1: masked_positions[1] is 0 behind 1");
  refused("A column masked_weights tells");
  folder.write("a.masked_weights.npy", npy_file<float>("<f4", {3, 2}, {1, 1, 1, 0, 1, 0}));
  CHECK(lists_of<std::int32_t>(*opener.open({path}, options).source, 1) ==
        Lists{{0, 2}, {0}, {0, 0}});  // token 0 of record 1 is gone
  CHECK(opener.open({path}, options).loss_tokens ==
        4);  // of records 0 and 1 two and none: that of record 1 that stays has weight 0
  CHECK(opener.open({path}, options).padding.loss_tokens == 0);
  folder.write("a.masked_positions.npy", npy_file<std::uint8_t>("|u1", {3, 2}, {0, 2, 1, 4, 0, 0}));
  refused("a.npy: record 1: masked_positions[1] is 4; it is a position in a sequence of 4 tokens");
  folder.write("a.masked_positions.npy", npy_file<float>("<f4", {3, 2}, {0, 2, 1, 3, 0, 0}));
  refused("holds floating-point numbers; positions are whole numbers");
  folder.write("a.masked_positions.npy", npy_file<std::uint8_t>("|u1", {3, 3}, {0, 1, 2, 1, 2, 3, 0, 1, 2}));
  refused("masked_ids has 2 values for 3 of masked_positions");
}

TEST_CASE("loss tokens that a list tells are found and counted by their places, whatever their order") {
  const TempFolder folder;
  ShardOpener opener;
  ReadOptions options;
  options.positions_columns = {"masked_positions"};
  const std::string lines = folder.write(
      "a.jsonl",
      "{\"input_ids\":[1,2,3,4],\"masked_positions\":[3,0,1],\"masked_ids\":[10,11,12],\"masked_weights\":[1,0.5,0]}\n"
      "{\"input_ids\":[5,6,7],\"masked_positions\":[1],\"masked_ids\":[13],\"masked_weights\":[0]}\n"
      "{\"input_ids\":[],\"masked_positions\":[],\"masked_ids\":[],\"masked_weights\":[]}\n"
      "{\"input_ids\":[8,9,8],\"masked_positions\":[2,1],\"masked_ids\":[14,15],\"masked_weights\":[-1,1]}\n");
  const std::string empty =
      folder.write("b.jsonl", "{\"input_ids\":[1],\"masked_positions\":[],\"masked_ids\":[],\"masked_weights\":[]}\n");
  const auto counts = [&](const LossPart& part) {
    return opener.open({lines, empty}, options, {.random_access = false, .loss_counts = part}).loss_counts;
  };
  CHECK(counts({}) == std::vector<std::int64_t>{2, 0, 0, 2, 0});
  CHECK(counts({2, LossSide::start}) == std::vector<std::int64_t>{1, 0, 0, 1, 0});
  CHECK(counts({2, LossSide::end}) == std::vector<std::int64_t>{1, 0, 0, 2, 0});
  constexpr std::uint32_t kNone = SequenceIndex::kNoLoss;
  const auto places = [&](LossSide side) {
    const ScannedSource scanned = opener.open({lines, empty}, options, {.loss_places = side});
    std::vector<std::uint32_t> found;
    for (SequenceId s = 0; s < scanned.source->index().sequences(); ++s) found.push_back(scanned.source->index().loss_place(s));
    return found;
  };
  CHECK(places(LossSide::start) == std::vector<std::uint32_t>{0, kNone, kNone, 1, kNone});
  CHECK(places(LossSide::end) == std::vector<std::uint32_t>{0, kNone, kNone, 0, kNone});
  options.columns = parse_column_choice("masked_positions,masked_ids");  // without weights every position counts
  CHECK(opener.open({lines, empty}, options).loss_tokens == 6);
  CHECK(counts({2, LossSide::start}) == std::vector<std::int64_t>{2, 1, 0, 1, 0});
}

TEST_CASE("lists that go with positions stay lists where they are as long as the rows of ids") {
  const TempFolder folder;
  ShardOpener opener;
  ReadOptions options;
  options.positions_columns = {"masked_positions"};
  const std::string path = folder.write("a.npy", npy_file<std::uint16_t>("<u2", {2, 3}, {1, 2, 3, 4, 5, 6}));
  folder.write("a.masked_positions.npy", npy_file<std::uint8_t>("|u1", {2, 3}, {0, 2, 0, 1, 0, 0}));
  folder.write("a.masked_ids.npy", npy_file<std::int32_t>("<i4", {2, 3}, {10, 11, 0, 12, 0, 0}));
  folder.write("a.masked_weights.npy", npy_file<std::uint8_t>("|u1", {2, 3}, {1, 1, 0, 1, 0, 0}));
  const std::string lines =
      folder.write("b.jsonl",
                   "{\"input_ids\":[1,2,3],\"masked_positions\":[0,2,0],\"masked_ids\":[10,11,0],\"masked_weights\":[1,1,0]}\n"
                   "{\"input_ids\":[4,5,6],\"masked_positions\":[1,0,0],\"masked_ids\":[12,0,0],\"masked_weights\":[1,0,0]}\n");
  const ScannedSource arrays = opener.open({path}, options), json = opener.open({lines}, options);
  CHECK(arrays.source->columns().size() == 3);
  CHECK(std::ranges::equal(arrays.source->columns(), json.source->columns()));
  CHECK(arrays.totals.fingerprint == json.totals.fingerprint);
}

TEST_CASE("an array of one column is a value for each sequence") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", kThree);
  folder.write("a.label.npy", npy_file<std::int32_t>("<i4", {3, 1}, {7, 8, 9}));
  const ScannedSource scanned = opener.open({path});
  REQUIRE(scanned.source->columns().size() == 1);
  CHECK(scanned.source->columns()[0].kind == ColumnKind::sequence);
  CHECK(typed<std::uint8_t>(scanned.source->read_values(0, std::vector<SequenceId>{2, 0}).bytes) ==
        std::vector<std::uint8_t>{9, 7});
}

TEST_CASE("a column file that does not fit is named with its data file and what helps") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", kThree);
  const auto refused = [&](ErrorCode code, const std::string& part) {
    const ShardOpener::Failure failed = opener.failure({path});
    CHECK(failed.code == code);
    CHECK(contains(failed.what, part));
    CHECK(contains(failed.what, "a.labels.npy"));
  };
  folder.write("a.labels.npy", list_of<std::int32_t>("<i4", {1, 2, 3, 4, 5}));  // one short
  refused(ErrorCode::bad_data, "shape (5) is neither one value for each token of a.npy (6) nor one for each of its 3 sequences");
  refused(ErrorCode::bad_data, "--columns none");
  folder.write("a.labels.npy", npy_file<std::int32_t>("<i4", {2, 3}, {1, 2, 3, 4, 5, 6}));
  refused(ErrorCode::bad_data, "shape (2, 3)");
  folder.write("a.labels.npy", list_of<float>("<f4", {1, 2, 3, 4, 5, 6}));
  refused(ErrorCode::bad_data, "floating-point numbers");
  refused(ErrorCode::bad_data, "--columns aligned,labels:plain");
  folder.write("a.labels.npy", list_of<std::uint64_t>("<u8", {1, 2, 3, 4, 5, std::uint64_t{1} << 63}));
  refused(ErrorCode::bad_data, "record 2: the column 'labels' holds 9223372036854775808");
  folder.write("a.labels.npy", list_of<std::int32_t>("<i4", {1, 2, 3, 4, 5, 6}).substr(0, 140));
  refused(ErrorCode::bad_data, "cut short");
  folder.write("a.labels.npy", list_of<std::int32_t>("<i4", {1, 2, 3, 4, 5, 6}));
  ReadOptions named;
  named.columns = {.which = ColumnChoice::Which::named, .names = {{"lables", {}, {}}}};
  CHECK(opener.failure({path}, named).code == ErrorCode::usage);
  CHECK(contains(opener.failure({path}, named).what, "did you mean 'labels'?"));

  // As in JSON lines.
  const std::string lines = folder.write("b.jsonl", "{\"input_ids\": [1, 2], \"labels\": [1, 2.0]}\n");
  CHECK(opener.failure({lines}).code == ErrorCode::bad_data);
  CHECK(contains(opener.failure({lines}).what, "line 1: labels[1] is 2.0; labels are token ids or -100"));
  named.columns = parse_column_choice("aligned,labels:plain");
  CHECK(opener.open({lines}, named).source->columns()[0].type == ValueType::f32);

  folder.write("token_ids_part_0.npy", ids_of<std::uint16_t>(kThree));
  folder.write("token_ids_part_0.csv.gz", gzip_member("0,6\n"));
  folder.write("labels_mask_part_0.npy", std::string(5, '\1'));
  CHECK(contains(opener.failure({folder.path("token_ids_part_0.npy")}).what, "labels_mask_part_0.npy: shape (5)"));
}

TEST_CASE("a file beside another one is its column where it cannot hold token ids") {
  const TempFolder folder;
  const auto names = [&](const std::vector<std::string>& arguments, const ReadOptions& options = {}) {
    std::string all;
    for (const InputFile& file : list_inputs(arguments, options)) {
      all += file.name;
      for (const SideColumn& column : file.columns) all += "+" + column.column;
      all += " ";
    }
    return all;
  };
  const auto refused_as = [&](const std::string& argument, const std::string& column, const ReadOptions& options = {}) {
    try {
      list_inputs({argument}, options);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::usage && contains(error.what(), "--columns aligned," + column + " carries it along");
    }
  };
  const auto refused = [&](const std::string& argument, const ReadOptions& options = {}) {
    return refused_as(argument, "other", options);
  };
  const std::string data = write_npy<std::uint16_t>(folder, "a", "<u2", kThree);
  const std::string all = folder.path(""), glob = folder.path("*");
  const std::string other = folder.write("a.other.npy", list_of<float>("<f4", {1, 2, 3}));
  folder.write("a.labels.npy", list_of<std::int32_t>("<i4", {1, 2, 3, 4, 5, 6}));
  for (const std::string& argument : {all, glob, data, folder.path("*.npy"), folder.path("a.l*.npy")}) {
    CHECK(names({argument}) == "a.npy+labels+other ");
  }
  CHECK(names({data, folder.path("a.labels.npy"), other}) == "a.npy+labels+other ");  // what a shell makes of *
  CHECK(names({other}) == "a.other.npy ");                                            // who names it means it

  // Whole numbers in a list: a value a sequence, unless a delimiter would cut them into sequences.
  folder.write("a.other.npy", list_of<std::uint16_t>("<u2", {1, 2, 3}));
  CHECK(names({all}) == "a.npy+labels+other ");
  ReadOptions with_eos;
  with_eos.eos_id = 2;
  CHECK(refused(all, with_eos));
  CHECK(refused(glob, with_eos));
  CHECK(names({data, other}, with_eos) == "a.npy+labels a.other.npy ");  // two data files, and neither a column
  with_eos.columns = parse_column_choice("aligned,other");
  CHECK(names({all}, with_eos) == "a.npy+labels+other ");
  CHECK(names({data, other}, with_eos) == "a.npy+labels+other ");
  // Rows of whole numbers are token ids as well as not.
  folder.write("a.other.npy", npy_file<std::int32_t>("<i4", {2, 2}, {1, 2, 3, 4}));
  CHECK(refused(all));
  folder.write("a.other.npy", ids_of<std::uint16_t>(kThree));  // as OLMo's
  CHECK(refused(all));
  ReadOptions grouped;
  grouped.group_column = "other";
  CHECK(names({all}, grouped) == "a.npy+labels ");

  // BERT's lists, and those that go with --positions-columns, are no token ids.
  const TempFolder lists;
  write_npy<std::uint16_t>(lists, "b", "<u2", kThree);
  lists.write("b.masked_lm_ids.npy", npy_file<std::int32_t>("<i4", {3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(names({lists.path("")}) == "b.npy+masked_lm_ids ");
  lists.write("b.cut_places.npy", npy_file<std::int32_t>("<i4", {3, 2}, {0, 0, 0, 0, 0, 0}));
  CHECK(refused_as(lists.path(""), "cut_places"));
  ReadOptions with_positions;
  with_positions.positions_columns = {"cut_places"};
  CHECK(names({lists.path("")}, with_positions) == "b.npy+cut_places+masked_lm_ids ");
}

}  // namespace
}  // namespace shardpack
