#include "codegen/driver/reference_kernel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Blocks with fewer instances than this run in one thread: waking threads costs more than it saves.
constexpr int64_t kMinParallelWork = int64_t{1} << 18;

bool IsWidened(const Stage& stage) {
  return (stage.reduce == ReduceOp::kSum || stage.reduce == ReduceOp::kProd) && IsFloat(stage.value->dtype) &&
         stage.value->dtype != DType::kF64;
}

// The expression with sums and products in f64. Other operations keep their type, and their result is
// converted.
Expr Widen(const Expr& expr) {
  switch (expr->op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul: return MakeBinary(expr->op, Widen(expr->args[0]), Widen(expr->args[1]));
    case Op::kNeg: return MakeUnary(Op::kNeg, Widen(expr->args[0]));
    case Op::kSelect: return MakeSelect(expr->args[0], Widen(expr->args[1]), Widen(expr->args[2]));
    case Op::kConst: return FloatConst(expr->value.f, DType::kF64);
    default: return MakeCast(DType::kF64, expr);
  }
}

// Whether a step of the loop moves by at most one element in every tensor that the block reads or writes.
bool IsContiguous(const Block& block, const VarNode* loop) {
  bool contiguous = true;
  const VarMap bindings = BindingsOf(block);
  const auto check = [&](const BufferNode& buffer, const std::vector<Expr>& indices) {
    const auto linear = SplitLinear(Substitute(FlatIndex(buffer, indices), bindings), loop);
    contiguous = contiguous && linear && (linear->coefficient == 0 || linear->coefficient == 1);
  };
  check(*block.out, block.indices);
  block.ForEachValue([&](const Expr& value) {
    Visit(value, [&](const ExprNode& e) {
      if (e.op == Op::kLoad) check(*e.buffer, e.args);
    });
  });
  return contiguous;
}

const VarNode* LastLoop(const Block& block, bool reduce) {
  const VarNode* last = nullptr;
  for (const IterVar& iter : block.iters) {
    if (iter.reduce == reduce && iter.binding->op == Op::kVar) last = iter.binding->var.get();
  }
  return last;
}

// The loop to vectorize: the last axis if it is contiguous in memory, else the last reduction axis if that
// is.
const VarNode* ChooseLanes(const Block& block) {
  const VarNode* axis = LastLoop(block, /*reduce=*/false);
  if (axis != nullptr && IsContiguous(block, axis)) return axis;
  const bool plain = block.reduce != ReduceOp::kNone && block.more.empty();
  const VarNode* reduction = plain ? LastLoop(block, /*reduce=*/true) : nullptr;
  return reduction != nullptr && IsContiguous(block, reduction) ? reduction : axis;
}

Stmt WithKinds(const Stmt& stmt, const VarNode* lanes, const VarNode* threads) {
  const For* loop = DynAs<For>(stmt);
  if (loop == nullptr) return stmt;
  LoopKind kind = LoopKind::kSerial;
  if (loop->var.get() == lanes) kind = LoopKind::kVector;
  if (loop->var.get() == threads) kind = LoopKind::kParallel;
  return loop->With({.loop_kind = kind, .body = WithKinds(loop->body, lanes, threads)});
}

Stmt ScheduleNest(const Stmt& nest) {
  double work = 1;
  Stmt inner = nest;
  while (const For* loop = DynAs<For>(inner)) {
    work *= static_cast<double>(loop->var->extent);
    inner = loop->body;
  }
  const Block* block = DynAs<Block>(inner);
  if (block == nullptr) return nest;
  const VarNode* lanes = ChooseLanes(*block);
  const VarNode* threads = nullptr;
  for (const IterVar& iter : block->iters) {
    const bool usable = !iter.reduce && iter.binding->op == Op::kVar && iter.binding->var.get() != lanes;
    if (usable && threads == nullptr && iter.var->extent > 1 && work >= kMinParallelWork)
      threads = iter.binding->var.get();
  }
  return WithKinds(nest, lanes, threads);
}

// The nests are one sequence inside the Allocs of intermediate tensors.
Stmt ScheduleAll(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kFor) return ScheduleNest(stmt);
  return MapChildren(stmt, ScheduleAll);
}

}  // namespace

Workload WidenReductions(const Workload& canonical) {
  Workload widened = canonical;
  widened.stages.clear();
  for (const Stage& stage : canonical.stages) {
    if (!IsWidened(stage)) {
      widened.stages.push_back(stage);
      continue;
    }
    Stage wide = stage;
    wide.output = MakeBuffer(absl::StrCat(stage.output->name, ".wide"), DType::kF64, stage.output->shape);
    wide.value = Widen(stage.value);
    Stage rounded;
    rounded.output = stage.output;
    std::vector<Expr> indices;
    for (const Var& axis : stage.axes) {
      rounded.axes.push_back(MakeVar(axis->name, axis->extent));
      indices.push_back(VarRef(rounded.axes.back()));
    }
    rounded.value = MakeCast(stage.output->dtype, Load(wide.output, indices));
    widened.stages.push_back(std::move(wide));
    widened.stages.push_back(std::move(rounded));
  }
  return widened;
}

Function ReferenceFunction(const Workload& canonical) {
  Function function = BuildNaive(WidenReductions(canonical));
  function.body = ScheduleAll(function.body);
  return function;
}

}  // namespace mycc
