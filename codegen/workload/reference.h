// Evaluates a workload element by element: the language's reference semantics, slow. Reductions run in index
// order in the accumulator's type. Functions are pure; a SampledReference has one owner.
#pragma once

#include <functional>
#include <memory>
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

// Element `flat` (row-major) of input number `input`. Pure: several threads may call it.
using InputElements = std::function<Scalar(size_t input, int64_t flat)>;
// Reads the elements of `inputs`, which must outlive the result.
InputElements StoredElements(const std::vector<NDArray>& inputs);
InputElements StoredElements(std::vector<NDArray>&& inputs) = delete;

// One element of one stage, computing producers on demand: spot checks of tensors too large for RunReference.
class SampledReference {
 public:
  SampledReference(const Workload& workload, InputElements inputs);
  ~SampledReference();
  // Element `flat` (row-major) of output number `output`.
  Scalar Output(int output, int64_t flat);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// How the values of a random input are drawn: element i comes from number `first + i` of the seed's sequence,
// so that any device can compute it.
struct InputDraw {
  DType dtype;
  int64_t count;      // elements
  uint64_t first;     // the number of elements of all inputs before it
  int64_t low, high;  // of integers
};
std::vector<InputDraw> DrawsOf(const Workload& workload);

// Random inputs: floats uniform in [-1, 1], small integers, both bool values; gather indices are in range,
// and numbers that masks compare with axes, such as lengths, between those that hide nothing and all. The
// same seed gives the same values.
std::vector<NDArray> RandomInputs(const Workload& workload, uint64_t seed);
// Computes each element of RandomInputs when it is read.
InputElements RandomElements(const Workload& workload, uint64_t seed);

// The same with special values mixed in: zeros, infinities, NaN, subnormal, huge and tiny numbers, rows of
// zeros, and the limits of integers. They are so sparse that most sums contain none. Winograd's transforms
// spread infinities and NaN; workloads that may use them get only finite values of magnitude at most 1.
std::vector<NDArray> SpecialInputs(const Workload& workload, uint64_t seed);
// Computes each element of SpecialInputs when it is read.
InputElements SpecialElements(const Workload& workload, uint64_t seed);
bool MayBeWinograd(const Stage& stage);

// How special values are mixed into a random input, so that any device can compute them. Mixed(seed ^ i), a
// number of SplitMix64's sequence, decides whether element i becomes one of `values`, and which. Mixed(~seed
// ^ r) decides whether the elements of row r become zero or are multiplied by `small`.
struct SpecialDraw {
  static constexpr uint64_t kRowKinds = 16;  // of 16 rows, on average one becomes zero and one small

  DType dtype;
  int64_t count;  // elements
  uint64_t seed;
  uint64_t one_in;  // on average, 1 of `one_in` elements becomes special
  int64_t row;      // elements of a row; 0: rows stay as they are
  double small;
  std::vector<uint64_t> values;  // in storage form, in the low bytes; none: nothing becomes special
};
std::vector<SpecialDraw> SpecialDrawsOf(const Workload& workload, uint64_t seed);

}  // namespace mycc
