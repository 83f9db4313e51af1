// Sums of rows that several threads share are combined after a loop of products, not in each of its turns. In
// the loop each thread has a sum of its own:
//
//   for j:                                          thread r: thread c: s.own[r,c] = select(c == 0, s[r], 0)
//     thread r: thread c: old[r] = s[r]             for j:
//     thread r: thread c: s[r] = old[r] * f[r]        thread r: thread c: old.own[r,c] = s.own[r,c]
//     thread r: thread c: combine s[r] += p    ->     thread r: thread c: s.own[r,c] = old.own[r,c] * f[r]
//                                                     thread r: thread c: s.own[r,c] = s.own[r,c] + p
//                                                   thread r: thread c: s[r] = 0
//                                                   thread r: thread c: combine s[r] += s.own[r,c]
//
// The loop may do nothing else with s and old: then s is the sum of the threads' own sums after each
// statement. The order of addition is another one, and the same in every run.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

// A store or a combination, and the statements around it inside the loop, outermost first.
struct SumUse {
  Stmt stmt;
  std::vector<Stmt> around;
  const Buffer& target;
  const std::vector<Expr>& indices;
  const Expr& value;

  // The innermost thread loop.
  const For* Lanes() const {
    const auto lanes = std::find_if(around.rbegin(), around.rend(), IsThreadLoop);
    return lanes == around.rend() ? nullptr : &As<For>(*lanes);
  }
};

void CollectUses(const Stmt& stmt, std::vector<Stmt> around, std::vector<SumUse>* uses) {
  if (const Store* store = DynAs<Store>(stmt))
    uses->push_back({stmt, around, store->buffer, store->indices, store->value});
  if (const Combine* combine = DynAs<Combine>(stmt))
    uses->push_back({stmt, around, combine->buffer, combine->indices, combine->value});
  around.push_back(stmt);
  for (const Stmt& child : Children(stmt)) CollectUses(child, around, uses);
}

// The buffer x where a value is x[..] or x[..] * factor at the store's own indices; null for other values.
Buffer ScaledBuffer(const Store& store) {
  const Expr& value = store.value;
  const Expr load = value->op == Op::kMul ? value->args[0] : value;
  const bool is_same_place = load->op == Op::kLoad && StructurallyEqual(load->args, store.indices);
  return is_same_place ? load->buffer : nullptr;
}

// One sum that waits: the buffers that get an element for each of the threads that share a row (lanes), which
// are the sum's and those that it is copied to, and the loop with these elements.
class LaneSums {
 public:
  LaneSums(const For& loop, const std::vector<SumUse>& uses, const SumUse& sum)
      : loop_(loop), uses_(uses), sum_(sum) {
    VisitEach<Alloc>(loop.body, [&](const Alloc& alloc) { inside_.insert(alloc.buffer.get()); });
  }

  // Whether the loop does nothing else with the sum, and with what it is copied to.
  bool Find() {
    if (!MayBePerLane()) return false;
    own_[sum_.target.get()] = OwnOf(sum_.target);
    return FindCopies() && std::ranges::all_of(uses_, [&](const SumUse& use) { return IsLinear(use); }) &&
           !IsReadElsewhere();
  }

  // The loop and the statements around it, in the scope of the sum.
  Stmt Deferred() const {
    const Stmt loop = loop_.With({.body = BodyWithOwn()});
    const Combine& sum = As<Combine>(sum_.stmt);
    const Expr lane = VarRef(sum_.Lanes()->var), zero = FloatConst(0, sum.buffer->dtype);
    const Buffer& own = own_.at(sum.buffer.get());
    const Expr first =
        MakeSelect(MakeBinary(Op::kEq, lane, IntConst(0)), Load(sum.buffer, sum.indices), zero);
    const Stmt before = Around(std::make_shared<Store>(own, WithLane(sum.indices, lane), first)),
               clear = Around(std::make_shared<Store>(sum.buffer, sum.indices, zero)),
               combine = Around(std::make_shared<Combine>(sum.reduce, sum.buffer, sum.indices,
                                                          Load(own, WithLane(sum.indices, lane))));
    return std::make_shared<Alloc>(
        own, MakeSeq({CopyWithSuffix(before, ".own"), loop, CopyWithSuffix(clear, ".clear"),
                      CopyWithSuffix(combine, ".last")}));
  }

 private:
  // Whether the sum is one of floats in registers, for the whole loop, and added to in the same lanes in all
  // turns.
  bool MayBePerLane() const {
    const Buffer& s = sum_.target;
    if (s->scope != Scope::kLocal || !IsFloat(s->dtype) || inside_.count(s.get()) != 0 || !HasOwnLanes(sum_))
      return false;
    return std::ranges::none_of(sum_.around, [&](const Stmt& outer) {
      const If* guard = DynAs<If>(outer);
      return guard != nullptr && UsesVar(guard->condition, loop_.var.get());
    });
  }

  // The buffers that the sum is copied to, or from, by way of others. False when one of them outlives a turn.
  bool FindCopies() {
    for (bool more = true; more;) {
      more = false;
      for (const SumUse& use : uses_) {
        const Store* store = DynAs<Store>(use.stmt);
        const Buffer from = store == nullptr ? nullptr : ScaledBuffer(*store);
        if (from == nullptr || (!IsSumOrCopy(from) && !IsSumOrCopy(store->buffer))) continue;
        for (const Buffer& buffer : {from, store->buffer}) {
          if (IsSumOrCopy(buffer)) continue;
          if (inside_.count(buffer.get()) == 0) return false;
          own_[buffer.get()] = OwnOf(buffer);
          more = true;
        }
      }
    }
    return true;
  }

  bool IsSumOrCopy(const Buffer& buffer) const { return own_.count(buffer.get()) != 0; }

  static std::vector<Expr> WithLane(std::vector<Expr> indices, const Expr& lane) {
    indices.push_back(lane);
    return indices;
  }

  Buffer OwnOf(const Buffer& buffer) const {
    std::vector<int64_t> shape = buffer->shape;
    shape.push_back(sum_.Lanes()->var->extent);
    return MakeBuffer(absl::StrCat(buffer->name, ".own"), buffer->dtype, std::move(shape), buffer->scope);
  }

  // Whether the threads of the innermost thread loop share each element, and no others do. They are as many
  // as the sum's.
  bool HasOwnLanes(const SumUse& use) const {
    const For *lanes = use.Lanes(), *others = sum_.Lanes();
    if (lanes == nullptr || others == nullptr || lanes->var->extent != others->var->extent) return false;
    return std::ranges::none_of(use.around, [&](const Stmt& outer) {
      const For* loop = IsThreadLoop(outer) ? &As<For>(outer) : nullptr;
      return loop != nullptr && UsesVar(use.indices, loop->var.get()) == (loop == lanes);
    });
  }

  // Whether the statement leaves the sums alone, or what it does to each thread's own adds up to what it did
  // to the sum.
  bool IsLinear(const SumUse& use) const {
    const Expr& value = use.value;
    if (!IsSumOrCopy(use.target)) return !Reads(value);
    if (!HasOwnLanes(use)) return false;
    if (const Combine* combine = DynAs<Combine>(use.stmt))
      return combine->reduce == ReduceOp::kSum && !Reads(value);
    const Buffer from = ScaledBuffer(As<Store>(use.stmt));
    if (from == nullptr || !IsSumOrCopy(from)) return false;
    return value->op != Op::kMul ||
           (!Reads(value->args[1]) && !UsesVar(value->args[1], use.Lanes()->var.get()));
  }

  bool Reads(const Expr& expr) const {
    return AnyExpr(expr, [&](const ExprNode& e) { return e.op == Op::kLoad && IsSumOrCopy(e.buffer); });
  }

  // Whether conditions, extents or indices read one of the buffers.
  bool IsReadElsewhere() const {
    return AnyStmt(loop_.body, [&](const Stmt& stmt) {
      bool reads = false;
      if (stmt->kind != StmtKind::kStore && stmt->kind != StmtKind::kCombine)
        ForEachExpr(stmt, [&](const Expr& expr) { reads |= Reads(expr); });
      return reads;
    });
  }

  // The loop's body with each thread's own elements.
  Stmt BodyWithOwn() const {
    return RewriteStmts(loop_.body, [&](const Stmt& stmt) -> Stmt {
      if (const Alloc* alloc = DynAs<Alloc>(stmt); alloc != nullptr && IsSumOrCopy(alloc->buffer))
        return std::make_shared<Alloc>(own_.at(alloc->buffer.get()), alloc->body);
      const auto use = std::ranges::find(uses_, stmt, &SumUse::stmt);
      if (use == uses_.end() || !IsSumOrCopy(use->target)) return nullptr;
      const Expr lane = VarRef(use->Lanes()->var);
      const Buffer& own = own_.at(use->target.get());
      const std::vector<Expr> at = WithLane(use->indices, lane);
      if (stmt->kind == StmtKind::kCombine)
        return std::make_shared<Store>(own, at, Load(own, at) + use->value);
      const Expr value = Rewrite(use->value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad || !IsSumOrCopy(e->buffer)) return nullptr;
        return Load(own_.at(e->buffer.get()), WithLane(e->args, lane));
      });
      return std::make_shared<Store>(own, at, value);
    });
  }

  // In the loops of the sum, and under its conditions where no statement is without one.
  Stmt Around(Stmt stmt) const {
    const bool is_guarded = std::ranges::all_of(uses_, [&](const SumUse& use) {
      return !IsSumOrCopy(use.target) || std::ranges::count(use.around, StmtKind::kIf, &StmtNode::kind) > 0;
    });
    for (auto outer = sum_.around.rbegin(); outer != sum_.around.rend(); ++outer) {
      if (const For* loop = DynAs<For>(*outer)) {
        stmt = loop->With({.body = std::move(stmt)});
      } else if (const If* guard = DynAs<If>(*outer); guard != nullptr && is_guarded) {
        stmt = std::make_shared<If>(guard->condition, std::move(stmt));
      }
    }
    return stmt;
  }

  const For& loop_;
  const std::vector<SumUse>& uses_;
  const SumUse& sum_;
  BufferSet inside_;  // allocated in the loop
  std::unordered_map<const BufferNode*, Buffer> own_;
};

// Null when the loop combines no sum that can wait.
Stmt DeferIn(const For& loop) {
  std::vector<SumUse> uses;
  CollectUses(loop.body, {}, &uses);
  for (const SumUse& use : uses) {
    const Combine* combine = DynAs<Combine>(use.stmt);
    if (combine == nullptr || combine->reduce != ReduceOp::kSum) continue;
    LaneSums sums(loop, uses, use);
    if (sums.Find()) return DeferSums(sums.Deferred());
  }
  return nullptr;
}

}  // namespace

Stmt DeferSums(const Stmt& body) {
  return RewriteEach<For>(body, [](const For& loop) {
    return loop.loop_kind == LoopKind::kSerial && Contains(loop.body, StmtKind::kMma) ? DeferIn(loop)
                                                                                      : nullptr;
  });
}

}  // namespace mycc
