// Converts blocks back to workload stages, for primitives that replace them by other stages. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/tree.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The stage that BuildNaive made the naive block from.
Stage StageOf(const Block& block);

// Replaces the naive block at `path`, with its loops, by these stages. The last stage writes the block's
// tensor; the tensors of the others are allocated at the root. FailedPrecondition when another block writes
// that tensor too, or when a stage's name is taken.
absl::StatusOr<Function> ReplaceByStages(const Function& function, const Path& path,
                                         const std::vector<Stage>& stages);

}  // namespace mycc
