// Converts blocks back to the workload stages that they came from, for primitives that replace them by other
// stages. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/tree.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A naive block as the stage that BuildNaive made it of.
Stage StageOf(const Block& block);

// The naive block `path` leads to, with its loops, gives way to these stages. The last stage writes its
// tensor; the tensors of the others are allocated at the root. FailedPrecondition when another block writes
// that tensor too, or when a name is taken: a second function of the same name has a suffix already.
absl::StatusOr<Function> ReplaceByStages(const Function& function, const Path& path,
                                         const std::vector<Stage>& stages);

}  // namespace mycc
