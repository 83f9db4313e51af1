// Makes products by warpgroups asynchronous (wgmma.mma_async), and places the waits for them. A product is a
// group of its own. Before a statement that needs it to be complete, the role waits until only the products
// after it are incomplete. A statement needs that if it accesses the product's sums, writes its operands, or
// tells other threads that they may: an arrival, a signal or a barrier.
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
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/instructions.h"

namespace mycc {
namespace {

// A loop of at most this number of turns is unrolled further: its kernel lasts a few microseconds, and the
// overhead of an iteration shows.
constexpr int64_t kShortLoop = 36;
constexpr int kUnrollShortBy = 4, kUnrollBy = 2;

// Whether the statement is a product that the pass is to make asynchronous.
bool CanRunAsync(const Stmt& stmt, const Target& target) {
  const Mma* mma = DynAs<Mma>(stmt);
  if (mma == nullptr || mma->is_async) return false;
  const absl::StatusOr<Instruction> row = FindInstruction(mma->instruction, target);
  return row.ok() && row->kind == InstructionClass::kWarpgroup && row->partial_depth == 0;
}

// Whether other threads may go on where the role comes to the statement, and then write operands of the
// product.
bool LetsOthersGoOn(const Stmt& stmt, const Mma& product) {
  if (const Arrive* arrive = DynAs<Arrive>(stmt); arrive != nullptr && !arrive->released.empty()) {
    return std::any_of(arrive->released.begin(), arrive->released.end(), [&](const Buffer& tile) {
      return tile == product.a.buffer || tile == product.b.buffer;
    });
  }
  return stmt->kind == StmtKind::kArrive || stmt->kind == StmtKind::kSignal ||
         stmt->kind == StmtKind::kBarrier;
}

bool Accesses(const Stmt& stmt, const BufferNode* buffer) {
  bool accesses = false;
  ForEachBuffer(stmt, [&](const Buffer& used) { accesses |= used.get() == buffer; });
  return accesses;
}

bool WritesOperand(const Stmt& stmt, const Mma& product) {
  const BufferNode* written = WrittenBy(stmt);
  return written != nullptr && (written == product.a.buffer.get() || written == product.b.buffer.get());
}

// Whether the statement, or one inside it, needs the product to be complete.
bool Needs(const Stmt& root, const Mma& product) {
  bool needs = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    needs |= LetsOthersGoOn(stmt, product) || Accesses(stmt, product.acc.buffer.get()) ||
             WritesOperand(stmt, product);
    return !needs;
  });
  return needs;
}

// The same of an asynchronous product: those with the same sums run in order.
bool NextNeeds(const Stmt& next, const Mma& product) {
  const Mma& mma = As<Mma>(next);
  const BufferNode* sums = product.acc.buffer.get();
  return mma.a.buffer.get() == sums || mma.b.buffer.get() == sums || WritesOperand(next, product);
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
  explicit ProductOverlap(const Target& target) : target_(target) {}

  Stmt Run(const Stmt& root) {
    VisitStmts(root, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kCopy) return false;
      if (stmt->kind == StmtKind::kStore || stmt->kind == StmtKind::kCombine)
        stored_.push_back(WrittenBy(stmt));
      return true;
    });
    return Drained(root);
  }

 private:
  // The statement by itself: no product is running before or after it.
  Stmt Drained(const Stmt& stmt) {
    std::vector<Stmt> parts;
    const std::vector<Stmt> outer = std::exchange(released_, {});
    Append(stmt, &parts);
    WaitForAll(&parts);
    released_ = outer;
    return MakeSeq(std::move(parts));
  }

  void WaitForAll(std::vector<Stmt>* parts) {
    if (!running_.empty()) parts->push_back(std::make_shared<WaitProducts>(0));
    running_.clear();
  }

  // Waits for the products that `need` it, and those before them.
  template <typename Need>
  void WaitFor(const Need& need, std::vector<Stmt>* parts) {
    const auto last = std::find_if(running_.rbegin(), running_.rend(), need);
    if (last == running_.rend()) return;
    parts->push_back(std::make_shared<WaitProducts>(static_cast<int>(last - running_.rbegin())));
    running_.erase(running_.begin(), last.base());
  }

  bool HasProduct(const Stmt& root) const {
    bool has = false;
    VisitStmts(root, [&](const Stmt& stmt) {
      has |= CanRunAsync(stmt, target_);
      return !has;
    });
    return has;
  }

  void Append(const Stmt& stmt, std::vector<Stmt>* parts) {
    if (CanRunAsync(stmt, target_)) return Product(stmt, parts);
    if (!HasProduct(stmt)) {
      WaitFor([&](const Mma* product) { return Needs(stmt, *product); }, parts);
      parts->push_back(stmt);
      return;
    }
    if (const Seq* seq = DynAs<Seq>(stmt)) {
      for (const Stmt& part : seq->stmts) Append(part, parts);
      return;
    }
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      std::vector<Stmt> inner;
      Append(alloc->body, &inner);
      WaitFor(
          [&](const Mma* product) {
            return product->acc.buffer == alloc->buffer || product->a.buffer == alloc->buffer ||
                   product->b.buffer == alloc->buffer;
          },
          &inner);
      parts->push_back(std::make_shared<Alloc>(alloc->buffer, MakeSeq(std::move(inner))));
      return;
    }
    if (const Let* let = DynAs<Let>(stmt)) {
      std::vector<Stmt> inner;
      Append(let->body, &inner);
      parts->push_back(std::make_shared<Let>(let->var, let->value, MakeSeq(std::move(inner))));
      return;
    }
    WaitForAll(parts);
    if (const For* loop = DynAs<For>(stmt); loop != nullptr && in_roles_) {
      const LoopEnd end = EndOf(loop->body);
      if (MayReleaseLater(*loop, end) && RunsOn(end)) return Overlapped(*loop, end, parts);
    }
    const bool around = std::exchange(in_roles_, in_roles_ || stmt->kind == StmtKind::kRoles);
    parts->push_back(MapChildren(stmt, [&](const Stmt& child) { return Drained(child); }));
    in_roles_ = around;
  }

  void Product(const Stmt& stmt, std::vector<Stmt>* parts) {
    WaitFor([&](const Mma* product) { return NextNeeds(stmt, *product); }, parts);
    const Mma& mma = As<Mma>(stmt);
    const auto is_stored = [&](const TileView& view) {
      return view.buffer->scope == Scope::kShared &&
             std::count(stored_.begin(), stored_.end(), view.buffer.get()) > 0;
    };
    if (is_stored(mma.a) || is_stored(mma.b)) parts->push_back(std::make_shared<Fence>());
    auto product = std::make_shared<Mma>(mma);
    product->is_async = true;
    parts->insert(parts->end(), {product, std::make_shared<CommitProducts>()});
    running_.push_back(&mma);
    if (released_.empty()) return;
    // All products of the turn before are complete once only this one is pending.
    parts->push_back(std::make_shared<WaitProducts>(1));
    running_.erase(running_.begin(), running_.end() - 1);
    parts->insert(parts->end(), released_.begin(), released_.end());
    released_.clear();
  }

  // Whether every turn comes to a product by itself, outside of loops and branches.
  bool HasProductInEachTurn(const Stmt& body) const {
    const bool is_straight =
        body->kind == StmtKind::kSeq || body->kind == StmtKind::kAlloc || body->kind == StmtKind::kLet;
    if (!is_straight) return CanRunAsync(body, target_);
    const std::vector<Stmt> parts = Children(body);
    return std::any_of(parts.begin(), parts.end(),
                       [&](const Stmt& part) { return HasProductInEachTurn(part); });
  }

  bool MayReleaseLater(const For& loop, const LoopEnd& end) const {
    return loop.loop_kind == LoopKind::kSerial && !end.arrivals.empty() && !IsConstInt(loop.extent, 1) &&
           HasProductInEachTurn(end.rest);
  }

  // Whether a product of the turn may still run where the turn's operands are released.
  bool RunsOn(const LoopEnd& end) {
    const std::vector<Stmt> outer = std::exchange(released_, {});
    std::vector<Stmt> body;
    Append(end.rest, &body);
    released_ = outer;
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
    std::vector<Stmt> body;
    const std::vector<Stmt> outer = std::exchange(released_, {});
    for (int walk = 0; walk < 2; ++walk) {
      body.clear();
      released_ = {release};
      Append(end.rest, &body);
    }
    released_ = outer;
    LoopMarks marks = loop.marks;
    int64_t number = 0;
    marks.unroll_by = IsConstInt(loop.extent, &number) && number <= kShortLoop ? kUnrollShortBy : kUnrollBy;
    std::vector<Stmt> result = {std::make_shared<For>(loop.var, extent, LoopKind::kSerial,
                                                      MakeSeq(std::move(body)), std::move(marks))};
    WaitForAll(&result);
    const Stmt last = ReleaseOf(loop, end, ".last", Simplify(extent - 1));
    // The number of turns may be 0 if it is not constant.
    result.push_back(is_constant ? last
                                 : std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), extent), last));
    Stmt all = MakeSeq(std::move(result));
    parts->push_back(is_constant ? std::move(all)
                                 : std::make_shared<Let>(turns, loop.extent, std::move(all)));
  }

  const Target& target_;
  bool in_roles_ = false;
  std::vector<const BufferNode*> stored_;  // by statements other than copies
  std::vector<const Mma*> running_;        // products that may be incomplete, in their order
  std::vector<Stmt> released_;             // by the turn before, after the next product
};

}  // namespace

Stmt OverlapProducts(const Stmt& body, const Target& target) { return ProductOverlap(target).Run(body); }

}  // namespace mycc
