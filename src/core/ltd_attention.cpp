// What dropping saves in attention, and what it does to segments: expected values, from closed forms for each segment.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

namespace {

double square(double value) { return value * value; }

/// Of the number q of kept tokens of one segment.
struct Moments {
  double mean_square = 0, chance_of_none = 0;
};

/// q = floor(share) or one more, with mean `share` = numerator / denominator; and `each` on top.
Moments rounded_share(std::int64_t numerator, std::int64_t denominator, std::int64_t each) {
  if (denominator == 0) return {square(static_cast<double>(each)), each == 0 ? 1.0 : 0.0};
  const std::int64_t least = numerator / denominator + each;
  const auto low = static_cast<double>(least);
  const double chance_of_more = static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return {square(low) + chance_of_more * (2 * low + 1), low == 0 ? 1 - chance_of_more : 0};
}

class RowMoments {
 public:
  RowMoments(KeptMode mode, std::int64_t most_tokens) : mode_(mode) {
    if (mode != KeptMode::uniform) return;
    log_factorial_.resize(static_cast<std::size_t>(most_tokens) + 1);
    for (std::size_t n = 1; n < log_factorial_.size(); ++n) {
      log_factorial_[n] = log_factorial_[n - 1] + std::log(static_cast<double>(n));
    }
  }

  /// A segment of `part` tokens in a row of `tokens` tokens and `parts` segments, kept < tokens.
  Moments of(std::int64_t part, std::int64_t tokens, std::int64_t parts, std::int64_t kept) const {
    if (mode_ == KeptMode::quota) return rounded_share(kept * part, tokens, 0);
    if (mode_ == KeptMode::quota_min1) return rounded_share((kept - parts) * (part - 1), tokens - parts, 1);
    // Hypergeometric: `kept` draws from `tokens`, `part` of which count.
    const double share = static_cast<double>(part) / static_cast<double>(tokens), draws = static_cast<double>(kept);
    const double variance =
        tokens == 1 ? 0 : draws * share * (1 - share) * static_cast<double>(tokens - kept) / static_cast<double>(tokens - 1);
    return {square(draws * share) + variance,
            tokens - part < kept ? 0 : std::exp(log_choose(tokens - part, kept) - log_choose(tokens, kept))};
  }

 private:
  double log_choose(std::int64_t n, std::int64_t k) const {
    const auto at = [this](std::int64_t i) { return log_factorial_[static_cast<std::size_t>(i)]; };
    return at(n) - at(k) - at(n - k);
  }

  KeptMode mode_;
  std::vector<double> log_factorial_;
};

class PackedAttention {
 public:
  PackedAttention(const LtdSchedule& schedule, KeptMode mode, const LtdRowTable& rows)
      : schedule_(schedule), mode_(mode), rows_(rows), moments_(mode, rows.widest()) {}

  LtdAttention run(const LtdTable& table) {
    for (const LtdPlateau& plateau : table.plateaus) {
      // Every row of the cycle `whole` times, and `more` of them from the first on once more.
      const LtdReads reads = rows_.of_steps(schedule_, plateau.first_step, plateau.steps);
      const std::int64_t whole = reads.count / rows_.cycle(), more = reads.count % rows_.cycle();
      for (std::int64_t i = 0; i < (whole > 0 ? rows_.cycle() : more); ++i) {
        add(reads.first + i, plateau.shape, whole + (i < more ? 1 : 0));
      }
    }
    return total_;
  }

 private:
  void add(std::int64_t read, const StepShape& shape, std::int64_t times) {
    const LtdRow row = rows_.at(read);
    const std::int64_t kept = kept_in(schedule_, shape, row.width), tokens = row.tokens;
    const auto count = static_cast<std::int64_t>(row.parts.size());
    const bool drops = kept < tokens;
    if (drops && mode_ == KeptMode::quota_min1 && kept < count) {
      throw Error(ErrorCode::usage,
                  fmt::format("quota-min1 keeps a token of each segment, but row {} has {} segments where {} tokens "
                              "are kept; use --selection quota or a larger --kept-start",
                              with_commas(read % rows_.cycle()), count, kept));
    }
    double squares = 0, kept_squares = 0, empty = 0;
    for (const RowPart& part : row.parts) {
      const double all = square(part.tokens);
      squares += all;
      if (!drops || part.tokens == 0) {
        kept_squares += all;
        continue;
      }
      const Moments moments = moments_.of(part.tokens, tokens, count, kept);
      kept_squares += moments.mean_square;
      empty += moments.chance_of_none;
      if (mode_ == KeptMode::quota_min1) note_inclusion(part.tokens, tokens, count, kept);
    }
    const double middle = static_cast<double>(schedule_.ltd_layers * times);
    const double outer = static_cast<double>((schedule_.layers - schedule_.ltd_layers) * times);
    total_.full_row_pairs += (outer + middle) * square(static_cast<double>(row.width));
    if (kept < row.width && kept > tokens) total_.kept_padding += schedule_.ltd_layers * times * (kept - tokens);
    if (!row.counts) return;
    total_.pairs += outer * squares + middle * kept_squares;
    total_.dense_pairs += (outer + middle) * squares;
    total_.empty_segments += middle * empty;
    total_.segments += middle * static_cast<double>(count);
  }

  void note_inclusion(std::int64_t part, std::int64_t tokens, std::int64_t parts, std::int64_t kept) {
    const double shared =
        tokens == parts ? 0 : static_cast<double>((kept - parts) * (part - 1)) / static_cast<double>(tokens - parts);
    const double chance = (1 + shared) / static_cast<double>(part);
    total_.max_inclusion = std::max(total_.max_inclusion, chance * static_cast<double>(tokens) / static_cast<double>(kept));
  }

  const LtdSchedule& schedule_;
  KeptMode mode_;
  const LtdRowTable& rows_;
  RowMoments moments_;
  LtdAttention total_;
};

}  // namespace

LtdAttention ltd_attention(const LtdSchedule& schedule, const LtdTable& table, KeptMode mode, const LtdRowTable* rows) {
  if (rows != nullptr) return PackedAttention(schedule, mode, *rows).run(table);
  LtdAttention total;
  for (const LtdPlateau& plateau : table.plateaus) {
    const double read = static_cast<double>(plateau.steps * schedule.global_batch() * plateau.shape.pieces);
    const double all = square(static_cast<double>(plateau.shape.row_tokens)),
                 kept = square(static_cast<double>(plateau.shape.kept));
    const double middle = read * static_cast<double>(schedule.ltd_layers), layers = read * static_cast<double>(schedule.layers);
    total.dense_pairs += layers * all;
    total.pairs += (layers - middle) * all + middle * kept;
  }
  total.full_row_pairs = total.dense_pairs;
  return total;
}

double flop_saving(const LtdTable& table, const LtdAttention& attention, std::int64_t hidden_size) {
  // A forward pass of one layer: 24 h^2 FLOPs a token in its matrices, 4 h a pair in attention.
  const auto flops = [&](std::int64_t layer_tokens, double pairs) {
    return 6 * static_cast<double>(hidden_size) * static_cast<double>(layer_tokens) + pairs;  // in units of 4 h
  };
  const double dense = flops(table.dense_layer_tokens, attention.dense_pairs);
  return dense > 0 ? 1 - flops(table.layer_tokens, attention.pairs) / dense : 0;
}

}  // namespace shardpack
