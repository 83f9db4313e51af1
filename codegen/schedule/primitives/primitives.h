// The schedule primitives: pure functions from IR to IR. Each has a file, and near relatives share one.
//
// A primitive returns FailedPrecondition, naming the loop or block and the reason, when it is not legal here.
// Arguments have been checked against the signature in the table (schedule.cc) before a primitive sees them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"

namespace mycc {

// The arguments of a step, by position.
class StepArgs {
 public:
  explicit StepArgs(const Step& step) : args_(step.args) {}
  const std::string& Name(int i) const { return std::get<std::string>(args_[i].value); }
  int64_t Int(int i) const { return std::get<int64_t>(args_[i].value); }
  const StepArg::Names& Names(int i) const { return std::get<StepArg::Names>(args_[i].value); }
  const StepArg::Ints& Ints(int i) const { return std::get<StepArg::Ints>(args_[i].value); }

 private:
  const std::vector<StepArg>& args_;
};

using Primitive = absl::StatusOr<Function>(const Function& function, const Target& target,
                                           const StepArgs& args);

// Their arguments are in table.cc. Primitives that only mark a loop are in annotate.h.

// Loops: their extents, order and kind.
Primitive Split, SplitAxis, Reorder, Reverse, Fuse, Merge, Bind, LanePredicate;

// Blocks that move into loops, or into their readers.
Primitive Inline, ReverseInline, ComputeAt, ReverseComputeAt;

// Copies of tensors and accumulators; their memory and layout.
Primitive CacheRead, CacheWrite, StageShared, StageWindow, StageWrite, SetScope, SetLayout, Pack;

// The domain of a block.
Primitive Pad, PadGroups, PadDomain, SkipMasked, SkipZeros;

// Reductions in parts, or together with others.
Primitive RFactor, RFactorRuns, SplitArg, StreamReduction, ReduceTogether;

// Blocks that become those of other stages.
Primitive SplitStridePhases, FlipSign, ElideReduction, OperandStage, FactorStage, PermuteAxes, JoinGroups,
    FoldStride, Winograd, SplitChain;

}  // namespace mycc
