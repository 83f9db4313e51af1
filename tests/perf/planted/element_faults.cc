// Faults of elements that are read and stored: another one, none, or one that a guard should have kept out.
#include <algorithm>
#include <optional>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/passes/stmt_facts.h"
#include "tests/perf/planted/edit.h"

namespace mycc::planted {
namespace {

// A maximum does not change when one of many terms is another one.
bool IsExtremum(const Store& store) {
  const ReduceOp op = ReductionOf(store);
  return op == ReduceOp::kMax || op == ReduceOp::kMin;
}

// Inputs are drawn at random: another element is another value, or none.
std::vector<Fault> ReadsOfTheNextElement(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : Stores(kernel)) {
    const Store& store = As<Store>(place.stmt);
    if (IsExtremum(store)) continue;
    for (const ExprNode* load : NodesOf(store.value, [&](const ExprNode& node) {
           return node.op == Op::kLoad && IsParam(kernel, node.buffer, /*output=*/false);
         })) {
      for (size_t d = 0; d < load->args.size(); ++d) {
        if (load->buffer->shape[d] < 2 || !HasVariable(load->args[d])) continue;
        std::vector<Expr> indices = load->args;
        indices[d] = indices[d] + 1;
        if (!IsReached(kernel, place.stmt, TakenWhere(store.value, load))) continue;
        faults.push_back(FaultAt(kernel, place.stmt, StoreWith(store, load, Load(load->buffer, indices))));
      }
    }
  }
  return faults;
}

std::vector<Fault> ReadsWithIndicesExchanged(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : Stores(kernel)) {
    const Store& store = As<Store>(place.stmt);
    if (IsExtremum(store)) continue;
    for (const ExprNode* load : NodesOf(store.value, [&](const ExprNode& node) {
           return node.op == Op::kLoad && IsParam(kernel, node.buffer, false) && node.args.size() > 1;
         })) {
      std::vector<Expr> indices = load->args;
      std::swap(indices[indices.size() - 1], indices[indices.size() - 2]);
      const Expr &one = load->args[indices.size() - 1], &other = load->args[indices.size() - 2];
      if (!HasVariable(one) || !HasVariable(other) || StructurallyEqual(one, other)) continue;
      // A plain transposition of the whole statement is none.
      if (!IsReached(kernel, place.stmt, TakenWhere(store.value, load))) continue;
      faults.push_back(FaultAt(kernel, place.stmt, StoreWith(store, load, Load(load->buffer, indices))));
    }
  }
  return faults;
}

std::vector<Fault> StoresOfTheNextElement(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : Stores(kernel)) {
    const Store& store = As<Store>(place.stmt);
    if (!IsParam(kernel, store.buffer, /*output=*/true) || !IsReached(kernel, place.stmt)) continue;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (store.buffer->shape[d] < 2 || !HasVariable(store.indices[d])) continue;
      std::vector<Expr> indices = store.indices;
      indices[d] = indices[d] + 1;
      faults.push_back(
          FaultAt(kernel, place.stmt, std::make_shared<Store>(store.buffer, indices, store.value)));
    }
  }
  return faults;
}

// Only one statement fills the buffer, and nobody keeps what is never read.
std::vector<Fault> StoresLeftOut(const Kernel& kernel) {
  const std::vector<Place> stores = Stores(kernel);
  std::vector<Fault> faults;
  for (const Place& place : stores) {
    const Buffer& buffer = As<Store>(place.stmt).buffer;
    const auto fills = std::ranges::count_if(
        stores, [&](const Place& other) { return As<Store>(other.stmt).buffer == buffer; });
    if (fills == 1 && ReductionOf(As<Store>(place.stmt)) == ReduceOp::kNone && IsReached(kernel, place.stmt))
      faults.push_back(FaultAt(kernel, place.stmt, nullptr));
  }
  return faults;
}

// Guards.

// One side of an interval that an index has to be in: `part` of a condition, and it one element wider or
// narrower.
struct Bound {
  Expr part, wider, narrower;
  Expr just_outside, just_inside;  // conditions
};

// `part` bounds an element's index at the very edge of its buffer, on either side: x < n with index x + c and
// n + c elements, or low <= x with index x - low.
std::optional<Bound> BoundOf(const Expr& part, const Buffer& buffer, const std::vector<Expr>& indices) {
  if (part->op != Op::kLt && part->op != Op::kLe) return std::nullopt;
  const Expr &a = part->args[0], &b = part->args[1];
  int64_t limit = 0;
  const bool upper = IsConstInt(b, &limit), lower = !upper && IsConstInt(a, &limit);
  if (!upper && !lower) return std::nullopt;
  const Expr& x = upper ? a : b;
  if (part->op == Op::kLe && upper) ++limit;  // x <= n is x < n + 1
  if (part->op == Op::kLt && lower) ++limit;  // n < x is n + 1 <= x
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t shift = 0;
    if (!HasVariable(x) || !IsConstInt(Simplify(indices[d] - x), &shift)) continue;
    if (upper && limit + shift == buffer->shape[d]) {
      const auto below = [&](int64_t n) { return MakeBinary(Op::kLt, x, IntConst(n)); };
      return Bound{part, below(limit + 1), below(limit - 1), MakeBinary(Op::kEq, x, IntConst(limit)),
                   MakeBinary(Op::kEq, x, IntConst(limit - 1))};
    }
    if (lower && limit + shift == 0) {
      const auto from = [&](int64_t n) { return MakeBinary(Op::kLe, IntConst(n), x); };
      return Bound{part, from(limit - 1), from(limit + 1), MakeBinary(Op::kEq, x, IntConst(limit - 1)),
                   MakeBinary(Op::kEq, x, IntConst(limit))};
    }
  }
  return std::nullopt;
}

// A condition with one of its parts replaced; without it, where there is nothing in its place.
Expr ConditionWith(const Expr& condition, const Expr& part, const Expr& by) {
  std::vector<Expr> parts, changed;
  SplitConjunction(condition, &parts);
  for (const Expr& one : parts) {
    if (one != part) changed.push_back(one);
    if (one == part && by != nullptr) changed.push_back(by);
  }
  return JoinConjunction(changed);
}

// A guarded element: an If around a store, or a select in one that reads an element or puts zero.
struct Guarded {
  Place place;
  Expr condition;
  Bound bound;
  std::function<Stmt(const Expr&)> with;  // another condition
};

std::vector<Guarded> GuardedElements(const Kernel& kernel) {
  std::vector<Guarded> guarded;
  const auto add = [&](const Place& place, const Expr& condition, const Buffer& buffer,
                       const std::vector<Expr>& indices, const std::function<Stmt(const Expr&)>& with) {
    std::vector<Expr> parts;
    SplitConjunction(condition, &parts);
    for (const Expr& part : parts) {
      if (const auto bound = BoundOf(part, buffer, indices))
        guarded.push_back({place, condition, *bound, with});
    }
  };
  for (const Place& place : PlacesOf(kernel, [](const Place&) { return true; })) {
    if (const If* branch = DynAs<If>(place.stmt)) {
      const Store* store = DynAs<Store>(branch->then);
      if (store == nullptr || branch->otherwise || !IsParam(kernel, store->buffer, /*output=*/true)) continue;
      const Stmt then = branch->then;
      add(place, branch->condition, store->buffer, store->indices,
          [then](const Expr& other) { return std::make_shared<If>(other, then); });
    }
    if (const Store* store = DynAs<Store>(place.stmt)) {
      for (const ExprNode* select : NodesOf(store->value, [](const ExprNode& node) {
             return node.op == Op::kSelect && node.args[1]->op == Op::kLoad && node.args[2]->op == Op::kConst;
           })) {
        const Expr load = select->args[1], zero = select->args[2];
        if (!IsParam(kernel, load->buffer, false)) continue;
        const Stmt stmt = place.stmt;
        add(place, select->args[0], load->buffer, load->args, [stmt, select, load, zero](const Expr& other) {
          return StoreWith(As<Store>(stmt), select, MakeSelect(other, load, zero));
        });
      }
    }
  }
  return guarded;
}

// The rest of the condition holds, and the bound is met exactly.
bool Meets(const Kernel& kernel, const Guarded& guarded, const Expr& edge) {
  return IsReached(kernel, guarded.place.stmt, ConditionWith(guarded.condition, guarded.bound.part, edge));
}

std::vector<Fault> GuardsOneTooWide(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Guarded& one : GuardedElements(kernel)) {
    const Bound& bound = one.bound;
    if (Meets(kernel, one, bound.just_outside))
      faults.push_back(
          FaultAt(kernel, one.place.stmt, one.with(ConditionWith(one.condition, bound.part, bound.wider))));
  }
  return faults;
}
std::vector<Fault> GuardsOneTooNarrow(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Guarded& one : GuardedElements(kernel)) {
    const Bound& bound = one.bound;
    if (Meets(kernel, one, bound.just_inside))
      faults.push_back(FaultAt(kernel, one.place.stmt,
                               one.with(ConditionWith(one.condition, bound.part, bound.narrower))));
  }
  return faults;
}
std::vector<Fault> GuardsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Guarded& one : GuardedElements(kernel)) {
    if (Meets(kernel, one, one.bound.just_outside))
      faults.push_back(
          FaultAt(kernel, one.place.stmt, one.with(ConditionWith(one.condition, one.bound.part, nullptr))));
  }
  return faults;
}

}  // namespace

const std::vector<FaultClass>& ElementFaults() {
  static const auto& classes = *new std::vector<FaultClass>{
      {"the next element is read", ReadsOfTheNextElement},
      {"indices are exchanged", ReadsWithIndicesExchanged},
      {"the next element is stored", StoresOfTheNextElement},
      {"a store is left out", StoresLeftOut},
      {"a guard is one too wide", GuardsOneTooWide},
      {"a guard is one too narrow", GuardsOneTooNarrow},
      {"a guard is left out", GuardsLeftOut},
  };
  return classes;
}

}  // namespace mycc::planted
