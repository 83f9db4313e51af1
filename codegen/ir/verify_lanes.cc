#include "codegen/ir/verify_lanes.h"

#include <algorithm>

namespace mycc {
namespace {

// The store that is all of a vector loop of plain lanes; null for other statements.
const Store* StoreOfLanes(const Stmt& stmt) {
  const For* lanes = DynAs<For>(stmt);
  if (lanes == nullptr || lanes->loop_kind != LoopKind::kVector || lanes->marks.form != LaneForm::kPlain)
    return nullptr;
  return DynAs<Store>(lanes->body);
}

// An emitter computes the value with other values for these loads.
bool TurnsItsLoads(const Store& store) {
  return !store.turned.empty() && std::ranges::all_of(store.turned, [&](const Expr& load) {
    return AnyExpr(store.value, [&](const ExprNode& e) { return e.op == Op::kLoad && IsSameRead(e, *load); });
  });
}

}  // namespace

std::string LaneFormFault(const For& loop) {
  const LaneForm form = loop.marks.form;
  if (form == LaneForm::kPlain) return "";
  if (form == LaneForm::kOneByOne || form == LaneForm::kReduces) {
    if (loop.loop_kind != LoopKind::kVector) return "is no vector loop";
    return form == LaneForm::kReduces && DynAs<Store>(loop.body) == nullptr ? "reduces no single store" : "";
  }
  if (loop.loop_kind != LoopKind::kUnroll) return "is not unrolled";
  const For* groups = DynAs<For>(loop.body);
  if (form == LaneForm::kTurnsGroups) {
    const Store* store = groups == nullptr ? nullptr : StoreOfLanes(groups->body);
    return store != nullptr && store->value->op == Op::kLoad ? "" : "turns no groups that one store copies";
  }
  const Store* store = StoreOfLanes(loop.body);
  if (store == nullptr) return "is not around lanes of one store";
  return form == LaneForm::kTurns && !TurnsItsLoads(*store) ? "turns no loads of its store" : "";
}

}  // namespace mycc
