#include "codegen/cuda/product_functions.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

// The type of an operand, or of sums, in PTX.
std::string PtxTypeOf(DType dtype, bool tf32 = false) {
  switch (dtype) {
    case DType::kF16: return "f16";
    case DType::kBF16: return "bf16";
    case DType::kF8E4M3: return "e4m3";
    case DType::kF8E5M2: return "e5m2";
    case DType::kI8: return "s8";
    case DType::kI32: return "s32";
    default: return tf32 ? "tf32" : "f32";
  }
}

// "{%4, %5}" for 2 registers from number 4 on.
std::string Registers(int64_t first, int64_t count) {
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(absl::StrCat("%", first + i));
  return absl::StrCat("{", absl::StrJoin(numbers, ", "), "}");
}

// prefix0suffix, prefix1suffix, ...
std::string Numbered(int64_t count, const std::string& prefix, const std::string& suffix) {
  std::vector<std::string> each;
  for (int64_t i = 0; i < count; ++i) each.push_back(absl::StrCat(prefix, i, suffix));
  return absl::StrJoin(each, ", ");
}

// The 32-bit registers that a thread has of an operand.
int64_t WordsOf(const Fragment& operand, const Instruction& row) {
  return operand.values() * DTypeBytes(row.operand) / 4;
}

ProductFunction LoadFunction(int64_t matrices, bool transposed) {
  ProductFunction function{LoadFunctionName(matrices, transposed), ""};
  function.text =
      absl::StrCat("\n__device__ __forceinline__ void ", function.name, "(unsigned (&to)[", matrices,
                   "], unsigned from) {\n  asm volatile(\"ldmatrix.sync.aligned.m8n8.x", matrices,
                   transposed ? ".trans" : "", ".shared.b16 ", Registers(0, matrices), ", [%", matrices,
                   "];\"\n               : ", Numbered(matrices, "\"=r\"(to[", "])"),
                   " : \"r\"(from) : \"memory\");\n}\n");
  return function;
}

// The head of a function; its last parameter is on a line of its own where the line would be too long.
std::string HeadOf(const std::string& name, const std::string& parameters, const std::string& last) {
  constexpr size_t kMostColumns = 126;
  const std::string head = absl::StrCat("__device__ __forceinline__ void ", name, "(");
  const std::string line = absl::StrCat(head, parameters, ", ", last, ") {\n");
  if (line.size() <= kMostColumns + 1) return line;
  return absl::StrCat(head, parameters, ",\n", std::string(head.size(), ' '), last, ") {\n");
}

ProductFunction WarpProduct(const Instruction& row) {
  const std::string type = PtxTypeOf(row.operand, row.tf32), sum = PtxTypeOf(row.accumulator);
  const bool of_floats = IsFloat(row.accumulator);
  const int64_t sums = row.sums.fragment.values(), a = WordsOf(row.a.fragment, row),
                b = WordsOf(row.b.fragment, row);
  std::vector<std::string> parameters = {Numbered(sums, of_floats ? "float& d" : "int& d", ""),
                                         absl::StrCat("const unsigned (&a)[", a, "]")};
  for (int64_t i = 0; i + 1 < b; ++i) parameters.push_back(absl::StrCat("unsigned b", i));
  const std::string d = Registers(0, sums);
  return {
      row.emitter,
      absl::StrCat("\n// d += a (", row.m, " x ", row.k, ") * b (", row.k, " x ", row.n, ")",
                   row.tf32 ? ", of rounded elements.\n" : ".\n",
                   HeadOf(row.emitter, absl::StrJoin(parameters, ", "), absl::StrCat("unsigned b", b - 1)),
                   "  asm volatile(\"mma.sync.aligned.m", row.m, "n", row.n, "k", row.k, ".row.col.", sum,
                   ".", type, ".", type, ".", sum, " ", d, ", ", Registers(sums, a), ", ",
                   Registers(sums + a, b), ", \"\n               \"", d,
                   ";\"\n               : ", Numbered(sums, of_floats ? "\"+f\"(d" : "\"+r\"(d", ")"),
                   "\n               : ", Numbered(a, "\"r\"(a[", "])"), ", ", Numbered(b, "\"r\"(b", ")"),
                   ");\n}\n")};
}

}  // namespace

std::string LoadFunctionName(int64_t matrices, bool transposed) {
  return absl::StrCat("ldmatrix_x", matrices, transposed ? "_trans" : "");
}

const std::vector<ProductFunction>& LoadFunctions() {
  static const std::vector<ProductFunction> functions = {LoadFunction(4, false), LoadFunction(4, true),
                                                         LoadFunction(2, false), LoadFunction(2, true)};
  return functions;
}

const std::vector<ProductFunction>& WarpProductFunctions() {
  static const std::vector<ProductFunction> functions = [] {
    std::vector<ProductFunction> made;
    for (const Instruction* row : AllInstructions()) {
      if (row->kind == InstructionClass::kWarp) made.push_back(WarpProduct(*row));
    }
    return made;
  }();
  return functions;
}

ProductFunction WarpgroupProduct(const Instruction& row, const FragmentLayout& layout, bool is_first,
                                 bool of_registers) {
  const bool transposes = DTypeBytes(row.operand) == 2, of_floats = IsFloat(row.accumulator),
             chooses = row.partial_depth > 0 || is_first || of_registers;
  const std::string type = PtxTypeOf(row.operand, row.tf32), sum = of_floats ? "float" : "int",
                    shape = absl::StrCat("m", row.m, "n", layout.columns, "k", row.k);
  std::vector<std::string> sums;
  for (int64_t column = 0; column < layout.columns; column += row.n) {
    for (int64_t value = 0; value < row.sums.fragment.values(); ++value) {
      const Fragment::Element element = row.sums.fragment.At(0, value);
      sums.push_back(absl::StrCat(of_floats ? "\"+f\"" : "\"+r\"", "(d[kAt + ",
                                  layout.Register(element.row, column + element.column), "])"));
    }
  }
  const auto number = static_cast<int64_t>(sums.size());
  const int64_t of_a = of_registers ? WordsOf(row.a.fragment, row) : 1;
  // The operands' numbers: a, b, how each is transposed (b alone, if a is in registers), and whether it adds.
  const int64_t transposed = transposes ? (of_registers ? 1 : 2) : 0, flags = number + of_a + 1;
  const std::string a = of_registers ? Registers(number, of_a) : absl::StrCat("%", number);
  std::string transpositions;
  for (int64_t i = 0; i < transposed; ++i) absl::StrAppend(&transpositions, ", %", flags + i);
  const std::string name =
      absl::StrCat(row.emitter, "_", shape, "_", type, of_registers ? "_of_registers" : "",
                   layout.row_tiles() > 1 ? absl::StrCat("_x", layout.row_tiles()) : "",
                   is_first && !of_registers ? "_from_zero" : "");
  const std::string text =
      absl::StrCat("\n// d ", chooses ? "(where it adds) " : "", "+= a (", row.m, " x ", row.k,
                   of_registers ? ", in registers) * b (" : ") * b (", row.k, " x ", layout.columns,
                   of_registers ? ", in shared memory).\n" : "), both in shared memory.\n",
                   "template <int kTile", transposed == 2 ? ", int kTransposeA" : "",
                   transposed > 0 ? ", int kTransposeB" : "", chooses ? ", int kAdds" : "",
                   ">\n__device__ __forceinline__ void ", name, "(", sum, " (&d)[", layout.registers(), "], ",
                   of_registers ? absl::StrCat("const unsigned (&a)[", of_a, "]") : "unsigned long long a",
                   ", unsigned long long b) {\n  constexpr int kAt = kTile * ", layout.Register(row.m, 0),
                   ";\n  asm volatile(\n      \"{\\n.reg .pred add;\\nsetp.ne.b32 add, ",
                   chooses ? absl::StrCat("%", flags + transposed) : "1",
                   ", 0;\\n\"\n      \"wgmma.mma_async.sync.aligned.", shape, ".", PtxTypeOf(row.accumulator),
                   ".", type, ".", type, " ", Registers(0, number), ", ", a, ", %", number + of_a, ", add",
                   of_floats ? ", 1, 1" : "", transpositions, ";\\n}\"\n      : ", absl::StrJoin(sums, ", "),
                   "\n      : ", of_registers ? Numbered(of_a, "\"r\"(a[", "])") : "\"l\"(a)", ", \"l\"(b)",
                   transposed == 2 ? ", \"n\"(kTransposeA)" : "",
                   transposed > 0 ? ", \"n\"(kTransposeB)" : "", chooses ? ", \"n\"(kAdds)" : "", ");\n}\n");
  return {name, text};
}

}  // namespace mycc
