// The table of hardware instructions, one row each. The tensorize primitive selects a row by name; lowering
// turns the marked nest into Mma statements of that row; the back end emits them. Thread rule: constant data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"
#include "codegen/target/target.h"

namespace mycc {

// Executed by one CPU thread on vector registers (kVector) or tile registers (kTile, AMX); by a warp on
// fragments in registers (kWarp, mma.sync); by a warpgroup on tiles in shared memory (kWarpgroup, wgmma).
enum class InstructionClass { kVector, kTile, kWarp, kWarpgroup };

// acc(m, n) += sum over k of a(m, k) * b(k, n). Sizes are those of one instruction; an Mma statement may need
// many.
struct Instruction {
  std::string name;
  DType operand;
  DType accumulator;
  int m, k;       // rows and depth of one instruction
  double cycles;  // reciprocal throughput of one instruction; on tensor cores for n = 8, on one SM
  InstructionClass kind = InstructionClass::kVector;
  // Elements of the depth that one lane multiplies and adds up; they lie next to each other in both operands.
  int group = 1;
  bool tf32 = false;  // multiplies only f32 operands that tf32() has rounded
  // The hardware's sums have fewer bits than the accumulator: sums over this depth are added to it by
  // ordinary additions. 0: they have as many bits.
  int partial_depth = 0;

  // The instruction multiplies u8 by i8; operands of the same type need extra instructions (flipped_sign.h).
  bool u8_by_i8 = false;

  // Whether a product may begin its sums instead of adding to them.
  bool begins_sums() const { return kind == InstructionClass::kWarpgroup && partial_depth == 0; }
  bool is_cpu() const { return kind == InstructionClass::kVector || kind == InstructionClass::kTile; }
};

// Whether the instruction multiplies these types: its own operand type; for an 8-bit integer, both i8 and u8.
bool Multiplies(const Instruction& instruction, DType a, DType b);

// The row, for any target; null when there is none.
const Instruction* InstructionNamed(std::string_view name);
// FailedPrecondition when there is no such row, or the target lacks the instruction.
absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target);
// All rows that the target has.
std::vector<Instruction> InstructionsOf(const Target& target);
// The CPU's rows for a contraction of these types, the fastest first.
std::vector<Instruction> CpuInstructionsFor(DType a, DType b, DType accumulator, const Target& target);

// Registers for each thread of the copying warpgroup and of the `computing` warpgroups, after the first has
// given most of its own to the others (setmaxnreg). 0: the compiler's equal share.
struct RegisterSplit {
  int64_t copy = 0, compute = 0;
};
RegisterSplit SplitRegisters(int64_t computing);

}  // namespace mycc
