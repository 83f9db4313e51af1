// Each operation of the language on the numbers that show its faults: all that the types of 8 and 16 bits
// have, and of f32 and f64 every exponent and sign, the ranges where functions curve, and special values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/accuracy.h"
#include "codegen/workload/reference.h"

namespace mycc {

// y[i] = op(x0[i]) or y[i] = op(x0[i], x1[i]), over kFunctionElements elements.
struct FunctionCase {
  Op op;
  DType dtype;

  std::string name() const;  // "rsqrt_f16"
  Workload workload() const;
  // Call after call other numbers, where there are more than kFunctionElements; `sweep` is the call's number
  // of `sweeps`. Special values stand first in each.
  std::vector<NDArray> Inputs(int sweep, int sweeps) const;
  // How many calls see all that is to be seen: 1 where there are no other numbers.
  int Sweeps(int of_wide_types) const;
};
inline constexpr int64_t kFunctionElements = 1 << 16;

std::vector<FunctionCase> FunctionCases();

// Numbers of the type: zeros, infinities, NaN, both ends of the subnormal and of the normal numbers, what
// squares and roots of these are, and where functions turn.
std::vector<double> SpecialValues(DType dtype);

// The largest error of the results, in units in the last place: infinite where a zero, an infinity or a NaN
// is not what IEEE has. `at` says where, in words.
struct FunctionError {
  double ulp = 0;
  std::string at;
};
class FunctionJudge {
 public:
  // The exact results are computed once.
  FunctionJudge(const FunctionCase& function, std::vector<NDArray> inputs);

  const std::vector<NDArray>& inputs() const { return inputs_; }
  // Results that are the same bits as earlier ones, those of other vectors or processors, are not compared
  // again.
  FunctionError Judge(const NDArray& got);

 private:
  FunctionError Compare(const NDArray& got) const;
  long double ExactResult(double a, double b) const;
  double Error(int64_t i, double got) const;

  const FunctionCase function_;
  const std::vector<NDArray> inputs_;
  std::vector<long double> exact_;
  std::map<std::vector<uint8_t>, FunctionError> judged_;  // by the bytes of the results
};

}  // namespace mycc
