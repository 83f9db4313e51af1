#include "tuner/space/stage_class.h"

#include <algorithm>

#include "codegen/schedule/instructions.h"

namespace mycc {
namespace {

// The vector operand is contiguous along the lanes, or is packed to be: ahead of time, or where enough rows
// read the panels that packing makes.
bool LanesUsable(const Contraction& c, const Stage& stage) {
  constexpr int64_t kRowsThatPayForPanels = 4;
  if (stage.axes.back()->extent < 4) return false;
  const ExprNode load{Op::kLoad, c.vector.buffer->dtype, c.vector.index, {}, nullptr, c.vector.buffer};
  if (StrideOf(load, stage.axes.back()) == 1) return true;
  int64_t rows = 1;
  for (int axis : c.rows) rows *= stage.axes[axis]->extent;
  return c.vector.PlainDim(stage.axes.back()) >= 0 && (c.vector.is_const || rows >= kRowsThatPayForPanels);
}

// Contiguous along `lane`, or, on a CPU, a const input that can be packed to be.
bool ContiguousAlong(const Anatomy& anatomy, const ExprNode& load, const Var& lane, const Target& target) {
  if (StrideOf(load, lane) == 1) return true;
  if (target.kind == TargetKind::kCuda) return false;
  const Operand operand{load.buffer, load.args, false, -1};
  return operand.PlainDim(lane) >= 0 &&
         std::any_of(anatomy.workload().inputs.begin(), anatomy.workload().inputs.end(),
                     [&](const Argument& input) { return input.is_const && input.tensor == load.buffer; });
}

// On a CPU, an instruction multiplies these types as they are stored, on lanes that can be loaded; on a GPU,
// there are rows and columns enough for each operand to be used several times.
bool IsForContractionRule(const Contraction& c, const Stage& stage, const Target& target) {
  if (target.kind == TargetKind::kCpu) {
    const bool instruction = InstructionFor(stage.value->dtype, stage.output->dtype, target).ok();
    return !c.groups && !HasCast(c) && instruction && LanesUsable(c, stage);
  }
  // Tensor cores multiply windows faster than anything else reads them, also for few channels.
  constexpr int64_t kFewest = 9, kFewestOfWindow = 4;
  const int64_t fewest = HasCast(c) && stage.reduce_axes.size() > 1 ? kFewestOfWindow : kFewest;
  const auto extent = [&](const std::vector<int>& axes) {
    int64_t product = 1;
    for (int a : axes) product *= stage.axes[a]->extent;
    return product;
  };
  return extent(c.rows) >= fewest && extent(c.cols) >= fewest;
}

}  // namespace

StageClass Classify(const Anatomy& anatomy, int s, const Target& target) {
  const Stage& stage = anatomy.stage(s);
  if (stage.reduce == ReduceOp::kNone) return StageClass::kElementwise;
  if (stage.axes.empty() || stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin)
    return StageClass::kRow;
  const StageInfo& info = anatomy.info(s);
  if (info.contraction && IsForContractionRule(*info.contraction, anatomy.product(s), target))
    return StageClass::kContraction;
  // Lanes along the output's last axis, unless only the reduction axis is contiguous.
  bool along_output = false, along_reduction = false;
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const bool reduced = std::any_of(stage.reduce_axes.begin(), stage.reduce_axes.end(), [&](const Var& r) {
      return std::any_of(load->args.begin(), load->args.end(),
                         [&](const Expr& index) { return UsesVar(index, r.get()); });
    });
    if (!reduced) continue;  // one value for each output: a mean, a bias
    along_output |= ContiguousAlong(anatomy, *load, stage.axes.back(), target);
    along_reduction |= !stage.reduce_axes.empty() && StrideOf(*load, stage.reduce_axes.back()) == 1;
  }
  if (along_output && (!along_reduction || stage.axes.back()->extent >= 4)) return StageClass::kTile;
  return along_reduction || stage.axes.back()->extent == 1 ? StageClass::kRow : StageClass::kTile;
}

}  // namespace mycc
