// Clp keeps the basis between calls, so that a few more columns or another demand cost a few pivots.
#include "core/covering_program.h"

#include <ClpConfig.h>

#include <ClpSimplex.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/checked.h"
#include "shardpack/packer.h"

namespace shardpack {

std::string lp_solver() { return "Clp " CLP_VERSION; }

CoveringProgram::CoveringProgram(std::int64_t lengths) : clp_(std::make_unique<ClpSimplex>()) {
  clp_->setLogLevel(0);
  clp_->scaling(0);  // all entries are small whole numbers
  clp_->setDualTolerance(1e-9);
  clp_->setPrimalTolerance(1e-9);
  clp_->resize(static_cast<int>(lengths), 0);
  for (int row = 0; row < static_cast<int>(lengths); ++row) clp_->setRowBounds(row, 0, COIN_DBL_MAX);
}

CoveringProgram::~CoveringProgram() = default;

void CoveringProgram::add(std::span<const Column> columns) {
  std::vector<double> lower(columns.size(), 0), upper(columns.size(), COIN_DBL_MAX), cost(columns.size(), 1), places;
  std::vector<int> rows;
  std::vector<CoinBigIndex> begin{0};
  for (const Column& column : columns) {
    for (std::size_t i = 0; i < column.size(); ++i) {
      if (i > 0 && column[i] == column[i - 1]) {
        places.back() += 1;
      } else {
        rows.push_back(column[i]);
        places.push_back(1);
      }
    }
    begin.push_back(static_cast<CoinBigIndex>(rows.size()));
  }
  clp_->addColumns(static_cast<int>(columns.size()), lower.data(), upper.data(), cost.data(), begin.data(), rows.data(),
                   places.data());
}

void CoveringProgram::allow(std::int64_t column, bool allowed) {
  clp_->setColumnUpper(static_cast<int>(column), allowed ? COIN_DBL_MAX : 0);
}

void CoveringProgram::set_demand(std::span<const double> demand) {
  for (std::size_t row = 0; row < demand.size(); ++row) clp_->setRowLower(static_cast<int>(row), demand[row]);
}

double CoveringProgram::solve() {
  clp_->primal();
  ensure(clp_->isProvenOptimal(), "the linear program was not solved");
  const double* prices = clp_->dualRowSolution();
  prices_.assign(prices, prices + clp_->numberRows());
  for (double& price : prices_) price = std::max(price, 0.0);
  return clp_->objectiveValue();
}

std::int64_t CoveringProgram::places() const { return clp_->getNumElements(); }

std::int64_t CoveringProgram::iterations() const { return clp_->numberIterations(); }

std::span<const double> CoveringProgram::x() const {
  return {clp_->primalColumnSolution(), static_cast<std::size_t>(clp_->numberColumns())};
}

void CoveringProgram::erase(std::span<const std::int32_t> columns) {
  clp_->deleteColumns(static_cast<int>(columns.size()), columns.data());
}

}  // namespace shardpack
