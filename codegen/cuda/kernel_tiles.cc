// Emits tensor-core statements: accumulators in the threads' registers, and Mma as wgmma or mma.sync.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/product_functions.h"
#include "codegen/cuda/warp_operand.h"
#include "codegen/ir/pipeline_stmts.h"

namespace mycc {
namespace {

// A matrix operand as a tile in shared memory, in panels as wide as the swizzle.
struct OperandTile {
  Layout layout;                 // of the buffer
  int64_t element = 1;           // bytes
  bool depth_contiguous = true;  // rows run along the depth (K-major); otherwise the depth runs across rows
  int64_t depth_step = 1, other_step = 1;  // of the view, in numbers of elements

  // The bytes from one panel to the next.
  int64_t panel_bytes() const { return layout.dims.back().front().stride * element; }
  int64_t swizzle_bytes() const { return layout.SwizzledRow() * element; }
  // The offset in bytes of the part at `depth` elements along the depth, and `other` elements along the other
  // dimension.
  int64_t Offset(int64_t depth, int64_t other) const {
    return layout.Flat(depth * depth_step + other * other_step) * element;
  }
};

// A partial sum has 64 rows, and half of the columns if there are more than 128, so that it needs few
// registers besides those of the sums.
FragmentLayout PartLayout(const FragmentLayout& layout) {
  const int64_t columns = layout.columns > 128 ? layout.columns / 2 : layout.columns;
  return {layout.unit.rows, columns, WarpGrid{1, 1}, layout.unit};
}

// Code that multiplies over `row.partial_depth` at a time, and adds up the partial sums.
std::vector<std::string> PartialProducts(const Instruction& row, const FragmentLayout& layout,
                                         const FragmentLayout& part, const std::string& acc,
                                         const OperandTile& a, const OperandTile& b, int64_t depth) {
  std::vector<std::string> lines;
  // Registers of one row of the thread's elements.
  const int64_t next_row = row.sums.fragment.Steps(1).front().row;
  const int64_t run = part.Register(next_row, 0), pitch = layout.Register(next_row, 0);
  const std::string name = WarpgroupProduct(row, part, /*is_first=*/false, /*of_registers=*/false).name;
  const auto multiply = [&](int64_t from, int64_t tile, int64_t column) {
    lines.push_back("wgmma_fence();");
    for (int64_t k = from; k < std::min<int64_t>(from + row.partial_depth, depth); k += row.k) {
      const int64_t a_at = a.Offset(k, tile * row.m), b_at = b.Offset(k, column);
      lines.push_back(
          absl::StrCat(name, "<0, ", k > from ? 1 : 0, ">(part, a + ", a_at / 16, ", b + ", b_at / 16, ");"));
    }
    lines.push_back("wgmma_commit();");
    lines.push_back("wgmma_wait<0>();");
    lines.push_back(absl::StrCat("add_part<", layout.Register(tile * row.m, column), ", ", run, ", ", pitch,
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
    return view.buffer->layout.RowPad() > 0 && view.buffer->shape.back() < along;
  };
  if (is_torn(mma.a, a_depth ? mma.k : mma.m) || is_torn(mma.b, b_depth ? mma.k : mma.n))
    return "the padding of a tile's rows is between elements of one row of an operand";
  const int64_t columns = layout.column_tiles() * row.n;
  if (columns % (2 * row.n) != 0)
    return absl::StrCat("a warp has ", columns, " columns; expected a multiple of ", 2 * row.n);
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
  if (row->of_warpgroups()) return EmitWgmma(mma, *row);
  EmitWarpMma(mma, *row);
}

std::string KernelEmitter::SharedAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  return absl::StrCat(prelude_.Use("shared_address"), "(&", place.name, "[",
                      Index(FromLinear(Flat(place, indices))).text, "])");
}

// Emits the products. Those of partial sums are complete afterwards; others are asynchronous.
void KernelEmitter::EmitWgmma(const Mma& mma, const Instruction& row) {
  if (mma.is_async != row.is_async)
    return Fail(absl::StrCat(row.name, mma.is_async ? " adds up partial sums, and cannot be asynchronous"
                                                    : " is asynchronous, and nothing waits for it"));
  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  const auto tile_of = [&](const TileView& view, int64_t depth_step, int64_t other_step) {
    const BufferNode& buffer = *view.buffer;
    OperandTile tile{buffer.layout, DTypeBytes(buffer.dtype), depth_step == 1, depth_step, other_step};
    if (buffer.layout.swizzle.bits == 0 || buffer.layout.dims.back().size() != 2) {
      Fail(absl::StrCat(row.name, " reads swizzled tiles; ", buffer.name, " has rows of ",
                        buffer.shape.back() * tile.element, " bytes and swizzle ", tile.swizzle_bytes(),
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
  const OperandTile a = from_registers ? OperandTile{} : tile_of(mma.a, mma.a.col_stride, mma.a.row_stride),
                    b = tile_of(mma.b, mma.b.row_stride, mma.b.col_stride);
  if (!status_.ok()) return;
  const FragmentLayout unit = row.partial_depth > 0 ? PartLayout(layout) : layout;
  const ProductFunction product = WarpgroupProduct(row, unit, mma.first, from_registers);
  const std::string& name = product.name;
  prelude_.Add(name, product.text);
  for (const char* part : {"wgmma_fence", "wgmma_tile"}) prelude_.Use(part);

  OpenBlock();
  // A warpgroup's rows of a, and the descriptor's distances between panels and between groups of 8 rows.
  const int64_t rows_of_group = layout.rows / layout.warps.rows;
  const auto descriptor = [&](const char* var, const TileView& view, const OperandTile& tile,
                              const std::string& more) {
    // The hardware's modes are 1, 2, 3 for swizzles of 128, 64, 32 bytes. Along the depth there is one panel.
    Line("const unsigned long long ", var, " = wgmma_tile<", 4 - tile.layout.swizzle.bits, ">(",
         SharedAddress(view.buffer, view.indices), more, ", ",
         tile.depth_contiguous ? 16 : tile.panel_bytes(), ", ", 8 * tile.swizzle_bytes(), ");");
  };
  if (from_registers) {
    Line("unsigned a[", mma.k / row.k, "][", layout.row_tiles(), "][", row.a.fragment.values() / 2, "];");
    for (int64_t step = 0; step < mma.k / row.k; ++step) {
      PackOperand(mma, absl::StrCat("a[", step, "]"), absl::StrCat(step));
      for (int64_t t = 0; t < layout.row_tiles(); ++t)
        Line(prelude_.Use("wgmma_operand"), "(a[", step, "][", t, "]);");
    }
  } else {
    const std::string group =
        layout.warps.rows == 1 ? "" : absl::StrCat(" + ", Warpgroup(), " * ", a.Offset(0, rows_of_group));
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
      const int64_t a_at = a.Offset(k, t * row.m);
      const std::string transposed =
          absl::StrCat(", ", a.depth_contiguous ? 0 : 1, ", ", b.depth_contiguous ? 0 : 1);
      Line(name, "<", t, DTypeBytes(row.operand) == 2 ? transposed : "", mma.first ? ", " + adds : "", ">(",
           acc, ", a + ", a_at / 16, ", b + ", b_at / 16, ");");
    }
  }
  Close();
}

// Loads fragments of 16 rows of a and of twice the columns of b by ldmatrix; then emits mma.sync on all of
// them. ldmatrix treats all types as 8 x 8 matrices of 16 bits, 16 bytes deep.
void KernelEmitter::EmitWarpMma(const Mma& mma, const Instruction& row) {
  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  const std::string function = prelude_.Use(row.emitter);
  if (const std::string problem = WarpMmaProblem(mma, row, layout); !problem.empty())
    return Fail(absl::StrCat(row.name, ": ", problem));
  const bool a_depth = mma.a.col_stride == 1, b_depth = mma.b.row_stride == 1;
  const int64_t columns = layout.column_tiles() * row.n;  // of a warp
  const WarpOperand a(row, /*is_a=*/true), b(row, /*is_a=*/false);
  OpenBlock();
  // The row of the matrices that this thread addresses, where the depth is contiguous. Where it runs across
  // rows, a's matrices are transposed to the order of b's, and b's to that of a's.
  const std::string low = a.OtherOfMatrix(false), high = a.DepthOfMatrix(false),
                    upper = b.OtherOfMatrix(false), side = b.DepthOfMatrix(false);
  Line("const int lane = ", Thread(), " % 32, low = ", low, ", high = ", high, ";");
  Line("const int upper = ", upper, ", side = ", side, ";");
  const auto named = [&](const std::string& code) {
    return code == low     ? "low"
           : code == high  ? "high"
           : code == upper ? "upper"
           : code == side  ? "side"
                           : code;
  };
  const std::string warp = absl::StrCat(Thread(), " / 32");
  const int64_t warp_rows = layout.rows / layout.warps.rows;
  Line("const int warp_row = ",
       layout.warps.columns > 1 ? absl::StrCat(warp, " / ", layout.warps.columns) : warp,
       layout.warps.rows > 1 ? absl::StrCat(" % ", layout.warps.rows) : " * 0", " * ", warp_rows, ";");
  Line("const int warp_column = ", warp, " % ", layout.warps.columns, " * ", columns, ";");
  const std::string acc = PlaceOf(mma.acc.buffer).name;
  const bool in_parts = row.partial_depth > 0;
  const int64_t registers = layout.registers(), pairs = columns / (2 * row.n);
  if (in_parts) Line("float part[", registers, "] = {};");
  Line("#pragma unroll");
  Open("for (int k = 0; k < ", mma.k, "; k += ", row.k, ")");
  Line("unsigned a[", layout.row_tiles(), "][", a.count(), "], b[", pairs, "][", b.count(), "];");
  const std::string other_a = absl::StrCat("warp_row + t * ", row.m, " + "),
                    other_b = absl::StrCat("warp_column + t * ", 2 * row.n, " + ");
  if (IsInRegisters(mma.a)) {
    PackOperand(mma, "a", absl::StrCat("k / ", row.k));
  } else {
    LoadFragments(row, "a", layout.row_tiles(), a.count(), a_depth,
                  ElementOf(mma.a, other_a + named(a.OtherOfMatrix(!a_depth)),
                            "k + " + named(a.DepthOfMatrix(!a_depth))),
                  ElementOf(mma.a, other_a + a.Other("i"), "k + " + a.Depth("i")));
  }
  LoadFragments(
      row, "b", pairs, b.count(), b_depth,
      ElementOf(mma.b, "k + " + named(b.DepthOfMatrix(!b_depth)), other_b + named(b.OtherOfMatrix(!b_depth))),
      ElementOf(mma.b, "k + " + b.Depth("i"), other_b + b.Other("i")));
  Line("#pragma unroll");
  Open("for (int t = 0; t < ", layout.row_tiles(), "; ++t)");
  Line("#pragma unroll");
  Open("for (int n = 0; n < ", layout.column_tiles(), "; ++n)");
  std::vector<std::string> operands;
  for (int64_t value = 0; value < row.sums.fragment.values(); ++value) {
    const Fragment::Element element = row.sums.fragment.At(0, value);
    operands.push_back(absl::StrCat(in_parts ? "part" : acc, "[t * ", layout.Register(row.m, 0), " + n * ",
                                    layout.Register(0, row.n), " + ",
                                    layout.Register(element.row, element.column), "]"));
  }
  operands.push_back("a[t]");
  const int64_t of_b = b.count() / 2;
  for (int64_t i = 0; i < of_b; ++i) {
    operands.push_back(absl::StrCat("b[n / 2][n % 2", of_b == 1 ? "" : absl::StrCat(" * ", of_b),
                                    i == 0 ? "" : absl::StrCat(" + ", i), "]"));
  }
  Line(function, "(", absl::StrJoin(operands, ", "), ");");
  Close();
  Close();
  Close();
  if (in_parts) Line(prelude_.Use("add_part"), "<0, ", registers, ", ", registers, ">(", acc, ", part);");
  Close();
}

// Loads `count` fragments of an operand, each into its registers. `matrices` is the first element of this
// thread's row of the matrices that ldmatrix loads; `element` is the element of register i. ldmatrix
// transposes elements of 16 bits alone; elements of 32 bits are loaded one by one.
void KernelEmitter::LoadFragments(const Instruction& row, const std::string& fragment, int64_t count,
                                  int64_t registers, bool depth_contiguous, const std::string& matrices,
                                  const std::string& element) {
  Line("#pragma unroll");
  Open("for (int t = 0; t < ", count, "; ++t)");
  if (depth_contiguous || DTypeBytes(row.operand) == 2) {
    Line(prelude_.Use(LoadFunctionName(registers, !depth_contiguous)), "(", fragment, "[t], ",
         prelude_.Use("shared_address"), "(&", matrices, "));");
  } else {
    Line("#pragma unroll");
    Line("for (int i = 0; i < ", registers, "; ++i) ", fragment, "[t][i] = __float_as_uint(", element, ");");
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
  if (buffer.layout.dims.back().size() == 2 && buffer.layout.dims.back().front().extent > 1)
    Fail(absl::StrCat(buffer.name, " has rows longer than its swizzle; expected at most ",
                      buffer.layout.SwizzledRow(), " elements for fragments"));
  const int64_t pitch = buffer.layout.Flat(step);
  const std::string &down = column_contiguous ? row : column, &along = column_contiguous ? column : row;
  const std::string base = Index(FromLinear(Flat(place, view.indices))).At(kSum);
  const std::string flat = absl::StrCat(base, " + (", down, ") * ", pitch, " + ", along);
  return absl::StrCat(place.name, "[", Swizzled(place, flat), "]");
}

}  // namespace mycc
