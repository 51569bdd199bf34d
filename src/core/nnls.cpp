// The columns in use (the passive set) are kept as the Cholesky factor of their normal equations: columns enter in blocks, by a
// triangular solve and a small Cholesky, and leave one by one, by a rank-one update, so that no factor is ever computed again.
#include "core/nnls.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "shardpack/error.h"

namespace shardpack {
namespace {

/// A column whose distance from the span of the passive ones is below this share of its norm counts as dependent on them.
constexpr double kDependent = 1e-6;

/// to = cosine * a + sine * b and b = cosine * b - sine * a, for `count` values. `to` overlaps neither.
void rotate(const double* __restrict a, double* __restrict b, double* __restrict to, std::int64_t count, double cosine,
            double sine) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = cosine * a[i] + sine * b[i];
    b[i] = cosine * b[i] - sine * a[i];
  }
}

class PassiveSet {
 public:
  PassiveSet(const NnlsProblem& problem, const NnlsOptions& options)
      : target_(problem.target), weight_squared_(problem.weight), max_columns_(options.max_columns) {
    double square = 0;
    for (std::size_t r = 0; r < target_.size(); ++r) {
      weight_squared_[r] *= weight_squared_[r];
      square += weight_squared_[r] * target_[r] * target_[r];
    }
    noise_ = options.tolerance * std::sqrt(square);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(columns_.size()); }
  bool full() const { return size() >= max_columns_; }
  std::int64_t work() const { return work_; }  ///< so far, in entries of the factor
  const std::vector<NnlsColumn>& columns() const { return columns_; }
  std::vector<double>& x() { return x_; }  ///< one a column

  std::vector<double> residual() const {
    std::vector<double> result = target_;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      for (const NnlsEntry& entry : columns_[c]) result[row(entry)] -= entry.value * x_[c];
    }
    return result;
  }

  std::vector<double> gradient() const {
    std::vector<double> result = residual();
    for (std::size_t r = 0; r < result.size(); ++r) result[r] *= weight_squared_[r];
    return result;
  }

  /// Is the column's worth more than rounding errors can make?
  bool worthwhile(const NnlsColumn& column, const std::vector<double>& gradient) const {
    return product(column, gradient) > noise_ * norm(column);
  }

  /// Takes in those of `entering` that are independent of the passive ones and of each other, at x = 0. \return how many
  std::int64_t append(std::vector<NnlsColumn> entering) {
    const Eigen::Index before = size();
    entering.resize(std::min(entering.size(), static_cast<std::size_t>(max_columns_ - size())));
    const auto count = static_cast<Eigen::Index>(entering.size());
    reserve(before + count);
    work_ += before * before / 2 * count;

    Eigen::MatrixXd coordinates(before, count);  // in the orthonormal basis that the factor stands for
    Eigen::MatrixXd distances(count, count);     // lower half: products of the parts outside the passive span
    std::vector<double> scattered(target_.size(), 0.0);
    for (Eigen::Index j = 0; j < count; ++j) {
      const NnlsColumn& column = entering[static_cast<std::size_t>(j)];
      for (const NnlsEntry& entry : column) scattered[row(entry)] = weight_squared_[row(entry)] * entry.value;
      for (Eigen::Index i = 0; i < before; ++i) coordinates(i, j) = product(columns_[static_cast<std::size_t>(i)], scattered);
      for (Eigen::Index i = j; i < count; ++i) distances(i, j) = product(entering[static_cast<std::size_t>(i)], scattered);
      for (const NnlsEntry& entry : column) scattered[row(entry)] = 0;
    }
    if (before > 0) {
      factor_.topLeftCorner(before, before).triangularView<Eigen::Lower>().solveInPlace(coordinates);
      distances.triangularView<Eigen::Lower>() -= coordinates.transpose() * coordinates;
    }

    std::vector<Eigen::Index> entered;  // the columns of `distances` that came in
    for (Eigen::Index j = 0; j < count; ++j) {
      NnlsColumn& column = entering[static_cast<std::size_t>(j)];
      const Eigen::Index at = size();
      double square = distances(j, j);
      for (Eigen::Index i = before; i < at; ++i) {
        double sum = distances(j, entered[static_cast<std::size_t>(i - before)]);
        for (Eigen::Index k = before; k < i; ++k) sum -= factor_(at, k) * factor_(i, k);
        factor_(at, i) = sum / factor_(i, i);
        square -= factor_(at, i) * factor_(at, i);
      }
      const double length = norm(column);
      if (square <= kDependent * kDependent * length * length) continue;
      factor_.block(at, 0, 1, before) = coordinates.col(j).transpose();
      factor_(at, at) = std::sqrt(square);
      entered.push_back(j);
      norms_.push_back(length);
      columns_.push_back(std::move(column));
      x_.push_back(0);
    }
    return size() - before;
  }

  /// Takes column `c` out. The rows of the factor below it lose a coordinate, which is turned into the later ones.
  void remove(std::int64_t c) {
    const std::int64_t last = size() - 1;
    work_ += size() * size() / 2;
    carry_.assign(&factor_(0, c), &factor_(0, c) + last + 1);
    for (std::int64_t k = c + 1; k <= last; ++k) {
      const double* from = &factor_(k, k);
      double* carry = &carry_[static_cast<std::size_t>(k)];
      double* to = &factor_(k - 1, k - 1);
      const double pivot = std::sqrt(*from * *from + *carry * *carry);
      rotate(from + 1, carry + 1, to + 1, last - k, *from / pivot, *carry / pivot);
      *to = pivot;
    }
    for (std::int64_t k = 0; k < c; ++k) {
      double* column = &factor_(0, k);
      std::copy(column + c + 1, column + last + 1, column + c);
    }
    columns_.erase(columns_.begin() + c);
    norms_.erase(norms_.begin() + c);
    x_.erase(x_.begin() + c);
  }

  /// The step from x to the least squares solution over the passive columns, their signs not regarded. Solving for the step
  /// rather than for the solution corrects earlier rounding errors on the way.
  std::vector<double> step() {
    work_ += size() * size() / 2;
    const std::vector<double> slope = gradient();
    Eigen::VectorXd result(size());
    Eigen::Index first = size();  // up to here x is the solution already, but for what rounding errors can make
    for (Eigen::Index c = 0; c < size(); ++c) {
      const auto at = static_cast<std::size_t>(c);
      result(c) = product(columns_[at], slope);
      if (first == size() && std::abs(result(c)) > noise_ * norms_[at]) first = c;
      if (first == size()) result(c) = 0;
    }
    const auto factor = factor_.topLeftCorner(size(), size());
    Eigen::VectorBlock<Eigen::VectorXd> rest = result.tail(size() - first);
    factor.bottomRightCorner(rest.size(), rest.size()).triangularView<Eigen::Lower>().solveInPlace(rest);
    factor.triangularView<Eigen::Lower>().transpose().solveInPlace(result);
    return {result.data(), result.data() + result.size()};
  }

 private:
  static std::size_t row(const NnlsEntry& entry) { return static_cast<std::size_t>(entry.row); }

  static double product(const NnlsColumn& column, const std::vector<double>& rows) {
    double sum = 0;
    for (const NnlsEntry& entry : column) sum += entry.value * rows[row(entry)];
    return sum;
  }

  double norm(const NnlsColumn& column) const {  ///< weighted
    double square = 0;
    for (const NnlsEntry& entry : column) square += weight_squared_[row(entry)] * entry.value * entry.value;
    return std::sqrt(square);
  }

  void reserve(Eigen::Index columns) {
    if (columns <= factor_.rows()) return;
    const Eigen::Index capacity = std::min<Eigen::Index>(std::max(columns, factor_.rows() * 3 / 2), max_columns_);
    factor_.conservativeResize(capacity, capacity);
  }

  const std::vector<double>& target_;
  std::vector<double> weight_squared_;
  std::int64_t max_columns_;
  std::int64_t work_ = 0;
  double noise_ = 0;  // tolerance * weighted norm of the target
  std::vector<NnlsColumn> columns_;
  std::vector<double> norms_;  // weighted, one a column
  std::vector<double> x_;
  Eigen::MatrixXd factor_;     // lower triangle in the top left corner; the rest is undefined
  std::vector<double> carry_;  // scratch of remove()
};

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "planning was stopped");
}

/// Moves x to the least squares solution over those passive columns that it does not make negative, and drops the others.
/// Columns that have just entered are at 0, all others above.
void settle(PassiveSet& passive, const std::stop_token& stop) {
  std::vector<double>& x = passive.x();
  for (;;) {
    check_stop(stop);
    const std::vector<double> step = passive.step();
    double share = 1;            // of the step that keeps every x at or above 0
    std::int64_t blocking = -1;  // the column whose x gets to 0 first
    bool refused = false;
    for (std::int64_t c = passive.size() - 1; c >= 0; --c) {
      const auto at = static_cast<std::size_t>(c);
      if (step[at] >= 0) continue;
      if (x[at] <= 0) {
        passive.remove(c);
        refused = true;
      } else if (x[at] < -step[at] * share) {
        share = x[at] / -step[at];
        blocking = c;
      }
    }
    if (refused) continue;
    for (std::int64_t c = passive.size() - 1; c >= 0; --c) {
      const auto at = static_cast<std::size_t>(c);
      x[at] += share * step[at];
      if (c == blocking || x[at] <= 0) passive.remove(c);
    }
    if (blocking < 0) return;
  }
}

}  // namespace

NnlsSolution solve_nnls(const NnlsProblem& problem, const PriceColumns& price, const NnlsOptions& options, std::stop_token stop) {
  // Eigen cuts products into blocks by the caches that it finds, and so sums in another order on another machine.
  static const bool fixed = (Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20), true);
  static_cast<void>(fixed);

  PassiveSet passive(problem, options);
  NnlsSolution solution;
  for (std::int64_t price_work = 0; price_work + passive.work() < options.max_work && !passive.full();) {
    check_stop(stop);
    price_work += options.round_work;
    const std::vector<double> gradient = passive.gradient();
    std::vector<NnlsColumn> entering = price(gradient, static_cast<std::size_t>(options.columns_a_round));
    std::erase_if(entering, [&](const NnlsColumn& column) { return !passive.worthwhile(column, gradient); });
    // A column of real worth is independent of the passive ones, to which the residual is orthogonal.
    solution.optimal = entering.empty() || passive.append(std::move(entering)) == 0;
    if (solution.optimal) break;
    settle(passive, stop);
  }
  solution.columns = passive.columns();
  solution.x = passive.x();
  solution.residual = passive.residual();
  return solution;
}

}  // namespace shardpack
