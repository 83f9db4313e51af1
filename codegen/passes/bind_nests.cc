// Binds loop nests that the schedule left unbound to a GPU's blocks and threads: one thread computes an
// element, or, with few elements and long reductions, the threads of a block compute one together.
//
//   for i in 300:                       block b in 2:
//     for r in 64:                        thread t in 256:              f = b*256 + t
//       y[i] += x[i, r]            ->       alloc acc
//                                           acc = 0
//                                           for r in 64: acc += x[f, r]      (not executed where f >= 300)
//                                           y[f] = acc
//
// The innermost loop over terms has vectors where its terms are neighbours in memory. A thread then loads 16
// bytes at once; the terms of the next thread may be a row away.
//
// A nest that is not a single block under its own loops stays as it is, and runs in one thread.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kThreads = 256;
// With fewer elements than this, one thread for each element leaves a GPU idle.
constexpr int64_t kFewElements = 16384;

bool IsBound(const Stmt& root) {
  return Contains(root, StmtKind::kRoles) || AnyOf<For>(root, [](const For& loop) {
           return loop.loop_kind == LoopKind::kGrid || loop.loop_kind == LoopKind::kThread;
         });
}

// The loops of a perfect nest, separated into those of axes and those of reductions.
struct Nest {
  std::vector<const For*> spatial, reduce;
  Stmt leaf;
  int64_t elements = 1, terms = 1;
};

std::optional<Nest> NestOf(const Stmt& root) {
  Nest nest;
  for (const For* loop : LoopsOfNest(root, &nest.leaf)) {
    if (ConstExtent(*loop) != loop->var->extent || !loop->marks.instruction.empty()) return std::nullopt;
    const bool reduces = IsReduceLoop(*loop);
    (reduces ? nest.reduce : nest.spatial).push_back(loop);
    (reduces ? nest.terms : nest.elements) *= loop->var->extent;
  }
  if (const Block* block = DynAs<Block>(nest.leaf)) {
    if (block->reduce != ReduceOp::kNone && !block->init) return std::nullopt;
    return nest;
  }
  // A copy, one element in each iteration.
  const Store* store = DynAs<Store>(nest.leaf);
  const bool copies =
      store != nullptr && std::ranges::equal(store->indices, nest.spatial, {}, &ExprNode::var, &For::var);
  return copies ? std::optional(std::move(nest)) : std::nullopt;
}

// The block with its loops' variables replaced by values, executed only where `flat` < `limit`.
std::shared_ptr<Block> Moved(const Block& block, const VarMap& values, const Expr& flat, int64_t limit) {
  auto moved = std::make_shared<Block>(block);
  for (IterVar& iter : moved->iters) iter.binding = Substitute(iter.binding, values);
  moved->MapValues([&](const Expr& value) { return Substitute(value, values); });
  moved->indices = Substitute(moved->indices, values);
  const auto range = RangeOf(flat);
  if (range && range->max >= limit) AddGuard(moved.get(), limit, flat);
  return moved;
}

class Binder {
 public:
  explicit Binder(const Nest& nest) : nest_(nest) {}

  Stmt Run() {
    const Block* block = DynAs<Block>(nest_.leaf);
    const bool combines = block != nullptr && !nest_.reduce.empty();
    if (combines && nest_.elements > 0 && nest_.elements < kFewElements && nest_.terms >= kThreads)
      return Together(*block);
    const int64_t threads = std::min(kThreads, std::max<int64_t>(nest_.elements, 1));
    const Var grid = MakeVar(name_ + ".b", CeilDiv(nest_.elements, threads));
    const Var thread = MakeVar(name_ + ".t", threads);
    const Expr flat = VarRef(grid) * threads + VarRef(thread);
    const VarMap values = DigitsOf(nest_.spatial, flat);
    Stmt body;
    if (block == nullptr) {
      body = SubstituteVars(nest_.leaf, values);
      if (RangeOf(flat)->max >= nest_.elements) {
        body = std::make_shared<If>(MakeBinary(Op::kLt, flat, IntConst(nest_.elements)), body);
      }
    } else if (nest_.reduce.empty()) {
      body = Moved(*block, values, flat, nest_.elements);
    } else {
      body = Accumulated(*block, values, flat);
    }
    return MakeNest({{grid, LoopKind::kGrid}, {thread, LoopKind::kThread}}, std::move(body));
  }

 private:
  // The loops over a thread's terms.
  Stmt OverTerms(const Block& block, Stmt update) const {
    std::vector<LoopSpec> loops;
    for (const For* loop : nest_.reduce) loops.push_back({loop->var});
    const Var last = loops.back().var;
    if (const int64_t lanes = LanesOf(block, last); lanes > 1) {
      const Var vector = MakeVar(last->name + ".v", last->extent / lanes),
                lane = MakeVar(last->name + ".l", lanes);
      update = SubstituteVars(update, VarMap{{last.get(), VarRef(vector) * lanes + VarRef(lane)}});
      loops.back() = {vector};
      loops.push_back({lane, LoopKind::kVector});
    }
    return MakeNest(loops, std::move(update));
  }

  // The number of terms in 16 bytes of a tensor that is contiguous along the loop; 1 where none is.
  static int64_t LanesOf(const Block& block, const Var& last) {
    constexpr int64_t kAccessBytes = 16;
    const VarMap bindings = BindingsOf(block);
    int64_t lanes = 1;
    ForEachLoad(block.value, [&](const ExprNode& load) {
      if (StrideOf(Substitute(FlatIndex(*load.buffer, load.args), bindings), last.get()) == 1)
        lanes = std::max(lanes, std::gcd(kAccessBytes / DTypeBytes(load.dtype), last->extent));
    });
    return lanes;
  }

  // One thread block for each element.
  Stmt Together(const Block& block) {
    const Var grid = MakeVar(name_ + ".b", nest_.elements);
    const Var thread = MakeVar(name_ + ".t", kThreads);
    const Var step = MakeVar(name_ + ".r", CeilDiv(nest_.terms, kThreads));
    const Expr flat = VarRef(step) * kThreads + VarRef(thread);
    const VarMap element = DigitsOf(nest_.spatial, VarRef(grid)), terms = DigitsOf(nest_.reduce, flat);
    auto update = Moved(block, element, VarRef(grid), nest_.elements);
    update = Moved(*update, terms, flat, nest_.terms);
    return MakeNest({{grid, LoopKind::kGrid}, {thread, LoopKind::kThread}, {step}}, std::move(update));
  }

  // The reduction in registers: initialised before its loops, stored after them.
  Stmt Accumulated(const Block& block, const VarMap& values, const Expr& flat) const {
    const std::vector<Buffer> results = ReducedBy(block).buffers;
    std::vector<Buffer> local;
    local.reserve(results.size());
    for (const Buffer& result : results)
      local.push_back(MakeBuffer(result->name + ".acc", result->dtype, {}, Scope::kLocal));
    const auto reduction = Moved(block, values, flat, nest_.elements);
    reduction->out = local[0];
    for (size_t i = 0; i < reduction->more.size(); ++i) reduction->more[i].buffer = local[i + 1];
    reduction->indices.clear();
    Block write = block;
    write.reduce = ReduceOp::kNone;
    write.init = false;
    write.more.clear();
    // Without the reduction's variables and its guards of terms.
    std::erase_if(write.iters,
                  [&](const IterVar& iter) { return iter.reduce || FollowsReduction(block, iter.binding); });
    std::vector<Stmt> parts = {OverTerms(block, reduction)};
    for (size_t i = 0; i < results.size(); ++i) {
      write.name = (i == 0 ? block.name : results[i]->name) + ".w";
      write.out = results[i];
      write.value = Load(local[i], {});
      parts.push_back(Moved(write, values, flat, nest_.elements));
    }
    return InAllocs(local, MakeSeq(std::move(parts)));
  }

  const Nest& nest_;
  const std::string name_ =
      nest_.leaf->kind == StmtKind::kBlock ? As<Block>(nest_.leaf).name : As<Store>(nest_.leaf).buffer->name;
};

}  // namespace

Stmt BindNests(const Stmt& body) {
  if (body->kind == StmtKind::kSeq || body->kind == StmtKind::kAlloc) return MapChildren(body, BindNests);
  if (IsBound(body)) return body;
  const std::optional<Nest> nest = NestOf(body);
  return nest ? Binder(*nest).Run() : body;
}

}  // namespace mycc
