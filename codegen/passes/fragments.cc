#include "codegen/passes/fragments.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/instructions.h"

namespace mycc {
namespace {

constexpr int64_t kMaxColumnsOfWarpgroup = 256;

}  // namespace

std::string DescribeLayout(const FragmentLayout& layout) {
  return absl::StrCat(layout.rows, layout.columns > 0 ? absl::StrCat("x", layout.columns) : " rows",
                      " among ", layout.warps.rows, "x", layout.warps.columns,
                      layout.warpgroups ? " warpgroups" : " warps");
}

absl::StatusOr<FragmentLayout> FragmentLayoutOf(const Mma& mma, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(mma.instruction, target));
  FragmentLayout layout{mma.m, mma.n, mma.warps, row.kind == InstructionClass::kWarpgroup};
  const bool whole = mma.m % (layout.row_step() * mma.warps.rows) == 0 &&
                     mma.n % (8 * mma.warps.columns) == 0 && mma.k % row.k == 0;
  if (!whole || (layout.warpgroups && mma.n > kMaxColumnsOfWarpgroup)) {
    return absl::FailedPreconditionError(absl::StrCat(
        row.name, " on ", mma.warps.rows, "x", mma.warps.columns, " warps: a tile of ", mma.m, "x", mma.n,
        "x", mma.k, "; expected rows in ", layout.row_step() * mma.warps.rows, "s, columns in ",
        8 * mma.warps.columns, "s", layout.warpgroups ? absl::StrCat(" up to ", kMaxColumnsOfWarpgroup) : "",
        ", depth in ", row.k, "s"));
  }
  return layout;
}

Stmt FragmentLoops::Around(Stmt body) const {
  for (auto it = loops.rbegin(); it != loops.rend(); ++it)
    body = std::make_shared<For>(it->first, IntConst(it->first->extent), it->second, std::move(body));
  return body;
}

FragmentLoops MakeFragmentLoops(const FragmentLayout& layout, const std::string& prefix, LoopKind pairs) {
  FragmentLoops fragment;
  fragment.row = fragment.column = IntConst(0);
  const bool has_columns = layout.columns > 0;
  // A thread loop along the columns is one over copies where there are no columns.
  const auto add = [&](const char* name, int64_t extent, LoopKind kind, int64_t row_step,
                       int64_t column_step) {
    if (extent == 1) return;
    const bool copies = row_step == 0 && !has_columns;
    if (copies && kind != LoopKind::kThread) return;
    const Var var = MakeVar(absl::StrCat(prefix, ".", name), extent);
    fragment.loops.emplace_back(var, kind);
    if (row_step != 0) fragment.row = fragment.row + VarRef(var) * row_step;
    if (column_step != 0 && has_columns) fragment.column = fragment.column + VarRef(var) * column_step;
    if (copies) fragment.copy = fragment.copy ? fragment.copy * extent + VarRef(var) : VarRef(var);
  };
  const LoopKind thread = LoopKind::kThread, unroll = LoopKind::kUnroll;
  add("wr", layout.warps.rows, thread, layout.rows / layout.warps.rows, 0);
  add("wc", layout.warps.columns, thread, 0, layout.columns / layout.warps.columns);
  if (layout.warpgroups) add("w", 4, thread, 16, 0);
  add("lr", 8, thread, 1, 0);
  add("lc", 4, thread, 0, 2);
  add("t", layout.row_tiles(), unroll, layout.row_step(), 0);
  add("h", 2, unroll, 8, 0);
  add("n", layout.column_tiles(), unroll, 0, 8);
  add("e", 2, pairs, 0, 1);
  return fragment;
}

}  // namespace mycc
