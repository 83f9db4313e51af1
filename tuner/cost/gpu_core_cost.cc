// Counts a block's instructions on a GPU's ordinary cores, for gpu_cost.cc.
#include <algorithm>
#include <unordered_set>

#include "codegen/expr/product.h"
#include "codegen/schedule/tree.h"
#include "tuner/cost/gpu_cost.h"

namespace mycc {
namespace {

// Instructions of one thread for a function that has none; they also take lanes of the special units.
constexpr double kDivide = 8, kRoot = 3, kTranscendental = 8;
constexpr double kSlowLanes = 16, kConvertLanes = 64, kIntegerLanes = 64;

bool IsOfOneThread(const BufferNode& buffer) {
  return buffer.scope == Scope::kLocal || buffer.scope == Scope::kAccumulator;
}

struct Work {
  double simple = 0, slow = 0, convert = 0, integer = 0;  // of each instance of a block
};

// Counts an expression's work. Work that does not move with the loops of one thread is done once before them.
class Counter {
 public:
  explicit Counter(const NestBlock& nest) : bindings_(BindingsOf(*nest.block)) {
    for (const NestLoop& loop : nest.loops) {
      const LoopKind kind = loop.loop->loop_kind;
      if (kind == LoopKind::kGrid || kind == LoopKind::kThread) continue;
      inner_.insert(loop.loop->var.get());
      repeats_ *= loop.extent;
    }
  }

  Work Count(const Block& block) {
    block.ForEachValue([&](const Expr& value) { Walk(value); });
    // The multiplication of a product is one instruction with the addition.
    const bool fused = SumsProducts(block);
    if (block.reduce != ReduceOp::kNone && !fused) work_.simple += 1;
    if (const TupleFunction* function = block.reduce.tuple())
      ForEachOperation(*function, [&](const ExprNode& operation) { Add(operation, false, 1); });
    return work_;
  }

 private:
  // Whether the value moves with the inner loops.
  bool Walk(const Expr& expr) {
    if (expr->op == Op::kConst) return false;
    if (expr->op == Op::kVar) return Moves(expr);
    bool moves = false, product = false;
    for (const Expr& arg : expr->args) {
      moves |= expr->op == Op::kLoad ? Moves(arg) : Walk(arg);
      product |= arg->op == Op::kMul;
    }
    const bool of_places = (expr->dtype == DType::kI64 || expr->dtype == DType::kBool) && !HasLoad(expr);
    if (expr->op != Op::kLoad && !of_places) Add(*expr, product, moves ? 1 : 1 / repeats_);
    return moves;
  }

  bool Moves(const Expr& expr) const { return UsesAnyOf(Substitute(expr, bindings_), inner_); }

  void Add(const ExprNode& e, bool product, double share) {
    switch (e.op) {
      case Op::kDiv: {
        // A division by a loop invariant is a multiplication.
        const bool once = !Moves(e.args[1]);
        work_.simple += share * (once ? 1 : kDivide);
        work_.slow += once ? 0 : share;
        return;
      }
      case Op::kSqrt:
      case Op::kRsqrt:
        work_.simple += share * kRoot;
        work_.slow += share;
        return;
      case Op::kCast:
        // Registers hold narrow floats as wide ones.
        if (e.args[0]->op != Op::kLoad || !IsOfOneThread(*e.args[0]->buffer)) work_.convert += share;
        return;
      case Op::kAdd:
      case Op::kSub: work_.simple += product && IsFloat(e.dtype) ? 0 : share; return;
      default: break;
    }
    if (IsTranscendental(e.op)) {
      work_.simple += share * kTranscendental;
      work_.slow += share;
    } else {
      (IsFloat(e.dtype) ? work_.simple : work_.integer) += share;
    }
  }

  const VarMap bindings_;
  VarSet inner_;
  double repeats_ = 1;
  Work work_;
};

}  // namespace

GpuArithmetic GpuArithmeticOf(const NestBlock& nest, const GpuMachine& machine) {
  if (!nest.instruction.empty()) return MmaArithmeticOf(nest, machine);
  const Work work = Counter(nest).Count(*nest.block);
  const double instances = nest.instances() * UsefulShare(nest);
  const bool wide = nest.block->value->dtype == DType::kF64;
  const double lanes = wide ? machine.row.f64_per_cycle : machine.row.fma_per_cycle;
  GpuArithmetic result;
  result.cycles = instances * (work.simple / lanes + work.slow / kSlowLanes + work.convert / kConvertLanes +
                               work.integer / kIntegerLanes);
  result.instructions = instances * (work.simple + work.slow + work.convert + work.integer) / kWarpThreads;
  return result;
}

}  // namespace mycc
