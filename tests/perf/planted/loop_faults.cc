// Faults of loops: they run too far or not far enough, are exchanged, lose a step of a sum, run side by side
// where one waits for the other, or a barrier is missing.
#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"
#include "tests/perf/planted/edit.h"

namespace mycc::planted {
namespace {

bool Mentions(const std::vector<Expr>& exprs, const VarNode* var) {
  return std::ranges::any_of(exprs, [var](const Expr& expr) { return UsesVar(expr, var); });
}

// The stores and tiles under a statement that name an element by the variable.
bool ChoosesElements(const Stmt& root, const VarNode* var) {
  bool chooses = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    const Mma* mma = DynAs<Mma>(stmt);
    chooses |= store != nullptr && Mentions(store->indices, var);
    chooses |= mma != nullptr && Mentions(mma->acc.indices, var);
    return !chooses;
  });
  return chooses;
}

// The sum under a loop whose steps are the loop's: it adds to the same element in each.
bool AddsUpUnder(const Stmt& root, const VarNode* var) {
  bool adds = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    if (const Store* store = DynAs<Store>(stmt)) {
      const ReduceOp op = ReductionOf(*store);
      adds |= (op == ReduceOp::kSum || op == ReduceOp::kProd) && UsesVar(store->value, var) &&
              !Mentions(store->indices, var);
    }
    if (const Mma* mma = DynAs<Mma>(stmt))
      adds |= (Mentions(mma->a.indices, var) || Mentions(mma->b.indices, var)) &&
              !Mentions(mma->acc.indices, var);
    return !adds;
  });
  return adds;
}

std::vector<Place> Loops(const Kernel& kernel,
                         const std::function<bool(const Place&, const For&, int64_t)>& wanted) {
  return PlacesOf(kernel, [&](const Place& place) {
    const For* loop = DynAs<For>(place.stmt);
    int64_t extent = 0;
    if (loop == nullptr || !IsConstInt(loop->extent, &extent) || extent < 2 || loop->marks.multicast_cluster)
      return false;
    return !place.Within(StmtKind::kCopy) && wanted(place, *loop, extent);
  });
}

// Whether the loop's last iteration adds something that is read to a sum.
bool LastStepAdds(const Kernel& kernel, const For& loop) {
  const Expr is_last = MakeBinary(Op::kEq, VarRef(loop.var), IntConst(loop.var->extent - 1));
  bool adds = false;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    if (adds || (store == nullptr && stmt->kind != StmtKind::kMma) || !AddsUpUnder(stmt, loop.var.get()))
      return !adds;
    const Expr reads = store != nullptr ? MakeBinary(Op::kAnd, is_last, ReadsWhere(store->value)) : is_last;
    adds = IsReached(kernel, stmt, reads);
    return !adds;
  });
  return adds;
}

// Sums lose their last step. Maxima would often not change.
std::vector<Fault> StepsOfSumsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  const auto is_sum = [](const Place&, const For& loop, int64_t extent) {
    return extent == loop.var->extent && AddsUpUnder(loop.body, loop.var.get()) &&
           !ChoosesElements(loop.body, loop.var.get());
  };
  for (const Place& place : Loops(kernel, is_sum)) {
    const For& loop = As<For>(place.stmt);
    if (LastStepAdds(kernel, loop))
      faults.push_back(FaultAt(kernel, place.stmt, LoopLike(loop, loop.var->extent - 1)));
  }
  return faults;
}

// Whether the loop chooses elements of an output: then each iteration must be there.
bool StoresOutputs(const Kernel& kernel, const For& loop) {
  bool stores = false;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    stores |= store != nullptr && IsParam(kernel, store->buffer, /*output=*/true) &&
              Mentions(store->indices, loop.var.get());
    return !stores;
  });
  return stores;
}

std::vector<Place> LoopsOverOutputs(const Kernel& kernel) {
  return Loops(kernel, [&](const Place&, const For& loop, int64_t extent) {
    return extent == loop.var->extent && StoresOutputs(kernel, loop);
  });
}

// Whether the loop's last iteration stores an element of an output: conditions may keep it from that.
bool LastIterationStores(const Kernel& kernel, const For& loop) {
  bool stores = false;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    if (store == nullptr || stores || !IsParam(kernel, store->buffer, /*output=*/true) ||
        !Mentions(store->indices, loop.var.get()))
      return !stores;
    const Var var = loop.var;
    stores = IsReached(kernel, stmt, MakeBinary(Op::kEq, VarRef(var), IntConst(var->extent - 1)));
    return !stores;
  });
  return stores;
}

std::vector<Fault> LastIterationsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : LoopsOverOutputs(kernel)) {
    const For& loop = As<For>(place.stmt);
    if (LastIterationStores(kernel, loop))
      faults.push_back(FaultAt(kernel, place.stmt, LoopLike(loop, loop.var->extent - 1)));
  }
  return faults;
}

// Begins at the second iteration: the first is one that stores, as every index of an output counts from 0.
std::vector<Fault> FirstIterationsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : LoopsOverOutputs(kernel)) {
    const For& loop = As<For>(place.stmt);
    if (loop.loop_kind == LoopKind::kThread || loop.loop_kind == LoopKind::kGrid ||
        !IsReached(kernel, loop.body))
      continue;
    const Var rest = MakeVar(loop.var->name, loop.var->extent - 1);
    const Stmt body = SubstituteVars(loop.body, VarMap{{loop.var.get(), VarRef(rest) + 1}});
    faults.push_back(FaultAt(kernel, place.stmt,
                             loop.With({.var = rest, .extent = IntConst(rest->extent), .body = body})));
  }
  return faults;
}

// Two loops, one right inside the other, have each other's extent: an index of an output runs too far, or not
// far enough.
std::vector<Fault> BoundsExchanged(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : LoopsOverOutputs(kernel)) {
    const For& outer = As<For>(place.stmt);
    const For* inner = DynAs<For>(outer.body);
    if (inner == nullptr || !IsConstInt(inner->extent, inner->var->extent) ||
        inner->var->extent == outer.var->extent || !StoresOutputs(kernel, *inner) ||
        !IsReached(kernel, inner->body) || inner->loop_kind != outer.loop_kind)
      continue;
    const Var a = MakeVar(outer.var->name, inner->var->extent),
              b = MakeVar(inner->var->name, outer.var->extent);
    const Stmt body =
        SubstituteVars(inner->body, VarMap{{outer.var.get(), VarRef(a)}, {inner->var.get(), VarRef(b)}});
    const Stmt exchanged =
        outer.With({.var = a,
                    .extent = IntConst(a->extent),
                    .body = inner->With({.var = b, .extent = IntConst(b->extent), .body = body})});
    faults.push_back(FaultAt(kernel, place.stmt, exchanged));
  }
  return faults;
}

// Steps of one sum run side by side.
std::vector<Fault> SumsInParallel(const Kernel& kernel) {
  std::vector<Fault> faults;
  if (kernel.on_gpu()) return faults;
  const auto is_sequential_sum = [](const Place& place, const For& loop, int64_t) {
    return loop.loop_kind != LoopKind::kParallel && !place.Within(StmtKind::kRoles) &&
           AddsUpUnder(loop.body, loop.var.get()) && !ChoosesElements(loop.body, loop.var.get());
  };
  for (const Place& place : Loops(kernel, is_sequential_sum)) {
    const For& loop = As<For>(place.stmt);
    if (IsReached(kernel, loop.body))
      faults.push_back(FaultAt(kernel, place.stmt, loop.With({.loop_kind = LoopKind::kParallel})));
  }
  return faults;
}

// A buffer that was each iteration's own becomes one for all that run side by side.
std::vector<Fault> OwnBuffersShared(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kFor)) {
    const For& loop = As<For>(place.stmt);
    const Alloc* alloc = DynAs<Alloc>(loop.body);
    const bool beside = loop.loop_kind == LoopKind::kParallel || loop.loop_kind == LoopKind::kGrid;
    if (!beside || alloc == nullptr || loop.var->extent < 2 || Contains(loop.body, StmtKind::kRoles))
      continue;
    const Stmt inside = loop.With({.body = alloc->body});
    faults.push_back(FaultAt(kernel, place.stmt, std::make_shared<Alloc>(alloc->buffer, inside)));
    faults.back().place = alloc->buffer->name;
  }
  return faults;
}
std::vector<Fault> WorkspacesOfThreadsShared(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (size_t i = 0; i < kernel.code.workspace.size(); ++i) {
    if (!kernel.code.workspace[i].per_thread) continue;
    Fault fault{kernel.code.workspace[i].buffer->name, kernel.code};
    fault.code.workspace[i].per_thread = false;
    faults.push_back(std::move(fault));
  }
  return faults;
}

std::vector<Fault> BarriersLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  if (!kernel.barriers_matter) return faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kBarrier)) {
    Fault fault = FaultAt(kernel, place.stmt, nullptr);
    // The statement that the barrier is for comes after it.
    const Seq* seq = DynAs<Seq>(place.around.back());
    for (size_t i = 0; seq != nullptr && i + 1 < seq->stmts.size(); ++i) {
      if (seq->stmts[i] == place.stmt) fault.place = "before " + StmtName(seq->stmts[i + 1]);
    }
    if (IsReached(kernel, place.stmt)) faults.push_back(std::move(fault));
  }
  return faults;
}

// Each thread keeps what it has itself of a result that all of them have parts of.
std::vector<Fault> CombinesLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kCombine)) {
    const Combine& combine = As<Combine>(place.stmt);
    if (IsReached(kernel, place.stmt))
      faults.push_back(FaultAt(kernel, place.stmt,
                               std::make_shared<Store>(combine.buffer, combine.indices, combine.value)));
  }
  return faults;
}

}  // namespace

const std::vector<FaultClass>& LoopFaults() {
  static const auto& classes = *new std::vector<FaultClass>{
      {"the last step of a sum is left out", StepsOfSumsLeftOut},
      {"a loop's last iteration is left out", LastIterationsLeftOut},
      {"a loop's first iteration is left out", FirstIterationsLeftOut},
      {"two loops have each other's bounds", BoundsExchanged},
      {"steps of a sum run in parallel", SumsInParallel},
      {"a buffer of each iteration is one for all", OwnBuffersShared},
      {"a workspace of each thread is one for all", WorkspacesOfThreadsShared},
      {"a barrier is left out", BarriersLeftOut},
      {"threads do not combine", CombinesLeftOut},
  };
  return classes;
}

}  // namespace mycc::planted
