// Turns a loop whose variable is used only in quotients and remainders into the nest that it was fused from,
// so that each part can be partitioned.
//
//   for f in 12:                         for f.0 in 3:
//     t1[f // 4, f % 4] = ..       ->      for f.1 in 4:
//                                            t1[f.0, f.1] = ..
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The strides by which `expr` divides `var`: 4 for f // 4 and f % 4; 4 and 12 for f // 4 % 3. False when the
// variable has other uses.
bool CollectCuts(const Expr& expr, const VarNode* var, std::set<int64_t>* cuts) {
  const auto is_var = [&](const Expr& e) { return e->op == Op::kVar && e->var.get() == var; };
  if (is_var(expr)) return false;
  int64_t divisor = 0, inner = 0;
  if ((expr->op == Op::kFloorDiv || expr->op == Op::kMod) && IsConstInt(expr->args[1], &divisor) &&
      divisor > 0) {
    const Expr& base = expr->args[0];
    if (is_var(base)) {
      cuts->insert(divisor);
      return true;
    }
    if (expr->op == Op::kMod && base->op == Op::kFloorDiv && IsConstInt(base->args[1], &inner) && inner > 0 &&
        is_var(base->args[0])) {
      cuts->insert({inner, inner * divisor});
      return true;
    }
  }
  return std::ranges::all_of(expr->args, [&](const Expr& arg) { return CollectCuts(arg, var, cuts); });
}

bool IsChain(const std::set<int64_t>& cuts, int64_t extent) {
  const auto breaks = [](int64_t less, int64_t more) { return more % less != 0; };
  return std::ranges::adjacent_find(cuts, breaks) == cuts.end() && extent % *cuts.rbegin() == 0;
}

Stmt Unfuse(const For& loop, const std::set<int64_t>& cuts) {
  const std::vector<int64_t> strides(cuts.rbegin(), cuts.rend());
  std::vector<Var> vars;
  Expr value = IntConst(0);
  int64_t whole = loop.var->extent;
  for (const int64_t stride : strides) {
    vars.push_back(MakeVar(absl::StrCat(loop.var->name, ".", vars.size()), whole / stride));
    value = value + VarRef(vars.back()) * stride;
    whole = stride;
  }
  Stmt nest = MapAllExprs(SubstituteVars(loop.body, {{loop.var.get(), value}}), Simplify);
  for (size_t i = vars.size(); i-- > 0;) {
    LoopMarks marks = i + 1 == vars.size() ? loop.marks : LoopMarks{};
    marks.nontemporal = i == 0 && loop.marks.nontemporal;  // covers all stores of the loop
    nest = loop.With({.var = vars[i], .extent = IntConst(vars[i]->extent), .body = std::move(nest)})
               ->Marked(std::move(marks));
  }
  return nest;
}

}  // namespace

Stmt UnfuseLoops(const Stmt& body) {
  return RewriteEach<For>(body, [](const For& loop) -> Stmt {
    if (loop.loop_kind == LoopKind::kVector || !loop.marks.instruction.empty() ||
        loop.marks.persistent_blocks != 0 || loop.marks.multicast_cluster ||
        ConstExtent(loop) != loop.var->extent)
      return nullptr;
    std::set<int64_t> cuts;
    bool only_parts = true;
    VisitStmts(loop.body, [&](const Stmt& s) {
      ForEachExpr(
          s, [&](const Expr& expr) { only_parts = only_parts && CollectCuts(expr, loop.var.get(), &cuts); });
      return only_parts;
    });
    cuts.insert(1);
    cuts.erase(loop.var->extent);
    return only_parts && cuts.size() > 1 && IsChain(cuts, loop.var->extent) ? Unfuse(loop, cuts) : nullptr;
  });
}

}  // namespace mycc
