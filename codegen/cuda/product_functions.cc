#include "codegen/cuda/product_functions.h"

#include <algorithm>
#include <vector>

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

// The 32-bit registers that a thread has of an operand.
int64_t WordsOf(const Fragment& operand, const Instruction& row) {
  return operand.values() * DTypeBytes(row.operand) / 4;
}

// The head of a function; its last parameter is on a line of its own where the line would be too long.
std::string HeadOf(const std::string& name, const std::string& parameters, const std::string& last) {
  constexpr size_t kMostColumns = 126;
  const std::string head = absl::StrCat("__device__ __forceinline__ void ", name, "(");
  const std::string line = absl::StrCat(head, parameters, ", ", last, ") {\n");
  if (line.size() <= kMostColumns + 1) return line;
  return absl::StrCat(head, parameters, ",\n", std::string(head.size(), ' '), last, ") {\n");
}

// A statement of wgmma: its extent, and its operands by number: the sums of all row tiles, then a (the
// registers of every step and tile, or a descriptor), b's descriptor, whether the first step adds, what is
// transposed, and the offsets.
struct WarpgroupStatement {
  int64_t steps, tiles, words;  // 32-bit registers of a step and tile of a; 0: a is in shared memory
  int64_t sums, transposed;
  int64_t registers_of_a() const { return steps * tiles * words; }
  int64_t b() const { return sums + std::max<int64_t>(registers_of_a(), 1); }
  int64_t adds() const { return b() + 1; }
  int64_t offsets() const { return adds() + 1 + transposed; }
  int64_t num_offsets() const { return steps * (words > 0 ? 1 : 1 + tiles); }
};

// Sets `to` to its descriptor, whose halves are to_low and to_high, plus an offset. Addresses are in its
// lower half.
std::string MovedDescriptor(const std::string& to, int64_t offset) {
  return absl::StrCat("add.u32 low, ", to, "_low, %", offset, ";\\nmov.b64 ", to, ", {low, ", to,
                      "_high};\\n");
}

// The instructions, one for each step and row tile. `shape` is "m64n128k16.f32.bf16.bf16".
std::string WarpgroupInstructions(const WarpgroupStatement& statement, const std::string& shape,
                                  const std::string& flags) {
  const int64_t of_tile = statement.sums / statement.tiles;
  int64_t offset = statement.offsets(), registers = statement.sums;
  std::string text;
  for (int64_t step = 0; step < statement.steps; ++step) {
    for (int64_t tile = 0; tile < statement.tiles; ++tile) {
      std::string a = "a";
      absl::StrAppend(&text, "      \"");
      if (statement.words > 0) {
        a = Registers(registers, statement.words);
        registers += statement.words;
      } else {
        absl::StrAppend(&text, MovedDescriptor("a", offset++));
      }
      if (tile == 0) absl::StrAppend(&text, MovedDescriptor("b", offset++));
      absl::StrAppend(&text, "wgmma.mma_async.sync.aligned.", shape, " ", Registers(tile * of_tile, of_tile),
                      ", ", a, ", b, ", step == 0 ? "first" : "later", flags, ";\\n\"\n");
    }
  }
  return text;
}

// The constraints of the sums of `tiles` row tiles from kTile on.
std::vector<std::string> SumsOfTiles(const Instruction& row, const FragmentLayout& layout, int64_t tiles) {
  std::vector<std::string> sums;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    for (int64_t column = 0; column < layout.columns; column += row.n) {
      for (int64_t value = 0; value < row.sums.fragment.values(); ++value) {
        const Fragment::Element element = row.sums.fragment.At(0, value);
        const int64_t at = layout.Register(tile * row.m + element.row, column + element.column);
        sums.push_back(absl::StrCat(IsFloat(row.accumulator) ? "\"+f\"" : "\"+r\"", "(d[kAt + ", at, "])"));
      }
    }
  }
  return sums;
}

// The constraints of the other operands.
std::string InputsOf(const WarpgroupStatement& statement) {
  std::vector<std::string> inputs;
  for (int64_t step = 0; statement.words > 0 && step < statement.steps; ++step) {
    for (int64_t tile = 0; tile < statement.tiles; ++tile) {
      inputs.push_back(
          Numbered(statement.words, absl::StrCat("\"r\"(a[", step, "][kTile + ", tile, "]["), "])"));
    }
  }
  if (statement.words == 0) inputs.emplace_back("\"l\"(a)");
  inputs.emplace_back("\"l\"(b), \"n\"(kAdds)");
  if (statement.transposed == 2) inputs.emplace_back("\"n\"(kTransposeA)");
  if (statement.transposed > 0) inputs.emplace_back("\"n\"(kTransposeB)");
  inputs.push_back(Numbered(statement.num_offsets(), "\"n\"(offsets[", "])"));
  return absl::StrJoin(inputs, ", ");
}

}  // namespace

std::string Registers(int64_t first, int64_t count) {
  return absl::StrCat("{", Numbered(count, "%", "", first), "}");
}

std::string Numbered(int64_t count, const std::string& prefix, const std::string& suffix, int64_t first) {
  std::vector<std::string> each;
  for (int64_t i = first; i < first + count; ++i) each.push_back(absl::StrCat(prefix, i, suffix));
  return absl::StrJoin(each, ", ");
}

DeviceFunction MemoryFunction(const std::string& name, const std::string& parameters, const std::string& ptx,
                              const std::string& operands) {
  return {name,
          absl::StrCat("\n__device__ __forceinline__ void ", name, "(", parameters, ") {\n  asm volatile(\"",
                       ptx, ";\"\n               ", operands, " : \"memory\");\n}\n")};
}

DeviceFunction LoadMatrices(int64_t matrices, bool transposed) {
  return MemoryFunction(absl::StrCat("ldmatrix_x", matrices, transposed ? "_trans" : ""),
                        absl::StrCat("unsigned (&to)[", matrices, "], unsigned from"),
                        absl::StrCat("ldmatrix.sync.aligned.m8n8.x", matrices, transposed ? ".trans" : "",
                                     ".shared.b16 ", Registers(0, matrices), ", [%", matrices, "]"),
                        absl::StrCat(": ", Numbered(matrices, "\"=r\"(to[", "])"), " : \"r\"(from)"));
}

DeviceFunction WarpProduct(const Instruction& row) {
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

DeviceFunction CompleteSums(DType accumulator, int64_t registers) {
  constexpr int64_t kMostOfStatement = 128;
  const bool of_floats = IsFloat(accumulator);
  const std::string name = absl::StrCat("complete_", registers, of_floats ? "_floats" : "_ints");
  std::string statements;
  for (int64_t first = 0; first < registers; first += kMostOfStatement) {
    const int64_t count = std::min(kMostOfStatement, registers - first);
    absl::StrAppend(&statements, "  asm volatile(\"\" : ",
                    Numbered(count, of_floats ? "\"+f\"(d[" : "\"+r\"(d[", "])", first),
                    " :: \"memory\");\n");
  }
  return {name,
          absl::StrCat("\n// The products of these sums are complete: what reads them comes after this.\n",
                       "__device__ __forceinline__ void ", name, "(", of_floats ? "float" : "int", " (&d)[",
                       registers, "]) {\n", statements, "}\n")};
}

DeviceFunction WarpgroupProduct(const Instruction& row, const FragmentLayout& layout, int64_t tiles,
                                int64_t steps, bool of_registers) {
  const bool of_floats = IsFloat(row.accumulator);
  const std::string type = PtxTypeOf(row.operand, row.tf32), sum = PtxTypeOf(row.accumulator);
  const std::vector<std::string> sums = SumsOfTiles(row, layout, tiles);
  const WarpgroupStatement statement{steps, tiles, of_registers ? WordsOf(row.a.fragment, row) : 0,
                                     static_cast<int64_t>(sums.size()),
                                     DTypeBytes(row.operand) != 2 ? 0 : (of_registers ? 1 : 2)};
  std::string flags = of_floats ? ", 1, 1" : "";
  for (int64_t i = 1; i <= statement.transposed; ++i) absl::StrAppend(&flags, ", %", statement.adds() + i);
  const int64_t rows = row.m * tiles, depth = row.k * steps;
  const std::string shape =
      absl::StrCat("m", row.m, "n", layout.columns, "k", row.k, ".", sum, ".", type, ".", type);
  const std::string name = absl::StrCat(
      row.emitter, "_m", rows, "n", layout.columns, "k", depth, "_", type,
      of_registers ? "_of_registers" : "",
      layout.row_tiles() > tiles ? absl::StrCat("_of_", row.m * layout.row_tiles(), "_rows") : "");
  return {name,
          absl::StrCat("\n// d (where it adds) += a (", rows, " x ", depth,
                       of_registers ? ", in registers" : "", ") * b (", depth, " x ", layout.columns,
                       of_registers ? ", in shared memory).\n" : "), both in shared memory.\n",
                       "template <int kTile, int kAdds", statement.transposed == 2 ? ", int kTransposeA" : "",
                       statement.transposed > 0 ? ", int kTransposeB" : "",
                       ", int... kOffsets>\n__device__ __forceinline__ void ", name, "(",
                       of_floats ? "float" : "int", " (&d)[", layout.registers(), "], ",
                       of_registers ? absl::StrCat("const unsigned (&a)[", steps, "][", layout.row_tiles(),
                                                   "][", statement.words, "]")
                                    : "unsigned long long a",
                       ", unsigned long long b) {\n  constexpr int kAt = kTile * ", layout.Register(row.m, 0),
                       ", offsets[] = {kOffsets...};\n  asm volatile(\n",
                       "      \"{\\n.reg .pred first, later;\\n.reg .b64 a, b;\\n"
                       ".reg .b32 a_low, a_high, b_low, b_high, low;\\n\"\n",
                       "      \"setp.ne.b32 first, %", statement.adds(),
                       ", 0;\\nsetp.ne.b32 later, 1, 0;\\n\"\n", "      \"",
                       of_registers ? "" : absl::StrCat("mov.b64 {a_low, a_high}, %", statement.sums, ";\\n"),
                       "mov.b64 {b_low, b_high}, %", statement.b(), ";\\n\"\n",
                       WarpgroupInstructions(statement, shape, flags), "      \"}\"\n      : ",
                       absl::StrJoin(sums, ", "), "\n      : ", InputsOf(statement), ");\n}\n")};
}

}  // namespace mycc
