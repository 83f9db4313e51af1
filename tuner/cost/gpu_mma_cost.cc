#include "codegen/schedule/instructions.h"
#include "tuner/cost/gpu_cost.h"

namespace mycc {

GpuArithmetic MmaArithmeticOf(const NestBlock& nest, const GpuMachine& machine) {
  constexpr double kColumns = 8;  // that an instruction's cycles are told for
  const absl::StatusOr<Instruction> row = FindInstruction(nest.instruction, machine.target);
  const double products = nest.instances();  // padding is multiplied too
  if (!row.ok()) return {products / machine.row.fma_per_cycle, products / kWarpThreads};
  const double each = static_cast<double>(row->m) * row->k * kColumns;
  return {products / each * row->cycles, products / each};
}

}  // namespace mycc
