// Compares argmax and argmin results by value: where two elements differ only by rounding, either index is
// right. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/workload/compare.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/workload.h"

namespace mycc {

class ArgReduction {
 public:
  // `inputs` of the workload, in storage form; copied when first needed.
  ArgReduction(const Workload& workload, const Buffer& output, const std::vector<const uint8_t*>& inputs);

  // Null when the output is not the direct result of an argmax or argmin of computed values.
  Excuse excuse();

 private:
  double OperandAt(int64_t place, int64_t index);

  const Workload& workload_;
  const std::vector<const uint8_t*>& inputs_;
  const Stage* stage_ = nullptr;
  double tolerance_ = 0;
  std::unique_ptr<Workload> operand_;  // the same computation whose output is the unreduced operand
  std::vector<NDArray> copies_;        // of the inputs
  std::unique_ptr<SampledReference> reference_;
};

}  // namespace mycc
