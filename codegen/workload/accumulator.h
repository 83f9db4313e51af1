// The state of a reduction while it runs over the values of one output element, in index order. Thread rule:
// one owner.
#pragma once

#include <cmath>
#include <cstdint>

#include "codegen/expr/eval.h"
#include "codegen/expr/expr.h"

namespace mycc {

// argmax and argmin keep the first position of the best value; NaN is better than any number.
class Accumulator {
 public:
  Accumulator(ReduceOp op, DType dtype)
      : op_(op), dtype_(dtype), is_arg_(op == ReduceOp::kArgMax || op == ReduceOp::kArgMin) {
    Restart();
  }

  void Restart() {
    value_ = is_arg_ ? Scalar() : ReduceIdentity(op_, dtype_)->value;
    seen_ = 0;
  }

  void Add(Scalar value) {
    if (is_arg_) {
      if (seen_ == 0 || Better(value)) {
        value_ = value;
        best_ = seen_;
      }
    } else if (op_ == ReduceOp::kSum && dtype_ == DType::kF32) {
      value_.f = static_cast<float>(value_.f + value.f);
    } else {
      value_ = EvaluateReduce(op_, dtype_, value_, value);
    }
    ++seen_;
  }

  Scalar Result() const { return is_arg_ ? Scalar{0, best_} : value_; }

 private:
  bool Better(Scalar value) const {
    const bool max = op_ == ReduceOp::kArgMax;
    if (!IsFloat(dtype_)) {
      const int64_t a = OrderOfInt(dtype_, value.i), b = OrderOfInt(dtype_, value_.i);
      return max ? a > b : a < b;
    }
    if (std::isnan(value_.f)) return false;
    return std::isnan(value.f) || (max ? value.f > value_.f : value.f < value_.f);
  }

  const ReduceOp op_;
  const DType dtype_;
  const bool is_arg_;
  Scalar value_;
  int64_t seen_ = 0;
  int64_t best_ = 0;
};

}  // namespace mycc
