#include "jobs/verify_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>
#include <tuple>

#include "base/checked.h"
#include "base/printable.h"
#include "base/units.h"
#include "base/wide.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/owned_folder.h"
#include "jobs/batch_source.h"
#include "jobs/verify_against.h"
#include "jobs/verify_batch_shards.h"
#include "jobs/verify_issues.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// Every listed file with its size and hash, and no other.
class FileCheck {
 public:
  FileCheck(const BatchFolder& folder, IssueList& issues) : folder_(folder), issues_(issues) {}

  /// \return bytes read; -1 when something is missing or damaged
  std::int64_t run(const RunContext& context) {
    std::set<std::string> listed{std::string(kManifestName), std::string(kOwnerMarker)};
    for (const ManifestFile& file : folder_.manifest().files) {
      listed.insert(file.name);
      check_file("", file);
    }
    if (folder_.manifest().shards) {
      for (const ManifestShard& shard : folder_.manifest().shards->shards) {
        throw_if_stopped(context.stop);
        listed.insert(shard.folder);
        check_shard(shard);
      }
    }
    find_extra("", listed);
    return whole_ ? bytes_ : -1;
  }

 private:
  void check_file(const std::string& prefix, const ManifestFile& file) {
    const std::string name = prefix + file.name, path = folder_.folder() + name;
    std::error_code failed;
    if (!fs::is_regular_file(fs::symlink_status(path, failed)) || failed) {
      issues_.add("missing", name, "not a regular file in the folder");
      whole_ = false;
      return;
    }
    const File opened(path, File::Mode::read);
    if (opened.size() != file.bytes) {
      issues_.add("size", name, fmt::format("{} bytes, expected {}", with_commas(opened.size()), with_commas(file.bytes)));
      whole_ = false;
    } else if (hash_file(opened) != file.hash) {
      issues_.add("checksum", name, "its bytes are not those that were written");
      whole_ = false;
    }
    bytes_ += opened.size();
  }

  void check_shard(const ManifestShard& shard) {
    std::error_code failed;
    if (!fs::is_directory(fs::symlink_status(folder_.folder() + shard.folder, failed)) || failed) {
      issues_.add("missing", shard.folder, "the shard's folder is not there");
      whole_ = false;
      return;
    }
    std::set<std::string> listed;
    for (const ManifestFile& file : shard.files) {
      listed.insert(file.name);
      check_file(shard.folder + "/", file);
    }
    find_extra(shard.folder + "/", listed);
  }

  void find_extra(const std::string& prefix, const std::set<std::string>& listed) {
    const std::string path = folder_.folder() + prefix;
    std::vector<std::string> extra;
    for (const fs::directory_entry& entry : fs::directory_iterator(path.empty() ? "." : path)) {
      if (std::string name = entry.path().filename().string(); !listed.contains(name)) extra.push_back(prefix + name);
    }
    std::sort(extra.begin(), extra.end());
    for (const std::string& name : extra) issues_.add("extra", name, "the manifest does not list it");
  }

  const BatchFolder& folder_;
  IssueList& issues_;
  std::int64_t bytes_ = 0;
  bool whole_ = true;
};

/// What the sources say: read again, or by the plan's own list of their lengths.
struct Truth {
  BatchSource source;
  std::int64_t longest = 0;  ///< of what is batched

  /// Tokens that a batch has to hold for this member; 0 when it is not to be batched.
  std::int64_t length(const BatchManifest& manifest, std::int64_t member) const {
    const std::int64_t length = source.lengths[static_cast<std::size_t>(member)];
    if (source.rows()) return source.row_tokens;
    const std::int64_t limit = manifest.policy.row_tokens;
    if (length < std::max<std::int64_t>(1, manifest.policy.min_tokens)) return 0;
    if (limit == 0 || length <= limit) return length;
    return manifest.policy.overlong == Overlong::truncate ? limit : 0;
  }
  std::int64_t real(const BatchManifest& manifest, std::int64_t member) const {
    return source.rows() ? source.lengths[static_cast<std::size_t>(member)] : length(manifest, member);
  }
};

class PlanCheck {
 public:
  PlanCheck(const BatchFolder& folder, const Truth* truth, IssueList& issues)
      : manifest_(folder.manifest()),
        plan_(manifest_.plan),
        truth_(truth),
        issues_(issues),
        folder_(folder),
        offsets_(folder.open_array("batch_offsets")),
        members_(folder.open_array("members")),
        pads_(folder.open_array("pad_length")),
        groups_(folder.open_array("group")),
        real_(folder.open_array("real_tokens")) {
    if (folder.lists("kept_tokens.npy")) kept_.emplace(folder.open_array("kept_tokens"));
    if (folder.lists("label_tokens.npy")) labels_.emplace(folder.open_array("label_tokens"));
  }

  void run(const RunContext& context) {
    if (!sizes_fit()) return;
    for (std::int64_t epoch = 0; epoch < manifest_.epochs; ++epoch) {
      throw_if_stopped(context.stop);
      if (!check_epoch(epoch)) return;
    }
    check_totals();
  }

  std::int64_t items() const { return items_; }

 private:
  std::int64_t group_size() const { return plan_.world * plan_.accumulation; }
  void wrong(std::string_view kind, std::string_view stem, std::string message, std::int64_t batch = -1) {
    issues_.add(kind, std::string(stem) + ".npy", std::move(message), batch);
  }

  bool sizes_fit() {
    const Int128 batches = static_cast<Int128>(manifest_.epochs) * manifest_.batches_per_epoch;
    bool fit = true;
    const auto expect = [&](const PackedArray& array, std::string_view stem, Int128 rows, ValueType type) {
      if (array.rows() != rows) {
        wrong("shape", stem, fmt::format("{} elements, which do not fit the manifest's batches", with_commas(array.rows())));
        fit = false;
      }
      if (array.type() != type) {
        wrong("shape", stem, fmt::format("elements of {}, expected {}", info(array.type()).name, info(type).name));
        fit = false;
      }
    };
    expect(offsets_, "batch_offsets", batches + 1, ValueType::i64);
    expect(pads_, "pad_length", batches, ValueType::i32);
    expect(groups_, "group", batches, ValueType::i32);
    expect(real_, "real_tokens", batches, ValueType::i64);
    if (labels_) expect(*labels_, "label_tokens", batches, ValueType::i64);
    expect(members_, "members", members_.rows(), ValueType::i64);
    if (kept_) expect(*kept_, "kept_tokens", members_.rows(), ValueType::i32);
    if (!fit) return false;
    if (manifest_.batches_per_epoch % group_size() != 0) {
      issues_.add("ranks", kManifestName,
                  fmt::format("{} batches an epoch do not give {} ranks x {} micro-batches the same number",
                              with_commas(manifest_.batches_per_epoch), plan_.world, plan_.accumulation));
      return false;
    }
    const std::int64_t last = offsets_.rows() - 1;
    if (offsets_.read<std::int64_t>(0, 1)[0] != 0 || offsets_.read<std::int64_t>(last, 1)[0] != members_.rows()) {
      wrong("offsets", "batch_offsets", "does not run from 0 to the number of members");
      return false;
    }
    const bool cut = manifest_.removed[static_cast<std::size_t>(RemovalCause::truncated)].sequences > 0;
    if (cut != kept_.has_value())
      issues_.add("manifest", kManifestName, "kept_tokens.npy is there exactly when sequences are cut");
    if (labels_.has_value() == manifest_.loss_column.empty())
      issues_.add("manifest", kManifestName, "label_tokens.npy is there exactly when a column tells the loss");
    return true;
  }

  /// \return false when the rest cannot be read
  bool check_epoch(std::int64_t epoch) {
    const std::int64_t batches = manifest_.batches_per_epoch, first_batch = epoch * batches;
    const auto offsets = offsets_.read<std::int64_t>(first_batch, batches + 1);
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      if (offsets[b + 1] <= offsets[b] || offsets[b + 1] > members_.rows() || offsets[b] < 0) {
        wrong("offsets", "batch_offsets", "a batch is empty or runs backwards", first_batch + static_cast<std::int64_t>(b));
        return false;
      }
    }
    const std::int64_t first = offsets.front(), count = offsets.back() - first;
    const auto members = members_.read<std::int64_t>(first, count);
    const auto pads = pads_.read<std::int32_t>(first_batch, batches);
    const auto groups = groups_.read<std::int32_t>(first_batch, batches);
    const auto real = real_.read<std::int64_t>(first_batch, batches);
    const std::vector<float> weights = folder_.read_weights(first, count);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(batches));
    if (labels_) labels = labels_->read<std::int64_t>(first_batch, batches);
    std::vector<std::int32_t> kept;
    if (kept_) kept = kept_->read<std::int32_t>(first, count);

    std::vector<bool> seen(static_cast<std::size_t>(manifest_.source_sequences));
    std::int64_t distinct = 0, repeated = 0, real_of_epoch = 0;
    std::set<std::pair<std::int64_t, std::int64_t>> shapes;
    for (std::int64_t b = 0; b < batches; ++b) {
      const std::int64_t at = first_batch + b,
                         size = offsets[static_cast<std::size_t>(b) + 1] - offsets[static_cast<std::size_t>(b)];
      const std::int64_t pad = pads[static_cast<std::size_t>(b)];
      const bool last_step = b >= batches - group_size();
      std::int64_t longest = 0, tokens = 0, in_loss = 0;
      for (std::int64_t i = offsets[static_cast<std::size_t>(b)] - first; i < offsets[static_cast<std::size_t>(b) + 1] - first;
           ++i) {
        const std::int64_t member = members[static_cast<std::size_t>(i)];
        const float weight = weights[static_cast<std::size_t>(i)];
        if (member < 0 || member >= manifest_.source_sequences) {
          wrong("cover", "members",
                fmt::format("member {} of {} sequences", with_commas(member), with_commas(manifest_.source_sequences)), at);
          return false;
        }
        if (weight != 0.0F && weight != 1.0F) wrong("weights", "weights", fmt::format("a weight of {}", weight), at);
        const bool again = seen[static_cast<std::size_t>(member)];
        seen[static_cast<std::size_t>(member)] = true;
        again ? ++repeated : ++distinct;
        check_repeat(again, weight, last_step, at);
        if (kept_ && (kept[static_cast<std::size_t>(i)] < 1 || kept[static_cast<std::size_t>(i)] > pad)) {
          wrong("pad", "kept_tokens",
                fmt::format("{} tokens are kept in a batch padded to {}", kept[static_cast<std::size_t>(i)], pad), at);
        }
        if (truth_ == nullptr) continue;
        const std::int64_t length = truth_->length(manifest_, member);
        if (length == 0) wrong("cover", "members", fmt::format("sequence {} is not to be batched", with_commas(member)), at);
        if (kept_ && kept[static_cast<std::size_t>(i)] != length) {
          wrong("kept", "kept_tokens",
                fmt::format("{} tokens of sequence {}, expected {}", kept[static_cast<std::size_t>(i)], with_commas(member),
                            with_commas(length)),
                at);
        }
        longest = std::max(longest, length);
        if (weight == 0) continue;
        tokens += truth_->real(manifest_, member);
        if (knows_losses()) in_loss += truth_->source.loss_tokens[static_cast<std::size_t>(member)];
      }
      if (truth_ != nullptr) {
        if (manifest_.plan.strategy.kind == BatchKind::fixed)
          longest = std::max<std::int64_t>(truth_->longest, manifest_.policy.row_tokens);
        check_pad_of(longest, pad, at);
        if (real[static_cast<std::size_t>(b)] != tokens) {
          wrong("tokens", "real_tokens",
                fmt::format("{}, expected {}", with_commas(real[static_cast<std::size_t>(b)]), with_commas(tokens)), at);
        }
      }
      check_labels(labels[static_cast<std::size_t>(b)], real[static_cast<std::size_t>(b)], in_loss, at);
      check_batch(size, pad, real[static_cast<std::size_t>(b)], last_step, at);
      if (groups[static_cast<std::size_t>(b)] != b / group_size()) {
        wrong("group", "group", fmt::format("group {}, expected {}", groups[static_cast<std::size_t>(b)], b / group_size()), at);
      }
      real_of_epoch += real[static_cast<std::size_t>(b)];
      padded_ += size * pad;
      squares_ += static_cast<double>(size) * static_cast<double>(pad) * static_cast<double>(pad);
      largest_ = std::max(largest_, size * pad);
      shapes.emplace(size, pad);
    }
    items_ += count;
    real_tokens_ += real_of_epoch;
    repeated_ += repeated;
    dropped_ += manifest_.items - distinct;
    shapes_ = std::max(shapes_, static_cast<std::int64_t>(shapes.size()));
    if (!manifest_.rows) imbalance_ = std::max(imbalance_, imbalance_of(offsets, pads));
    if (plan_.tail != BatchTail::drop && distinct != manifest_.items) {
      wrong("cover", "members",
            fmt::format("epoch {} holds {} of {} sequences", epoch, with_commas(distinct), with_commas(manifest_.items)));
    }
    return true;
  }

  void check_repeat(bool again, float weight, bool last_step, std::int64_t batch) {
    if (!again) {
      if (weight == 0.0F) wrong("weights", "weights", "a sequence counts for nothing where it stands first", batch);
      return;
    }
    if (plan_.tail == BatchTail::drop || !last_step) {
      wrong("cover", "members", "a sequence stands twice in one epoch, and not in its last step", batch);
    } else if ((weight == 0.0F) != (plan_.tail == BatchTail::short_step)) {
      wrong("weights", "weights", fmt::format("a repeated sequence of weight {}", weight), batch);
    }
  }

  bool knows_losses() const { return labels_ && truth_ != nullptr && !truth_->source.loss_tokens.empty(); }

  /// \param expected  where the sources were read
  void check_labels(std::int64_t labels, std::int64_t real, std::int64_t expected, std::int64_t batch) {
    if (knows_losses() ? labels != expected : labels < 0 || labels > real) {
      wrong("tokens", "label_tokens",
            fmt::format("{}, expected {}", with_commas(labels),
                        knows_losses() ? with_commas(expected) : fmt::format("at most {}", with_commas(real))),
            batch);
    }
    label_tokens_ += labels;
  }

  /// What is known of a batch without its sequences.
  void check_batch(std::int64_t size, std::int64_t pad, std::int64_t real, bool last_step, std::int64_t batch) {
    if (pad < 1) return wrong("pad", "pad_length", fmt::format("padded to {}", pad), batch);
    if (plan_.pad.shapes.empty() ? pad % plan_.pad.multiple != 0
                                 : std::find(plan_.pad.shapes.begin(), plan_.pad.shapes.end(), pad) == plan_.pad.shapes.end()) {
      wrong("pad", "pad_length", fmt::format("{} is none of the lengths that the options allow", pad), batch);
    }
    if (real < 0 || real > size * pad) {
      wrong("tokens", "real_tokens", fmt::format("{} tokens in {} x {}", with_commas(real), with_commas(size), pad), batch);
    }
    const BatchStrategy& strategy = plan_.strategy;
    bool over = false;
    if (strategy.kind == BatchKind::tokens) {
      over = static_cast<Int128>(size) * pad > strategy.amount;
    } else if (strategy.kind == BatchKind::quad) {
      over = static_cast<Int128>(size) * pad * (strategy.quadratic + pad) >
             static_cast<Int128>(strategy.amount) * strategy.quadratic;
    } else {
      over = size > plan_.batch_size;
    }
    if (over || (plan_.max_batch > 0 && size > plan_.max_batch)) {
      wrong(
          "budget", "batch_offsets",
          fmt::format("{} sequences padded to {} are more than --strategy {} allows", with_commas(size), pad, to_text(strategy)),
          batch);
    }
    if (strategy.has_budget() && !last_step && size > plan_.size_multiple && size % plan_.size_multiple != 0) {
      wrong("size", "batch_offsets", fmt::format("{} sequences are no multiple of {}", with_commas(size), plan_.size_multiple),
            batch);
    }
  }

  void check_pad_of(std::int64_t longest, std::int64_t pad, std::int64_t batch) {
    std::int64_t expected = 0;
    if (plan_.pad.shapes.empty()) {
      while (expected < longest)
        expected += plan_.pad.multiple * std::max<std::int64_t>(1, (longest - expected) / plan_.pad.multiple);
    } else {
      for (auto shape = plan_.pad.shapes.rbegin(); shape != plan_.pad.shapes.rend() && *shape >= longest; ++shape)
        expected = *shape;
    }
    if (pad != expected)
      wrong("pad", "pad_length", fmt::format("padded to {}, expected {} for {} tokens", pad, expected, longest), batch);
  }

  double imbalance_of(const std::vector<std::int64_t>& offsets, const std::vector<std::int32_t>& pads) const {
    double slowest = 0, all = 0;
    for (std::size_t step = 0; step < pads.size(); step += static_cast<std::size_t>(group_size())) {
      double most = 0;
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(plan_.world); ++rank) {
        double tokens = 0;
        for (std::size_t micro = 0; micro < static_cast<std::size_t>(plan_.accumulation); ++micro) {
          const std::size_t b = step + micro * static_cast<std::size_t>(plan_.world) + rank;
          tokens += static_cast<double>(offsets[b + 1] - offsets[b]) * pads[b];
        }
        most = std::max(most, tokens);
        all += tokens;
      }
      slowest += most;
    }
    return all > 0 ? slowest * static_cast<double>(plan_.world) / all : 1;
  }

  void check_totals() {
    const auto expect = [&](std::string_view what, std::int64_t stated, std::int64_t found) {
      if (stated != found) {
        issues_.add("totals", kManifestName,
                    fmt::format("{} is {}, the files have {}", what, with_commas(stated), with_commas(found)));
      }
    };
    expect("padded_tokens", manifest_.padded_tokens, padded_);
    expect("real_tokens", manifest_.real_tokens, real_tokens_);
    expect("label_tokens", manifest_.label_tokens, label_tokens_);
    expect("largest_batch", manifest_.largest_batch, largest_);
    expect("shapes", manifest_.shapes, shapes_);
    expect("repeated.items", manifest_.repeated.items, repeated_);
    expect("dropped.items", manifest_.dropped.items, dropped_);
    const std::int64_t counted_again = plan_.tail == BatchTail::repeat ? manifest_.repeated.tokens : 0;
    expect("tokens x epochs with its tail", manifest_.tokens * manifest_.epochs - manifest_.dropped.tokens + counted_again,
           real_tokens_);
    std::int64_t removed = 0, removed_tokens = 0;
    for (std::size_t cause = 0; cause < manifest_.removed.size(); ++cause) {
      if (cause != static_cast<std::size_t>(RemovalCause::truncated)) removed += manifest_.removed[cause].sequences;
      removed_tokens += manifest_.removed[cause].tokens;
    }
    expect("source_sequences", manifest_.source_sequences, manifest_.items + removed);
    expect("source_tokens", manifest_.source_tokens, manifest_.tokens + removed_tokens);
    if (std::abs(manifest_.padded_squares / std::max(squares_, 1.0) - 1) > 1e-9 && squares_ > 0) {
      issues_.add("totals", kManifestName,
                  fmt::format("padded_squares is {:g}, the files have {:g}", manifest_.padded_squares, squares_));
    }
    if (!manifest_.rows && std::abs(manifest_.imbalance - imbalance_) > 1e-5) {
      issues_.add("totals", kManifestName,
                  fmt::format("imbalance is {:.6f}, the files have {:.6f}", manifest_.imbalance, imbalance_));
    }
  }

  const BatchManifest& manifest_;
  const BatchOptions& plan_;
  const Truth* truth_;
  IssueList& issues_;
  const BatchFolder& folder_;
  PackedArray offsets_, members_, pads_, groups_, real_;
  std::optional<PackedArray> kept_, labels_;

  std::int64_t label_tokens_ = 0;
  std::int64_t items_ = 0, padded_ = 0, real_tokens_ = 0, largest_ = 0, shapes_ = 0, repeated_ = 0, dropped_ = 0;
  double squares_ = 0, imbalance_ = 1;
};

/// Are the sources those that the plan was made for?
Truth read_truth(const BatchManifest& manifest, const VerifyOptions& options, const RunContext& context, IssueList& issues) {
  Truth truth{.source = read_batch_source(options.against, recorded_read_options(manifest.read_options),
                                          {.loss_part = batched_part(manifest.policy)}, context)};
  if (lengths_hash(truth.source.lengths) != manifest.lengths_hash || truth.source.rows() != manifest.rows) {
    issues.add("sources", kManifestName, "the plan was made for other lengths than those of the sources");
  } else if (truth.source.manifest_hash != manifest.source_manifest_hash) {
    issues.add("sources", kManifestName, "the plan was made for another packed dataset");
  } else if (manifest.shards && !(truth.source.shards.totals.fingerprint == manifest.shards->source)) {
    issues.add("sources", kManifestName, "the sources hold other tokens than those that were batched");
  } else if (truth.source.loss_column != manifest.loss_column) {
    const auto shown = [](const std::string& column) { return column.empty() ? "no column" : fmt::format("'{}'", column); };
    issues.add("sources", kManifestName,
               fmt::format("the plan takes the loss from {}, the sources tell it by {}", shown(printable(manifest.loss_column)),
                           shown(printable(truth.source.loss_column))));
  }
  return truth;
}

std::size_t files_of(const BatchManifest& manifest) {
  std::size_t files = manifest.files.size() + 1;
  if (manifest.shards) {
    for (const ManifestShard& shard : manifest.shards->shards) files += shard.files.size();
  }
  return files;
}

std::vector<std::string> checked_lines(const BatchManifest& manifest, const VerifyResult& result, bool against) {
  std::vector<std::string> lines{
      fmt::format("files: {}, {}: sizes, XXH3-128, nothing else in the folder", files_of(manifest), short_bytes(result.bytes)),
      fmt::format("cover: {} of {} {}: each once, the tail accounted for",
                  manifest.epochs == 1 ? "1 epoch" : with_commas(manifest.epochs) + " epochs", with_commas(manifest.items),
                  manifest.rows ? "rows" : "sequences"),
      fmt::format("batches: {} an epoch: equal numbers for {} ranks x {} micro-batches, none empty, none over its size or budget",
                  with_commas(manifest.batches_per_epoch), manifest.plan.world, manifest.plan.accumulation),
      fmt::format("totals: {} padded and {} real tokens: counted again", with_commas(manifest.padded_tokens),
                  with_commas(manifest.real_tokens))};
  if (manifest.shards) {
    lines.push_back(
        fmt::format("shards: {} {}: every slot: the plan's sequences, source x epochs + repeated = batched + removed x "
                    "epochs + dropped",
                    with_commas(std::ssize(manifest.shards->shards)),
                    kBatchLayouts[static_cast<std::size_t>(manifest.shards->options.layout)]));
  }
  if (against) {
    lines.emplace_back(fmt::format("sources: every length read again: padded lengths, real and kept tokens follow from them{}{}",
                                   manifest.loss_column.empty() ? "" : "; every label, too: label_tokens",
                                   manifest.shards ? "; the shards' fingerprint is theirs" : ""));
  } else if (!manifest.rows) {
    lines.emplace_back(
        "lengths: padded lengths, real and kept tokens follow from them (--against the sources reads these again)");
  }
  return lines;
}

}  // namespace

VerifyResult verify_batches(const std::string& path, const VerifyOptions& options, const RunContext& context) {
  VerifyResult result;
  IssueList issues;
  std::optional<BatchFolder> folder;
  try {
    folder.emplace(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("manifest", kManifestName, without_path(error));
    result.issues = issues.take();
    return result;
  }
  const BatchManifest& manifest = folder->manifest();
  result.bytes = FileCheck(*folder, issues).run(context);
  if (result.bytes < 0) {  // nothing can be said of arrays that are not what they were
    result.bytes = 0;
    result.issues = issues.take();
    return result;
  }
  std::optional<Truth> truth;
  try {
    std::vector<std::int64_t> lengths = folder->read_lengths();
    if (static_cast<std::int64_t>(lengths.size()) != manifest.source_sequences) {
      issues.add("lengths", "lengths.npy",
                 fmt::format("{} lengths of {} sequences", with_commas(static_cast<std::int64_t>(lengths.size())),
                             with_commas(manifest.source_sequences)));
    } else if (!options.against.empty()) {
      truth = read_truth(manifest, options, context, issues);
    } else if (!manifest.rows) {  // how wide a dataset's rows are, only the dataset says
      truth.emplace();
      truth->source.lengths = std::move(lengths);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data || fs::path(error.path()).filename() != "lengths.npy") throw;
    issues.add("lengths", "lengths.npy", without_path(error));
  }
  if (!issues.empty()) {
    result.issues = issues.take();
    return result;
  }
  if (truth) {
    for (std::int64_t member = 0; member < static_cast<std::int64_t>(truth->source.lengths.size()); ++member) {
      truth->longest = std::max(truth->longest, truth->length(manifest, member));
    }
  }
  try {
    PlanCheck check(*folder, truth ? &*truth : nullptr, issues);
    check.run(context);
    result.segments = check.items();
    if (manifest.shards && issues.empty()) check_batch_shards(*folder, folder->read_lengths(), context, issues);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("header", fs::path(error.path()).filename().string(), without_path(error));
  }
  result.issues = issues.take();
  result.rows = manifest.batches_per_epoch * manifest.epochs;
  result.tokens = manifest.real_tokens;
  result.checked = checked_lines(manifest, result, !options.against.empty());
  return result;
}

}  // namespace shardpack
