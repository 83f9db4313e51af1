// Recognizes loops around a sum of products, for the passes that make an Mma of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

struct ProductLoop {
  const For* loop;
  int64_t extent;
  // Elements that a step of the loop moves, in the sums and in the operands; nullopt: not always the same.
  int64_t acc;
  std::optional<int64_t> x, y;

  bool is_reduction() const { return acc == 0; }
};

// acc[..] = acc[..] + x[..] * y[..] in a perfect nest. Operands may be cast or rounded (expr/product.h).
struct ProductNest {
  std::vector<ProductLoop> loops;  // outermost first
  const ExprNode* acc = nullptr;
  const ExprNode* x = nullptr;
  const ExprNode* y = nullptr;
};

// FailedPrecondition says why the loop is not such a nest. `guarded`: a condition around the sum is allowed,
// and has no meaning.
absl::StatusOr<ProductNest> ProductNestOf(const For& outermost, bool guarded);

// The tile that begins at the loaded element where variables have the values `at`.
TileView ViewAt(const ExprNode& load, const VarMap& at, int64_t row_stride, int64_t col_stride);

}  // namespace mycc
