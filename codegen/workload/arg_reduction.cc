#include "codegen/workload/arg_reduction.h"

#include <algorithm>
#include <cmath>

#include "codegen/workload/tolerance.h"

namespace mycc {
namespace {

// The workload of the stages before `stage`, with `stage`'s operand over all axes as its only output.
Workload OperandOf(const Workload& workload, const Stage& stage) {
  Workload operand = workload;
  operand.stages.clear();
  for (const Stage& earlier : workload.stages) {
    if (&earlier == &stage) break;
    operand.stages.push_back(earlier);
  }
  Stage plain = stage;
  plain.reduce = ReduceOp::kNone;
  plain.reduce_axes.clear();
  plain.axes.push_back(stage.reduce_axes[0]);
  std::vector<int64_t> shape = stage.output->shape;
  shape.push_back(stage.reduce_axes[0]->extent);
  plain.output = MakeBuffer(stage.output->name, stage.value->dtype, std::move(shape));
  operand.outputs = {plain.output};
  operand.stages.push_back(std::move(plain));
  return operand;
}

bool IsInput(const Workload& workload, const Expr& expr) {
  return expr->op == Op::kLoad && std::ranges::any_of(workload.inputs, [&expr](const Argument& input) {
           return input.tensor == expr->buffer;
         });
}

std::vector<NDArray> CopyInputs(const Workload& workload, const std::vector<const uint8_t*>& inputs) {
  std::vector<NDArray> arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& tensor = workload.inputs[i].tensor;
    arrays.push_back({tensor->dtype, tensor->shape, {inputs[i], inputs[i] + tensor->bytes()}});
  }
  return arrays;
}

}  // namespace

ArgReduction::ArgReduction(const Workload& workload, const Buffer& output,
                           const std::vector<const uint8_t*>& inputs)
    : workload_(workload), inputs_(inputs) {
  for (const Stage& stage : workload.stages) {
    const bool arg = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
    // Inputs are not rounded: then only the lowest index of the best value is right.
    if (stage.output == output && arg && !IsInput(workload, stage.value)) stage_ = &stage;
  }
  if (stage_ != nullptr && IsFloat(stage_->value->dtype)) tolerance_ = ToleranceOf(workload).of_value;
}

double ArgReduction::OperandAt(int64_t place, int64_t index) {
  if (reference_ == nullptr) {
    operand_ = std::make_unique<Workload>(OperandOf(workload_, *stage_));
    copies_ = CopyInputs(workload_, inputs_);
    reference_ = std::make_unique<SampledReference>(*operand_, StoredElements(copies_));
  }
  const Scalar value = reference_->Output(0, place * stage_->reduce_axes[0]->extent + index);
  return IsFloat(stage_->value->dtype) ? value.f : IntToDouble(stage_->value->dtype, value.i);
}

Excuse ArgReduction::excuse() {
  if (stage_ == nullptr) return nullptr;
  return [this](int64_t place, int64_t got, int64_t want) {
    if (got < 0 || got >= stage_->reduce_axes[0]->extent) return false;
    const double have = OperandAt(place, got), best = OperandAt(place, want);
    return have == best || std::abs(have - best) <= tolerance_ * std::max(std::abs(have), std::abs(best));
  };
}

}  // namespace mycc
