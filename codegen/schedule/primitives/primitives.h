// The schedule primitives: pure functions from IR to IR, and the table of them. Each has a file, and near
// relatives share one. A new primitive needs a function, a row in table.cc and its name here, or in
// annotate.h for one that only marks a loop. Thread rule: pure functions and constant data.
//
// A primitive returns FailedPrecondition, naming the loop or block and the reason, when it is not legal here.
// Arguments have been checked against the signature in the table (schedule.cc) before a primitive sees them.
#pragma once

#include <string>
#include <string_view>
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
  size_t size() const { return args_.size(); }
  const StepArg::Ints& Ints(int i) const { return std::get<StepArg::Ints>(args_[i].value); }

 private:
  const std::vector<StepArg>& args_;
};

using Primitive = absl::StatusOr<Function>(const Function& function, const Target& target,
                                           const StepArgs& args);

// A row of the table: arguments, usage, which begins with the name in a trace, and function.
struct PrimitiveInfo {
  // One letter for each argument: n a name, i an integer, N a list of names, I a list of integers.
  std::string_view signature;
  std::string_view usage;
  Primitive* apply;

  constexpr std::string_view name() const { return usage.substr(0, usage.find('(')); }
};
const PrimitiveInfo* FindPrimitive(std::string_view name);  // null when there is none
// "unknown primitive spilt; expected one of split, reorder, ... (did you mean split?)".
std::string UnknownPrimitive(const std::string& name);

// Loops: their extents, order and kind.
Primitive Split, SplitAxis, Reorder, Reverse, Fuse, Merge, Bind, LanePredicate;

// Blocks that move into loops, or into their readers.
Primitive Inline, ReverseInline, ComputeAt, ReverseComputeAt;

// Copies of tensors and accumulators; their memory and layout.
Primitive CacheRead, CacheWrite, StageShared, StageWrite, SetScope, SetLayout, Pack;

// The domain of a block.
Primitive Pad, PadDomain, SkipMasked, SkipZeros;

// Reductions in parts, or together with others.
Primitive RFactor, RFactorRuns, SplitArg, StreamReduction, ReduceTogether;

// Blocks that become those of other stages.
Primitive SplitStridePhases, FlipSign, ElideReduction, OperandStage, FactorStage, PermuteAxes, JoinGroups,
    FoldStride, Winograd, SplitChain;

}  // namespace mycc
