#include "tuner/space/stage_class.h"

#include <algorithm>

#include "codegen/schedule/instructions.h"
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
  const Operand operand{load.buffer, load.args, false, -1};
  return operand.PlainDim(lane) >= 0 &&
         std::any_of(anatomy.workload().inputs.begin(), anatomy.workload().inputs.end(),
                     [&](const Argument& input) { return input.is_const && input.tensor == load.buffer; });
}

// Tensor cores multiply these types as they are stored.
bool HasTensorInstruction(const Contraction& c, const Stage& stage, const Target& target) {
  const Operand &a = c.scalar, &b = c.vector;
  if (a.buffer->dtype != b.buffer->dtype || a.is_tf32 != b.is_tf32) return false;
  const std::vector<Instruction>& rows = InstructionsOf(target);
  return std::any_of(rows.begin(), rows.end(), [&](const Instruction& row) {
    return row.kind == InstructionClass::kWarp && row.operand == a.buffer->dtype &&
           row.accumulator == stage.output->dtype && row.tf32 == a.is_tf32;
  });
}

// Tensor cores can have tiles of both operands although they are of one tensor: bytes must lie along the sum,
// in both of them or in one copy for both.
bool CanBeOfOneTensor(const Contraction& c, const Stage& stage, const Target& target) {
  for (const Var& axis : stage.reduce_axes) {
    const bool alike = c.scalar.PlainDim(axis) == c.vector.PlainDim(axis);
    if (!alike && DTypeBytes(c.scalar.buffer->dtype) == 1) return false;
  }
  return HasTensorInstruction(c, stage, target);
}

// Its elements are found by other data: no tile of it is a box.
bool IsGathered(const Operand& operand) {
  return std::any_of(operand.index.begin(), operand.index.end(),
                     [](const Expr& index) { return !LoadsOf(index).empty(); });
}

constexpr int64_t kFewest = 9;  // rows, and columns, for each operand to be used several times

int64_t ExtentOf(const Stage& stage, const std::vector<int>& axes) {
  int64_t product = 1;
  for (int a : axes) product *= stage.axes[a]->extent;
  return product;
}

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
  return ExtentOf(stage, c.rows) >= fewest && ExtentOf(stage, c.cols) >= fewest;
}

// By what the reduction's loads are contiguous along.
StageClass ClassOfLoads(const Anatomy& anatomy, const Stage& stage, const Target& target) {
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

}  // namespace

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
  if (ExtentOf(product, c.rows) >= kFewest && ExtentOf(product, c.cols) >= kFewest) return std::nullopt;
  return ClassOfLoads(anatomy, anatomy.stage(s), target);
}

}  // namespace mycc
