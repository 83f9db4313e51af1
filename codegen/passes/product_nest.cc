#include "codegen/passes/product_nest.h"

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

bool TakeOperands(const Store* store, ProductNest* nest) {
  if (store == nullptr || ReductionOf(*store) != ReduceOp::kSum) return false;
  const Expr& product = store->value->args[1];
  if (product->op != Op::kMul) return false;
  nest->acc = store->value->args[0].get();
  nest->x = LoadOfFactor(product->args[0]);
  nest->y = LoadOfFactor(product->args[1]);
  return nest->x != nullptr && nest->y != nullptr;
}

}  // namespace

absl::StatusOr<ProductNest> ProductNestOf(const For& outermost, bool guarded) {
  std::vector<const For*> loops;
  for (const For* loop = &outermost; loop != nullptr; loop = DynAs<For>(loop->body)) {
    if (!ConstExtent(*loop)) return Refusal("loop ", loop->var->name, " has no constant extent");
    loops.push_back(loop);
  }
  Stmt inner = loops.back()->body;
  if (const If* guard = guarded ? DynAs<If>(inner) : nullptr) inner = guard->then;
  ProductNest nest;
  if (!TakeOperands(DynAs<Store>(inner), &nest)) return Refusal("it is not a nest around a sum of products");
  const auto flat = [](const ExprNode& load) { return Simplify(FlatIndex(*load.buffer, load.args)); };
  const Expr acc = flat(*nest.acc), x = flat(*nest.x), y = flat(*nest.y);
  for (const For* loop : loops) {
    const std::optional<int64_t> step = StrideOf(acc, loop->var.get());
    if (!step) return Refusal("loop ", loop->var->name, " does not step evenly");
    nest.loops.push_back(
        {loop, *ConstExtent(*loop), *step, StrideOf(x, loop->var.get()), StrideOf(y, loop->var.get())});
  }
  return nest;
}

TileView ViewAt(const ExprNode& load, const VarMap& at, int64_t row_stride, int64_t col_stride) {
  return {load.buffer, SimplifiedAt(load.args, at), row_stride, col_stride};
}

}  // namespace mycc
