// Calls of library kernels, for tests: results in memory of their own, so that a sanitizer notices what is
// written beside them. Thread rule: pure functions.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/library_kernels.h"
#include "codegen/workload/reference.h"

namespace mycc {

using Outputs = std::vector<std::pair<DType, std::vector<int64_t>>>;

inline std::vector<NDArray> CallKernel(const std::string& function, std::vector<int64_t> attributes,
                                       const std::vector<NDArray>& inputs, const Outputs& outputs) {
  LibraryCall call{function, std::move(attributes), {}};
  std::vector<const NDArray*> values;
  for (const NDArray& input : inputs) {
    call.inputs.push_back(MakeBuffer("input", input.dtype, input.shape));
    values.push_back(&input);
  }
  std::vector<Buffer> results;
  for (const auto& [dtype, shape] : outputs) results.push_back(MakeBuffer("output", dtype, shape));
  return *RunLibraryCall(call, results, values);
}

// Numbers of a type from -range to range, or from 0 where it has no sign; integers are whole.
inline NDArray RandomArray(DType dtype, std::vector<int64_t> shape, double range, std::mt19937_64* random) {
  NDArray array = NDArray::Zeros(dtype, std::move(shape));
  const double low = !IsFloat(dtype) && IsUnsigned(dtype) ? 0 : -range;
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    const double number = std::uniform_real_distribution<double>(low, range)(*random);
    if (IsFloat(dtype)) {
      array.Set(i, Scalar{RoundFloat(dtype, number), 0});
    } else {
      array.Set(i, Scalar{0, WrapInt(dtype, static_cast<int64_t>(number))});
    }
  }
  return array;
}

}  // namespace mycc
