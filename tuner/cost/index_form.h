// How an index changes with each loop around it, as needed for footprints and strides. It is several times
// cheaper than exact simplification. A division keeps fractional steps (f / 56 moves by 1/56 when f moves by
// 1), a remainder keeps a bound on its values. Pure functions.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "codegen/expr/expr.h"

namespace mycc {

// Approximately constant + sum of per_step[l] * loop l.
struct IndexForm {
  explicit IndexForm(size_t loops) : per_step(loops, 0.0) {}

  absl::InlinedVector<double, 16> per_step;
  double distinct = std::numeric_limits<double>::infinity();  // no more different values than this
  bool gather = false;  // depends on data: a step of 1 says only that another element may be meant
};

// Variables of the enclosing loops, outermost first, and the forms of a block's iteration variables.
class IndexScope {
 public:
  struct Loop {
    const VarNode* var;
    double extent;
  };
  explicit IndexScope(std::vector<Loop> loops) : loops_(std::move(loops)) {}

  void Bind(const VarNode* var, IndexForm form) { bound_.emplace_back(var, std::move(form)); }
  IndexForm FormOf(const Expr& expr) const;

  // The number of values of a form while loops from number `from` inwards run.
  double Values(const IndexForm& form, size_t from) const;
  size_t num_loops() const { return loops_.size(); }
  double extent(size_t loop) const { return loops_[loop].extent; }

 private:
  IndexForm OfVar(const VarNode* var) const;
  double Span(const IndexForm& form) const;  // of values while all loops run
  IndexForm WithoutMultiples(IndexForm form, double divisor) const;
  IndexForm OfQuotient(IndexForm form, double divisor) const;
  IndexForm OfRemainder(IndexForm form, double divisor) const;
  IndexForm OfData(const std::vector<Expr>& args) const;

  std::vector<Loop> loops_;
  std::vector<std::pair<const VarNode*, IndexForm>> bound_;
};

}  // namespace mycc
