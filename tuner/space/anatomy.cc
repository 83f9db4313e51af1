// Finds producers and readers of each stage, and matches reductions with the form of a contraction.
#include "tuner/space/anatomy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"

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

Operand MakeOperand(const Anatomy& anatomy, const Expr& factor) {
  const ExprNode* load = LoadOfFactor(factor);
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

// A sum of products of two loads.
bool IsProduct(const Stage& stage) {
  return SumsProducts(stage) && !stage.axes.empty() && LoadOfFactor(stage.value->args[0]) != nullptr &&
         LoadOfFactor(stage.value->args[1]) != nullptr;
}

// The stage with groups of `groups.extent` elements along an axis as an axis of their own.
Stage WithSplitAxis(const Stage& stage, const GroupedAxis& groups) {
  const Var& axis = stage.axes[groups.axis];
  const Var outer = MakeVar(absl::StrCat(axis->name, ".0"), axis->extent / groups.extent);
  const Var inner = MakeVar(absl::StrCat(axis->name, ".1"), groups.extent);
  Stage split = stage;
  split.axes[groups.axis] = outer;
  split.axes.insert(split.axes.begin() + groups.axis + 1, inner);
  split.value =
      Simplify(Substitute(stage.value, {{axis.get(), VarRef(outer) * groups.extent + VarRef(inner)}}));
  return split;
}

// The numbers that the axis is divided by, where they cut it into whole groups.
std::vector<int64_t> DivisorsOf(const Expr& expr, const Var& axis) {
  std::vector<int64_t> divisors;
  Visit(expr, [&](const ExprNode& e) {
    int64_t divisor = 0;
    if (e.op == Op::kFloorDiv && e.args[0]->op == Op::kVar && e.args[0]->var == axis &&
        IsConstInt(e.args[1], &divisor) && divisor > 1 && divisor < axis->extent &&
        axis->extent % divisor == 0)
      divisors.push_back(divisor);
  });
  return divisors;
}

// The axis along which both operands run, one of them group by group.
std::optional<GroupedAxis> FindGroups(const Stage& stage) {
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    for (const int64_t extent : DivisorsOf(stage.value, stage.axes[a])) {
      const Stage split = WithSplitAxis(stage, {a, extent});
      const auto in = [&](int factor, int axis) {
        return UsesVar(split.value->args[factor], split.axes[axis].get());
      };
      if (in(0, a) && in(1, a) && in(0, a + 1) != in(1, a + 1)) return GroupedAxis{a, extent};
    }
  }
  return std::nullopt;
}

// The axes whose place in each group chooses the taps, and whose group the place of the input.
std::vector<GroupedAxis> FindPhasedAxes(const Stage& stage) {
  std::vector<GroupedAxis> phases;
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    for (const int64_t extent : DivisorsOf(stage.value, stage.axes[a])) {
      bool has_place = false;
      Visit(stage.value, [&](const ExprNode& e) {
        int64_t modulus = 0;
        has_place |= e.op == Op::kMod && e.args[0]->op == Op::kVar && e.args[0]->var == stage.axes[a] &&
                     IsConstInt(e.args[1], &modulus) && modulus == extent;
      });
      if (!has_place) continue;
      phases.push_back({a, extent});
      break;
    }
  }
  return phases;
}

std::optional<Contraction> FindContraction(const Anatomy& anatomy, const Stage& stage, bool has_phases) {
  const Expr &x = stage.value->args[0], &y = stage.value->args[1];
  Contraction result{{}, {}, MakeOperand(anatomy, x), MakeOperand(anatomy, y), {}, {}, {}};
  result.scalar.is_first = true;
  size_t last = stage.axes.size() - 1;
  const auto in_both = [&](const Var& axis) { return result.scalar.Uses(axis) && result.vector.Uses(axis); };
  while (last > 0 && ((stage.axes[last]->extent == 1 && !result.scalar.Uses(stage.axes[last]) &&
                       !result.vector.Uses(stage.axes[last])) ||
                      (has_phases && in_both(stage.axes[last]))))
    --last;
  const Var& lane = stage.axes[last];
  if (result.scalar.Uses(lane)) std::swap(result.scalar, result.vector);
  if (result.scalar.Uses(lane) || !result.vector.Uses(lane)) return std::nullopt;
  for (int axis = 0; axis < static_cast<int>(stage.axes.size()); ++axis) {
    const Var& var = stage.axes[axis];
    const bool in_scalar = result.scalar.Uses(var), in_vector = result.vector.Uses(var);
    (in_scalar == in_vector ? result.batch : in_scalar ? result.rows : result.cols).push_back(axis);
  }
  return result;
}

}  // namespace

Contraction Crosswise(const Contraction& contraction) {
  Contraction result = contraction;
  std::swap(result.scalar, result.vector);
  std::swap(result.rows, result.cols);
  return result;
}

bool HasCast(const Contraction& contraction) {
  const Operand &a = contraction.scalar, &b = contraction.vector;
  return a.is_cast || b.is_cast || a.is_tf32 || b.is_tf32;
}

bool Operand::Uses(const Var& var) const { return UsesVar(index, var.get()); }

int Operand::PlainDim(const Var& var) const { return mycc::PlainDim(index, var); }

int Operand::UnitDim(const Var& var) const {
  int found = -1;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!UsesVar(index[d], var.get())) continue;
    const auto linear = SplitLinear(index[d], var.get());
    if (found >= 0 || !linear || linear->coefficient != 1) return -1;
    found = static_cast<int>(d);
  }
  return found;
}

Anatomy::Anatomy(const Workload& canonical)
    : workload_(canonical), links_(workload_), products_(canonical.stages), infos_(canonical.stages.size()) {
  for (int s = 0; s < num_stages(); ++s) {
    StageInfo& info = infos_[s];
    info.ops_per_element = CountOps(stage(s).value);
    info.is_output = links_.IsOutput(s);
    info.producers = links_.ProducersOf(s);
    info.readers = links_.ReadersOf(s);
    if (!IsProduct(stage(s))) continue;
    const std::vector<GroupedAxis> phases = FindPhasedAxes(stage(s));
    for (auto axis = phases.rbegin(); axis != phases.rend(); ++axis)
      products_[s] = WithSplitAxis(products_[s], *axis);
    const std::optional<GroupedAxis> groups = phases.empty() ? FindGroups(stage(s)) : std::nullopt;
    if (groups) products_[s] = WithSplitAxis(stage(s), *groups);
    info.contraction = FindContraction(*this, product(s), !phases.empty());
    if (info.contraction) info.contraction->groups = groups;
    if (info.contraction) info.contraction->phases = phases;
    if (!info.contraction) products_[s] = stage(s);
  }
}

std::string Anatomy::Loop(int s, int axis) const {
  return absl::StrCat(name(s), ".", stage(s).axes[axis]->name);
}
std::string Anatomy::ReduceLoop(int s, int axis) const {
  return absl::StrCat(name(s), ".", stage(s).reduce_axes[axis]->name);
}

bool Anatomy::ReadsElementwise(int reader, int producer) const {
  return ReadsAtOwnAxes(stage(reader), stage(producer).output);
}

bool IsFlat(const Stage& stage) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (load->buffer->num_elements() != 1 && !IsAtOwnPosition(*load, stage)) return false;
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
