// Gives a vector loop that reduces into one element a partial result in each lane, combined after the loops
// around it.
//
//   for k.0: vector k.1 in 16:              alloc s.lanes[16]
//     s[i] = s[i] + x[i, k.0*16 + k.1]  ->  vector v in 16: s.lanes[v] = 0
//                                           for k.0: vector k.1 in 16: s.lanes[k.1] = s.lanes[k.1] + x[..]
//                                           vector v in 16: s[i] = s[i] + s.lanes[v]
//
// Otherwise the lanes would be added up in every iteration of k.0. Sums may be reassociated; other reductions
// do not depend on the order.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Partial results stay in registers: at most this many vectors.
constexpr int64_t kMaxVectors = 8;

struct LaneReduction {
  const For* vector;
  const Store* store;
  ReduceOp op;
};

int64_t CountUses(const Stmt& root, const Buffer& buffer) {
  int64_t uses = 0;
  ForEachStmt(root, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) { uses += load.buffer == buffer; });
    if (const Store* store = DynAs<Store>(stmt)) uses += store->buffer == buffer;
    // A buffer of an Alloc does not outlive the loop; the other two work on whole tiles.
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) uses += alloc->buffer == buffer ? 2 : 0;
    if (stmt->kind == StmtKind::kMma) uses += 2;
  });
  return uses;
}

// The reductions by vector loops under `around` into an element that is the same in all its iterations and
// that nothing else in it accesses.
std::vector<LaneReduction> LaneReductionsIn(const For& around, const Target& target) {
  VarSet bound = LoopVarsUnder(around.body);
  bound.insert(around.var.get());
  std::vector<LaneReduction> found;
  VisitStmts(around.body, [&](const Stmt& stmt) {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->loop_kind != LoopKind::kVector) return true;
    Stmt inner = loop->body;
    while (const If* branch = DynAs<If>(inner)) {
      if (branch->otherwise) return false;
      inner = branch->then;
    }
    const Store* store = DynAs<Store>(inner);
    const auto width = ConstExtent(*loop);
    if (store == nullptr || !width) return false;
    const ReduceOp op = ReductionOf(*store);
    const bool still = !UsesAnyOf(store->indices, bound) && std::ranges::none_of(store->indices, HasLoad);
    const int64_t lanes = VectorBytes(target) / DTypeBytes(store->buffer->dtype);
    if (op != ReduceOp::kNone && still && *width <= kMaxVectors * lanes &&
        CountUses(around.body, store->buffer) == 2)
      found.push_back({loop, store, op});
    return false;
  });
  return found;
}

Stmt InLanes(const For& around, const std::vector<LaneReduction>& reductions) {
  std::vector<Stmt> parts, after;
  std::vector<Buffer> lanes;
  Stmt body = around.body;
  for (const LaneReduction& r : reductions) {
    const int64_t width = *ConstExtent(*r.vector);
    const std::string name = absl::StrCat(r.vector->var->name, ".lanes");
    const Buffer partial = MakeBuffer(name, r.store->buffer->dtype, {width}, Scope::kAccumulator);
    lanes.insert(lanes.begin(), partial);
    const auto over_lanes = [&](const char* suffix, const auto& statement) {
      const Var lane = MakeVar(absl::StrCat(name, suffix), width);
      return std::make_shared<For>(lane, IntConst(width), LoopKind::kVector, statement(VarRef(lane)));
    };
    parts.push_back(over_lanes(".i", [&](const Expr& lane) {
      return std::make_shared<Store>(partial, std::vector<Expr>{lane}, ReduceIdentity(r.op, partial->dtype));
    }));
    after.push_back(over_lanes(".c", [&](const Expr& lane) {
      return std::make_shared<Store>(r.store->buffer, r.store->indices,
                                     ReduceCombine(r.op, r.store->value->args[0], Load(partial, {lane})));
    }));
    const std::vector<Expr> lane = {VarRef(r.vector->var)};
    const Expr sum = ReduceCombine(r.op, Load(partial, lane), r.store->value->args[1]);
    body = ReplaceStmt(body, r.store, std::make_shared<Store>(partial, lane, sum));
  }
  parts.push_back(around.With({.body = body}));
  parts.insert(parts.end(), after.begin(), after.end());
  return InAllocs(lanes, MakeSeq(std::move(parts)));
}

}  // namespace

// Top-down, so that the outermost possible loop gets the partial results.
Stmt SplitReductions(const Stmt& stmt, const Target& target) {
  const For* loop = DynAs<For>(stmt);
  if (loop != nullptr && (loop->loop_kind == LoopKind::kSerial || loop->loop_kind == LoopKind::kUnroll)) {
    const std::vector<LaneReduction> reductions = LaneReductionsIn(*loop, target);
    if (!reductions.empty()) return SplitReductions(InLanes(*loop, reductions), target);
  }
  return MapChildren(stmt, [&](const Stmt& child) { return SplitReductions(child, target); });
}

}  // namespace mycc
