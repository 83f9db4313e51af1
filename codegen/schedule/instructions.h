// The table of hardware instructions, one row each. The tensorize primitive selects a row by name; lowering
// turns the marked nest into Mma statements of that row; the back end emits them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"
#include "codegen/target/target.h"

namespace mycc {

// An instruction is carried out by one CPU thread on vector registers, or on tile registers (AMX); by a warp
// on fragments in registers (mma.sync), or by a warpgroup on tiles in shared memory (wgmma).
enum class InstructionClass { kVector, kTile, kWarp, kWarpgroup };

// acc(m, n) += sum over k of a(m, k) * b(k, n). Sizes are what one instruction does; a statement may hold
// many.
struct Instruction {
  std::string name;
  DType operand;
  DType accumulator;
  int m, k;       // rows and depth of one instruction
  double cycles;  // reciprocal throughput of one instruction; of tensor cores, of n = 8, on one SM
  InstructionClass kind = InstructionClass::kVector;
  // Elements of the depth that one lane multiplies and adds up: they lie together in both operands.
  int group = 1;
  bool tf32 = false;  // multiplies f32 operands that tf32() has rounded, and no others
  // The hardware's own sums have fewer bits than the accumulator: those over this depth are added up by
  // ordinary additions. 0: they have as many.
  int partial_depth = 0;

  // The instruction multiplies u8 by i8; two bytes of one sign cost it more (flipped_sign.h).
  bool u8_by_i8 = false;

  bool is_cpu() const { return kind == InstructionClass::kVector || kind == InstructionClass::kTile; }
};

// Whether the instruction multiplies these types: its own, or, where that is an integer of 8 bits, either of
// i8 and u8.
bool Multiplies(const Instruction& instruction, DType a, DType b);

// The row, whatever the target; null when there is none.
const Instruction* InstructionNamed(std::string_view name);
// FailedPrecondition when there is no such row, or the target lacks the instruction.
absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target);
// All rows that the target has.
std::vector<Instruction> InstructionsOf(const Target& target);
// The CPU's rows for a contraction of these types, the fastest first.
std::vector<Instruction> CpuInstructionsFor(DType a, DType b, DType accumulator, const Target& target);

// Registers of a thread, where a warpgroup that copies leaves most of its own to `computing` others
// (setmaxnreg); 0: as compiled, for as many threads as the block has.
struct RegisterSplit {
  int64_t copy = 0, compute = 0;
};
RegisterSplit SplitRegisters(int64_t computing);

}  // namespace mycc
