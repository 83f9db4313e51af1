// Hardware instructions as rows of data. The tensorize primitive selects a row by name; lowering turns the
// marked nest into Mma statements of that row; the back end emits them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"
#include "codegen/target/target.h"

namespace mycc {

// Who carries out an instruction: one CPU thread on vector registers, a warp on fragments in registers
// (mma.sync), or a warpgroup on tiles in shared memory (wgmma).
enum class InstructionClass { kVector, kWarp, kWarpgroup };

// acc(m, n) += sum over k of a(m, k) * b(k, n). Sizes are what one instruction does; a statement may hold
// many.
struct Instruction {
  std::string name;
  DType operand;
  DType accumulator;
  int m, k;       // rows and depth of one instruction
  double cycles;  // reciprocal throughput of one instruction; of tensor cores, of n = 8, on one SM
  InstructionClass kind = InstructionClass::kVector;
  bool tf32 = false;  // multiplies f32 operands that tf32() has rounded, and no others
  // The hardware's own sums have fewer bits than the accumulator: those over this depth are added up by
  // ordinary additions. 0: they have as many.
  int partial_depth = 0;
};

// FailedPrecondition when there is no such row, or the target lacks the instruction.
absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target);
// All rows that the target has.
std::vector<Instruction> InstructionsOf(const Target& target);
// The row for a contraction of these types, as they are, on this target; NotFound when there is none.
absl::StatusOr<Instruction> InstructionFor(DType operand, DType accumulator, const Target& target);

// Registers of a thread, where a warpgroup that copies leaves most of its own to `computing` others
// (setmaxnreg); 0: as compiled, for as many threads as the block has.
struct RegisterSplit {
  int64_t copy = 0, compute = 0;
};
RegisterSplit SplitRegisters(int64_t computing);

}  // namespace mycc
