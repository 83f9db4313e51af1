// Emits left operands that are in the registers of their rows' threads (passes/fragments.h): the accumulator
// of an earlier product, element by element changed, is the operand of the next. Two neighbouring elements
// are rounded to 16 bits by one instruction, into one register.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/cuda/kernel_emitter.h"

namespace mycc {

// Fills `fragment`[t] for all of the thread's row tiles t with the operand of step `step` along the depth.
void KernelEmitter::PackOperand(const Mma& mma, const std::string& fragment, const std::string& step) {
  const FragmentLayout layout = LayoutOfAccumulator(mma).WithColumns(mma.k);
  const Place& place = PlaceOf(mma.a.buffer);
  int64_t elements = 1;
  for (const int64_t extent : place.extents) elements *= extent;
  if (place.distribution == nullptr || elements != layout.registers()) {
    return Fail(absl::StrCat(mma.a.buffer->name, " is an operand of ", DescribeLayout(layout),
                             ", but its uses give each thread ", elements, " elements"));
  }
  const std::string pack = prelude_.Use(mma.a.buffer->dtype == DType::kF16 ? "pack_f16" : "pack_bf16");
  const std::array<int64_t, 4> registers = layout.OperandRegisters(0, 0);
  Line("#pragma unroll");
  Open("for (int t = 0; t < ", layout.row_tiles(), "; ++t)");
  Line("const float* const operand = ", place.name, " + t * ", layout.Register(1, 0, 0, 0), " + ", step,
       " * ", layout.OperandRegisters(0, 1)[0], ";");
  for (size_t i = 0; i < registers.size(); ++i)
    Line(fragment, "[t][", i, "] = ", pack, "(operand[", registers[i], "], operand[", registers[i] + 1,
         "]);");
  Close();
}

// wgmma of one shape and type with a from registers, for tile `kTile` of the accumulator's rows [PTX ISA,
// "wgmma.mma_async"]. Returns the function's name.
std::string KernelEmitter::UseRegisterWgmma(const Instruction& row, const FragmentLayout& layout) {
  const std::string type = row.operand == DType::kF16 ? "f16" : "bf16";
  const std::string shape = absl::StrCat("m64n", layout.columns, "k", row.k);
  const std::string name = absl::StrCat("wgmma_", shape, "_", type, "_of_registers",
                                        layout.row_tiles() > 1 ? absl::StrCat("_x", layout.row_tiles()) : "");
  std::vector<std::string> registers, operands;
  for (int64_t n = 0; n < layout.column_tiles(); ++n) {
    for (int part = 0; part < 4; ++part) {
      registers.push_back(absl::StrCat("%", registers.size()));
      operands.push_back(absl::StrCat("\"+f\"(d[kAt + ", layout.Register(0, n, part / 2, part % 2), "])"));
    }
  }
  const size_t a = registers.size();
  prelude_.Add(
      name,
      absl::StrCat("\n// d (where it adds) += a (64 x ", row.k, ", in registers) * b (", row.k, " x ",
                   layout.columns, ", in shared memory).\ntemplate <int kTile, int kTransposeB, int kAdds>\n",
                   "__device__ __forceinline__ void ", name, "(float (&d)[", layout.registers(),
                   "], const unsigned (&a)[4], unsigned long long b) {\n  constexpr int kAt = kTile * ",
                   layout.Register(1, 0, 0, 0),
                   ";\n  asm volatile(\n      \"{\\n.reg .pred add;\\nsetp.ne.b32 add, %", a + 6,
                   ", 0;\\n\"\n    "
                   "  \"wgmma.mma_async.sync.aligned.",
                   shape, ".f32.", type, ".", type, " {", absl::StrJoin(registers, ", "), "}, {%", a, ", %",
                   a + 1, ", %", a + 2, ", %", a + 3, "}, %", a + 4, ", add, 1, 1, %", a + 5,
                   ";\\n}\"\n      : ", absl::StrJoin(operands, ", "),
                   "\n      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), ",
                   "\"n\"(kTransposeB), \"n\"(kAdds));\n}\n"));
  return name;
}

}  // namespace mycc
