// Emits left operands that are in the registers of their rows' threads (passes/fragments.h): the accumulator
// of an earlier product, element by element changed, is the operand of the next. Two neighbouring elements
// are rounded to 16 bits by one instruction, into one register.
//
// They are rounded where they are stored. Until the product, which may come after another product has begun
// (rotate_products), the operand then has half as many registers.
#include "codegen/cuda/kernel_emitter.h"

namespace mycc {

// Two neighbouring elements of the operand in one register.
std::string KernelEmitter::Packed(const Buffer& operand, const std::string& even, const std::string& odd) {
  return Call(operand->dtype == DType::kF16 ? "pack_f16" : "pack_bf16", even, odd);
}

// Rounds the pair that a vector loop has computed.
void KernelEmitter::StorePair(const VectorMove& move) {
  Linear first = Flat(PlaceOf(move.tensor), move.indices);
  bool is_even = first.constant % 2 == 0;
  first.constant /= 2;
  for (auto& [atom, coefficient] : first.terms) {
    is_even &= coefficient % 2 == 0;
    coefficient /= 2;
  }
  if (!is_even) Fail(move.tensor->name, " is stored in pairs that are no neighbours of even and odd number");
  const std::string& pair = PlaceOf(move.lanes).name;
  Line(At(PlaceOf(move.tensor), first), " = ", Packed(move.tensor, pair + "[0]", pair + "[1]"), ";");
}

// Fills `fragment`[t] for all of the thread's row tiles t with the operand of step `step` along the depth.
void KernelEmitter::PackOperand(const Mma& mma, const std::string& fragment, const std::string& step) {
  const FragmentLayout layout = LayoutOfAccumulator(mma).WithColumns(mma.k);
  const Place& place = PlaceOf(mma.a.buffer);
  const int64_t elements = place.layout.size();
  if (place.distribution == nullptr || elements != layout.registers()) {
    return Fail(mma.a.buffer->name, " is an operand of ", DescribeLayout(layout),
                ", but its uses give each thread ", elements, " elements");
  }
  const Fragment& operand = mma.row()->a.fragment;
  const std::vector<int64_t> registers = layout.OperandRegisters(operand, 0, 0);
  const bool pairs = place.form == RegisterForm::kPairs;
  const int64_t each = pairs ? 2 : 1;  // elements of a register
  OpenUnrolled("t", layout.row_tiles());
  Line("const ", pairs ? "unsigned" : "float", "* const operand = ", place.name, " + t * ",
       layout.Register(layout.unit.rows, 0) / each, " + ", step, " * ",
       layout.Register(0, operand.columns) / each, ";");
  for (size_t i = 0; i < registers.size(); ++i) {
    const int64_t at = registers[i] / each;
    std::string value = absl::StrCat("operand[", at, "]");
    if (!pairs) value = Packed(mma.a.buffer, value, absl::StrCat("operand[", at + 1, "]"));
    Line(fragment, "[t][", i, "] = ", value, ";");
  }
  Close();
}

// The operand of all steps of a warpgroup's product, in `a`.
void KernelEmitter::PackOperands(const Mma& mma, const Instruction& row) {
  const int64_t steps = mma.k / row.k, row_tiles = LayoutOfAccumulator(mma).row_tiles();
  Line("unsigned a[", steps, "][", row_tiles, "][", row.a.fragment.values() / 2, "];");
  for (int64_t step = 0; step < steps; ++step) {
    PackOperand(mma, absl::StrCat("a[", step, "]"), absl::StrCat(step));
    for (int64_t t = 0; t < row_tiles; ++t)
      Line(Call("wgmma_operand", absl::StrCat("a[", step, "][", t, "]")), ";");
  }
}

}  // namespace mycc
