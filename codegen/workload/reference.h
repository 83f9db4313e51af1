// Evaluates a workload element by element, slowly: the language's reference semantics. Reductions run in
// index order in the accumulator's type.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A dense tensor in storage form.
struct NDArray {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  static NDArray Zeros(DType dtype, std::vector<int64_t> shape);
  int64_t num_elements() const;
  Scalar Get(int64_t flat) const { return LoadScalar(dtype, bytes.data() + flat * DTypeBytes(dtype)); }
  void Set(int64_t flat, Scalar value) { StoreScalar(dtype, bytes.data() + flat * DTypeBytes(dtype), value); }
};

// Inputs in declared order; returns the outputs in declared order.
absl::StatusOr<std::vector<NDArray>> RunReference(const Workload& workload,
                                                  const std::vector<NDArray>& inputs);

// One element of one stage, computing producers on demand: spot checks of tensors too large for RunReference.
class SampledReference {
 public:
  SampledReference(const Workload& workload, const std::vector<NDArray>& inputs);
  ~SampledReference();
  // Element `flat` (row-major) of output number `output`.
  Scalar Output(int output, int64_t flat);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// How an input is drawn: its element i is made of number `first + i` of the seed's sequence, so that any
// device can draw it.
struct InputDraw {
  DType dtype;
  int64_t count;      // elements
  uint64_t first;     // the inputs before it took the numbers before
  int64_t low, high;  // of integers
};
std::vector<InputDraw> DrawsOf(const Workload& workload);

// Uniform random inputs in [-1, 1] (floats), small integers, all bool values; indices used to gather are
// within range. Deterministic by seed.
std::vector<NDArray> RandomInputs(const Workload& workload, uint64_t seed);

// The same with special values among them, so sparse that most sums see none: zeros, infinities, NaN,
// subnormal, huge and tiny numbers, rows of zeros, and the ends of integers. Workloads that Winograd's
// transforms may compute, which spread infinities and NaN, have finite ones of magnitude 1 at most.
std::vector<NDArray> SpecialInputs(const Workload& workload, uint64_t seed);
bool MayBeWinograd(const Stage& stage);

// How special values come among a random input's, so that any device can draw them: Mixed(seed ^ i), a number
// of SplitMix64's sequence, says for element i whether it becomes one of the values, and which; Mixed(~seed ^
// r) of row r whether its elements become zero, or are multiplied by `small`.
struct SpecialDraw {
  static constexpr uint64_t kRowKinds = 16;  // one row in this many is zero, and one is small

  DType dtype;
  int64_t count;  // elements
  uint64_t seed;
  uint64_t one_in;  // elements becomes special
  int64_t row;      // elements; 0: rows are left alone
  double small;
  std::vector<uint64_t> values;  // in storage form, in the low bytes; none: nothing becomes special
};
std::vector<SpecialDraw> SpecialDrawsOf(const Workload& workload, uint64_t seed);

}  // namespace mycc
