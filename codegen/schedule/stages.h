// Converts blocks back to workload stages, for primitives that replace them by other stages. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The stage that BuildNaive made the block from. FailedPrecondition for a reduction of tuples, for one that
// another block began, and for a block that is not naive any more.
absl::StatusOr<Stage> StageOf(const Function& function, const std::string& block);

// The workload whose naive function this is. FailedPrecondition when a block is not naive any more.
absl::StatusOr<Workload> WorkloadOf(const Function& function);

// Replaces the naive block, with its loops, by these stages. The last stage writes the block's tensor; the
// tensors of the others are allocated at the root. FailedPrecondition when another block writes that tensor
// too, or when a stage's name is taken.
absl::StatusOr<Function> ReplaceByStages(const Function& function, const std::string& block,
                                         const std::vector<Stage>& stages);

// The function with the allocated tensor of this name in scope `packed`, computed ahead of time, if it
// depends on const inputs alone.
absl::StatusOr<Function> PackedIfKnown(const Function& function, const std::string& tensor);

}  // namespace mycc
