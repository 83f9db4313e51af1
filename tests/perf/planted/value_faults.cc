// Faults of what is computed: a sum that begins with something else, a term too few, operands the other way
// round, tiles that are not where they should be.
#include "codegen/passes/stmt_facts.h"
#include "tests/perf/planted/edit.h"

namespace mycc::planted {
namespace {

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

// A store to an output loses a term or a factor that is read from somewhere, or its maximum with zero.
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
