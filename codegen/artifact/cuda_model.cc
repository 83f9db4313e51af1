#include "codegen/artifact/cuda_model.h"

#include <algorithm>

#include "codegen/artifact/program_glue.h"

namespace mycc {
namespace {

// The places of one launch's arguments.
class LaunchOperands {
 public:
  LaunchOperands(const ProgramSpec& spec, const WeightLayout& weights, size_t number)
      : spec_(spec), launch_(spec.program.launches[number]), offsets_(weights.offsets[number]) {}

  CudaOperand Of(const CudaOperand& operand) const {
    if (operand.argument == CudaOperand::kWorkspace)
      return {CudaOperand::kWorkspace, spec_.program.arena_bytes + operand.offset};
    const TensorPlace& place = launch_.places[operand.argument];
    switch (place.kind) {
      case TensorPlace::kInput: return {static_cast<int>(place.at), operand.offset};
      case TensorPlace::kOutput:
        return {static_cast<int>(spec_.program.inputs.size()) + static_cast<int>(place.at), operand.offset};
      case TensorPlace::kArena: return {CudaOperand::kWorkspace, place.at + operand.offset};
      case TensorPlace::kConstant:
        return {CudaOperand::kWeights, offsets_[operand.argument] + operand.offset};
    }
    return operand;
  }

 private:
  const ProgramSpec& spec_;
  const KernelLaunch& launch_;
  const std::vector<int64_t>& offsets_;
};

}  // namespace

CudaModel CudaModelOf(const ProgramSpec& spec, const std::vector<CudaProgram>& programs,
                      const WeightLayout& weights) {
  CudaModel model;
  model.weights_symbol = WeightsSymbol(spec);
  model.weight_bytes = weights.bytes;
  int64_t launch_bytes = 0;
  for (size_t i = 0; i < spec.program.launches.size(); ++i) {
    const KernelLaunch& launch = spec.program.launches[i];
    const LaunchOperands operands(spec, weights, i);
    const CudaProgram& program = programs[launch.kernel];
    launch_bytes = std::max(launch_bytes, program.workspace_bytes);
    for (CudaStep step : program.call) {
      for (CudaTensorMap& map : step.maps) map.operand = operands.Of(map.operand);
      for (CudaOperand& pointer : step.pointers) pointer = operands.Of(pointer);
      model.steps.push_back(std::move(step));
    }
  }
  model.workspace_bytes = spec.program.arena_bytes + launch_bytes;
  return model;
}

}  // namespace mycc
