#include "codegen/schedule/instructions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

struct Row {
  Instruction instruction;
  bool (*has)(const Target& target);
};

bool HasFma(const Target& target) { return target.kind == TargetKind::kCpu && FeaturesOf(target).fma; }
bool HasMma(const Target& target) { return CudaArchOf(target) >= 80; }
bool HasFloat8Mma(const Target& target) { return CudaArchOf(target) >= 89; }
// wgmma is in sm_90a and in nothing after it.
bool HasWgmma(const Target& target) { return target.arch == "sm_90a" && target.kind == TargetKind::kCuda; }

constexpr InstructionClass kWarp = InstructionClass::kWarp, kWarpgroup = InstructionClass::kWarpgroup;

// Of products of 8-bit floats tensor cores keep 14 bits of a sum, cut off at each step, less than a reduction
// in f32 promises: over a depth of 4096 that costs percents of the result. Over this one it stays within 2^-9
// of it, whatever the whole depth is (workload/tolerance.cc).
constexpr int kFloat8Depth = 128;

// To add an instruction: a row here, and its emission in the back end (llvm/kernel_mma.cc,
// cuda/kernel_tiles.cc).
const Row kRows[] = {
    // One vector of products for each broadcast of a(m, k): two a cycle on every core with FMA.
    {{"fma.f32", DType::kF32, DType::kF32, 1, 1, 0.5}, HasFma},
    {{"fma.f64", DType::kF64, DType::kF64, 1, 1, 0.5}, HasFma},
    // A warpgroup's 64 rows, 8 to 256 columns; both operands in shared memory.
    {{"wgmma.bf16", DType::kBF16, DType::kF32, 64, 16, 4, kWarpgroup}, HasWgmma},
    {{"wgmma.f16", DType::kF16, DType::kF32, 64, 16, 4, kWarpgroup}, HasWgmma},
    {{"wgmma.e4m3", DType::kF8E4M3, DType::kF32, 64, 32, 4, kWarpgroup, false, kFloat8Depth}, HasWgmma},
    {{"wgmma.e5m2", DType::kF8E5M2, DType::kF32, 64, 32, 4, kWarpgroup, false, kFloat8Depth}, HasWgmma},
    {{"wgmma.i8", DType::kI8, DType::kI32, 64, 32, 4, kWarpgroup}, HasWgmma},
    // A warp's 16 rows and 8 columns.
    {{"mma.bf16", DType::kBF16, DType::kF32, 16, 16, 2, kWarp}, HasMma},
    {{"mma.f16", DType::kF16, DType::kF32, 16, 16, 2, kWarp}, HasMma},
    {{"mma.tf32", DType::kF32, DType::kF32, 16, 8, 2, kWarp, /*tf32=*/true}, HasMma},
    {{"mma.i8", DType::kI8, DType::kI32, 16, 32, 2, kWarp}, HasMma},
    {{"mma.e4m3", DType::kF8E4M3, DType::kF32, 16, 32, 2, kWarp, false, kFloat8Depth}, HasFloat8Mma},
    {{"mma.e5m2", DType::kF8E5M2, DType::kF32, 16, 32, 2, kWarp, false, kFloat8Depth}, HasFloat8Mma},
};

}  // namespace

absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.instruction.name != name) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", row.instruction.name);
      continue;
    }
    if (!row.has(target))
      return absl::FailedPreconditionError(
          absl::StrCat("the target has no ", name, ": ", PrintTarget(target)));
    return row.instruction;
  }
  return absl::FailedPreconditionError(absl::StrCat("there is no instruction ", name, "; there are ", known));
}

std::vector<Instruction> InstructionsOf(const Target& target) {
  std::vector<Instruction> rows;
  for (const Row& row : kRows) {
    if (row.has(target)) rows.push_back(row.instruction);
  }
  return rows;
}

absl::StatusOr<Instruction> InstructionFor(DType operand, DType accumulator, const Target& target) {
  for (const Row& row : kRows) {
    const Instruction& instruction = row.instruction;
    if (instruction.operand == operand && instruction.accumulator == accumulator && !instruction.tf32 &&
        row.has(target))
      return instruction;
  }
  return absl::NotFoundError(absl::StrCat("no instruction multiplies ", DTypeName(operand), " into ",
                                          DTypeName(accumulator), " on ", PrintTarget(target)));
}

// Multiples of 8, at most 240.
RegisterSplit SplitRegisters(int64_t computing) {
  constexpr int64_t kRegistersOfSm = 65536, kWarpgroup = 128;
  if (computing < 2) return {};
  const int64_t copy = 40;
  const int64_t compute = (kRegistersOfSm / kWarpgroup - copy) / computing / 8 * 8;
  return {copy, std::min<int64_t>(compute, 240)};
}

}  // namespace mycc
