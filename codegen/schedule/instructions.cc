#include "codegen/schedule/instructions.h"

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

struct Row {
  Instruction instruction;
  TargetKind kind;
  bool CpuFeatures::*needs;
};

// To add an instruction: a row here, and its emission in the back end's table of the same names
// (llvm/mma.cc).
const Row kRows[] = {
    // One vector of products for each broadcast of a(m, k): two a cycle on every core with FMA.
    {{"fma.f32", DType::kF32, DType::kF32, 1, 1, 0, 0.5}, TargetKind::kCpu, &CpuFeatures::fma},
    {{"fma.f64", DType::kF64, DType::kF64, 1, 1, 0, 0.5}, TargetKind::kCpu, &CpuFeatures::fma},
};

bool Has(const Target& target, const Row& row) {
  return target.kind == row.kind && (row.kind != TargetKind::kCpu || FeaturesOf(target).*row.needs);
}

}  // namespace

absl::StatusOr<Instruction> FindInstruction(const std::string& name, const Target& target) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.instruction.name != name) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", row.instruction.name);
      continue;
    }
    if (!Has(target, row))
      return absl::FailedPreconditionError(
          absl::StrCat("the target has no ", name, ": ", PrintTarget(target)));
    return row.instruction;
  }
  return absl::FailedPreconditionError(absl::StrCat("there is no instruction ", name, "; there are ", known));
}

absl::StatusOr<Instruction> InstructionFor(DType operand, DType accumulator, const Target& target) {
  for (const Row& row : kRows) {
    if (row.instruction.operand == operand && row.instruction.accumulator == accumulator && Has(target, row))
      return row.instruction;
  }
  return absl::NotFoundError(absl::StrCat("no instruction multiplies ", DTypeName(operand), " into ",
                                          DTypeName(accumulator), " on ", PrintTarget(target)));
}

}  // namespace mycc
