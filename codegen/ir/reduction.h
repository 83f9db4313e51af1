// The operation of a reduction: of single values (a ReduceOp), or of tuples.
//
// A reduction of tuples has several accumulators, such as the position and the value of an argmax. Its
// combine function merges two partial results, a and b, into one. The value of a term is the partial result
// of that term alone. Partial results may be merged in any order and grouping, up to rounding. So serial
// loops, partial reductions (rfactor), lanes and threads all reduce tuples by the same function.
//
// A function may be told that terms come in ascending order of a part, such as the position: see InOrder.
// Thread rule: immutable, so free to share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/expr/expr.h"

namespace mycc {

// The function that merges tuples. Its parameters are buffers of rank 0, which have no memory.
struct TupleFunction {
  struct Part {
    Buffer a, b;    // stand for the part in the two partial results
    Expr identity;  // a constant: the accumulator's first value
    Expr combined;  // over loads of the parameters; of a's, only of this part and those after it
  };
  std::string name;  // "argmax", for printing
  // A part reads no earlier part of a, so accumulators are stored one after another, in order.
  std::vector<Part> parts;
};

// "none", a scalar operation, or a function of tuples.
class Reduction {
 public:
  Reduction() = default;
  Reduction(ReduceOp op) : op_(op) {}  // NOLINT: a scalar operation is a reduction
  explicit Reduction(std::shared_ptr<const TupleFunction> tuple) : tuple_(std::move(tuple)) {}

  // False for every operation when it is of tuples.
  bool operator==(ReduceOp op) const { return tuple_ == nullptr && op_ == op; }
  // Null for operations on single values.
  const TupleFunction* tuple() const { return tuple_.get(); }
  // REQUIRES: not of tuples.
  ReduceOp op() const;

  int arity() const { return tuple_ == nullptr ? 1 : static_cast<int>(tuple_->parts.size()); }
  // The first value of accumulator `part`, which has this type.
  Expr Identity(int part, DType dtype) const;
  // Accumulator `part` after the merge of partial results `a` and `b`, an expression for each part.
  Expr Combined(int part, const std::vector<Expr>& a, const std::vector<Expr>& b) const;
  // The same function for terms whose part number `part` ascends: what asks whether a later one is less than
  // an earlier one is folded away.
  Reduction InOrder(int part) const;
  std::string name() const;

 private:
  ReduceOp op_ = ReduceOp::kNone;
  std::shared_ptr<const TupleFunction> tuple_;
};

// The parts of a function while it is written down: its parameters, as expressions.
struct TupleParams {
  explicit TupleParams(const std::vector<std::pair<std::string, DType>>& parts);
  // The function with these identities and combined parts.
  Reduction Function(std::string name, const std::vector<Expr>& identities,
                     const std::vector<Expr>& combined) const;

  std::vector<Buffer> buffers_a, buffers_b;
  std::vector<Expr> a, b;
};

// argmax or argmin over values of a type: (position in i32, value). The lowest position of equal values
// wins; NaN is better than any number.
Reduction ArgExtremum(ReduceOp op, DType value);

// Calls `visit` on each operation of the function once, however many parts share it.
void ForEachOperation(const TupleFunction& function, const std::function<void(const ExprNode&)>& visit);

// InternalError says which of the rules above a function breaks; OK for scalar operations.
absl::Status CheckReduction(const Reduction& reduction);

// "reduction argmax(at: i32 = .., ..) of a and b", and a line for each part; empty for scalar operations.
std::string PrintReduction(const Reduction& reduction);

}  // namespace mycc
