// The schedule primitives: pure functions from IR to IR, one file each, but for those that replace a block by
// other stages (stage_rewrites.cc).
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

// Primitives that only mark a loop are in annotate.h.
Primitive Split;              // split(loop, [inner factors])
Primitive SplitAxis;          // split_axis(loop, factor)
Primitive Reorder;            // reorder([loops])
Primitive Fuse;               // fuse([loops])
Primitive Bind;               // bind(loop, kind)
Primitive Inline;             // inline(block)
Primitive ComputeAt;          // compute_at(block, loop)
Primitive ReverseComputeAt;   // reverse_compute_at(block, loop)
Primitive StreamReduction;    // stream_reduction(reduction, loop)
Primitive Merge;              // merge(loop, loop)
Primitive ReverseInline;      // reverse_inline(block)
Primitive CacheRead;          // cache_read(buffer, block, loop, scope)
Primitive CacheWrite;         // cache_write(block, loop)
Primitive SetLayout;          // layout(buffer, row_pad, swizzle)
Primitive SetScope;           // set_scope(buffer, scope)
Primitive StageShared;        // stage_shared(block, buffer, loop, scope)
Primitive StageWindow;        // stage_window(block, buffer, loop, scope, loop of taps)
Primitive StageWrite;         // stage_write(block, loop, scope)
Primitive Pad;                // pad(block, dimension, extent)
Primitive PadGroups;          // pad_groups(block, dimension, group, extent)
Primitive PadDomain;          // pad_domain(block)
Primitive SplitStridePhases;  // split_stride_phases(block)
Primitive FlipSign;           // flip_sign(block, buffer)
Primitive ElideReduction;     // elide_reduction(block)
Primitive OperandStage;       // operand_stage(block, factor)
Primitive FactorStage;        // factor_stage(block)
Primitive PermuteAxes;        // permute_axes(block, order)
Primitive JoinGroups;         // join_groups(block, groups)
Primitive FoldStride;         // fold_stride(block)
Primitive SplitChain;         // split_chain(block, heads, rows, length)
Primitive Reverse;            // reverse(loop)
Primitive SkipMasked;         // skip_masked(loop)
Primitive SkipZeros;          // skip_zeros(block, padded buffer, dimension)
Primitive Pack;               // pack(buffer, [components])
Primitive RFactor;            // rfactor(loop, factor)
Primitive RFactorRuns;        // rfactor_runs(loop, length)
Primitive Winograd;           // winograd(block, m)
Primitive SplitArg;           // split_arg(block)
Primitive ReduceTogether;     // reduce_together(block, block)
Primitive LanePredicate;      // lane_predicate(loop, group)

}  // namespace mycc
