#include "codegen/schedule/instructions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

struct Row {
  Instruction instruction;
  bool (*has)(const Target& target);
};

bool IsCpu(const Target& target) { return target.kind == TargetKind::kCpu; }
bool HasFma(const Target& target) { return IsCpu(target) && FeaturesOf(target).fma; }
bool HasF16c(const Target& target) { return IsCpu(target) && FeaturesOf(target).f16c; }
bool HasF16cAndFma(const Target& target) { return HasF16c(target) && FeaturesOf(target).fma; }
bool HasAvx2AndFma(const Target& target) { return HasFma(target) && FeaturesOf(target).avx2; }
bool HasBf16Dot(const Target& target) {
  return IsCpu(target) && FeaturesOf(target).avx512bf16 && FeaturesOf(target).avx512vl;
}
bool HasVnni(const Target& target) {
  if (!IsCpu(target)) return false;
  const CpuFeatures features = FeaturesOf(target);
  return features.avxvnni || (features.avx512vnni && features.avx512vl);
}
// The remainder of a tile's depth is computed by the dot product of the same types.
bool HasAmxBf16(const Target& target) { return HasBf16Dot(target) && FeaturesOf(target).amx_bf16; }
bool HasAmxInt8(const Target& target) { return HasVnni(target) && FeaturesOf(target).amx_int8; }
bool HasMma(const Target& target) { return CudaArchOf(target) >= 80; }
bool HasFloat8Mma(const Target& target) { return CudaArchOf(target) >= 89; }
// Only sm_90a has wgmma; later architectures do not.
bool HasWgmma(const Target& target) { return target.arch == "sm_90a" && target.kind == TargetKind::kCuda; }

constexpr InstructionClass kVector = InstructionClass::kVector, kTile = InstructionClass::kTile,
                           kWarp = InstructionClass::kWarp, kWarpgroup = InstructionClass::kWarpgroup;

// Tensor cores keep 14 bits of a sum of products of 8-bit floats, and truncate at each step. Over a depth of
// 4096 the error would be some percent of the result, more than a reduction in f32 permits. With partial sums
// over this depth it stays within 2^-9 (workload/tolerance.cc).
constexpr int kFloat8Depth = 128;

// To add an instruction, add a row here and its emission in the back end (llvm/lane_products.cc,
// llvm/kernel_tile_registers.cc, cuda/kernel_tiles.cc). CPU instructions are in order of speed, the fastest
// first.
const Row kRows[] = {
    // AMX: 16 rows of 64 bytes, and 16 columns.
    {{"amx.bf16", DType::kBF16, DType::kF32, 16, 32, 16, kTile, 2}, HasAmxBf16},
    {{"amx.i8", DType::kI8, DType::kI32, 16, 64, 16, kTile, 4}, HasAmxInt8},
    // Dot products: for each broadcast group of a, one vector of sums of products.
    {{"dot.bf16", DType::kBF16, DType::kF32, 1, 2, 1, kVector, 2}, HasBf16Dot},
    {{"dot.i8", DType::kI8, DType::kI32, 1, 4, 0.5, kVector, 4, false, 0, /*u8_by_i8=*/true}, HasVnni},
    // Pairs widened to 16 bits: the sums of their products do not saturate.
    {{"madd.i8", DType::kI8, DType::kI32, 1, 2, 1, kVector, 2}, IsCpu},
    // For each broadcast a(m, k), one vector of products; two instructions a cycle on every core with FMA.
    {{"fma.f32", DType::kF32, DType::kF32, 1, 1, 0.5}, HasFma},
    {{"fma.f64", DType::kF64, DType::kF64, 1, 1, 0.5}, HasFma},
    // The same after widening both factors.
    {{"fma.bf16", DType::kBF16, DType::kF32, 1, 1, 0.5}, HasAvx2AndFma},
    {{"fma.f16", DType::kF16, DType::kF32, 1, 1, 0.5}, HasF16cAndFma},
    // A multiplication and an addition, on every x86-64.
    {{"muladd.f32", DType::kF32, DType::kF32, 1, 1, 1}, IsCpu},
    {{"muladd.f64", DType::kF64, DType::kF64, 1, 1, 1}, IsCpu},
    {{"muladd.bf16", DType::kBF16, DType::kF32, 1, 1, 1}, IsCpu},
    {{"muladd.f16", DType::kF16, DType::kF32, 1, 1, 1}, HasF16c},
    // A warpgroup's 64 rows, 8 to 256 columns; both operands in shared memory.
    {{"wgmma.bf16", DType::kBF16, DType::kF32, 64, 16, 4, kWarpgroup}, HasWgmma},
    {{"wgmma.f16", DType::kF16, DType::kF32, 64, 16, 4, kWarpgroup}, HasWgmma},
    {{"wgmma.e4m3", DType::kF8E4M3, DType::kF32, 64, 32, 4, kWarpgroup, 1, false, kFloat8Depth}, HasWgmma},
    {{"wgmma.e5m2", DType::kF8E5M2, DType::kF32, 64, 32, 4, kWarpgroup, 1, false, kFloat8Depth}, HasWgmma},
    {{"wgmma.i8", DType::kI8, DType::kI32, 64, 32, 4, kWarpgroup}, HasWgmma},
    // A warp's 16 rows and 8 columns.
    {{"mma.bf16", DType::kBF16, DType::kF32, 16, 16, 2, kWarp}, HasMma},
    {{"mma.f16", DType::kF16, DType::kF32, 16, 16, 2, kWarp}, HasMma},
    {{"mma.tf32", DType::kF32, DType::kF32, 16, 8, 2, kWarp, 1, /*tf32=*/true}, HasMma},
    {{"mma.i8", DType::kI8, DType::kI32, 16, 32, 2, kWarp}, HasMma},
    {{"mma.e4m3", DType::kF8E4M3, DType::kF32, 16, 32, 2, kWarp, 1, false, kFloat8Depth}, HasFloat8Mma},
    {{"mma.e5m2", DType::kF8E5M2, DType::kF32, 16, 32, 2, kWarp, 1, false, kFloat8Depth}, HasFloat8Mma},
};

}  // namespace

const Instruction* InstructionNamed(std::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.instruction.name == name; });
  return row == std::end(kRows) ? nullptr : &row->instruction;
}

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

bool Multiplies(const Instruction& instruction, DType a, DType b) {
  const auto takes = [&](DType dtype) {
    return dtype == instruction.operand ||
           (instruction.is_cpu() && instruction.operand == DType::kI8 && dtype == DType::kU8);
  };
  return takes(a) && takes(b);
}

std::vector<Instruction> CpuInstructionsFor(DType a, DType b, DType accumulator, const Target& target) {
  std::vector<Instruction> rows;
  for (const Instruction& row : InstructionsOf(target)) {
    if (row.is_cpu() && row.accumulator == accumulator && Multiplies(row, a, b)) rows.push_back(row);
  }
  return rows;
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
