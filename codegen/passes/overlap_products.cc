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
#include <optional>
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

// The product of a loop that does nothing else, or the statement itself; null for other statements.
const Mma* OnlyProductOf(const Stmt& stmt) {
  if (CanRunAsync(stmt)) return &As<Mma>(stmt);
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && ConstExtent(*loop).value_or(0) > 0 ? OnlyProductOf(loop->body) : nullptr;
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

// The statements at the end of a loop's body that release its operands, and the rest of the body.
struct LoopEnd {
  std::vector<Stmt> arrivals;
  Stmt rest;
};
LoopEnd EndOf(const Stmt& body) {
  const std::vector<Stmt> stmts = StmtsOf(body);
  auto last = stmts.end();
  while (last != stmts.begin() && (*(last - 1))->kind == StmtKind::kArrive) --last;
  return {{last, stmts.end()}, MakeSeq({stmts.begin(), last})};
}

class ProductOverlap {
 public:
  Stmt Run(const Stmt& root) {
    stored_ = here_.stored_in_role = StoredUnder(root);
    return Drained(root);
  }

 private:
  using Buffers = std::vector<const BufferNode*>;

  // The state that differs between the parts of a statement.
  struct Surroundings {
    bool in_roles = false;
    Buffers stored_in_role;  // the target of each store of the role that is walked, but not of copies
    Buffers fenced;          // not stored since the last fence
    Stmt released;           // by the turn before, after the next product; null for nothing
  };

  static Buffers StoredUnder(const Stmt& root) {
    Buffers stored;
    VisitStmts(root, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kStore || stmt->kind == StmtKind::kCombine)
        ForEachWritten(stmt, [&](const BufferNode* buffer) { stored.push_back(buffer); });
      return stmt->kind != StmtKind::kCopy;
    });
    return stored;
  }

  // The statement, whose first product is followed by what the turn before has `released`.
  std::vector<Stmt> Walked(const Stmt& stmt, const Stmt& released) {
    const Surroundings outer = here_;
    here_.released = released;
    std::vector<Stmt> parts;
    Append(stmt, &parts);
    here_ = outer;
    return parts;
  }

  // The statement by itself: no product is running before or after it.
  Stmt Drained(const Stmt& stmt) {
    std::vector<Stmt> parts = Walked(stmt, nullptr);
    WaitForAll(&parts);
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
    for (const BufferNode* stored : StoredUnder(stmt)) std::erase(here_.fenced, stored);
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
    AppendParts(stmt, parts);
  }

  void AppendParts(const Stmt& stmt, std::vector<Stmt>* parts) {
    if (const For* loop = DynAs<For>(stmt); loop != nullptr && here_.in_roles) {
      const LoopEnd end = EndOf(loop->body);
      if (MayReleaseLater(*loop, end)) return Overlapped(*loop, end, parts);
    }
    const Surroundings outer = here_;
    parts->push_back(MapChildren(stmt, [&](const Stmt& child) {
      if (stmt->kind == StmtKind::kRoles) here_ = {.in_roles = true, .stored_in_role = StoredUnder(child)};
      return Drained(child);
    }));
    here_ = outer;
  }

  // Once true, false until an operand is stored again. Only a tile's own role knows when it stores it.
  bool NeedsFence(const Mma& mma) {
    bool needs = false;
    for (const TileView* view : {&mma.a, &mma.b}) {
      const BufferNode* tile = view->buffer.get();
      const auto stores = std::ranges::count(stored_, tile);
      if (tile->scope != Scope::kShared || stores == 0 || std::ranges::count(here_.fenced, tile) > 0)
        continue;
      needs = true;
      if (std::ranges::count(here_.stored_in_role, tile) == stores) here_.fenced.push_back(tile);
    }
    return needs;
  }

  // `stmt` is the product, or loops around it.
  void Product(const Stmt& stmt, const Mma& mma, std::vector<Stmt>* parts) {
    // Products with the same sums run in order.
    const auto is_needed = [&](const Mma* product) {
      return IsOperand(product->acc.buffer.get(), mma) || IsOperand(mma.acc.buffer.get(), *product);
    };
    WaitFor(is_needed, parts);
    if (NeedsFence(mma)) parts->push_back(std::make_shared<Fence>());
    const Stmt products = RewriteEach<Mma>(stmt, [](const Mma& one) -> Stmt {
      return Changed(one, [](Mma* changed) { changed->is_async = true; });
    });
    parts->insert(parts->end(), {products, std::make_shared<CommitProducts>()});
    running_.push_back(&mma);
    if (!here_.released) return;
    // All products of the turn before are complete once only this one is pending.
    WaitUntilRun(1, parts);
    parts->push_back(std::exchange(here_.released, nullptr));
  }

  // Whether every turn comes to a product by itself, outside of loops and branches.
  static bool HasProductInEachTurn(const Stmt& body) {
    if (!RunsChildrenOnce(body)) return OnlyProductOf(body) != nullptr;
    return std::ranges::any_of(Children(body), HasProductInEachTurn);
  }

  // Whether a product of every turn may still run where the turn's operands are released.
  bool MayReleaseLater(const For& loop, const LoopEnd& end) {
    if (loop.loop_kind != LoopKind::kSerial || end.arrivals.empty() || IsConstInt(loop.extent, 1) ||
        !HasProductInEachTurn(end.rest))
      return false;
    Walked(end.rest, nullptr);
    return !std::exchange(running_, {}).empty();
  }

  // The arrivals of turn `number`.
  static Stmt ReleaseOf(const For& loop, const LoopEnd& end, const std::string& name, const Expr& number) {
    const Var turn = MakeVar(absl::StrCat(loop.var->name, name), loop.var->extent);
    const Stmt arrivals = SubstituteVars(MakeSeq(end.arrivals), VarMap{{loop.var.get(), VarRef(turn)}});
    return std::make_shared<Let>(turn, number, arrivals);
  }

  void Overlapped(const For& loop, const LoopEnd& end, std::vector<Stmt>* parts) {
    const std::optional<int64_t> number = ConstExtent(loop);
    const Var turns = MakeVar(absl::StrCat(loop.var->name, ".turns"), loop.var->extent + 1);
    const Expr extent = number ? loop.extent : VarRef(turns);
    const Expr is_later = MakeBinary(Op::kLt, IntConst(0), VarRef(loop.var));
    const Stmt release =
        std::make_shared<If>(is_later, ReleaseOf(loop, end, ".before", VarRef(loop.var) - 1));
    // The first walk finds the products that run on into the next turn; the second begins with them.
    Walked(end.rest, release);
    const Stmt body = MakeSeq(Walked(end.rest, release));
    LoopMarks marks = loop.marks;
    marks.unroll_by = number && *number <= kShortLoop ? kUnrollShortBy : kUnrollBy;
    std::vector<Stmt> result = {loop.With({.extent = extent, .body = body})->Marked(marks)};
    WaitForAll(&result, /*after_loop=*/true);
    Stmt last = ReleaseOf(loop, end, ".last", Simplify(extent - 1));
    // The number of turns may be 0 if it is not constant.
    if (!number) last = std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), extent), last);
    result.push_back(last);
    const Stmt all = MakeSeq(std::move(result));
    parts->push_back(number ? all : std::make_shared<Let>(turns, loop.extent, all));
  }

  Buffers stored_;  // by a statement of a role, but not by a copy
  Surroundings here_;
  std::vector<const Mma*> running_;  // products that may be incomplete, in their order
};

}  // namespace

Stmt OverlapProducts(const Stmt& body) { return ProductOverlap().Run(body); }

}  // namespace mycc
