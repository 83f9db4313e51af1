// Faults of what is read, computed and stored: a wrong element, a wrong guard, no zeros beyond an edge, a sum
// that begins with something else, a term too few.
#include <algorithm>
#include <optional>

#include "codegen/expr/affine.h"
#include "codegen/passes/copy_stmt.h"
#include "tests/perf/planted/edit.h"

namespace mycc::planted {
namespace {

bool IsParam(const Kernel& kernel, const Buffer& buffer, bool output) {
  const auto& params = kernel.code.kernel.params;
  return std::any_of(params.begin(), params.end(), [&](const Param& param) {
    return param.buffer == buffer && (param.kind == ParamKind::kOutput) == output;
  });
}

bool HasVariable(const Expr& expr) {
  bool has = false;
  Visit(expr, [&has](const ExprNode& node) { has |= node.op == Op::kVar; });
  return has;
}

// The store with an expression in its value or its indices replaced.
Stmt StoreWith(const Store& store, const ExprNode* at, const Expr& by) {
  const auto replaced = [&](const Expr& expr) {
    return Rewrite(expr, [&](const Expr& e) -> Expr { return e.get() == at ? by : nullptr; });
  };
  std::vector<Expr> indices;
  for (const Expr& index : store.indices) indices.push_back(replaced(index));
  return std::make_shared<Store>(store.buffer, std::move(indices), replaced(store.value));
}

std::vector<const ExprNode*> NodesOf(const Expr& expr, const std::function<bool(const ExprNode&)>& wanted) {
  std::vector<const ExprNode*> nodes;
  Visit(expr, [&](const ExprNode& node) {
    if (wanted(node) && std::find(nodes.begin(), nodes.end(), &node) == nodes.end()) nodes.push_back(&node);
  });
  return nodes;
}

std::vector<Place> Stores(const Kernel& kernel) {
  return PlacesOf(kernel, [](const Place& place) { return place.stmt->kind == StmtKind::kStore; });
}

// Of a maximum one of many terms may be another, and nothing changes.
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
    const auto fills = std::count_if(stores.begin(), stores.end(), [&](const Place& other) {
      return As<Store>(other.stmt).buffer == buffer;
    });
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

// Sums.

bool IsReduced(const Kernel& kernel, const Buffer& buffer) {
  return !PlacesOf(kernel, [&](const Place& place) {
            const Store* store = DynAs<Store>(place.stmt);
            const Mma* mma = DynAs<Mma>(place.stmt);
            return (store != nullptr && store->buffer == buffer && ReductionOf(*store) != ReduceOp::kNone) ||
                   (mma != nullptr && mma->acc.buffer == buffer);
          }).empty();
}

std::vector<Place> Beginnings(const Kernel& kernel) {
  return PlacesOf(kernel, [&](const Place& place) {
    const Store* store = DynAs<Store>(place.stmt);
    return store != nullptr && store->value->op == Op::kConst && IsReduced(kernel, store->buffer) &&
           IsReached(kernel, place.stmt);
  });
}
std::vector<Fault> BeginningsLeftOut(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : Beginnings(kernel)) faults.push_back(FaultAt(kernel, place.stmt, nullptr));
  return faults;
}
std::vector<Fault> SumsFromOne(const Kernel& kernel) {
  std::vector<Fault> faults;
  for (const Place& place : Beginnings(kernel)) {
    const Store& store = As<Store>(place.stmt);
    const DType dtype = store.value->dtype;
    const Expr zero = IsFloat(dtype) ? FloatConst(0, dtype) : IntConst(0, dtype);
    if (!StructurallyEqual(store.value, zero)) continue;  // of a maximum
    const Expr one = IsFloat(dtype) ? FloatConst(1, dtype) : IntConst(1, dtype);
    faults.push_back(FaultAt(kernel, place.stmt, std::make_shared<Store>(store.buffer, store.indices, one)));
  }
  return faults;
}

// Values.

bool IsZero(const Expr& expr) {
  return expr->op == Op::kConst && (IsFloat(expr->dtype) ? expr->value.f == 0 : expr->value.i == 0);
}

// A part of stored values that is `wanted` becomes something else, where its value is used.
std::vector<Fault> ValuesWith(const Kernel& kernel, const std::function<bool(const Store&)>& stored,
                              const std::function<bool(const ExprNode&)>& wanted,
                              const std::function<Expr(const ExprNode&)>& other) {
  std::vector<Fault> faults;
  for (const Place& place : Stores(kernel)) {
    const Store& store = As<Store>(place.stmt);
    if (!stored(store)) continue;
    for (const ExprNode* node : NodesOf(store.value, wanted)) {
      if (IsReached(kernel, place.stmt, TakenWhere(store.value, node)))
        faults.push_back(FaultAt(kernel, place.stmt, StoreWith(store, node, other(*node))));
    }
  }
  return faults;
}

bool ReadsSomething(const Expr& expr) {
  return !NodesOf(expr, [](const ExprNode& node) { return node.op == Op::kLoad; }).empty();
}
bool IsMaximumWithZero(const ExprNode& node) {
  return node.op == Op::kMax && IsFloat(node.dtype) && IsZero(node.args[1]);
}

// Of what is stored to an output: a term or a factor that is read from somewhere, or a maximum with zero.
std::vector<Fault> TermsLost(const Kernel& kernel) {
  return ValuesWith(
      kernel,
      [&kernel](const Store& store) {
        return IsParam(kernel, store.buffer, /*output=*/true) && ReductionOf(store) == ReduceOp::kNone;
      },
      [](const ExprNode& node) {
        const bool adds = (node.op == Op::kAdd || node.op == Op::kMul) && IsFloat(node.dtype);
        return (adds && ReadsSomething(node.args[1])) || IsMaximumWithZero(node);
      },
      [](const ExprNode& node) { return node.args[0]; });
}

// Differences and quotients the other way round.
std::vector<Fault> OperandsExchanged(const Kernel& kernel) {
  return ValuesWith(
      kernel, [](const Store&) { return true; },
      [](const ExprNode& node) {
        return (node.op == Op::kSub || node.op == Op::kDiv) && IsFloat(node.dtype) &&
               !StructurallyEqual(node.args[0], node.args[1]);
      },
      [](const ExprNode& node) { return MakeBinary(node.op, node.args[1], node.args[0]); });
}

std::vector<Fault> MaximaAreMinima(const Kernel& kernel) {
  return ValuesWith(
      kernel, [](const Store& store) { return ReductionOf(store) == ReduceOp::kNone; }, IsMaximumWithZero,
      [](const ExprNode& node) { return MakeBinary(Op::kMin, node.args[0], node.args[1]); });
}

// Tiles.

std::vector<Fault> TilesWith(const Kernel& kernel, const std::function<bool(Mma*)>& change) {
  std::vector<Fault> faults;
  for (const Place& place : PlacesOf(kernel, StmtKind::kMma)) {
    auto changed = std::make_shared<Mma>(As<Mma>(place.stmt));
    if (change(changed.get()) && IsReached(kernel, place.stmt))
      faults.push_back(FaultAt(kernel, place.stmt, changed));
  }
  return faults;
}
// Moves a view by one element along a dimension whose elements are `step` apart; false where that is neither
// along a row nor down one.
bool Move(TileView* view, int64_t step) {
  const size_t rank = view->indices.size();
  const bool along = step == 1, down = !along && rank > 1 && step == view->buffer->shape.back();
  if (!along && !down) return false;
  Expr& index = view->indices[along ? rank - 1 : rank - 2];
  index = index + 1;
  return true;
}

// The first of the depth, and the first row, are of the operands themselves, whatever stands beyond their
// ends.
std::vector<Fault> TilesWithoutTheirFirstDepth(const Kernel& kernel) {
  return TilesWith(kernel, [](Mma* mma) {
    return mma->group == 1 && --mma->k > 0 && Move(&mma->a, mma->a.col_stride) &&
           Move(&mma->b, mma->b.row_stride);
  });
}
std::vector<Fault> TilesWithoutTheirFirstRow(const Kernel& kernel) {
  return TilesWith(kernel, [](Mma* mma) {
    return mma->a.block_rows == 0 && mma->acc.block_rows == 0 && --mma->m > 0 &&
           Move(&mma->a, mma->a.row_stride) && Move(&mma->acc, mma->acc.row_stride);
  });
}
std::vector<Fault> TilesOfWrongStride(const Kernel& kernel) {
  return TilesWith(kernel, [](Mma* mma) {
    ++(mma->a.col_stride == 1 ? mma->a.row_stride : mma->a.col_stride);
    return mma->m > 1 && mma->k > 1;
  });
}
std::vector<Fault> TilesTurnedOver(const Kernel& kernel) {
  return TilesWith(kernel, [](Mma* mma) {
    std::swap(mma->b.row_stride, mma->b.col_stride);
    return mma->b.row_stride != mma->b.col_stride && mma->n > 1 && mma->k > 1;
  });
}

}  // namespace

const std::vector<FaultClass>& ValueFaults() {
  static const auto& classes = *new std::vector<FaultClass>{
      {"the next element is read", ReadsOfTheNextElement},
      {"indices are exchanged", ReadsWithIndicesExchanged},
      {"the next element is stored", StoresOfTheNextElement},
      {"a store is left out", StoresLeftOut},
      {"a guard is one too wide", GuardsOneTooWide},
      {"a guard is one too narrow", GuardsOneTooNarrow},
      {"a guard is left out", GuardsLeftOut},
      {"a sum's beginning is left out", BeginningsLeftOut},
      {"a sum begins with one", SumsFromOne},
      {"a term is lost", TermsLost},
      {"operands are exchanged", OperandsExchanged},
      {"a maximum is a minimum", MaximaAreMinima},
      {"a tile's first depth is left out", TilesWithoutTheirFirstDepth},
      {"a tile's first row is left out", TilesWithoutTheirFirstRow},
      {"a tile has a wrong stride", TilesOfWrongStride},
      {"a tile is turned over", TilesTurnedOver},
  };
  return classes;
}

}  // namespace mycc::planted
