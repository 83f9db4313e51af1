// Makes products by warpgroups asynchronous (wgmma.mma_async), and places the waits for them. A product, or a
// loop that only multiplies (over the taps of a window), is a group of its own. Before a statement that needs
// it to be complete, the role waits until only the products after it are incomplete. A statement needs that
// if it accesses the product's sums, writes its operands, or tells other threads that they may: an arrival, a
// signal or a barrier.
//
// A loop that ends by releasing the operands of its products does so a turn later. Then the tensor cores
// begin a turn's product while that of the turn before still runs, as in CUTLASS and FlashAttention-3:
//
//   for k in n:                        for k in n unrolled by 2:
//     wait full[k]                       wait full[k]
//     acc += a[k] * b[k]        ->       acc += a[k] * b[k] (async); commit
//     arrive empty[k]                    wait products until 1 pending
//   y = acc                              if 0 < k: arrive empty[k - 1]
//                                      wait products until 0 pending
//                                      arrive empty[n - 1]
//                                      y = acc
//
// The other role must be a slot ahead for that: rings have at least two slots
// (schedule/primitives/pipeline.cc). Products that add up partial sums wait for each of them; they stay as
// they are.
//
// A fence makes what threads have stored visible to products. It stands before the first product that reads
// the tile, not before later ones.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// A loop of at most this number of turns is unrolled further: its kernel lasts a few microseconds, and the
// overhead of an iteration shows.
constexpr int64_t kShortLoop = 36;
constexpr int kUnrollShortBy = 4, kUnrollBy = 2;

// Whether the statement is a product that the pass is to make asynchronous.
bool CanRunAsync(const Stmt& stmt) {
  const Mma* mma = DynAs<Mma>(stmt);
  return mma != nullptr && !mma->is_async && mma->row() != nullptr && mma->row()->is_async;
}

// The product of a loop that does nothing else, or the statement itself; null for other statements.
const Mma* OnlyProductOf(const Stmt& stmt) {
  if (CanRunAsync(stmt)) return &As<Mma>(stmt);
  const For* loop = DynAs<For>(stmt);
  const auto turns = loop != nullptr ? ConstExtent(*loop) : std::nullopt;
  return turns && *turns > 0 ? OnlyProductOf(loop->body) : nullptr;
}

bool IsOperand(const BufferNode* buffer, const Mma& product) {
  return buffer == product.a.buffer.get() || buffer == product.b.buffer.get();
}

// Whether other threads may go on where the role comes to the statement, and then write operands of the
// product.
bool LetsOthersGoOn(const Stmt& stmt, const Mma& product) {
  if (const Arrive* arrive = DynAs<Arrive>(stmt); arrive != nullptr && !arrive->released.empty()) {
    return std::ranges::any_of(arrive->released,
                               [&](const Buffer& tile) { return IsOperand(tile.get(), product); });
  }
  return stmt->kind == StmtKind::kArrive || stmt->kind == StmtKind::kSignal ||
         stmt->kind == StmtKind::kBarrier;
}

// Whether the statement, or one inside it, needs the product to be complete.
bool Needs(const Stmt& root, const Mma& product) {
  return AnyStmt(root, [&](const Stmt& stmt) {
    return LetsOthersGoOn(stmt, product) || Accesses(stmt, product.acc.buffer) ||
           IsOperand(WrittenBy(stmt), product);
  });
}

// The same of an asynchronous product: those with the same sums run in order.
bool NextNeeds(const Mma& next, const Mma& product) {
  return IsOperand(product.acc.buffer.get(), next) || IsOperand(next.acc.buffer.get(), product);
}

// The statements at the end of a loop's body that release its operands, and the rest of the body.
struct LoopEnd {
  std::vector<Stmt> arrivals;
  Stmt rest;
};
LoopEnd EndOf(const Stmt& body) {
  LoopEnd end{{}, body};
  const Seq* seq = DynAs<Seq>(body);
  if (seq == nullptr) return end;
  auto last = seq->stmts.end();
  while (last != seq->stmts.begin() && (*(last - 1))->kind == StmtKind::kArrive) --last;
  end.arrivals.assign(last, seq->stmts.end());
  end.rest = MakeSeq({seq->stmts.begin(), last});
  return end;
}

class ProductOverlap {
 public:
  Stmt Run(const Stmt& root) {
    stored_ = stored_in_role_ = StoredUnder(root);
    return Drained(root);
  }

 private:
  using Buffers = std::vector<const BufferNode*>;

  static Buffers StoredUnder(const Stmt& root) {
    Buffers stored;
    VisitStmts(root, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kStore || stmt->kind == StmtKind::kCombine)
        ForEachWritten(stmt, [&](const BufferNode* buffer) { stored.push_back(buffer); });
      return stmt->kind != StmtKind::kCopy;
    });
    return stored;
  }

  // The statement by itself: no product is running before or after it.
  Stmt Drained(const Stmt& stmt) {
    std::vector<Stmt> parts;
    const std::vector<Stmt> outer = std::exchange(released_, {});
    Append(stmt, &parts);
    WaitForAll(&parts);
    released_ = outer;
    return MakeSeq(std::move(parts));
  }

  void WaitForAll(std::vector<Stmt>* parts, bool after_loop = false) {
    if (!running_.empty()) WaitUntilRun(0, parts, after_loop);
  }

  // Waits for the products that `need` it, and those before them.
  template <typename Need>
  void WaitFor(const Need& need, std::vector<Stmt>* parts) {
    const auto last = std::find_if(running_.rbegin(), running_.rend(), need);
    if (last == running_.rend()) return;
    WaitUntilRun(last - running_.rbegin(), parts);
  }

  // Only the `pending` latest products still run.
  void WaitUntilRun(std::ptrdiff_t pending, std::vector<Stmt>* parts, bool after_loop = false) {
    const auto first_pending = running_.end() - pending;
    const auto runs_on = [&](const Buffer& sums) {
      return std::any_of(first_pending, running_.end(),
                         [&](const Mma* product) { return product->acc.buffer == sums; });
    };
    std::vector<Buffer> complete;
    for (auto product = running_.begin(); product != first_pending; ++product) {
      const Buffer& sums = (*product)->acc.buffer;
      if (!runs_on(sums) && std::ranges::find(complete, sums) == complete.end()) complete.push_back(sums);
    }
    const auto wait = std::make_shared<WaitProducts>(static_cast<int>(pending), std::move(complete));
    wait->after_loop = after_loop;
    parts->push_back(wait);
    running_.erase(running_.begin(), first_pending);
  }

  // Tiles that the statement stores need another fence.
  void ForgetFences(const Stmt& stmt) {
    for (const BufferNode* stored : StoredUnder(stmt)) std::erase(fenced_, stored);
  }

  void Append(const Stmt& stmt, std::vector<Stmt>* parts) {
    if (const Mma* mma = OnlyProductOf(stmt)) return Product(stmt, *mma, parts);
    if (!AnyStmt(stmt, CanRunAsync)) {
      WaitFor([&](const Mma* product) { return Needs(stmt, *product); }, parts);
      ForgetFences(stmt);
      parts->push_back(stmt);
      return;
    }
    if (const Seq* seq = DynAs<Seq>(stmt)) {
      for (const Stmt& part : seq->stmts) Append(part, parts);
      return;
    }
    if (stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet) {
      std::vector<Stmt> inner;
      Append(Children(stmt)[0], &inner);
      if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
        const BufferNode* buffer = alloc->buffer.get();
        WaitFor([&](const Mma* p) { return p->acc.buffer.get() == buffer || IsOperand(buffer, *p); }, &inner);
      }
      parts->push_back(WithChildren(stmt, {MakeSeq(std::move(inner))}));
      return;
    }
    WaitForAll(parts);
    // Its parts may run again, or not at all.
    ForgetFences(stmt);
    const Buffers fenced = fenced_;
    AppendParts(stmt, parts);
    fenced_ = fenced;
  }

  void AppendParts(const Stmt& stmt, std::vector<Stmt>* parts) {
    if (const For* loop = DynAs<For>(stmt); loop != nullptr && in_roles_) {
      const LoopEnd end = EndOf(loop->body);
      if (MayReleaseLater(*loop, end) && RunsOn(end)) return Overlapped(*loop, end, parts);
    }
    const bool are_roles = stmt->kind == StmtKind::kRoles, around = in_roles_;
    in_roles_ |= are_roles;
    const Buffers fenced = are_roles ? Buffers{} : fenced_, stored = stored_in_role_;
    parts->push_back(MapChildren(stmt, [&](const Stmt& child) {
      fenced_ = fenced;
      if (are_roles) stored_in_role_ = StoredUnder(child);
      return Drained(child);
    }));
    in_roles_ = around;
    stored_in_role_ = stored;
  }

  // Once true, false until an operand is stored again. Only a tile's own role knows when it stores it.
  bool NeedsFence(const Mma& mma) {
    bool needs = false;
    for (const TileView* view : {&mma.a, &mma.b}) {
      const BufferNode* tile = view->buffer.get();
      const auto stores = std::ranges::count(stored_, tile);
      if (tile->scope != Scope::kShared || stores == 0 || std::ranges::count(fenced_, tile) > 0) continue;
      needs = true;
      if (std::ranges::count(stored_in_role_, tile) == stores) fenced_.push_back(tile);
    }
    return needs;
  }

  // `stmt` is the product, or loops around it.
  void Product(const Stmt& stmt, const Mma& mma, std::vector<Stmt>* parts) {
    WaitFor([&](const Mma* product) { return NextNeeds(mma, *product); }, parts);
    if (NeedsFence(mma)) parts->push_back(std::make_shared<Fence>());
    const Stmt products = RewriteEach<Mma>(stmt, [](const Mma& one) -> Stmt {
      return Changed(one, [](Mma* changed) { changed->is_async = true; });
    });
    parts->insert(parts->end(), {products, std::make_shared<CommitProducts>()});
    running_.push_back(&mma);
    if (released_.empty()) return;
    // All products of the turn before are complete once only this one is pending.
    WaitUntilRun(1, parts);
    parts->insert(parts->end(), released_.begin(), released_.end());
    released_.clear();
  }

  // Whether every turn comes to a product by itself, outside of loops and branches.
  bool HasProductInEachTurn(const Stmt& body) const {
    if (!RunsChildrenOnce(body)) return OnlyProductOf(body) != nullptr;
    const std::vector<Stmt> parts = Children(body);
    return std::ranges::any_of(parts, [&](const Stmt& part) { return HasProductInEachTurn(part); });
  }

  bool MayReleaseLater(const For& loop, const LoopEnd& end) const {
    return loop.loop_kind == LoopKind::kSerial && !end.arrivals.empty() && !IsConstInt(loop.extent, 1) &&
           HasProductInEachTurn(end.rest);
  }

  // A turn up to its releases. It makes those of the turn before, `released`.
  std::vector<Stmt> TurnOf(const LoopEnd& end, std::vector<Stmt> released) {
    const std::vector<Stmt> outer = std::exchange(released_, std::move(released));
    const Buffers fenced = fenced_;
    std::vector<Stmt> turn;
    Append(end.rest, &turn);
    released_ = outer;
    fenced_ = fenced;
    return turn;
  }

  // Whether a product of the turn may still run where the turn's operands are released.
  bool RunsOn(const LoopEnd& end) {
    TurnOf(end, {});
    return !std::exchange(running_, {}).empty();
  }

  // The arrivals of turn `number`.
  static Stmt ReleaseOf(const For& loop, const LoopEnd& end, const std::string& name, const Expr& number) {
    const Var turn = MakeVar(absl::StrCat(loop.var->name, name), loop.var->extent);
    const Stmt arrivals = SubstituteVars(MakeSeq(end.arrivals), VarMap{{loop.var.get(), VarRef(turn)}});
    return std::make_shared<Let>(turn, number, arrivals);
  }

  void Overlapped(const For& loop, const LoopEnd& end, std::vector<Stmt>* parts) {
    const bool is_constant = IsConstInt(loop.extent);
    const Var turns = MakeVar(absl::StrCat(loop.var->name, ".turns"), loop.var->extent + 1);
    const Expr extent = is_constant ? loop.extent : VarRef(turns);
    const Expr is_later = MakeBinary(Op::kLt, IntConst(0), VarRef(loop.var));
    const Stmt release =
        std::make_shared<If>(is_later, ReleaseOf(loop, end, ".before", VarRef(loop.var) - 1));
    // The first walk finds the products that run on into the next turn; the second begins with them.
    TurnOf(end, {release});
    std::vector<Stmt> body = TurnOf(end, {release});
    LoopMarks marks = loop.marks;
    int64_t number = 0;
    marks.unroll_by = IsConstInt(loop.extent, &number) && number <= kShortLoop ? kUnrollShortBy : kUnrollBy;
    std::vector<Stmt> result = {
        loop.With({.extent = extent, .body = MakeSeq(std::move(body))})->Marked(marks)};
    WaitForAll(&result, /*after_loop=*/true);
    const Stmt last = ReleaseOf(loop, end, ".last", Simplify(extent - 1));
    // The number of turns may be 0 if it is not constant.
    result.push_back(is_constant ? last
                                 : std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), extent), last));
    Stmt all = MakeSeq(std::move(result));
    parts->push_back(is_constant ? std::move(all)
                                 : std::make_shared<Let>(turns, loop.extent, std::move(all)));
  }

  bool in_roles_ = false;
  // The target of each store, but not of copies: of all roles, and of the one that is walked.
  Buffers stored_, stored_in_role_;
  Buffers fenced_;                   // not stored since the last fence
  std::vector<const Mma*> running_;  // products that may be incomplete, in their order
  std::vector<Stmt> released_;       // by the turn before, after the next product
};

}  // namespace

Stmt OverlapProducts(const Stmt& body) { return ProductOverlap().Run(body); }

}  // namespace mycc
