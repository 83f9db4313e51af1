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
    const bool is_loop = IsThreadLoop(stmt);
    // Inside thread loops, code without a further thread loop is that of one thread.
    if (!is_loop && !threads_.empty() && ThreadsUnder(stmt) == 1) return Reduce(stmt);
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) depth_[alloc->buffer.get()] = threads_.size();
    if (is_loop) threads_.push_back(As<For>(stmt).var.get());
    Stmt result = MapChildren(stmt, [&](const Stmt& child) { return Visit(child); });
    if (is_loop) threads_.pop_back();
    return result;
  }

  absl::Status status() const { return status_; }

 private:
  // The enclosing thread loops that carry the reduction: those that do not index the element, are not around
  // its initialisation, and are inside the buffer's Alloc (outside of it, each iteration has its own buffer).
  VarSet Reducing(const ReducedTuple& reduced) {
    const BufferNode* buffer = reduced.buffers[0].get();
    VarSet reducing;
    for (size_t i = depth_[buffer]; i < threads_.size(); ++i) {
      const VarNode* thread = threads_[i];
      if (!initialised_[buffer].contains(thread) && !UsesVar(reduced.indices, thread))
        reducing.insert(thread);
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
    ForEachStmt(code, [&](const Stmt& stmt) {
      if (const Alloc* alloc = DynAs<Alloc>(stmt)) own.insert(alloc->buffer.get());
      std::optional<ReducedTuple> reduced = ReducedHere(stmt);
      if (!reduced) {
        const Store* store = DynAs<Store>(stmt);
        if (store != nullptr && !own.contains(store->buffer.get()))
          initialised_[store->buffer.get()].insert(threads_.begin(), threads_.end());
        return;
      }
      if (own.contains(reduced->buffers[0].get()) || Reducing(*reduced).empty()) return;
      if (across != nullptr) {
        status_.Update(Refusal(reduction->buffers[0]->name, " and ", reduced->buffers[0]->name,
                               " are reduced by the same thread loop"));
      }
      across = stmt.get();
      reduction = std::move(reduced);
    });
    const Stmt split = across == nullptr ? code : Split(code, *across, *reduction);
    return RewriteEach<Block>(split, [](const Block& block) { return UpdateAccumulators(ReducedBy(block)); });
  }

  Stmt Split(const Stmt& code, const StmtNode& across, const ReducedTuple& reduction) {
    std::vector<const For*> tile;
    std::vector<Expr> conditions;
    CollectAround(code, across, reduction, &tile, &conditions);
    ReducedTuple partial = reduction, all = reduction;
    partial.indices.clear();
    std::vector<int64_t> shape;
    for (const For* loop : tile) {
      shape.push_back(loop->var->extent);
      partial.indices.push_back(VarRef(loop->var));
    }
    for (size_t i = 0; i < reduction.buffers.size(); ++i) {
      const Buffer& out = reduction.buffers[i];
      partial.buffers[i] = MakeBuffer(absl::StrCat(out->name, ".p"), out->dtype, shape, Scope::kLocal);
      all.values[i] = Load(partial.buffers[i], partial.indices);
    }
    Stmt combine = CombineAccumulators(all);
    const Expr condition = JoinConjunction(conditions);
    if (!IsConstInt(condition, 1)) combine = std::make_shared<If>(condition, std::move(combine));
    const auto in_tile = [&](Stmt each, const char* suffix) {
      for (auto loop = tile.rbegin(); loop != tile.rend(); ++loop)
        each = std::make_shared<For>((*loop)->var, (*loop)->extent, LoopKind::kUnroll, std::move(each));
      return CopyWithSuffix(each, suffix);
    };
    return InAllocs(partial.buffers, MakeSeq({in_tile(StartAccumulators(partial), ".init"),
                                              ReplaceStmt(code, &across, UpdateAccumulators(partial)),
                                              in_tile(std::move(combine), ".all")}));
  }

  // The loops inside the thread loops that index the reduction's element, and the conditions that depend on
  // no other loops.
  void CollectAround(const Stmt& code, const StmtNode& across, const ReducedTuple& reduction,
                     std::vector<const For*>* tile, std::vector<Expr>* conditions) {
    VarSet reducing = Reducing(reduction);
    for (const Stmt& stmt : PathTo(code, [&](const Stmt& s) { return s.get() == &across; })) {
      if (const For* loop = DynAs<For>(stmt)) {
        if (UsesVar(reduction.indices, loop->var.get())) {
          tile->push_back(loop);
        } else {
          reducing.insert(loop->var.get());
        }
      }
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
