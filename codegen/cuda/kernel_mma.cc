// Emits products on tensor cores: mma.sync here, wgmma in kernel_wgmma.cc.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/product_functions.h"

namespace mycc {
namespace {

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

constexpr int64_t kLanes = 32, kRowsOfMatrix = 8;

// A coordinate as code: "lane / 16 * 8". `digits` are those of a number of `total` values, with their strides
// in the coordinate; the slowest comes first.
std::string CoordinateText(const std::string& number, const std::vector<Mode>& digits, int64_t total) {
  const std::vector<Mode> modes = Layout{{digits}, {}}.Coalesced().dims[0];
  std::vector<std::string> terms;
  int64_t distance = 1;
  for (auto mode = modes.rbegin(); mode != modes.rend(); distance *= mode++->extent) {
    if (mode->stride == 0) continue;
    terms.push_back(absl::StrCat(number, distance == 1 ? "" : absl::StrCat(" / ", distance),
                                 distance * mode->extent == total ? "" : absl::StrCat(" % ", mode->extent),
                                 mode->stride == 1 ? "" : absl::StrCat(" * ", mode->stride)));
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

std::vector<Mode> DigitsOf(const std::vector<Fragment::Step>& steps, int64_t Fragment::Step::*along) {
  std::vector<Mode> digits;
  digits.reserve(steps.size());
  for (const Fragment::Step& step : steps) digits.push_back({step.extent, step.*along});
  return digits;
}

// The addresses in shared memory from which the lanes of a warp load an operand of mma.sync, as code. They
// follow from the layout of the instruction's operand.
//
// The elements of 16 rows of a, or of the columns of two instructions beside each other, and of one
// instruction's depth. Coordinates are (other, depth), `other` the row of a or the column of b. The running
// lane's number is written `lane`.
class WarpOperand {
 public:
  WarpOperand(const Instruction& row, bool is_a) {
    const Fragment& fragment = is_a ? row.a.fragment : row.b.fragment;
    threads_ = fragment.Steps(0);
    registers_ = fragment.Steps(1);
    if (DTypeBytes(row.operand) < 4) registers_.pop_back();  // a register's own elements
    if (is_a) return;
    registers_.insert(registers_.begin(), {2, 0, row.n});
    for (auto* steps : {&threads_, &registers_}) {
      for (Fragment::Step& step : *steps) std::swap(step.row, step.column);
    }
  }

  // Registers of a lane.
  int64_t count() const {
    int64_t count = 1;
    for (const Fragment::Step& step : registers_) count *= step.extent;
    return count;
  }
  // The coordinates of register `i` of the lane.
  std::string Other(const char* i) const { return OfRegister(i, &Fragment::Step::row); }
  std::string Depth(const char* i) const { return OfRegister(i, &Fragment::Step::column); }
  // The lane's row of the matrices that ldmatrix loads, each matrix a register of all lanes: its first
  // element. The 8 rows of 16 bytes run along the depth, or, transposed, along the other dimension.
  std::string OtherOfMatrix(bool transposed) const { return OfMatrix(&Fragment::Step::row, !transposed); }
  std::string DepthOfMatrix(bool transposed) const { return OfMatrix(&Fragment::Step::column, transposed); }

 private:
  std::string OfRegister(const char* i, int64_t Fragment::Step::*along) const {
    const std::string of_register = CoordinateText(i, DigitsOf(registers_, along), count()),
                      of_lane = CoordinateText("lane", DigitsOf(threads_, along), kLanes);
    return of_register == "0" ? of_lane : absl::StrCat(of_register, " + ", of_lane);
  }
  std::string OfMatrix(int64_t Fragment::Step::*along, bool has_rows) const {
    std::vector<Mode> digits = DigitsOf(registers_, along);
    digits.push_back({kRowsOfMatrix, has_rows ? 1 : 0});
    return CoordinateText("lane", digits, kLanes);
  }

  std::vector<Fragment::Step> threads_, registers_;  // the row is the other coordinate, the column the depth
};

}  // namespace

void KernelEmitter::EmitMma(const Mma& mma) {
  const absl::StatusOr<Instruction> row = FindInstruction(mma.instruction, target_);
  if (!row.ok()) return Fail(std::string(row.status().message()));
  if (mma.first && !row->begins_sums())
    return Fail(row->name, " only adds to sums; expected them to be set to zero before");
  if (row->of_warpgroups()) return EmitWgmma(mma, *row);
  EmitWarpMma(mma, *row);
}

std::string KernelEmitter::SharedAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  return Call("shared_address",
              absl::StrCat("&", PlaceOf(buffer).name, "[", Offset(buffer, indices).text, "]"));
}

// Loads fragments of 16 rows of a and of twice the columns of b by ldmatrix; then emits mma.sync on all of
// them. ldmatrix treats all types as 8 x 8 matrices of 16 bits, 16 bytes deep.
void KernelEmitter::EmitWarpMma(const Mma& mma, const Instruction& row) {
  const FragmentLayout& layout = LayoutOfAccumulator(mma);
  if (const std::string problem = WarpMmaProblem(mma, row, layout); !problem.empty())
    return Fail(row.name, ": ", problem);
  const bool a_depth = mma.a.col_stride == 1, b_depth = mma.b.row_stride == 1;
  const int64_t columns = layout.column_tiles() * row.n;  // of a warp
  const WarpOperand a(row, /*is_a=*/true), b(row, /*is_a=*/false);
  OpenBlock();
  // The row of the matrices that this thread addresses, where the depth is contiguous. Where it runs across
  // rows, a's matrices are transposed to the order of b's, and b's to that of a's.
  const std::string low = a.OtherOfMatrix(false), high = a.DepthOfMatrix(false),
                    upper = b.OtherOfMatrix(false), side = b.DepthOfMatrix(false);
  Line("const int lane = ", thread_, " % 32, low = ", low, ", high = ", high, ";");
  Line("const int upper = ", upper, ", side = ", side, ";");
  const auto named = [&](const std::string& code) {
    return code == low     ? "low"
           : code == high  ? "high"
           : code == upper ? "upper"
           : code == side  ? "side"
                           : code;
  };
  const std::string warp = absl::StrCat(thread_, " / 32");
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
  if (PlaceOf(mma.a.buffer).in_registers) {
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
  OpenUnrolled("t", layout.row_tiles());
  OpenUnrolled("n", layout.column_tiles());
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
  Line(prelude_.Add(WarpProduct(row)), "(", absl::StrJoin(operands, ", "), ");");
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
  OpenUnrolled("t", count);
  if (depth_contiguous || DTypeBytes(row.operand) == 2) {
    Line(prelude_.Add(LoadMatrices(registers, !depth_contiguous)), "(", fragment, "[t], ",
         Call("shared_address", "&" + matrices), ");");
  } else {
    Line("#pragma unroll");
    Line("for (int i = 0; i < ", registers, "; ++i) ", fragment, "[t][i] = __float_as_uint(", element, ");");
  }
  if (row.tf32) Line(Call("fragment_tf32", fragment + "[t]"), ";");
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
    Fail(buffer.name, " has rows longer than its swizzle; expected at most ", buffer.layout.SwizzledRow(),
         " elements for fragments");
  const int64_t pitch = buffer.layout.Flat(step);
  const std::string &down = column_contiguous ? row : column, &along = column_contiguous ? column : row;
  const std::string base = Offset(view.buffer, view.indices).At(kSum);
  const std::string flat = absl::StrCat(base, " + (", down, ") * ", pitch, " + ", along);
  return absl::StrCat(place.name, "[", Swizzled(place, flat), "]");
}

}  // namespace mycc
