// Rewrites a workload's stages before rules see them: into other stages that compute the same tensors, with
// the trace steps that do it. Pure.
#pragma once

#include <vector>

#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

struct Rewritten {
  Workload workload;
  std::vector<Step> steps;
};

// Transposed convolutions become convolutions of each phase (codegen/schedule/stride_phases.h), and sums of
// products of two i8 or two u8 become sums of u8 times i8 where the instruction for them multiplies nothing
// else (codegen/schedule/flipped_sign.h).
Rewritten RewriteForCpu(const Workload& canonical, const Target& target);

// Computed factors of sums that end a chain along one axis (stream_chain.h) become stages of their own, for
// rules that stream the chain.
Rewritten WithOperandStages(const Rewritten& rewritten);

}  // namespace mycc
