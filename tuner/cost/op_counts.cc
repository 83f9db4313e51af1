#include "tuner/cost/op_counts.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace mycc {
namespace {

// Additions and multiplications are found in pairs on the way: a product that is added needs no instruction
// of its own.
bool IsFloatProduct(const Expr& expr) { return expr->op == Op::kMul && IsFloat(expr->dtype); }

// A condition that chooses one row of a table by an axis: schedules unroll the axis, and one arm is left.
bool ChoosesRow(const Expr& condition) {
  return condition->op == Op::kEq && condition->args[0]->dtype == DType::kI64 &&
         (IsConstInt(condition->args[0]) || IsConstInt(condition->args[1]));
}

double ArithmeticIn(const Expr& expr) {
  double sum = IsFloat(expr->dtype) && !expr->args.empty() && expr->op != Op::kLoad ? 1 : 0;
  for (const Expr& arg : expr->args) sum += ArithmeticIn(arg);
  return sum;
}

// The loops and values on which an operation's result depends.
struct Dependence {
  absl::InlinedVector<bool, 32> loops;  // of the nest, those that change it
  bool on_data = false;                 // not on indices alone
};

class OpCounter {
 public:
  OpCounter(const NestBlock& nest, const IndexScope& scope, const WriterLoops& writers)
      : nest_(nest), scope_(scope), writers_(writers) {
    // The threads of a GPU share nothing that they compute.
    on_gpu_ = std::ranges::any_of(nest.loops, [](const NestLoop& loop) {
      return loop.loop->loop_kind == LoopKind::kGrid || loop.loop->loop_kind == LoopKind::kThread;
    });
  }

  Dependence Count(const Expr& expr, OpCounts* ops) const {
    if (expr->op == Op::kConst) return Nothing();
    if (expr->op == Op::kVar) return OnVar(expr);
    if (expr->op == Op::kLoad) return OnLoad(expr);
    if (expr->op == Op::kSelect) return CountSelect(expr, ops);
    Dependence result = Nothing();
    double products = 0;  // of the operands, how often they run
    for (const Expr& arg : expr->args) {
      const Dependence part = Count(arg, ops);
      if (IsFloatProduct(arg)) products = std::max(products, RunsOf(part));
      Join(part, &result);
    }
    AddOp(*expr, RunsOf(result), ops);
    const bool adds = expr->op == Op::kAdd || expr->op == Op::kSub;
    if (adds && IsFloat(expr->dtype)) ops->fused += products;
    return result;
  }

  // For each instance of the block. An operation leaves the loops inside the innermost one that changes it,
  // and in the unrolled tile all that do not. It runs once for all lanes.
  double RunsOf(const Dependence& dependence) const {
    if (on_gpu_) return 1;
    double share = 1;
    for (size_t l = nest_.tile_begin; l < nest_.loops.size(); ++l) {
      if (!dependence.loops[l] && static_cast<int>(l) != nest_.lane) share /= nest_.loops[l].extent;
    }
    for (size_t l = nest_.tile_begin; l > 0 && !dependence.loops[l - 1]; --l)
      share /= nest_.loops[l - 1].extent;
    return share;
  }

  // The operations of a merge of tuples.
  static void AddFunction(const TupleFunction& function, OpCounts* ops) {
    ForEachOperation(function, [&](const ExprNode& operation) { AddOp(operation, 1, ops); });
  }

 private:
  Dependence Nothing() const {
    Dependence nothing;
    nothing.loops.resize(nest_.loops.size(), false);
    return nothing;
  }

  // An index depends on the loops that move it.
  void JoinIndex(const Expr& index, Dependence* whole) const {
    if (index->op == Op::kConst) return;
    const IndexForm form = scope_.FormOf(index);
    for (size_t l = 0; l < nest_.loops.size(); ++l)
      whole->loops[l] = whole->loops[l] || form.per_step[l] != 0;
  }

  Dependence OnVar(const Expr& var) const {
    Dependence result = Nothing();
    JoinIndex(var, &result);
    return result;
  }

  // An element changes with its address, and whenever the buffer is written anew.
  Dependence OnLoad(const Expr& load) const {
    Dependence result = Nothing();
    for (const Expr& index : load->args) JoinIndex(index, &result);
    if (const auto writer = writers_.find(load->buffer.get()); writer != writers_.end()) {
      for (size_t l = 0; l < nest_.loops.size(); ++l) {
        const auto& loops = writer->second;
        if (std::ranges::find(loops, nest_.loops[l].loop) != loops.end()) result.loops[l] = true;
      }
    }
    result.on_data = true;
    return result;
  }

  Dependence CountSelect(const Expr& select, OpCounts* ops) const {
    OpCounts of_condition;
    Dependence result = Count(select->args[0], &of_condition);
    const bool is_cut = (!on_gpu_ && !result.on_data) || ChoosesRow(select->args[0]);
    if (is_cut) {
      const bool first = ArithmeticIn(select->args[1]) >= ArithmeticIn(select->args[2]);
      OpCounts of_other;
      Join(Count(select->args[1], first ? ops : &of_other), &result);
      Join(Count(select->args[2], first ? &of_other : ops), &result);
      return result;
    }
    Add(of_condition, ops);
    for (size_t a = 1; a < select->args.size(); ++a) Join(Count(select->args[a], ops), &result);
    AddOp(*select, RunsOf(result), ops);
    return result;
  }

  static void Add(const OpCounts& part, OpCounts* whole) {
    for (double OpCounts::*const count :
         {&OpCounts::add, &OpCounts::mul, &OpCounts::fused, &OpCounts::minmax, &OpCounts::compare_select,
          &OpCounts::divide, &OpCounts::root, &OpCounts::transcendental, &OpCounts::convert,
          &OpCounts::integer, &OpCounts::other})
      whole->*count += part.*count;
  }

  static void Join(const Dependence& part, Dependence* whole) {
    for (size_t l = 0; l < part.loops.size(); ++l)
      if (part.loops[l]) whole->loops[l] = true;
    whole->on_data = whole->on_data || part.on_data;
  }

  static void AddOp(const ExprNode& expr, double runs, OpCounts* ops) {
    if (expr.dtype == DType::kI64 && expr.op != Op::kCast) ops->integer += runs;
    switch (expr.op) {
      case Op::kAdd:
      case Op::kSub: ops->add += runs; break;
      case Op::kMul: ops->mul += runs; break;
      case Op::kMin:
      case Op::kMax: ops->minmax += runs; break;
      case Op::kLt:
      case Op::kLe:
      case Op::kEq:
      case Op::kNe:
      case Op::kSelect:
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot: ops->compare_select += runs; break;
      case Op::kDiv:
      case Op::kFloorDiv:
      case Op::kMod: ops->divide += runs; break;
      case Op::kSqrt:
      case Op::kRsqrt: ops->root += runs; break;
      case Op::kCast: ops->convert += runs; break;
      default: (IsTranscendental(expr.op) ? ops->transcendental : ops->other) += runs; break;
    }
  }

  const NestBlock& nest_;
  const IndexScope& scope_;
  const WriterLoops& writers_;
  bool on_gpu_ = false;
};

}  // namespace

OpCounts CountOps(const NestBlock& nest, const IndexScope& scope, const WriterLoops& writers) {
  const Block& block = *nest.block;
  OpCounts ops;
  const OpCounter counter(nest, scope, writers);
  const Dependence value = counter.Count(block.value, &ops);
  for (const Accumulator& accumulator : block.more) counter.Count(accumulator.value, &ops);
  if (const TupleFunction* function = block.reduce.tuple()) {
    OpCounter::AddFunction(*function, &ops);
    return ops;
  }
  switch (block.reduce.op()) {
    case ReduceOp::kSum:
      ops.add += 1;
      if (IsFloatProduct(block.value)) ops.fused += counter.RunsOf(value);
      break;
    case ReduceOp::kProd: ops.mul += 1; break;
    case ReduceOp::kMax:
    case ReduceOp::kMin: ops.minmax += 1; break;
    default: break;
  }
  return ops;
}

}  // namespace mycc
