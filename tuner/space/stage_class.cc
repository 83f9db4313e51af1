#include "tuner/space/stage_class.h"

#include <algorithm>

#include "codegen/expr/product.h"
#include "codegen/target/instructions.h"
#include "tuner/space/cpu_products.h"

namespace mycc {
namespace {

// Contiguous along `lane`, or, on a CPU, so few elements apart that vectors and shuffles have the lanes, or a
// const input that can be packed to be contiguous.
bool ContiguousAlong(const Anatomy& anatomy, const ExprNode& load, const Var& lane, const Target& target) {
  constexpr int64_t kFewApart = 4;
  const std::optional<int64_t> stride = StrideOf(load, lane);
  if (stride == 1) return true;
  if (target.kind == TargetKind::kCuda) return false;
  if (stride && *stride > 1 && *stride <= kFewApart) return true;
  return PlainDim(load.args, lane) >= 0 &&
         std::ranges::any_of(anatomy.workload().inputs, [&](const Argument& input) {
           return input.is_const && input.tensor == load.buffer;
         });
}

// Tiles of both operands can be of one tensor. For tensor cores, bytes must lie along the sum, in both of
// them or in one copy for both.
bool CanBeOfOneTensor(const Contraction& c, const Stage& stage, const Target& target) {
  if (DTypeBytes(c.scalar.buffer->dtype) > 1 || !HasTensorInstruction(c, stage, target)) return true;
  return std::ranges::all_of(
      stage.reduce_axes, [&](const Var& axis) { return c.scalar.PlainDim(axis) == c.vector.PlainDim(axis); });
}

// Its elements are found by other data: no tile of it is a box.
bool IsGathered(const Operand& operand) { return std::ranges::any_of(operand.index, HasLoad); }

constexpr int64_t kFewest = 9;  // rows, and columns, for each operand to be used several times

// Lanes can run along the depth, and the factors are there before: a norm's rows are summed up as they are
// computed.
bool IsDot(const Contraction& c, const Stage& stage) {
  return LiesAlongDepth(c, stage) && (!c.rows.empty() || c.vector.producer < 0);
}

// On a CPU, an instruction multiplies these types, on lanes that can be loaded; on a GPU, there are rows and
// columns enough.
bool IsForContractionRule(const Contraction& c, const Stage& stage, const Target& target) {
  if (target.kind == TargetKind::kCpu) return !CpuProductsOf(c, stage, target).empty() || IsDot(c, stage);
  if (!c.phases.empty() || IsGathered(c.scalar) || IsGathered(c.vector)) return false;
  if (c.OfOneTensor() && !CanBeOfOneTensor(c, stage, target)) return false;
  // Tensor cores multiply windows faster than most else reads them, also for few channels.
  constexpr int64_t kFewestOfWindow = 4;
  const bool is_window = stage.reduce_axes.size() > 1 && HasTensorInstruction(c, stage, target);
  const int64_t fewest = is_window ? kFewestOfWindow : kFewest;
  return PointsOf(stage.axes, c.rows) >= fewest && PointsOf(stage.axes, c.cols) >= fewest;
}

// By what the reduction's loads are contiguous along.
StageClass ClassOfLoads(const Anatomy& anatomy, const Stage& stage, const Target& target) {
  // Lanes along the output's last axis, unless only the reduction axis is contiguous.
  bool along_output = false, along_reduction = false;
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const bool reduced =
        std::ranges::any_of(stage.reduce_axes, [&](const Var& r) { return UsesVar(load->args, r.get()); });
    if (!reduced) continue;  // one value for each output: a mean, a bias
    along_output |= ContiguousAlong(anatomy, *load, stage.axes.back(), target);
    along_reduction |= !stage.reduce_axes.empty() && StrideOf(*load, stage.reduce_axes.back()) == 1;
  }
  if (along_output && (!along_reduction || stage.axes.back()->extent >= 4)) return StageClass::kTile;
  return along_reduction || stage.axes.back()->extent == 1 ? StageClass::kRow : StageClass::kTile;
}

}  // namespace

bool HasTensorInstruction(const Contraction& c, const Stage& product, const Target& target) {
  const Operand &a = c.scalar, &b = c.vector;
  if (a.buffer->dtype != b.buffer->dtype || a.is_tf32 != b.is_tf32) return false;
  const std::vector<const Instruction*> rows = InstructionsOf(target);
  return std::ranges::any_of(rows, [&](const Instruction* row) {
    return row->kind == InstructionClass::kWarp && row->operand == a.buffer->dtype &&
           row->accumulator == product.output->dtype && row->tf32 == a.is_tf32;
  });
}

StageClass Classify(const Anatomy& anatomy, int s, const Target& target) {
  const Stage& stage = anatomy.stage(s);
  if (stage.reduce == ReduceOp::kNone) return StageClass::kElementwise;
  if (stage.axes.empty() || stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin)
    return StageClass::kRow;
  const StageInfo& info = anatomy.info(s);
  if (info.contraction && IsForContractionRule(*info.contraction, anatomy.product(s), target))
    return StageClass::kContraction;
  return ClassOfLoads(anatomy, stage, target);
}

std::optional<StageClass> OtherClass(const Anatomy& anatomy, int s, const Target& target) {
  const Contraction& c = *anatomy.info(s).contraction;
  const Stage& product = anatomy.product(s);
  if (PointsOf(product.axes, c.rows) >= kFewest && PointsOf(product.axes, c.cols) >= kFewest)
    return std::nullopt;
  return ClassOfLoads(anatomy, anatomy.stage(s), target);
}

}  // namespace mycc
