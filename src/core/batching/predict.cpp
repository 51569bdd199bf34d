// Predictions from a histogram. A strategy becomes a mix of batches (how many of which size and padded length), exact where the
// order is sorted, expected where it is random; every figure follows from the mix.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "core/batching/steps.h"
#include "shardpack/batch_prediction.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kSimulated = std::int64_t{1} << 18;

/// So many batches of this size and padded length; not whole where they are expected.
struct BatchClass {
  double batches = 0;
  std::int64_t size = 0;
  Length pad = 0;

  double cost() const { return static_cast<double>(size) * static_cast<double>(pad); }
};

LengthClasses classes_of(const LengthHistogram& histogram) {
  LengthClasses classes;
  std::int64_t until = 0;
  for (const LengthCount& entry : histogram.counts()) {
    if (entry.length == 0) continue;
    if (entry.length > std::numeric_limits<Length>::max()) throw Error(ErrorCode::limit, "a length leaves 31 bits");
    until += entry.count;
    classes.lengths.push_back(static_cast<Length>(entry.length));
    classes.until.push_back(until);
  }
  return classes;
}

/// P(at least `least[j]` of `trials` succeed) for ascending `least`, added to `sums[j]`.
void add_binomial_tails(std::int64_t trials, double chance, std::span<const std::int64_t> least, std::vector<double>& sums,
                        double weight) {
  // Outward from the likeliest number until nothing is left: a few standard deviations, whatever the number of trials.
  constexpr double kNegligible = 1e-17;
  const auto n = static_cast<double>(trials);
  const auto mode = std::min(trials, static_cast<std::int64_t>((n + 1) * chance));
  const auto m = static_cast<double>(mode);
  const double at_mode = std::exp(std::lgamma(n + 1) - std::lgamma(m + 1) - std::lgamma(n - m + 1) + m * std::log(chance) +
                                  (n - m) * std::log1p(-chance));
  std::int64_t low = mode, high = mode;
  std::vector<double> below, above;  // from the mode outwards
  for (double p = at_mode; p > kNegligible && low > 0; --low) {
    p *= static_cast<double>(low) / static_cast<double>(trials - low + 1) * (1 - chance) / chance;
    below.push_back(p);
  }
  for (double p = at_mode; p > kNegligible && high < trials; ++high) {
    p *= static_cast<double>(trials - high) / static_cast<double>(high + 1) * chance / (1 - chance);
    above.push_back(p);
  }
  double tail = 0;  // P(at least k), k going down
  std::int64_t k = high;
  for (std::size_t j = least.size(); j-- > 0;) {
    for (; k >= least[j] && k >= low; --k) {
      tail += k > mode    ? above[static_cast<std::size_t>(k - mode - 1)]
              : k == mode ? at_mode
                          : below[static_cast<std::size_t>(mode - k - 1)];
    }
    sums[j] += weight * std::min(1.0, tail);
  }
}

class Predictor {
 public:
  Predictor(const LengthHistogram& histogram, const BatchOptions& options)
      : classes_(classes_of(histogram)), options_(options), items_(classes_.items()), group_(options.group_size()) {
    tokens_ = static_cast<double>(histogram.tokens());
  }

  BatchPrediction predict() {
    if (items_ == 0) return {.exact = true};
    check_longest();
    switch (options_.strategy.kind) {
      case BatchKind::fixed:
        predict_fixed();
        break;
      case BatchKind::dynamic:
        predict_random();
        break;
      case BatchKind::sorted:
        predict_sorted();
        break;
      case BatchKind::tokens:
      case BatchKind::quad:
        predict_budget();
        break;
      case BatchKind::mega:
      case BatchKind::pool:
        predict_chunks();
        break;
      case BatchKind::buckets:
        predict_buckets();
        break;
      case BatchKind::gist:
        predict_gist();
        break;
    }
    return figures();
  }

 private:
  Length pad(std::int64_t place) const { return options_.pad.padded(classes_.at(place)); }
  std::int64_t size() const { return options_.batch_size; }
  std::int64_t class_begin(std::size_t c) const { return c == 0 ? 0 : classes_.until[c - 1]; }
  std::int64_t class_count(std::size_t c) const { return classes_.until[c] - class_begin(c); }

  void check_longest() const {
    const Length padded = options_.pad.padded(classes_.lengths.back());
    if (options_.most(padded) < 1) {
      throw Error(ErrorCode::bad_data, "the longest sequence is over the budget of --strategy " + to_text(options_.strategy) +
                                           " alone; raise the budget, or cut with --max-length");
    }
  }

  // ---- exact: sorted orders ---------------------------------------------------------------------------------------------------

  /// `count` batches of `size` from a place of the ascending order; equal neighbours at once.
  void add_sorted_runs(std::int64_t first, std::int64_t count) {
    while (count > 0) {
      const std::int64_t last = first + size() - 1;
      const std::int64_t alike = std::min(count, (classes_.end_of_class(last) - 1 - last) / size() + 1);
      whole_.push_back({static_cast<double>(alike), size(), pad(last)});
      first += alike * size();
      count -= alike;
    }
  }

  void predict_sorted() {
    const std::int64_t step = size() * group_, whole = items_ / step * group_, rest = items_ - whole * size();
    const LengthClasses& classes = classes_;
    const std::int64_t before = rest > 0 ? best_place_of_rest(classes, options_.pad, size(), rest, group_) : whole;
    add_sorted_runs(0, before);
    add_sorted_runs(before * size() + rest, whole - before);
    if (rest > 0) {
      const std::int64_t needed = options_.tail == BatchTail::repeat ? std::min(items_, step) : rest;
      const std::int64_t first = std::max<std::int64_t>(0, std::min(before * size(), items_ - needed));
      add_last_step(first, needed, {.whole = {}, .rest = {{before * size() - first, rest}}});
    }
    exact_ = options_.tail != BatchTail::drop || rest == 0;
    repeat_share_ = repeats_in_classes([this](Length) { return size(); }, 1, 1);
  }

  /// The last step as planned, over the places [first, first + count) of the ascending order; `cut` counts from `first`.
  void add_last_step(std::int64_t first, std::int64_t count, const BatchCut& cut) {
    if (options_.tail == BatchTail::drop) return;
    BatchItems items;
    BatchOrder order;
    for (std::int64_t i = 0; i < count; ++i) {
      items.lengths.push_back(classes_.at(first + i));
      order.items.push_back(static_cast<std::uint32_t>(i));
    }
    const LastStep step = make_last_step(order, cut, items, options_);
    std::size_t end = 0;
    for (const std::int64_t batch : step.sizes) {
      Length longest = 0;
      for (std::int64_t i = 0; i < batch; ++i) longest = std::max(longest, items.lengths[step.items[end++]]);
      last_.push_back({1, batch, options_.pad.padded(longest)});
    }
    if (options_.tail == BatchTail::repeat) tokens_ += static_cast<double>(step.repeated.tokens);
  }

  /// Greedy batches from the shortest on, as cut_greedy() makes them.
  void predict_budget() {
    std::vector<BatchRange> front;  // the first batches one by one: those of the last step, and what it may repeat
    double front_batches = 0;
    const auto add = [&](std::int64_t first, std::int64_t count, std::int64_t batch_size, Length padded) {
      for (std::int64_t i = 0; i < count && static_cast<std::int64_t>(front.size()) < 2 * group_; ++i) {
        front.push_back({first + i * batch_size, batch_size});
      }
      whole_.push_back({static_cast<double>(count), batch_size, padded});
      front_batches += static_cast<double>(count);
    };
    std::size_t c = 0;
    for (std::int64_t first = 0; first < items_;) {
      while (classes_.until[c] <= first) ++c;
      const std::int64_t here = classes_.until[c] - first;
      const std::int64_t most = options_.most(options_.pad.padded(classes_.lengths[c]));
      const auto rounded = [this](std::int64_t count) {
        return count > options_.size_multiple ? count - count % options_.size_multiple : count;
      };
      if (most <= here) {  // batches of this length alone
        const std::int64_t batch = rounded(most), count = (here - most) / batch + 1;
        add(first, count, batch, options_.pad.padded(classes_.lengths[c]));
        first += count * batch;
        continue;
      }
      std::int64_t count = here;
      std::size_t end = c;
      while (end + 1 < classes_.lengths.size()) {
        const std::int64_t allowed = options_.most(options_.pad.padded(classes_.lengths[end + 1]));
        if (count + 1 > allowed) break;
        ++end;
        count = std::min(allowed, count + class_count(end));
        if (count == allowed) break;
      }
      const std::int64_t batch = rounded(count);
      add(first, 1, batch, pad(first + batch - 1));
      first += batch;
    }

    const auto left = static_cast<std::int64_t>(front_batches) % group_;
    take_from_front(left);
    if (left > 0) {
      const auto end_of_rest = front.begin() + left;
      const std::vector<BatchRange> rest(front.begin(), end_of_rest), more(end_of_rest, front.end());
      const BatchRange last = options_.tail == BatchTail::repeat ? front.back() : rest.back();
      add_last_step(0, last.first + last.count, {.whole = more, .rest = rest});
    }
    exact_ = options_.tail != BatchTail::drop || left == 0;
    repeat_share_ = repeats_in_classes([this](Length length) { return options_.most(options_.pad.padded(length)); }, 1, 1);
  }

  void take_from_front(std::int64_t batches) {
    auto left = static_cast<double>(batches);
    for (BatchClass& entry : whole_) {
      const double taken = std::min(left, entry.batches);
      entry.batches -= taken;
      left -= taken;
    }
  }

  // ---- expected: random orders ------------------------------------------------------------------------------------------------

  void predict_fixed() {
    const Length padded = options_.pad.padded(std::max(options_.fixed_length, classes_.lengths.back()));
    add_random_batches([&](double batches, std::int64_t batch, std::vector<BatchClass>& mix) {
      mix.push_back({batches, batch, padded});
    });
    exact_ = options_.tail == BatchTail::short_step || items_ % (size() * group_) == 0;
    repeat_share_ = pair_share(items_, size());
  }

  void predict_random() {
    add_random_batches([&](double batches, std::int64_t batch, std::vector<BatchClass>& mix) {
      add_expected_longest(0, classes_.lengths.size(), batches, batch, mix);
    });
    repeat_share_ = pair_share(items_, size());
  }

  /// Whole batches and a last step of a random order.
  template <class Add>
  void add_random_batches(const Add& add) {
    const std::int64_t step = size() * group_, whole = items_ / step * group_, rest = items_ - whole * size();
    add(static_cast<double>(whole), size(), whole_);
    if (rest == 0 || options_.tail == BatchTail::drop) return drop_tokens(rest);
    if (options_.tail == BatchTail::repeat) {
      tokens_ *= static_cast<double>(whole * size() + step) / static_cast<double>(items_);
      return add(static_cast<double>(group_), size(), last_);
    }
    for (const std::int64_t batch : even_sizes(rest, group_)) add(1, std::max<std::int64_t>(batch, 1), last_);
  }

  void drop_tokens(std::int64_t items) { tokens_ *= 1 - static_cast<double>(items) / static_cast<double>(items_); }

  /// Batches of `batch` random items of the classes [first, last): the longest is of class c with probability F(c)^B - F(c-1)^B.
  void add_expected_longest(std::size_t first, std::size_t last, double batches, std::int64_t batch,
                            std::vector<BatchClass>& mix) {
    if (batches <= 0) return;
    const std::int64_t begin = class_begin(first);
    const auto all = static_cast<double>(classes_.until[last - 1] - begin);
    double below = 0;
    for (std::size_t c = first; c < last; ++c) {
      const double share = std::pow(static_cast<double>(classes_.until[c] - begin) / all, static_cast<double>(batch));
      mix.push_back({batches * (share - below), batch, options_.pad.padded(classes_.lengths[c])});
      below = share;
    }
  }

  void predict_buckets() {
    std::vector<Length> boundaries = options_.strategy.boundaries;
    if (boundaries.empty()) boundaries = equal_token_boundaries(classes_, options_.strategy.amount);
    std::size_t first = 0;
    for (std::size_t b = 0; b <= boundaries.size() && first < classes_.lengths.size(); ++b) {
      std::size_t last = classes_.lengths.size();
      if (b < boundaries.size()) {
        last = static_cast<std::size_t>(std::lower_bound(classes_.lengths.begin(), classes_.lengths.end(), boundaries[b]) -
                                        classes_.lengths.begin());
      }
      if (last == first) continue;
      const std::int64_t count = classes_.until[last - 1] - class_begin(first), full = count / size();
      add_expected_longest(first, last, static_cast<double>(full), size(), whole_);
      if (count % size() > 0) add_expected_longest(first, last, 1, count % size(), whole_);
      repeat_share_ += pair_share(count, size()) * static_cast<double>(count) / static_cast<double>(items_);
      first = last;
    }
  }

  /// Chunks of M batches sorted within: batch j of the ascending order ends in the jB-th smallest of a random chunk.
  void predict_chunks() {
    const std::int64_t chunk = checked_mul(options_.strategy.amount, size(), "sequences in a chunk");
    if (chunk >= items_) {
      predict_sorted();
      exact_ = false;  // the last step differs
      return;
    }
    const std::int64_t full = items_ / chunk;
    add_chunks(static_cast<double>(full), chunk);
    if (items_ % chunk > 0) add_chunks(1, items_ % chunk);
    const double share = static_cast<double>(chunk) / static_cast<double>(items_);
    // Two thirds: the chance that neighbours within a batch's reach fall between the same two cuts again.
    repeat_share_ = pair_share(items_, chunk) * repeats_in_classes([this](Length) { return size(); }, share, 2.0 / 3);
  }

  void add_chunks(double chunks, std::int64_t chunk) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunk / size()), size());
    if (chunk % size() > 0) sizes.push_back(chunk % size());
    std::vector<std::int64_t> ends(sizes.size());
    std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
    std::vector<double> below(sizes.size(), 0);
    for (std::size_t c = 0; c < classes_.lengths.size(); ++c) {
      std::vector<double> until(sizes.size(), 0);
      const double share = static_cast<double>(classes_.until[c]) / static_cast<double>(items_);
      if (share < 1) {
        add_binomial_tails(chunk, share, ends, until, 1);
      } else {
        std::fill(until.begin(), until.end(), 1.0);
      }
      BatchClass of_size{0, size(), options_.pad.padded(classes_.lengths[c])};
      for (std::size_t j = 0; j < sizes.size(); ++j) {
        const double batches = chunks * std::max(0.0, until[j] - below[j]);
        if (sizes[j] == size()) {
          of_size.batches += batches;
        } else {
          whole_.push_back({batches, sizes[j], of_size.pad});
        }
      }
      whole_.push_back(of_size);
      below = std::move(until);
    }
  }

  /// Random cuts leave gaps whose effect no formula gives: made on a sample.
  void predict_gist() {
    const double scale = std::max(1.0, static_cast<double>(items_) / static_cast<double>(kSimulated));
    const auto simulated = static_cast<std::int64_t>(static_cast<double>(items_) / scale);
    BatchItems items;
    for (std::int64_t i = 0; i < simulated; ++i) {
      items.lengths.push_back(classes_.at(static_cast<std::int64_t>((static_cast<double>(i) + 0.5) * scale)));
    }
    const BatchEpoch first = plan_batches(items, options_, 0), second = plan_batches(items, options_, 1);
    for (std::int64_t b = 0; b < first.batches(); ++b) {
      whole_.push_back({scale, first.size(b), first.pad_length[static_cast<std::size_t>(b)]});
    }
    repeat_share_ = repeat_share(first, second, items.size());
    if (options_.tail == BatchTail::drop)
      drop_tokens(static_cast<std::int64_t>(static_cast<double>(first.dropped.items) * scale));
    if (options_.tail == BatchTail::repeat) tokens_ += static_cast<double>(first.repeated.tokens);
  }

  // ---- figures ----------------------------------------------------------------------------------------------------------------

  static double pair_share(std::int64_t among, std::int64_t reach) {
    return among < 2 ? 1 : std::min(1.0, static_cast<double>(reach - 1) / static_cast<double>(among - 1));
  }

  /// Batch-mates are of one length, and drawn anew among it: how often two meet again. `share` of each class takes part.
  template <class Size>
  double repeats_in_classes(const Size& size_at, double share, double most) const {
    double sum = 0;
    for (std::size_t c = 0; c < classes_.lengths.size(); ++c) {
      const auto count = static_cast<double>(class_count(c));
      const double others = count * share - 1;
      const double reach = static_cast<double>(std::min<std::int64_t>(size_at(classes_.lengths[c]), items_) - 1);
      sum += count * (others > 0 ? std::min(most, reach / others) : most);
    }
    return sum / static_cast<double>(items_);
  }

  BatchPrediction figures() {
    BatchPrediction result{.real_tokens = tokens_, .repeat_share = repeat_share_, .exact = exact_};
    const auto alike = [](const BatchClass& a, const BatchClass& b) { return a.pad == b.pad && a.size == b.size; };
    for (std::vector<BatchClass>* mix : {&whole_, &last_}) {
      std::sort(mix->begin(), mix->end(),
                [](const BatchClass& a, const BatchClass& b) { return a.pad != b.pad ? a.pad < b.pad : a.size < b.size; });
    }
    std::vector<BatchClass> all = whole_;
    all.insert(all.end(), last_.begin(), last_.end());
    std::stable_sort(all.begin(), all.end(), [](const BatchClass& a, const BatchClass& b) { return a.cost() < b.cost(); });

    double expected_most = 0, below = 0, cost = 0;
    for (const BatchClass& entry : all) {
      result.batches += entry.batches;
      result.padded_tokens += entry.batches * entry.cost();
      result.padded_squares += entry.batches * entry.cost() * static_cast<double>(entry.pad);
    }
    cost = result.padded_tokens;
    double batches_until = 0;
    for (const BatchClass& entry : all) {
      batches_until += entry.batches;
      const double until = std::pow(std::min(1.0, batches_until / result.batches), static_cast<double>(options_.world));
      expected_most += entry.cost() * (until - below);
      below = until;
    }
    const double mean = cost / result.batches;
    // Costs of several micro-batches add up and even out.
    result.free_imbalance = 1 + (expected_most / mean - 1) / std::sqrt(static_cast<double>(options_.accumulation));

    // In groups the costliest rank has the last batch of each run of `world` neighbours.
    double longest = 0;
    const auto world = static_cast<double>(options_.world);
    for (const std::vector<BatchClass>* mix : {&whole_, &last_}) {
      double begin = 0;
      for (const BatchClass& entry : *mix) {
        const double end = begin + entry.batches;
        longest += (std::floor(end / world + 1e-9) - std::floor(begin / world + 1e-9)) * entry.cost();
        begin = end;
      }
    }
    result.imbalance = std::max(1.0, longest * world / cost);

    std::sort(all.begin(), all.end(),
              [](const BatchClass& a, const BatchClass& b) { return a.pad != b.pad ? a.pad < b.pad : a.size < b.size; });
    for (std::size_t i = 0; i < all.size();) {
      double batches = 0;
      const std::size_t begin = i;
      for (; i < all.size() && alike(all[begin], all[i]); ++i) batches += all[i].batches;
      result.shapes += exact_ ? (batches > 0 ? 1 : 0) : -std::expm1(-batches);
    }
    return result;
  }

  LengthClasses classes_;
  const BatchOptions& options_;
  std::int64_t items_, group_;
  double tokens_ = 0, repeat_share_ = 0;
  bool exact_ = false;
  std::vector<BatchClass> whole_, last_;
};

}  // namespace

BatchPrediction predict_batches(const LengthHistogram& lengths, const BatchOptions& options) {
  check_batch_options(options);
  return Predictor(lengths, options).predict();
}

}  // namespace shardpack
