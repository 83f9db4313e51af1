// Implements reductions over thread loops: each thread reduces into its own registers, then the threads
// combine their results.
//
//   thread i in 4:                           thread i in 4:
//     thread t in 32:                          thread t in 32:
//       for r in 8:                     ->       alloc p
//         m[i] max= x[i, r*32 + t]               p = -inf
//                                                for r in 8: p max= x[i, r*32 + t]
//                                                combine m[i] max= p
//
// Loops inside the thread loops that choose elements of m become dimensions of p. A thread loop around the
// initialization too is not part of the reduction, even if no index of m uses it: after splits it has only a
// single iteration.
//
// A reduction of tuples arrives as a block without iteration variables, and leaves as stores.
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

class ThreadReductions {
 public:
  Stmt Visit(const Stmt& stmt) {
    if (IsThreadLoop(stmt)) return VisitNest(stmt);
    return MapChildren(stmt, [&](const Stmt& child) { return Visit(child); });
  }

  absl::Status status() const { return status_; }

 private:
  // Inside thread loops: code without a further thread loop is that of one thread.
  Stmt VisitNest(const Stmt& stmt) {
    const bool is_loop = IsThreadLoop(stmt);
    if (!is_loop && ThreadsUnder(stmt) == 1) return Reduce(stmt);
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) depth_[alloc->buffer.get()] = threads_.size();
    if (is_loop) threads_.push_back(As<For>(stmt).var.get());
    Stmt result = MapChildren(stmt, [&](const Stmt& child) { return VisitNest(child); });
    if (is_loop) threads_.pop_back();
    return result;
  }

  // The enclosing thread loops that carry the reduction: those that do not index the element, are not around
  // its initialisation, and are inside the buffer's Alloc (outside of it, each iteration has its own buffer).
  std::vector<const VarNode*> Reducing(const ReducedTuple& reduced) const {
    const BufferNode* buffer = reduced.buffers[0].get();
    const auto found = depth_.find(buffer);
    const size_t depth = found == depth_.end() ? 0 : found->second;
    const auto initialised = initialised_.find(buffer);
    std::vector<const VarNode*> reducing;
    for (size_t i = depth; i < threads_.size(); ++i) {
      const bool around = initialised != initialised_.end() && initialised->second.count(threads_[i]) != 0;
      if (!around && !UsesVar(reduced.indices, threads_[i])) reducing.push_back(threads_[i]);
    }
    return reducing;
  }

  // The reduction that a store or a block of tuples is; nullopt for other statements.
  static std::optional<ReducedTuple> ReducedHere(const Stmt& stmt) {
    if (const Block* block = DynAs<Block>(stmt)) return ReducedBy(*block);
    const Store* store = DynAs<Store>(stmt);
    const ReduceOp op = store == nullptr ? ReduceOp::kNone : ReductionOf(*store);
    if (op == ReduceOp::kNone) return std::nullopt;
    return ReducedTuple{op, {store->buffer}, store->indices, {store->value->args[1]}};
  }

  // One thread's code, in which at most one statement reduces across threads.
  Stmt Reduce(const Stmt& code) {
    const StmtNode* across = nullptr;
    std::optional<ReducedTuple> reduction;
    BufferSet own;
    VisitStmts(code, [&](const Stmt& stmt) {
      if (const Alloc* alloc = DynAs<Alloc>(stmt)) own.insert(alloc->buffer.get());
      const Store* store = DynAs<Store>(stmt);
      std::optional<ReducedTuple> reduced = ReducedHere(stmt);
      if (!reduced && (store == nullptr || own.count(store->buffer.get()) != 0)) return true;
      if (!reduced) {
        initialised_[store->buffer.get()].insert(threads_.begin(), threads_.end());
        return true;
      }
      if (own.contains(reduced->buffers[0].get()) || Reducing(*reduced).empty()) return true;
      if (across != nullptr) {
        status_.Update(Refusal(reduction->buffers[0]->name, " and ", reduced->buffers[0]->name,
                               " are reduced by the same thread loop"));
      }
      across = stmt.get();
      reduction = std::move(reduced);
      return true;
    });
    const Stmt split = across == nullptr ? code : Split(code, *across, *reduction);
    return RewriteStmts(split, [](const Stmt& stmt) -> Stmt {
      return stmt->kind == StmtKind::kBlock ? UpdateAccumulators(ReducedBy(As<Block>(stmt))) : nullptr;
    });
  }

  // A loop around the reduction that indexes the element, and its copy around the Combine.
  struct TileLoop {
    const For* loop;
    Var copy;
  };

  Stmt Split(const Stmt& code, const StmtNode& across, const ReducedTuple& reduction) {
    std::vector<TileLoop> tile;
    std::vector<Expr> conditions;
    CollectAround(code, across, reduction, &tile, &conditions);
    VarMap copies;
    std::vector<int64_t> shape;
    std::vector<Expr> own, copied;
    for (const TileLoop& dim : tile) {
      shape.push_back(dim.loop->var->extent);
      own.push_back(VarRef(dim.loop->var));
      copied.push_back(VarRef(dim.copy));
      copies[dim.loop->var.get()] = copied.back();
    }
    ReducedTuple partial = reduction, all = reduction;
    partial.indices = own;
    for (size_t i = 0; i < reduction.buffers.size(); ++i) {
      const Buffer& out = reduction.buffers[i];
      partial.buffers[i] = MakeBuffer(absl::StrCat(out->name, ".p"), out->dtype, shape, Scope::kLocal);
      all.values[i] = Load(partial.buffers[i], copied);
    }
    all.indices = Substitute(all.indices, copies);
    const Stmt work = ReplaceStmt(code, &across, UpdateAccumulators(partial));
    Stmt combine = CombineAccumulators(all);
    const Expr condition = Substitute(JoinConjunction(conditions), copies);
    if (!IsConstInt(condition, 1)) combine = std::make_shared<If>(condition, std::move(combine));
    const Stmt init = AroundTile(tile, StartAccumulators(partial), /*copies=*/false);
    return InAllocs(partial.buffers, MakeSeq({CopyWithSuffix(init, ".init"), work,
                                              AroundTile(tile, std::move(combine), /*copies=*/true)}));
  }

  static Stmt AroundTile(const std::vector<TileLoop>& tile, Stmt body, bool copies) {
    for (auto dim = tile.rbegin(); dim != tile.rend(); ++dim) {
      body = std::make_shared<For>(copies ? dim->copy : dim->loop->var, dim->loop->extent, LoopKind::kUnroll,
                                   std::move(body));
    }
    return body;
  }

  // The loops inside the thread loops that index the reduction's element, and the conditions that depend on
  // no other loops.
  void CollectAround(const Stmt& code, const StmtNode& across, const ReducedTuple& reduction,
                     std::vector<TileLoop>* tile, std::vector<Expr>* conditions) {
    const std::vector<Stmt> path = PathTo(code, [&](const Stmt& stmt) { return stmt.get() == &across; });
    const std::vector<const VarNode*> threads = Reducing(reduction);
    VarSet reducing(threads.begin(), threads.end());
    for (const Stmt& stmt : path) {
      const For* loop = DynAs<For>(stmt);
      if (loop == nullptr) continue;
      if (!UsesVar(reduction.indices, loop->var.get())) {
        reducing.insert(loop->var.get());
      } else {
        tile->push_back({loop, MakeVar(absl::StrCat(loop->var->name, ".all"), loop->var->extent)});
      }
    }
    for (const Stmt& stmt : path) {
      const If* branch = DynAs<If>(stmt);
      if (branch == nullptr) continue;
      if (branch->otherwise) {
        status_.Update(
            Refusal("the reduction of ", reduction.buffers[0]->name, " is in one of two branches"));
      }
      for (const Expr& part : SplitConjunction(branch->condition)) {
        if (!UsesAnyOf(part, reducing)) conditions->push_back(part);
      }
    }
  }

  absl::Status status_;
  std::vector<const VarNode*> threads_;                        // enclosing thread loops
  std::unordered_map<const BufferNode*, size_t> depth_;        // thread loops around the Alloc
  std::unordered_map<const BufferNode*, VarSet> initialised_;  // around it
};

}  // namespace

absl::StatusOr<Stmt> SplitThreadReductions(const Stmt& body) {
  ThreadReductions reductions;
  Stmt split = reductions.Visit(body);
  if (!reductions.status().ok()) return reductions.status();
  return split;
}

}  // namespace mycc
