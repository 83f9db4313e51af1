// The table of hardware instructions, one row each: the types, the places and the layouts of the operands,
// the threads that take part, and the emitter. The tensorize primitive selects a row by name; lowering turns
// the marked nest into Mma statements of that row, and divides tiles in registers as the row says; the back
// end emits them from the row. Thread rule: constant data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/expr/buffer.h"
#include "codegen/expr/dtype.h"
#include "codegen/expr/layout.h"
#include "codegen/target/target.h"

namespace mycc {

// Executed by one CPU thread on vector registers (kVector) or tile registers (kTile, AMX); by a warp on
// fragments in registers (kWarp, mma.sync); by a warpgroup on tiles in shared memory (kWarpgroup, wgmma).
enum class InstructionClass { kVector, kTile, kWarp, kWarpgroup };

// How vector lanes multiply: one element of each operand; or a group of two bf16, of four or of two 8-bit
// integers, whose products are added up.
enum class LaneProduct { kMultiplyAdd, kDotBf16, kDotInt8, kPairsInt8 };

// An operand, or the sums, of one instruction.
struct OperandForm {
  // Vectors and tile registers load operands from any memory (kGlobal) and keep sums in registers
  // (kAccumulator). Those of tensor cores are in shared memory, and in registers where there is a fragment.
  Scope scope = Scope::kGlobal;
  // (thread, value) -> (row, column), in the registers of a warp or warpgroup. Values of less than 32 bits
  // share registers, in their order. Without elements: not in registers.
  Fragment fragment;
  // (row, column) -> element in memory, of what a CPU's instruction reads or writes.
  Layout memory;

  bool in_fragments() const { return fragment.rows > 0; }
};

// sums(m, n) += sum over k of a(m, k) * b(k, n). Sizes are those of one instruction; an Mma statement may
// need many.
struct Instruction {
  std::string name;
  DType operand;
  DType accumulator;
  int m, n, k;  // rows, columns and depth; wgmma has up to 256 columns, in steps of n, and vectors have more
  double cycles;  // reciprocal throughput of one instruction; on tensor cores for n = 8, on one SM
  InstructionClass kind = InstructionClass::kVector;
  OperandForm a, b, sums;
  // Elements of the depth that one lane multiplies and adds up; they lie next to each other in both operands.
  int group = 1;
  bool tf32 = false;  // multiplies f32 operands as tf32() rounds them
  // The hardware's sums have fewer bits than the accumulator: sums over this depth are added to it by
  // ordinary additions. 0: they have as many bits.
  int partial_depth = 0;
  int threads = 1;  // that execute it together
  // It runs on after the statement, in groups that are committed and awaited (wgmma).
  bool is_async = false;
  // On a CPU: how lanes multiply; on tile registers those of the depth's remainder.
  LaneProduct lanes = LaneProduct::kMultiplyAdd;
  // On tile registers: LLVM's name of the product, in which "??" stands for the operands' signs (s, u). On
  // tensor cores: the CUDA function's name, for wgmma the beginning of its names.
  std::string emitter;

  // Its bytes are u8 by i8; operands of the same type need extra instructions (FlippedSignStages).
  bool u8_by_i8() const { return kind == InstructionClass::kVector && lanes == LaneProduct::kDotInt8; }
  // Whether it rounds its operands to tf32 itself. wgmma reads them from shared memory and cuts digits off,
  // so that they have to be rounded before.
  bool rounds_itself() const { return tf32 && kind == InstructionClass::kWarp; }
  // Whether a product may begin its sums instead of adding to them.
  bool begins_sums() const { return is_async; }
  bool is_cpu() const { return kind == InstructionClass::kVector || kind == InstructionClass::kTile; }
  bool in_tiles() const { return kind == InstructionClass::kTile; }
  bool of_warpgroups() const { return kind == InstructionClass::kWarpgroup; }
  int warps() const { return threads / 32; }
};

// Whether the instruction multiplies these types: its own operand type; for an 8-bit integer, both i8 and u8.
bool Multiplies(const Instruction& instruction, DType a, DType b);

// The row, for any target; null when there is none.
const Instruction* InstructionNamed(std::string_view name);
// All rows, CPU instructions in order of speed, the fastest first.
const std::vector<const Instruction*>& AllInstructions();
// FailedPrecondition when there is no such row, or the target lacks the instruction.
absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target);
// All rows that the target has.
std::vector<const Instruction*> InstructionsOf(const Target& target);
// The CPU's rows for a contraction of these types, the fastest first.
std::vector<Instruction> CpuInstructionsFor(DType a, DType b, DType accumulator, const Target& target);

// Registers for each thread of the copying warpgroup and of the `computing` warpgroups, after the first has
// given most of its own to the others (setmaxnreg). 0: the compiler's equal share. Where a product's left
// operand is in registers, beside the sums of two products, the copying warpgroup gives all that it may.
struct RegisterSplit {
  int64_t copy = 0, compute = 0;
};
RegisterSplit SplitRegisters(int64_t computing, bool operand_in_registers = false);

}  // namespace mycc
