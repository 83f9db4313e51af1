#include "tuner/space/anatomy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"

namespace mycc {
namespace {

double CountOps(const Expr& expr) {
  const bool is_index = expr->dtype == DType::kI64 && expr->op != Op::kLoad;
  if (is_index) return 0;
  double ops = 0;
  switch (expr->op) {
    case Op::kConst:
    case Op::kVar:
    case Op::kLoad: return 0;
    default: ops = IsTranscendental(expr->op) ? 10 : 1;
  }
  for (const Expr& arg : expr->args) ops += CountOps(arg);
  return ops;
}

void CollectLoads(const Expr& expr, std::vector<const ExprNode*>* loads) {
  if (expr->op == Op::kLoad) loads->push_back(expr.get());
  for (const Expr& arg : expr->args) CollectLoads(arg, loads);
}

const Expr& WithoutCast(const Expr& expr) {
  return expr->op == Op::kCast || expr->op == Op::kTF32 ? expr->args[0] : expr;
}

Operand MakeOperand(const Anatomy& anatomy, const Expr& factor) {
  const Expr& load = WithoutCast(factor);
  Operand operand{load->buffer,
                  load->args,
                  false,
                  anatomy.ProducerOf(load->buffer.get()),
                  factor->op == Op::kCast,
                  factor->op == Op::kTF32};
  for (const Argument& input : anatomy.workload().inputs)
    operand.is_const |= input.tensor == load->buffer && input.is_const;
  return operand;
}

std::optional<Contraction> FindContraction(const Anatomy& anatomy, const Stage& stage) {
  if (stage.reduce != ReduceOp::kSum || stage.value->op != Op::kMul || stage.axes.empty())
    return std::nullopt;
  const Expr &x = stage.value->args[0], &y = stage.value->args[1];
  const Expr &a = WithoutCast(x), &b = WithoutCast(y);
  if (a->op != Op::kLoad || b->op != Op::kLoad || a->buffer == b->buffer) return std::nullopt;
  Contraction result{MakeOperand(anatomy, x), MakeOperand(anatomy, y), {}, {}, {}};
  const Var& lane = stage.axes.back();
  if (result.scalar.Uses(lane)) std::swap(result.scalar, result.vector);
  if (result.scalar.Uses(lane) || !result.vector.Uses(lane)) return std::nullopt;
  for (int axis = 0; axis < static_cast<int>(stage.axes.size()); ++axis) {
    const Var& var = stage.axes[axis];
    const bool in_scalar = result.scalar.Uses(var), in_vector = result.vector.Uses(var);
    (in_scalar == in_vector ? result.batch : in_scalar ? result.rows : result.cols).push_back(axis);
  }
  return result;
}

// A read at the stage's own axes, in order.
bool IsAtOwnAxes(const ExprNode& load, const Stage& stage) {
  if (load.args.size() != stage.axes.size()) return false;
  for (size_t d = 0; d < load.args.size(); ++d) {
    if (load.args[d]->op != Op::kVar || load.args[d]->var != stage.axes[d]) return false;
  }
  return true;
}

}  // namespace

bool HasCast(const Contraction& contraction) {
  const Operand &a = contraction.scalar, &b = contraction.vector;
  return a.is_cast || b.is_cast || a.is_tf32 || b.is_tf32;
}

bool Operand::Uses(const Var& var) const {
  return std::any_of(index.begin(), index.end(), [&](const Expr& e) { return UsesVar(e, var.get()); });
}

int Operand::PlainDim(const Var& var) const {
  int found = -1;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!UsesVar(index[d], var.get())) continue;
    if (found >= 0 || index[d]->op != Op::kVar) return -1;
    found = static_cast<int>(d);
  }
  return found;
}

Anatomy::Anatomy(const Workload& canonical) : workload_(canonical), infos_(canonical.stages.size()) {
  for (int s = 0; s < num_stages(); ++s) {
    StageInfo& info = infos_[s];
    info.ops_per_element = CountOps(stage(s).value);
    for (const Buffer& output : workload_.outputs) info.is_output |= output == stage(s).output;
    for (const ExprNode* load : LoadsOf(stage(s).value)) {
      const int producer = ProducerOf(load->buffer.get());
      if (producer < 0 || std::count(info.producers.begin(), info.producers.end(), producer)) continue;
      info.producers.push_back(producer);
      infos_[producer].readers.push_back(s);
    }
    info.contraction = FindContraction(*this, stage(s));
  }
}

std::string Anatomy::Loop(int s, int axis) const {
  return absl::StrCat(name(s), ".", stage(s).axes[axis]->name);
}
std::string Anatomy::ReduceLoop(int s, int axis) const {
  return absl::StrCat(name(s), ".", stage(s).reduce_axes[axis]->name);
}

int Anatomy::ProducerOf(const BufferNode* buffer) const {
  for (int s = 0; s < num_stages(); ++s) {
    if (stage(s).output.get() == buffer) return s;
  }
  return -1;
}

bool Anatomy::ReadsElementwise(int reader, int producer) const {
  const Stage& stage = workload_.stages[reader];
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (load->buffer == workload_.stages[producer].output && !IsAtOwnAxes(*load, stage)) return false;
  }
  return true;
}

std::vector<const ExprNode*> LoadsOf(const Expr& expr) {
  std::vector<const ExprNode*> loads;
  CollectLoads(expr, &loads);
  return loads;
}

bool IsFlat(const Stage& stage) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (load->buffer->num_elements() != 1 && !IsAtOwnAxes(*load, stage)) return false;
  }
  return true;
}

std::optional<int64_t> StrideOf(const ExprNode& load, const Var& var) {
  int64_t stride = 0;
  for (size_t d = 0; d < load.args.size(); ++d) {
    const auto linear = SplitLinear(load.args[d], var.get());
    if (!linear) return std::nullopt;
    stride += linear->coefficient * load.buffer->stride(static_cast<int>(d));
  }
  return stride;
}

}  // namespace mycc
