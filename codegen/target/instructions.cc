#include "codegen/target/instructions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

struct InstructionRow {
  Instruction instruction;
  bool (*has)(const Target& target);
};

bool IsAnyCpu(const Target& target) { return target.kind == TargetKind::kCpu; }
bool HasFma(const Target& target) { return IsAnyCpu(target) && FeaturesOf(target).fma; }
bool HasF16c(const Target& target) { return IsAnyCpu(target) && FeaturesOf(target).f16c; }
bool HasF16cAndFma(const Target& target) { return HasF16c(target) && FeaturesOf(target).fma; }
bool HasAvx2AndFma(const Target& target) { return HasFma(target) && FeaturesOf(target).avx2; }
bool HasBf16Dot(const Target& target) {
  return IsAnyCpu(target) && FeaturesOf(target).avx512bf16 && FeaturesOf(target).avx512vl;
}
bool HasVnni(const Target& target) {
  if (!IsAnyCpu(target)) return false;
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

constexpr int kThreadsOfWarp = 32;

// Tensor cores keep 14 bits of a sum of products of 8-bit floats, and truncate at each step. Over a depth of
// 4096 the error would be some percent of the result, more than a reduction in f32 permits. With partial sums
// over this depth it stays within 2^-9 (workload/tolerance.cc).
constexpr int kFloat8Depth = 128;

Instruction Multiplying(const char* name, DType operand, DType accumulator, InstructionClass kind,
                        double cycles) {
  Instruction row;
  row.name = name;
  row.operand = operand;
  row.accumulator = accumulator;
  row.kind = kind;
  row.cycles = cycles;
  return row;
}

// The operands of a CPU as they lie in memory. Groups of b's depth lie together, and so do those of columns
// (VNNI).
void SetCpuForms(Instruction* row) {
  row->a.memory = Layout::RowMajor({row->m, row->k});
  const int64_t g = row->group, n = row->n;
  row->b.memory = {{{{row->k / g, n * g}, {g, 1}}, {{n, g}}}, {}};
  row->sums.memory = Layout::RowMajor({row->m, row->n});
  row->sums.scope = Scope::kAccumulator;
}

// Vectors of sums: a group of a, broadcast to all lanes, times the lane's own group of b.
Instruction OnVectors(const char* name, DType operand, DType accumulator, double cycles,
                      LaneProduct lanes = LaneProduct::kMultiplyAdd, int group = 1) {
  Instruction row = Multiplying(name, operand, accumulator, InstructionClass::kVector, cycles);
  row.m = row.n = 1;
  row.k = row.group = group;
  row.lanes = lanes;
  SetCpuForms(&row);
  return row;
}

// AMX: 16 rows of 64 bytes, and 16 columns of 4 bytes.
Instruction OnTiles(const char* name, DType operand, DType accumulator, double cycles, LaneProduct lanes,
                    const char* emitter) {
  Instruction row = Multiplying(name, operand, accumulator, InstructionClass::kTile, cycles);
  row.m = row.n = 16;
  row.k = 64 / DTypeBytes(operand);
  row.group = 4 / DTypeBytes(operand);
  row.lanes = lanes;
  row.emitter = emitter;
  SetCpuForms(&row);
  return row;
}

// Tensor cores: each of the warps has 16 rows, below those of the warp before. Lane l has two rows of the
// sums, l / 4 and l / 4 + 8, and a pair of each 8 columns, from l % 4 * 2 on. It has 32 bits of an operand,
// `word` elements of the depth from l % 4 * word on, in the same rows of a, and in column l / 4 of b; then
// those that are 16 bytes further along the depth [PTX ISA, "Matrix fragments" of mma.m16n8k8, k16 and k32,
// and "Register fragments" of wgmma].
Instruction OnTensorCores(const char* name, DType operand, DType accumulator, int depth, double cycles,
                          InstructionClass kind, const char* emitter) {
  Instruction row = Multiplying(name, operand, accumulator, kind, cycles);
  const int warps = kind == InstructionClass::kWarpgroup ? 4 : 1, word = 4 / DTypeBytes(operand);
  row.m = 16 * warps;
  row.n = 8;
  row.k = depth;
  row.threads = kThreadsOfWarp * warps;
  row.emitter = emitter;
  row.tf32 = operand == DType::kF32;
  row.partial_depth = IsFloat(operand) && DTypeBytes(operand) == 1 ? kFloat8Depth : 0;
  row.a.scope = row.b.scope = Scope::kShared;
  row.sums.scope = Scope::kAccumulator;
  row.sums.fragment =
      FragmentOf(row.m, row.n, {{warps, 16, 0}, {8, 1, 0}, {4, 0, 2}}, {{2, 8, 0}, {2, 0, 1}});
  row.a.fragment = FragmentOf(row.m, depth, {{warps, 16, 0}, {8, 1, 0}, {4, 0, word}},
                              {{depth / (4 * word), 0, 4 * word}, {2, 8, 0}, {word, 0, 1}});
  row.b.fragment =
      FragmentOf(depth, row.n, {{8, 0, 1}, {4, word, 0}}, {{depth / (4 * word), 4 * word, 0}, {word, 1, 0}});
  return row;
}

// A warp's 16 rows and 8 columns; operands in registers, where they come from shared memory by ldmatrix.
Instruction OfWarp(const char* name, DType operand, DType accumulator, int depth, double cycles,
                   const char* emitter) {
  return OnTensorCores(name, operand, accumulator, depth, cycles, InstructionClass::kWarp, emitter);
}

// A warpgroup's 64 rows, 8 to 256 columns; both operands in shared memory, a of 16 bits also in registers.
// Partial sums are complete after the statement.
Instruction OfWarpgroup(const char* name, DType operand, DType accumulator, int depth, double cycles) {
  Instruction row =
      OnTensorCores(name, operand, accumulator, depth, cycles, InstructionClass::kWarpgroup, "wgmma");
  row.is_async = row.partial_depth == 0;
  row.b.fragment = {};
  if (DTypeBytes(operand) != 2) row.a.fragment = {};
  return row;
}

// To add an instruction, add a row here. CPU instructions are in order of speed, the fastest first.
const std::vector<InstructionRow>& Rows() {
  constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kF32 = DType::kF32, kF64 = DType::kF64,
                  kE4M3 = DType::kF8E4M3, kE5M2 = DType::kF8E5M2, kI8 = DType::kI8, kI32 = DType::kI32;
  static const std::vector<InstructionRow> rows = {
      {OnTiles("amx.bf16", kBF16, kF32, 16, LaneProduct::kDotBf16, "llvm.x86.tdpbf16ps"), HasAmxBf16},
      {OnTiles("amx.i8", kI8, kI32, 16, LaneProduct::kDotInt8, "llvm.x86.tdpb??d"), HasAmxInt8},
      // Dot products: for each broadcast group of a, one vector of sums of products.
      {OnVectors("dot.bf16", kBF16, kF32, 1, LaneProduct::kDotBf16, 2), HasBf16Dot},
      {OnVectors("dot.i8", kI8, kI32, 0.5, LaneProduct::kDotInt8, 4), HasVnni},
      // Pairs widened to 16 bits: the sums of their products do not saturate.
      {OnVectors("madd.i8", kI8, kI32, 1, LaneProduct::kPairsInt8, 2), IsAnyCpu},
      // For each broadcast a(m, k), one vector of products; two instructions a cycle on every core with FMA.
      {OnVectors("fma.f32", kF32, kF32, 0.5), HasFma},
      {OnVectors("fma.f64", kF64, kF64, 0.5), HasFma},
      // The same after widening both factors.
      {OnVectors("fma.bf16", kBF16, kF32, 0.5), HasAvx2AndFma},
      {OnVectors("fma.f16", kF16, kF32, 0.5), HasF16cAndFma},
      // A multiplication and an addition, on every x86-64.
      {OnVectors("muladd.f32", kF32, kF32, 1), IsAnyCpu},
      {OnVectors("muladd.f64", kF64, kF64, 1), IsAnyCpu},
      {OnVectors("muladd.bf16", kBF16, kF32, 1), IsAnyCpu},
      {OnVectors("muladd.f16", kF16, kF32, 1), HasF16c},
      {OfWarpgroup("wgmma.bf16", kBF16, kF32, 16, 4), HasWgmma},
      {OfWarpgroup("wgmma.f16", kF16, kF32, 16, 4), HasWgmma},
      // It cuts off what tf32() rounds: its operands hold numbers that were rounded before.
      {OfWarpgroup("wgmma.tf32", kF32, kF32, 8, 4), HasWgmma},
      {OfWarpgroup("wgmma.e4m3", kE4M3, kF32, 32, 4), HasWgmma},
      {OfWarpgroup("wgmma.e5m2", kE5M2, kF32, 32, 4), HasWgmma},
      {OfWarpgroup("wgmma.i8", kI8, kI32, 32, 4), HasWgmma},
      {OfWarp("mma.bf16", kBF16, kF32, 16, 2, "mma_bf16"), HasMma},
      {OfWarp("mma.f16", kF16, kF32, 16, 2, "mma_f16"), HasMma},
      {OfWarp("mma.tf32", kF32, kF32, 8, 2, "mma_tf32"), HasMma},
      {OfWarp("mma.i8", kI8, kI32, 32, 2, "mma_s8"), HasMma},
      {OfWarp("mma.e4m3", kE4M3, kF32, 32, 2, "mma_e4m3"), HasFloat8Mma},
      {OfWarp("mma.e5m2", kE5M2, kF32, 32, 2, "mma_e5m2"), HasFloat8Mma},
      // For depths that are no multiple of 16. The rules take the first row of a type.
      {OfWarp("mma.bf16.k8", kBF16, kF32, 8, 1, "mma_bf16_k8"), HasMma},
      {OfWarp("mma.f16.k8", kF16, kF32, 8, 1, "mma_f16_k8"), HasMma},
  };
  return rows;
}

}  // namespace

const Instruction* InstructionNamed(std::string_view name) {
  const auto row =
      std::ranges::find_if(Rows(), [&](const InstructionRow& r) { return r.instruction.name == name; });
  return row == Rows().end() ? nullptr : &row->instruction;
}

const std::vector<const Instruction*>& AllInstructions() {
  static const std::vector<const Instruction*> all = [] {
    std::vector<const Instruction*> instructions;
    for (const InstructionRow& row : Rows()) instructions.push_back(&row.instruction);
    return instructions;
  }();
  return all;
}

absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target) {
  std::string known;
  for (const InstructionRow& row : Rows()) {
    if (row.instruction.name != name) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", row.instruction.name);
      continue;
    }
    if (!row.has(target)) return Refusal("the target has no ", name, ": ", PrintTarget(target));
    return row.instruction;
  }
  return Refusal("there is no instruction ", name, "; there are ", known);
}

std::vector<const Instruction*> InstructionsOf(const Target& target) {
  std::vector<const Instruction*> rows;
  for (const InstructionRow& row : Rows()) {
    if (row.has(target)) rows.push_back(&row.instruction);
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
  for (const Instruction* row : InstructionsOf(target)) {
    if (row->is_cpu() && row->accumulator == accumulator && Multiplies(*row, a, b)) rows.push_back(*row);
  }
  return rows;
}

// Multiples of 8, at most 240.
RegisterSplit SplitRegisters(int64_t computing, bool operand_in_registers) {
  constexpr int64_t kRegistersOfSm = 65536, kWarpgroup = 128;
  if (computing < 2) return {};
  const int64_t copy = operand_in_registers ? 24 : 40;
  const int64_t compute = (kRegistersOfSm / kWarpgroup - copy) / computing / 8 * 8;
  return {copy, std::min<int64_t>(compute, 240)};
}

}  // namespace mycc
