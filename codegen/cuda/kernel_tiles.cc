// Emits tensor-core statements: accumulators in the threads' registers, and Mma as wgmma or mma.sync.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/schedule/instructions.h"

namespace mycc {
namespace {

// A matrix operand as a tile in shared memory: rows of `row_bytes`, cut into panels as wide as the swizzle.
struct OperandTile {
  bool depth_contiguous;  // rows run along the depth (K-major); otherwise the depth runs across rows
  int64_t element;        // bytes
  int64_t swizzle;        // bytes, the width of a panel
  int64_t rows;           // of a panel

  int64_t panel_bytes() const { return rows * swizzle; }
  // The offset in bytes of the part at `depth` elements along the depth, and `other` elements along the other
  // dimension.
  int64_t Offset(int64_t depth, int64_t other) const {
    const int64_t along = (depth_contiguous ? depth : other) * element,
                  down = depth_contiguous ? other : depth;
    return along / swizzle * panel_bytes() + down * swizzle + along % swizzle;
  }
};

int SwizzleMode(int64_t swizzle) { return swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3; }

const char* MmaFunction(DType operand) {
  switch (operand) {
    case DType::kF16: return "mma_f16";
    case DType::kF32: return "mma_tf32";
    case DType::kI8: return "mma_s8";
    case DType::kF8E4M3: return "mma_e4m3";
    case DType::kF8E5M2: return "mma_e5m2";
    default: return "mma_bf16";
  }
}

const char* PtxType(DType dtype) {
  switch (dtype) {
    case DType::kF16: return "f16";
    case DType::kBF16: return "bf16";
    case DType::kF8E4M3: return "e4m3";
    case DType::kF8E5M2: return "e5m2";
    case DType::kI8: return "s8";
    case DType::kI32: return "s32";
    default: return "f32";
  }
}

// `is_first`: of a product that does not add to what the accumulator held.
std::string WgmmaName(const Instruction& row, const FragmentLayout& layout, bool is_first = false) {
  return absl::StrCat("wgmma_m64n", layout.columns, "k", row.k, "_", PtxType(row.operand),
                      layout.row_tiles() > 1 ? absl::StrCat("_x", layout.row_tiles()) : "",
                      is_first ? "_from_zero" : "");
}

// wgmma of one shape and type, for tile `kTile` of the accumulator's rows [PTX ISA, "wgmma.mma_async"]. Only
// elements of 16 bits may be transposed. The first instruction of a first product, or of a partial sum, does
// not add.
std::string WgmmaFunction(const Instruction& row, const FragmentLayout& layout, bool is_first) {
  const bool transposes = DTypeBytes(row.operand) == 2, chooses = row.partial_depth > 0 || is_first,
             of_floats = IsFloat(row.accumulator);
  const std::string type = PtxType(row.operand), sum = of_floats ? "float" : "int";
  std::vector<std::string> registers, operands;
  int64_t number = 0;
  for (int64_t n = 0; n < layout.column_tiles(); ++n) {
    for (int half = 0; half < 2; ++half) {
      for (int odd = 0; odd < 2; ++odd) {
        registers.push_back(absl::StrCat("%", number++));
        operands.push_back(absl::StrCat(of_floats ? "\"+f\"" : "\"+r\"", "(d[kAt + ",
                                        layout.Register(0, n, half, odd), "])"));
      }
    }
  }
  const std::string add = chooses ? absl::StrCat("%", number + (transposes ? 4 : 2)) : "1";
  const std::string transpositions = transposes ? absl::StrCat(", %", number + 2, ", %", number + 3) : "";
  return absl::StrCat("\n// d ", chooses ? "(where it adds) " : "", "+= a (64 x ", row.k, ") * b (", row.k,
                      " x ", layout.columns, "), both in shared memory.\n", "template <int kTile",
                      transposes ? ", int kTransposeA, int kTransposeB" : "", chooses ? ", int kAdds" : "",
                      ">\n__device__ __forceinline__ void ", WgmmaName(row, layout, is_first), "(", sum,
                      " (&d)[", layout.registers(), "], unsigned long long a, unsigned long long b) {\n",
                      "  constexpr int kAt = kTile * ", layout.Register(1, 0, 0, 0), ";\n",
                      "  asm volatile(\n      \"{\\n.reg .pred add;\\nsetp.ne.b32 add, ", add, ", 0;\\n\"\n",
                      "      \"wgmma.mma_async.sync.aligned.m64n", layout.columns, "k", row.k, ".",
                      PtxType(row.accumulator), ".", type, ".", type, " {", absl::StrJoin(registers, ", "),
                      "}, %", number, ", %", number + 1, ", add", of_floats ? ", 1, 1" : "", transpositions,
                      ";\\n}\"\n      : ", absl::StrJoin(operands, ", "), "\n      : \"l\"(a), \"l\"(b)",
                      transposes ? ", \"n\"(kTransposeA), \"n\"(kTransposeB)" : "",
                      chooses ? ", \"n\"(kAdds)" : "", ");\n}\n");
}

// A partial sum has 64 rows, and half of the columns if there are more than 128, so that it needs few
// registers besides those of the sums.
FragmentLayout PartLayout(const FragmentLayout& layout) {
  const int64_t columns = layout.columns > 128 ? layout.columns / 2 : layout.columns;
  return {64, columns, WarpGrid{1, 1}, /*warpgroups=*/true};
}

// Code that multiplies over `row.partial_depth` at a time, and adds up the partial sums.
std::vector<std::string> PartialProducts(const Instruction& row, const FragmentLayout& layout,
                                         const FragmentLayout& part, const std::string& acc,
                                         const OperandTile& a, const OperandTile& b, int64_t depth) {
  std::vector<std::string> lines;
  const int64_t run = part.Register(0, 0, 1, 0), pitch = layout.Register(0, 0, 1, 0);
  const auto multiply = [&](int64_t from, int64_t tile, int64_t column) {
    lines.push_back("wgmma_fence();");
    for (int64_t k = from; k < std::min<int64_t>(from + row.partial_depth, depth); k += row.k) {
      const int64_t a_at = a.Offset(k, tile * 64), b_at = b.Offset(k, column);
      lines.push_back(absl::StrCat(WgmmaName(row, part), "<0, ", k > from ? 1 : 0, ">(part, a + ", a_at / 16,
                                   ", b + ", b_at / 16, ");"));
    }
    lines.push_back("wgmma_commit();");
    lines.push_back("wgmma_wait<0>();");
    lines.push_back(absl::StrCat("add_part<", layout.Register(tile, column / 8, 0, 0), ", ", run, ", ", pitch,
                                 ">(", acc, ", part);"));
  };
  for (int64_t from = 0; from < depth; from += row.partial_depth) {
    for (int64_t tile = 0; tile < layout.row_tiles(); ++tile) {
      for (int64_t column = 0; column < layout.columns; column += part.columns) multiply(from, tile, column);
    }
  }
  return lines;
}

// The reason why mma.sync cannot execute the product; empty when it can.
std::string WarpMmaProblem(const Mma& mma, const Instruction& row, const FragmentLayout& layout) {
  const bool a_depth = mma.a.col_stride == 1, b_depth = mma.b.row_stride == 1;
  if ((!a_depth && mma.a.row_stride != 1) || (!b_depth && mma.b.col_stride != 1))
    return "an operand is contiguous along neither of its dimensions";
  const auto is_torn = [](const TileView& view, int64_t along) {
    return view.buffer->layout.row_pad > 0 && view.buffer->shape.back() < along;
  };
  if (is_torn(mma.a, a_depth ? mma.k : mma.m) || is_torn(mma.b, b_depth ? mma.k : mma.n))
    return "the padding of a tile's rows is between elements of one row of an operand";
  const int64_t columns = layout.column_tiles() * 8;
  if (columns % 16 != 0) return absl::StrCat("a warp has ", columns, " columns; expected a multiple of 16");
  if (DTypeBytes(row.operand) == 1 && !(a_depth && b_depth))
    return "an operand is not contiguous along the depth";
  if (row.partial_depth > 0 && mma.k > row.partial_depth)
    return absl::StrCat(mma.k, " of depth at a time; expected at most ", row.partial_depth);
  return "";
}

}  // namespace

const FragmentLayout& KernelEmitter::LayoutOfAccumulator(const Mma& mma) {
  return *PlaceOf(mma.acc.buffer).fragment;
}

void KernelEmitter::EmitMma(const Mma& mma) {
  const absl::StatusOr<Instruction> row = FindInstruction(mma.instruction, target_);
  if (!row.ok()) return Fail(std::string(row.status().message()));
  if (mma.first && !row->begins_sums())
    return Fail(absl::StrCat(row->name, " only adds to sums; expected them to be set to zero before"));
  if (row->kind == InstructionClass::kWarpgroup) return EmitWgmma(mma, *row);
  EmitWarpMma(mma, *row);
}

std::string KernelEmitter::SharedAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  return absl::StrCat(prelude_.Use("shared_address"), "(&", place.name, "[",
                      Index(FromLinear(Flat(place, indices))).text, "])");
}

// Emits the products. Those of partial sums are complete afterwards; others are asynchronous.
void KernelEmitter::EmitWgmma(const Mma& mma, const Instruction& row) {
  if (mma.is_async != (row.partial_depth == 0))
    return Fail(absl::StrCat(row.name, mma.is_async ? " adds up partial sums, and cannot be asynchronous"
                                                    : " is asynchronous, and nothing waits for it"));
  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  const auto tile_of = [&](const TileView& view, bool depth_contiguous) {
    const BufferNode& buffer = *view.buffer;
    const int64_t row_elements = buffer.shape.back();
    int64_t rows = 1;
    for (int d = buffer.layout.ring ? 1 : 0; d + 1 < buffer.rank(); ++d) rows *= buffer.shape[d];
    const OperandTile tile{depth_contiguous, DTypeBytes(buffer.dtype), buffer.layout.swizzle_bytes, rows};
    if (tile.swizzle == 0 || row_elements * tile.element % tile.swizzle != 0 || buffer.layout.row_pad != 0) {
      Fail(absl::StrCat(row.name, " reads swizzled tiles; ", buffer.name, " has rows of ",
                        row_elements * tile.element, " bytes and swizzle ", tile.swizzle,
                        ": expected 32, 64 or 128 that divides them"));
    }
    return tile;
  };
  const bool a_depth = mma.a.col_stride == 1, b_depth = mma.b.row_stride == 1;
  if ((!a_depth && mma.a.row_stride != 1) || (!b_depth && mma.b.col_stride != 1))
    return Fail(absl::StrCat(row.name, ": an operand is contiguous along neither of its dimensions"));
  if (DTypeBytes(row.operand) != 2 && !(a_depth && b_depth))
    return Fail(absl::StrCat(row.name, ": an operand is not contiguous along the depth"));
  const bool from_registers = IsInRegisters(mma.a);
  const OperandTile a = from_registers ? OperandTile{} : tile_of(mma.a, a_depth), b = tile_of(mma.b, b_depth);
  if (!status_.ok()) return;
  const FragmentLayout unit = row.partial_depth > 0 ? PartLayout(layout) : layout;
  const std::string name = from_registers ? UseRegisterWgmma(row, layout) : WgmmaName(row, unit, mma.first);
  for (const char* part : {"wgmma_fence", "wgmma_tile"}) prelude_.Use(part);
  if (!from_registers) prelude_.Add(name, WgmmaFunction(row, unit, mma.first));

  OpenBlock();
  // A warpgroup's rows of a, and the descriptor's distances between panels and between groups of 8 rows.
  const int64_t rows_of_group = layout.rows / layout.warps.rows;
  const auto descriptor = [&](const char* var, const TileView& view, const OperandTile& tile,
                              const std::string& more) {
    Line("const unsigned long long ", var, " = wgmma_tile<", SwizzleMode(tile.swizzle), ">(",
         SharedAddress(view.buffer, view.indices), more, ", ",
         tile.depth_contiguous ? 16 : tile.panel_bytes(), ", ", 8 * tile.swizzle, ");");
  };
  if (from_registers) {
    Line("unsigned a[", mma.k / row.k, "][", layout.row_tiles(), "][4];");
    for (int64_t step = 0; step < mma.k / row.k; ++step) {
      PackOperand(mma, absl::StrCat("a[", step, "]"), absl::StrCat(step));
      for (int64_t t = 0; t < layout.row_tiles(); ++t)
        Line(prelude_.Use("wgmma_operand"), "(a[", step, "][", t, "]);");
    }
  } else {
    const std::string group =
        layout.warps.rows == 1 ? "" : absl::StrCat(" + ", Thread(), " / 128 * ", a.Offset(0, rows_of_group));
    descriptor("a", mma.a, a, group);
  }
  descriptor("b", mma.b, b, "");
  const std::string acc = PlaceOf(mma.acc.buffer).name;
  if (row.partial_depth > 0) {
    Line("float part[", unit.registers(), "];");
    for (const char* use : {"wgmma_commit", "wgmma_wait", "add_part"}) prelude_.Use(use);
    for (const std::string& line : PartialProducts(row, layout, unit, acc, a, b, mma.k)) Line(line);
    return Close();
  }
  Line("wgmma_fence();");
  for (int64_t k = 0; k < mma.k; k += row.k) {
    for (int64_t t = 0; t < layout.row_tiles(); ++t) {
      const int64_t b_at = b.Offset(k, 0);
      const std::string adds = mma.first && k == 0 ? "0" : "1";
      if (from_registers) {
        Line(name, "<", t, ", ", b.depth_contiguous ? 0 : 1, ", ", adds, ">(", acc, ", a[", k / row.k, "][",
             t, "], b + ", b_at / 16, ");");
        continue;
      }
      const int64_t a_at = a.Offset(k, t * 64);
      const std::string transposed =
          absl::StrCat(", ", a.depth_contiguous ? 0 : 1, ", ", b.depth_contiguous ? 0 : 1);
      Line(name, "<", t, DTypeBytes(row.operand) == 2 ? transposed : "", mma.first ? ", " + adds : "", ">(",
           acc, ", a + ", a_at / 16, ", b + ", b_at / 16, ");");
    }
  }
  Close();
}

// Loads fragments of 16 rows of a and 16 columns of b (twice 8), 32 bytes deep, by ldmatrix; then emits
// mma.sync on all of them. ldmatrix treats all types as 8 x 8 matrices of 16 bits, 16 bytes deep.
void KernelEmitter::EmitWarpMma(const Mma& mma, const Instruction& row) {
  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  const std::string function = prelude_.Use(MmaFunction(row.operand));
  if (const std::string problem = WarpMmaProblem(mma, row, layout); !problem.empty())
    return Fail(absl::StrCat(row.name, ": ", problem));
  const bool a_depth = mma.a.col_stride == 1, b_depth = mma.b.row_stride == 1;
  const int64_t columns = layout.column_tiles() * 8;  // columns of a warp
  const int64_t half = 16 / DTypeBytes(row.operand);  // elements
  OpenBlock();
  // The row of the four 8 x 8 matrices that this thread addresses. Matrices 1 and 3 are below 0 and 2, and
  // matrices 2 and 3 beside 0 and 1; if the depth runs across rows, it is the other way round.
  Line("const int lane = ", Thread(), " % 32, low = lane % 16, high = lane / 16 * ", half, ";");
  Line("const int upper = lane % 8 + lane / 16 * 8, side = lane / 8 % 2 * ", half, ";");
  const std::string warp = absl::StrCat(Thread(), " / 32");
  const int64_t warp_rows = layout.rows / layout.warps.rows;
  Line("const int warp_row = ",
       layout.warps.columns > 1 ? absl::StrCat(warp, " / ", layout.warps.columns) : warp,
       layout.warps.rows > 1 ? absl::StrCat(" % ", layout.warps.rows) : " * 0", " * ", warp_rows, ";");
  Line("const int warp_column = ", warp, " % ", layout.warps.columns, " * ", columns, ";");
  const std::string acc = PlaceOf(mma.acc.buffer).name;
  const bool in_parts = row.partial_depth > 0;
  const int64_t registers = layout.registers();
  if (in_parts) Line("float part[", registers, "] = {};");
  Line("#pragma unroll");
  Open("for (int k = 0; k < ", mma.k, "; k += ", row.k, ")");
  Line("unsigned a[", layout.row_tiles(), "][4], b[", columns / 16, "][4];");
  if (IsInRegisters(mma.a)) {
    PackOperand(mma, "a", absl::StrCat("k / ", row.k));
  } else {
    LoadFragments(row, "a", layout.row_tiles(), a_depth,
                  a_depth ? ElementOf(mma.a, "warp_row + t * 16 + low", "k + high")
                          : ElementOf(mma.a, "warp_row + t * 16 + side", "k + upper"),
                  ElementOf(mma.a, "warp_row + t * 16 + i % 2 * 8 + lane / 4", "k + i / 2 * 4 + lane % 4"));
  }
  LoadFragments(row, "b", columns / 16, b_depth,
                b_depth ? ElementOf(mma.b, "k + side", "warp_column + t * 16 + upper")
                        : ElementOf(mma.b, "k + low", "warp_column + t * 16 + high"),
                ElementOf(mma.b, "k + i % 2 * 4 + lane % 4", "warp_column + t * 16 + i / 2 * 8 + lane / 4"));
  Line("#pragma unroll");
  Open("for (int t = 0; t < ", layout.row_tiles(), "; ++t)");
  Line("#pragma unroll");
  Open("for (int n = 0; n < ", layout.column_tiles(), "; ++n)");
  const auto at = [&](int half, int odd) {
    return absl::StrCat(in_parts ? "part" : acc, "[t * ", layout.Register(1, 0, 0, 0), " + n * 2 + ",
                        layout.Register(0, 0, half, odd), "]");
  };
  Line(function, "(", at(0, 0), ", ", at(0, 1), ", ", at(1, 0), ", ", at(1, 1),
       ", a[t], b[n / 2][n % 2 * 2], ", "b[n / 2][n % 2 * 2 + 1]);");
  Close();
  Close();
  Close();
  if (in_parts) Line(prelude_.Use("add_part"), "<0, ", registers, ", ", registers, ">(", acc, ", part);");
  Close();
}

// Loads `count` fragments of an operand into registers. `matrices` is the first element of this thread's row
// of the four matrices that ldmatrix loads; `element` is the element of register i. ldmatrix transposes
// elements of 16 bits alone; elements of 32 bits are loaded one by one.
void KernelEmitter::LoadFragments(const Instruction& row, const std::string& fragment, int64_t count,
                                  bool depth_contiguous, const std::string& matrices,
                                  const std::string& element) {
  Line("#pragma unroll");
  Open("for (int t = 0; t < ", count, "; ++t)");
  if (depth_contiguous || DTypeBytes(row.operand) == 2) {
    Line(prelude_.Use(depth_contiguous ? "ldmatrix_x4" : "ldmatrix_x4_trans"), "(", fragment, "[t], ",
         prelude_.Use("shared_address"), "(&", matrices, "));");
  } else {
    Line("#pragma unroll");
    Line("for (int i = 0; i < 4; ++i) ", fragment, "[t][i] = __float_as_uint(", element, ");");
  }
  if (row.tf32) Line(prelude_.Use("fragment_tf32"), "(", fragment, "[t]);");
  Close();
}

// The address of element (row, column), given as code, of a view in shared memory. The view's strides are
// whole rows along one dimension and single elements along the other.
std::string KernelEmitter::ElementOf(const TileView& view, const std::string& row,
                                     const std::string& column) {
  const Place& place = PlaceOf(view.buffer);
  const BufferNode& buffer = *view.buffer;
  const bool column_contiguous = view.col_stride == 1;
  const int64_t step = column_contiguous ? view.row_stride : view.col_stride;
  // Rows are `step` logical elements apart, including padding.
  const int64_t row_elements = buffer.shape.back();
  const int64_t pitch = step / row_elements * (row_elements + buffer.layout.row_pad);
  if (place.panel_elements != 0)
    Fail(absl::StrCat(buffer.name, " has rows longer than its swizzle; expected at most ",
                      place.panel_elements, " elements for fragments"));
  const std::string &down = column_contiguous ? row : column, &along = column_contiguous ? column : row;
  const std::string base = Index(FromLinear(Flat(place, view.indices))).At(kSum);
  const std::string flat = absl::StrCat(base, " + (", down, ") * ", pitch, " + ", along);
  return absl::StrCat(place.name, "[", Swizzled(place, flat), "]");
}

}  // namespace mycc
