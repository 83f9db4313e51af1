#include "codegen/passes/fragments.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/print.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

constexpr int64_t kMaxColumnsOfWarpgroup = 256, kRowsOfWarp = 16;

// A warpgroup's operand begins where its swizzle repeats, after 8 rows of the tile. REQUIRES: the tile's rows
// run along the depth.
absl::Status CheckFirstRow(const Instruction& instruction, const TileView& view) {
  constexpr int64_t kSwizzleRows = 8;
  Expr row = IntConst(0);
  for (size_t d = 0; d + 1 < view.indices.size(); ++d) row = row * view.buffer->shape[d] + view.indices[d];
  row = Simplify(row);
  if (DivisorOf(row) % kSwizzleRows == 0) return absl::OkStatus();
  return Refusal(instruction.name, " reads ", view.buffer->name, " from row ", PrintExpr(row),
                 " on; expected a multiple of ", kSwizzleRows);
}

}  // namespace

std::vector<FragmentLayout::Digit> FragmentLayout::Digits() const {
  std::vector<Digit> digits = {{"wr", true, {warps.rows, rows / warps.rows, 0}},
                               {"wc", true, {warps.columns, 0, columns / warps.columns}}};
  for (const Fragment::Step& step : unit.Steps(0))
    digits.push_back({step.row == 0 ? "lc" : step.row < kRowsOfWarp ? "lr" : "w", true, step});
  const std::vector<Fragment::Step> values = unit.Steps(1);
  digits.push_back({"t", false, {row_tiles(), unit.rows, 0}});
  for (const Fragment::Step& step : values) {
    if (step.row != 0) digits.push_back({"h", false, step});
  }
  digits.push_back({"n", false, {column_tiles(), 0, unit.columns}});
  for (const Fragment::Step& step : values) {
    if (step.row == 0) digits.push_back({"e", false, step});
  }
  return digits;
}

Fragment FragmentLayout::Whole() const {
  std::vector<Fragment::Step> threads, values;
  for (const Digit& digit : Digits()) (digit.is_thread ? threads : values).push_back(digit.step);
  return FragmentOf(rows, columns, threads, values);
}

int64_t FragmentLayout::Register(int64_t row, int64_t column) const {
  const std::vector<Digit> digits = Digits();
  int64_t number = 0, stride = 1;
  for (auto digit = digits.rbegin(); digit != digits.rend() && !digit->is_thread; ++digit) {
    const Fragment::Step& step = digit->step;
    const int64_t steps = step.row != 0 ? row / step.row : column / step.column;
    const bool is_tile = step.row == unit.rows || step.column == unit.columns;
    number += (is_tile ? steps : steps % step.extent) * stride;
    stride *= step.extent;
  }
  return number;
}

std::vector<int64_t> FragmentLayout::OperandRegisters(const Fragment& operand, int64_t row_tile,
                                                      int64_t step) const {
  constexpr int64_t kPair = 2;
  // (thread, value) of the operand -> (thread, register) of the tile.
  std::optional<Layout> places = Compose(Whole().Places(), operand.Within(columns).map);
  if (places) places = places->Coalesced();
  std::vector<int64_t> found;
  if (!places || places->dims[0] != std::vector<Mode>{{operand.threads(), registers()}}) return found;
  const int64_t first = Register(row_tile * unit.rows, step * operand.columns);
  for (int64_t value = 0; value < operand.values(); value += kPair) {
    if (places->Flat({0, value + 1}) != places->Flat({0, value}) + 1) return {};
    found.push_back(first + places->Flat({0, value}));
  }
  return found;
}

std::string DescribeLayout(const FragmentLayout& layout) {
  return absl::StrCat(layout.rows, layout.columns > 0 ? absl::StrCat("x", layout.columns) : " rows",
                      " among ", layout.warps.rows, "x", layout.warps.columns,
                      layout.unit.rows > kRowsOfWarp ? " warpgroups" : " warps");
}

absl::StatusOr<FragmentLayout> FragmentLayoutOf(const Mma& mma, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(mma.instruction, target));
  FragmentLayout layout{mma.m, mma.n, mma.warps, row.sums.fragment};
  const bool whole =
      mma.m % (row.m * mma.warps.rows) == 0 && mma.n % (row.n * mma.warps.columns) == 0 && mma.k % row.k == 0;
  if (!whole || (row.of_warpgroups() && mma.n > kMaxColumnsOfWarpgroup)) {
    return Refusal(row.name, " on ", mma.warps.rows, "x", mma.warps.columns, " warps: a tile of ", mma.m, "x",
                   mma.n, "x", mma.k, "; expected rows in ", row.m * mma.warps.rows, "s, columns in ",
                   row.n * mma.warps.columns, "s",
                   row.of_warpgroups() ? absl::StrCat(" up to ", kMaxColumnsOfWarpgroup) : "", ", depth in ",
                   row.k, "s");
  }
  if (!row.of_warpgroups()) return layout;
  if (mma.a.col_stride == 1 && mma.a.buffer->scope == Scope::kShared)
    MYCC_RETURN_IF_ERROR(CheckFirstRow(row, mma.a));
  if (mma.b.row_stride == 1) MYCC_RETURN_IF_ERROR(CheckFirstRow(row, mma.b));
  return layout;
}

FragmentLoops MakeFragmentLoops(const FragmentLayout& layout, const std::string& prefix, LoopKind pairs) {
  FragmentLoops fragment;
  fragment.row = fragment.column = IntConst(0);
  const bool has_columns = layout.columns > 0;
  for (const auto& [name, is_thread, step] : layout.Digits()) {
    if (step.extent == 1) continue;
    // A thread loop along the columns is one over copies where there are no columns.
    const bool copies = step.row == 0 && !has_columns;
    if (copies && !is_thread) continue;
    const Var var = MakeVar(absl::StrCat(prefix, ".", name), step.extent);
    const bool is_pair = !is_thread && step.column == 1;
    fragment.loops.push_back({var, is_thread ? LoopKind::kThread : is_pair ? pairs : LoopKind::kUnroll});
    if (step.row != 0) fragment.row = fragment.row + VarRef(var) * step.row;
    if (step.column != 0 && has_columns) fragment.column = fragment.column + VarRef(var) * step.column;
    if (copies) fragment.copy = fragment.copy ? fragment.copy * step.extent + VarRef(var) : VarRef(var);
  }
  return fragment;
}

}  // namespace mycc
