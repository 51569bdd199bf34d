#include "jobs/verify_batch_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file.h"
#include "jobs/verify_removed.h"
#include "jobs/verify_rows.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockSlots = std::int64_t{1} << 20;

/// What the plan says of one epoch; its arrays have been checked.
struct PlannedEpoch {
  PlannedEpoch(const BatchFolder& folder, std::int64_t epoch) {
    const BatchManifest& manifest = folder.manifest();
    const std::int64_t batches = manifest.batches_per_epoch, first = epoch * batches;
    begin = folder.open_array("batch_offsets").read<std::int64_t>(first, batches + 1);
    const std::int64_t first_item = begin.front(), items = begin.back() - first_item;
    for (std::int64_t& at : begin) at -= first_item;
    members = folder.open_array("members").read<std::int64_t>(first_item, items);
    weights = folder.read_weights(first_item, items);
    pads = folder.open_array("pad_length").read<std::int32_t>(first, batches);
    if (folder.lists("kept_tokens.npy")) kept = folder.open_array("kept_tokens").read<std::int32_t>(first_item, items);
    if (folder.lists("label_tokens.npy")) labels = folder.open_array("label_tokens").read<std::int64_t>(first, batches);
    std::vector<bool> seen(static_cast<std::size_t>(manifest.source_sequences));
    for (const std::int64_t member : members) {
      again.push_back(seen[static_cast<std::size_t>(member)]);
      seen[static_cast<std::size_t>(member)] = true;
    }
  }

  std::int64_t items() const { return std::ssize(members); }

  std::vector<std::int64_t> begin, members, labels;  // labels: none where no column tells the loss
  std::vector<std::int32_t> pads, kept;              // kept: none where nothing is cut
  std::vector<float> weights;
  std::vector<bool> again;  // members that stood in the epoch before
};

/// What all shards obey.
struct ShardRules {
  const BatchFolder& folder;
  const BatchManifest& manifest;
  const BatchShards& shards;
  const std::vector<std::int64_t>& lengths;
  RowRules rows;
  std::vector<FingerprintRecount> recounts;  // of the ids, and of each column

  bool padded() const { return shards.options.layout == BatchLayout::padded; }
};

struct ShardFacts {
  RowFacts all;
  Fingerprint repeated;
  IssueList issues;
};

/// One shard against its part of an epoch.
class ShardCheck {
 public:
  ShardCheck(const ShardRules& rules, const ManifestShard& shard, const PlannedEpoch& plan, std::int64_t first_batch)
      : rules_(rules), shard_(shard), plan_(plan), first_batch_(first_batch), row_rules_(rules.rows) {}

  ShardFacts run() {
    if (open() && shapes_fit() && read_offsets()) {
      for (std::int64_t batch = 0; batch < shard_.rows;) {
        std::int64_t end = batch + 1;
        while (end < shard_.rows && slot(end) - slot(batch) < kBlockSlots) ++end;
        check_block(batch, end);
        batch = end;
      }
      compare("tokens", shard_.tokens, facts_.all.tokens);
      compare("loss_tokens", shard_.loss_tokens, facts_.all.loss_tokens);
      if (facts_.all.fingerprint != shard_.fingerprint)
        facts_.issues.add("fingerprint", shard_.folder, "its tokens are not those that were written");
    }
    return std::move(facts_);
  }

 private:
  /// The arrays of one block.
  struct Block {
    std::int64_t first_segment = 0, first_slot = 0;
    std::vector<std::int32_t> lengths, slots;
    std::vector<std::int64_t> source;
    std::vector<std::byte> ids;
    std::vector<std::vector<std::byte>> columns;
  };

  void wrong(std::string_view kind, std::string message, std::int64_t batch = -1) {
    facts_.issues.add(kind, shard_.folder, std::move(message), batch);
  }
  void compare(std::string_view what, std::int64_t stated, std::int64_t found) {
    if (stated != found)
      wrong("totals", fmt::format("{} is {}, the files have {}", what, with_commas(stated), with_commas(found)));
  }

  std::int64_t slot(std::int64_t batch) const { return slots_[static_cast<std::size_t>(batch)]; }
  std::int64_t segment(std::int64_t batch) const { return begin_[static_cast<std::size_t>(batch)]; }

  /// Every array that belongs to a shard, and no other.
  bool open() {
    std::set<std::string> listed;
    for (const ManifestFile& file : shard_.files) listed.insert(file.name);
    const std::string suffix = rules_.shards.options.zstd_level > 0 ? ".npy.zst" : ".npy";
    bool there = true;
    const auto take = [&](const std::string& stem) -> std::optional<PackedArray> {
      if (listed.erase(stem + suffix) > 0) return rules_.folder.open_array(shard_, stem + suffix);
      wrong("manifest", fmt::format("{}{} is not listed", stem, suffix));
      there = false;
      return std::nullopt;
    };
    ids_array_ = take("input_ids");
    begin_array_ = take("batch_offsets");
    slots_array_ = take("batch_slot_offsets");
    lengths_array_ = take("seq_lengths");
    source_array_ = take("seq_source");
    for (const Column& column : rules_.shards.columns) {
      column_arrays_.push_back(take(column.name));
      offset_arrays_.push_back(is_listed(column) ? take(column.name + std::string(kOffsetsSuffix)) : std::nullopt);
    }
    for (const std::string& name : listed)
      wrong("manifest", fmt::format("{} is listed, and no such file belongs to a shard", name));
    return there;
  }

  bool shapes_fit() {
    bool fit = true;
    const auto expect = [&](const PackedArray& array, const std::vector<std::int64_t>& shape, ValueType type) {
      if (array.shape() == shape && array.type() == type) return;
      wrong("header", fmt::format("{}: elements of {} in the shape [{}], expected {} in [{}]",
                                  std::filesystem::path(array.path()).filename().string(), info(array.type()).name,
                                  fmt::join(array.shape(), ", "), info(type).name, fmt::join(shape, ", ")));
      fit = false;
    };
    const std::vector<std::int64_t> slots{ids_array_->rows()}, segments{shard_.segments};
    expect(*ids_array_, slots, rules_.shards.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32);
    expect(*begin_array_, {shard_.rows + 1}, ValueType::i64);
    expect(*slots_array_, {shard_.rows + 1}, ValueType::i64);
    expect(*lengths_array_, segments, ValueType::i32);
    expect(*source_array_, {shard_.segments, 3}, ValueType::i64);
    for (std::size_t c = 0; c < column_arrays_.size(); ++c) {
      const Column& column = rules_.shards.columns[c];
      const std::vector<std::int64_t> values{column_arrays_[c]->rows()};
      expect(*column_arrays_[c], column.kind == ColumnKind::token ? slots : is_listed(column) ? values : segments, column.type);
      if (offset_arrays_[c]) expect(*offset_arrays_[c], {shard_.segments + 1}, ValueType::i64);
    }
    return fit;
  }

  /// Offsets that rise from 0 to `last`.
  bool read_rising(const PackedArray& array, std::int64_t last, std::vector<std::int64_t>& offsets) {
    offsets = array.read_all<std::int64_t>();
    if (offsets.front() == 0 && offsets.back() == last && std::is_sorted(offsets.begin(), offsets.end())) return true;
    wrong("offsets", fmt::format("{} does not rise from 0 to {}", std::filesystem::path(array.path()).filename().string(),
                                 with_commas(last)));
    return false;
  }

  bool read_offsets() {
    bool sound = read_rising(*begin_array_, shard_.segments, begin_) && read_rising(*slots_array_, ids_array_->rows(), slots_);
    value_offsets_.resize(column_arrays_.size());
    for (std::size_t c = 0; c < column_arrays_.size(); ++c) {
      if (offset_arrays_[c]) sound = read_rising(*offset_arrays_[c], column_arrays_[c]->rows(), value_offsets_[c]) && sound;
    }
    return sound;
  }

  /// Batches [first, last) of the shard.
  void check_block(std::int64_t first, std::int64_t last) {
    Block block{.first_segment = segment(first),
                .first_slot = slot(first),
                .lengths = {},
                .slots = {},
                .source = {},
                .ids = {},
                .columns = {}};
    const std::int64_t segments = segment(last) - block.first_segment, slots = slot(last) - block.first_slot;
    block.lengths = lengths_array_->read<std::int32_t>(block.first_segment, segments);
    block.source = source_array_->read<std::int64_t>(block.first_segment, segments);
    block.ids.resize(static_cast<std::size_t>(slots * info(rules_.shards.id_type).bytes));
    ids_array_->read_bytes(block.first_slot, block.ids);
    for (std::size_t c = 0; c < column_arrays_.size(); ++c) {
      const auto [from, count] = values_of(c, block.first_segment, segments, block.first_slot, slots);
      std::vector<std::byte>& bytes =
          block.columns.emplace_back(static_cast<std::size_t>(count * info(rules_.shards.columns[c].type).bytes));
      column_arrays_[c]->read_bytes(from, bytes);
    }
    for (std::int64_t batch = first; batch < last; ++batch) check_batch(batch, block);
  }

  /// Where a column's values of some segments, and their slots, lie in its array: the first and their number.
  std::pair<std::int64_t, std::int64_t> values_of(std::size_t c, std::int64_t first_segment, std::int64_t segments,
                                                  std::int64_t first_slot, std::int64_t slots) const {
    const Column& column = rules_.shards.columns[c];
    if (column.kind == ColumnKind::token) return {first_slot, slots};
    if (!is_listed(column)) return {first_segment, segments};
    const std::int64_t first = value_offsets_[c][static_cast<std::size_t>(first_segment)];
    return {first, value_offsets_[c][static_cast<std::size_t>(first_segment + segments)] - first};
  }

  void check_batch(std::int64_t batch, Block& block) {
    const auto planned = static_cast<std::size_t>(first_batch_ + batch);
    const std::int64_t first_item = plan_.begin[planned], size = plan_.begin[planned + 1] - first_item;
    const std::int64_t pad = plan_.pads[planned], first = segment(batch);
    if (segment(batch + 1) - first != size) {
      return wrong("cover",
                   fmt::format("{} sequences, the plan has {}", with_commas(segment(batch + 1) - first), with_commas(size)),
                   batch);
    }
    const auto lengths =
        std::span(block.lengths).subspan(static_cast<std::size_t>(first - block.first_segment), static_cast<std::size_t>(size));
    if (std::any_of(lengths.begin(), lengths.end(), [&](std::int32_t length) { return length < 1 || length > pad; })) {
      return wrong("pad", fmt::format("a sequence of no token, or of more than {}", with_commas(pad)), batch);
    }
    const std::int64_t expected = rules_.padded() ? size * pad : std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (slot(batch + 1) - slot(batch) != expected) {
      return wrong("offsets",
                   fmt::format("{} slots, expected {}", with_commas(slot(batch + 1) - slot(batch)), with_commas(expected)),
                   batch);
    }
    // Sequence by sequence: each is a row of its own slots.
    std::int64_t at = slot(batch), labels = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const auto item = static_cast<std::size_t>(first_item + i);
      const std::int64_t length = lengths[static_cast<std::size_t>(i)], slots = rules_.padded() ? pad : length;
      const RowFacts facts = check_sequence(batch, block, first + i, at, slots, item);
      if (plan_.weights[item] > 0) labels += facts.loss_tokens;
      if (plan_.again[item]) facts_.repeated += facts.fingerprint;
      facts_.all += facts;
      at += slots;
    }
    if (!plan_.labels.empty() && plan_.labels[planned] != labels) {
      wrong("tokens",
            fmt::format("{} tokens take part in the loss, label_tokens has {}", with_commas(labels),
                        with_commas(plan_.labels[planned])),
            batch);
    }
  }

  RowFacts check_sequence(std::int64_t batch, const Block& block, std::int64_t segment, std::int64_t first_slot,
                          std::int64_t slots, std::size_t item) {
    const auto s = static_cast<std::size_t>(segment - block.first_segment);
    const std::int64_t one_row[]{0, 1};
    const auto width = static_cast<std::int32_t>(slots);
    const auto part = [](const std::vector<std::byte>& bytes, std::int64_t first, std::int64_t count, int value_bytes) {
      return std::span(bytes).subspan(static_cast<std::size_t>(first * value_bytes),
                                      static_cast<std::size_t>(count * value_bytes));
    };
    StoredRows row;
    row.shard = row.slots_file = shard_.folder;
    row.first_row = batch;
    row.rows = 1;
    row.column_slots = slots;
    row.offsets = one_row;
    row.lengths = std::span(block.lengths).subspan(s, 1);
    row.slots = std::span(&width, 1);
    row.source = std::span(block.source).subspan(3 * s, 3);
    row.ids = {rules_.shards.id_type, part(block.ids, first_slot - block.first_slot, slots, info(rules_.shards.id_type).bytes)};
    for (std::size_t c = 0; c < rules_.shards.columns.size(); ++c) {
      const auto [from, count] = values_of(c, segment, 1, first_slot, slots);
      const auto [block_from, all] = values_of(c, block.first_segment, 0, block.first_slot, 0);
      StoredColumn& column = row.columns.emplace_back();
      column.bytes = part(block.columns[c], from - block_from, count, info(rules_.shards.columns[c].type).bytes);
      if (is_listed(rules_.shards.columns[c]))
        column.offsets = std::span(value_offsets_[c]).subspan(static_cast<std::size_t>(segment), 2);
    }
    row_rules_.row_tokens = width;
    row_rules_.segment_multiple = rules_.padded() ? width : 1;  // a padded sequence takes up its whole row
    const SequenceRanges all(0, rules_.manifest.source_sequences);
    const RowsOrigin origin{.sequences = &all, .plan = nullptr, .plan_file = {}};
    CheckedRows checked = check_stored_rows(row, row_rules_, origin, rules_.recounts);
    facts_.issues.merge(std::move(checked.issues));
    for (const PlacedPiece& piece : checked.pieces) check_piece(piece, item, batch);
    return checked.facts;
  }

  /// Is it the plan's sequence, and the part of it that the plan keeps?
  void check_piece(const PlacedPiece& piece, std::size_t item, std::int64_t batch) {
    const std::int64_t member = plan_.members[item], length = rules_.lengths[static_cast<std::size_t>(member)];
    const std::int64_t kept = plan_.kept.empty() ? length : plan_.kept[item];
    const std::int64_t first_token = rules_.rows.single_segments ? length - kept : 0;
    if (piece.sequence != member) {
      wrong("cover", fmt::format("holds sequence {} where the plan has {}", with_commas(piece.sequence), with_commas(member)),
            batch);
    } else if (piece.tokens != kept || piece.first_token != first_token) {
      wrong("kept",
            fmt::format("{} tokens of sequence {} from {} on, expected {} from {} on", with_commas(piece.tokens),
                        with_commas(member), with_commas(piece.first_token), with_commas(kept), with_commas(first_token)),
            batch);
    }
  }

  const ShardRules& rules_;
  const ManifestShard& shard_;
  const PlannedEpoch& plan_;
  const std::int64_t first_batch_;  // in the epoch
  RowRules row_rules_;
  std::optional<PackedArray> ids_array_, begin_array_, slots_array_, lengths_array_, source_array_;
  std::vector<std::optional<PackedArray>> column_arrays_, offset_arrays_;  // by column
  std::vector<std::int64_t> begin_, slots_;                                // of batches: in segments, in slots
  std::vector<std::vector<std::int64_t>> value_offsets_;                   // by column, of segments, where it is listed
  ShardFacts facts_;
};

/// What the policy took out, and the plan does not hold: the lines of removed.csv, worked out once more.
void check_removed_ranges(const BatchFolder& folder, const std::vector<std::int64_t>& lengths, IssueList& issues) {
  const BatchManifest& manifest = folder.manifest();
  const LengthPolicy& policy = manifest.policy;
  std::vector<RemovedRange> expected;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const std::int64_t length = lengths[s], limit = policy.row_tokens;
    const auto sequence = static_cast<SequenceId>(s);
    if (length == 0) continue;
    if (length < policy.min_tokens) {
      expected.push_back({sequence, 0, length, RemovalCause::too_short});
    } else if (limit > 0 && length > limit) {
      const bool cut = policy.overlong == Overlong::truncate;
      const bool at_end = policy.truncate_side == TruncateSide::end;
      if (cut) expected.push_back({sequence, at_end ? limit : 0, length - limit, RemovalCause::truncated});
      if (!cut) expected.push_back({sequence, 0, length, RemovalCause::dropped});
    }
  }
  const std::string name(RemovedReader::kFileName);
  const auto listed =
      std::find_if(manifest.files.begin(), manifest.files.end(), [&](const ManifestFile& file) { return file.name == name; });
  if ((listed != manifest.files.end()) != !expected.empty()) {
    issues.add("removed", name, "is there exactly when something is removed");
    return;
  }
  if (expected.empty()) return;
  RemovedReader reader(File(folder.folder() + name, File::Mode::read, name), manifest.sources, issues);
  std::size_t next = 0;
  const auto same = [](const RemovedRange& a, const RemovedRange& b) {
    return a.sequence == b.sequence && a.first_token == b.first_token && a.tokens == b.tokens && a.cause == b.cause;
  };
  bool differs = false;
  reader.read_until(SequenceRanges(0, std::ssize(lengths)), [&](const RemovedRange& range) {
    differs = differs || next >= expected.size() || !same(range, expected[next]);
    ++next;
  });
  reader.finish(listed->hash);
  if (differs || next != expected.size()) issues.add("removed", name, "is not what the plan leaves out of the sources");
}

/// source x epochs + repeated = batched + removed x epochs + dropped.
void check_equation(const BatchManifest& manifest, const Fingerprint& batched, const Fingerprint& repeated, IssueList& issues) {
  const BatchShards& shards = *manifest.shards;
  if (!(batched == shards.batched) || !(repeated == shards.repeated)) {
    issues.add("fingerprint", kManifestName, "what is batched, or repeated, has another fingerprint than the manifest says");
  }
  Fingerprint left = repeated, right = batched;
  for (std::int64_t epoch = 0; epoch < manifest.epochs; ++epoch) {
    left += shards.source;
    right += shards.removed;
  }
  right += shards.dropped;
  if (!(left == right)) {
    issues.add("fingerprint", kManifestName,
               "the tokens of the batches, of removed and of dropped sequences are not those of the sources");
  }
}

}  // namespace

void check_batch_shards(const BatchFolder& folder, const std::vector<std::int64_t>& lengths, const RunContext& context,
                        IssueList& issues) {
  const BatchManifest& manifest = folder.manifest();
  const BatchShards& shards = *manifest.shards;
  check_removed_ranges(folder, lengths, issues);

  const std::int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  ShardRules rules{.folder = folder,
                   .manifest = manifest,
                   .shards = shards,
                   .lengths = lengths,
                   .rows = {.pad_id = shards.options.pad_id,
                            .id_min = shards.id_min,
                            .id_max = shards.id_max,
                            .eos_id = {},
                            .bos_id = {},
                            .sources = manifest.sources,
                            .first_sequence = {0},
                            .columns = shards.columns,
                            .loss_column = manifest.loss_column},
                   .recounts = {FingerprintRecount(longest, "input_ids")}};
  for (const ManifestSource& source : manifest.sources)
    rules.rows.first_sequence.push_back(rules.rows.first_sequence.back() + source.sequences);
  rules.rows.single_segments =
      manifest.policy.overlong == Overlong::truncate && manifest.policy.truncate_side == TruncateSide::start;
  for (const Column& column : shards.columns) rules.recounts.push_back(rules.recounts.front().of_column(column.name));
  if (rules.rows.first_sequence.back() != manifest.source_sequences) {
    issues.add("totals", kManifestName, "the sources have another number of sequences than the manifest says");
    return;
  }

  RowFacts all;
  Fingerprint repeated;
  std::size_t next = 0;  // shard
  for (std::int64_t e = 0; e < manifest.epochs; ++e) {
    const PlannedEpoch epoch(folder, e);
    std::vector<std::pair<std::size_t, std::int64_t>> work;  // shard, and its first batch in the epoch
    std::int64_t batches = 0;
    for (std::int64_t number = 0; next < shards.shards.size() && batches < manifest.batches_per_epoch; ++number, ++next) {
      const ManifestShard& shard = shards.shards[next];
      const bool fits = shard.rows <= manifest.batches_per_epoch - batches && shard.segments <= epoch.items();
      if (!fits || shard.folder != fmt::format("shard-{:05}-{:05}", e, number)) break;
      work.emplace_back(next, batches);
      batches += shard.rows;
    }
    if (batches != manifest.batches_per_epoch) {
      issues.add("cover", kManifestName,
                 fmt::format("the shards of epoch {} hold {} batches of {}", e, with_commas(batches),
                             with_commas(manifest.batches_per_epoch)));
      return;
    }
    std::size_t at = 0;
    ordered_map(
        context.pool, default_in_flight(context.pool), context.stop,
        [&]() -> std::optional<std::size_t> { return at == work.size() ? std::nullopt : std::optional(at++); },
        [&](std::size_t i) { return ShardCheck(rules, shards.shards[work[i].first], epoch, work[i].second).run(); },
        [&](ShardFacts&& facts) {
          all += facts.all;
          repeated += facts.repeated;
          issues.merge(std::move(facts.issues));
        });
  }
  if (next != shards.shards.size()) issues.add("cover", kManifestName, "there are shards that belong to no epoch");
  if (all.loss_tokens != shards.loss_tokens) issues.add("totals", kManifestName, "loss_tokens is not what the shards hold");
  check_equation(manifest, all.fingerprint, repeated, issues);
}

}  // namespace shardpack
