// Evaluates scalar expressions: the reference semantics that every back end is checked against.
//
// Each operation is computed in double (floats) or int64 (integers) and rounded to the node's type.
// Arithmetic of floats narrower than f64 rounds after every operation. NaN propagates through min and max.
// Thread rule: const, free to share.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// The values of variables and tensor elements during an evaluation.
class EvalContext {
 public:
  virtual ~EvalContext() = default;
  virtual int64_t VarValue(const VarNode& var) const = 0;
  virtual Scalar LoadElement(const BufferNode& buffer, const std::vector<int64_t>& indices) const = 0;
};
Scalar Evaluate(const Expr& expr, const EvalContext& context);

// One operation on already evaluated operands (not kLoad, kVar, kSelect).
Scalar EvaluateOp(Op op, DType dtype, DType operand_dtype, const Scalar* args);
// accumulator (op) value for the plain reductions.
Scalar EvaluateReduce(ReduceOp op, DType dtype, Scalar accumulator, Scalar value);

}  // namespace mycc
