#include "codegen/schedule/stage_rewrites.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/expr/product.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

// A stage for the value whose dimensions are these axes, in order.
ValueStage StageOverAxes(const std::string& tensor, const Expr& value, const std::vector<Var>& axes) {
  Stage stage = StageOver(tensor, value->dtype, ExtentsOf(axes));
  VarMap own;
  for (size_t d = 0; d < axes.size(); ++d) own[axes[d].get()] = VarRef(stage.axes[d]);
  stage.value = Substitute(value, own);
  const Expr load = Load(stage.output, IndexOf(axes));
  return {std::move(stage), load};
}

// The factor without the cast that widens it for the sum.
Expr Narrowest(const Expr& factor) {
  const bool widens = factor->op == Op::kCast && IsFloat(factor->args[0]->dtype) &&
                      DTypeBytes(factor->args[0]->dtype) < DTypeBytes(factor->dtype);
  return widens ? factor->args[0] : factor;
}

// The axes in the order of a load at each of those that the value uses, where there is one; else as they are.
// A stage that is computed from another one element by element then has the shape of that one.
std::vector<Var> InOrderOfLoads(const Expr& value, const std::vector<Var>& axes) {
  std::vector<Var> ordered;
  Visit(value, [&](const ExprNode& e) {
    if (e.op != Op::kLoad || !ordered.empty()) return;
    std::vector<Var> of_load;
    for (const Expr& index : e.args) {
      const bool is_new = index->op == Op::kVar && std::ranges::count(of_load, index->var) == 0;
      if (is_new) of_load.push_back(index->var);
    }
    const bool has_all = of_load.size() == e.args.size() && std::ranges::all_of(axes, [&](const Var& axis) {
                           return !UsesVar(value, axis.get()) || std::ranges::count(of_load, axis) > 0;
                         });
    if (has_all) ordered = std::move(of_load);
  });
  return ordered.empty() ? axes : ordered;
}

bool IsWidenedByte(const Expr& factor) {
  if (factor->op != Op::kCast || factor->dtype != DType::kI32) return false;
  const Expr& load = factor->args[0];
  return load->op == Op::kLoad && (load->dtype == DType::kI8 || load->dtype == DType::kU8);
}

absl::Status CheckLikeSigns(const Stage& stage, const Buffer& changed) {
  const Expr& value = stage.value;
  const auto refused = [&](const auto&... why) { return Refusal(stage.output->name, why...); };
  if (!SumsProducts(stage) || !IsWidenedByte(value->args[0]) || !IsWidenedByte(value->args[1]))
    return refused(" is not a sum of i32(a[..]) * i32(b[..]) of bytes");
  const Expr &a = value->args[0]->args[0], &b = value->args[1]->args[0];
  if (a->dtype != b->dtype) return refused(" multiplies u8 by i8 already");
  if (a->buffer == b->buffer) return refused(" multiplies a tensor by itself");
  if (a->buffer != changed && b->buffer != changed) return refused(" does not multiply ", changed->name);
  return absl::OkStatus();
}

Stage ChangedSign(const std::string& name, const Buffer& from) {
  const bool is_signed = from->dtype == DType::kI8;
  Stage stage = StageOver(name, is_signed ? DType::kU8 : DType::kI8, from->shape);
  const Expr half = IntConst(is_signed ? -128 : 128, from->dtype);
  stage.value = MakeCast(stage.output->dtype, Load(from, IndexOf(stage.axes)) + half);
  return stage;
}

// The stage with variables of its own.
Stage WithFreshAxes(Stage stage) {
  VarMap fresh;
  for (std::vector<Var>* axes : {&stage.axes, &stage.reduce_axes}) {
    const char* letter = axes == &stage.axes ? "a" : "r";
    for (size_t d = 0; d < axes->size(); ++d) {
      const Var var = MakeVar(absl::StrCat(letter, d), (*axes)[d]->extent);
      fresh[(*axes)[d].get()] = VarRef(var);
      (*axes)[d] = var;
    }
  }
  stage.value = Substitute(stage.value, fresh);
  return stage;
}

}  // namespace

bool HasSingleTerm(const Stage& stage) {
  const bool is_scalar = stage.reduce != ReduceOp::kNone && stage.reduce != ReduceOp::kArgMax &&
                         stage.reduce != ReduceOp::kArgMin;
  return is_scalar &&
         std::ranges::all_of(stage.reduce_axes, [](const Var& axis) { return axis->extent == 1; });
}

Stage SingleTermStage(const Stage& stage) {
  VarMap at_zero;
  for (const Var& axis : stage.reduce_axes) at_zero[axis.get()] = IntConst(0);
  Stage result{stage.output, stage.axes, ReduceOp::kNone, {}, Substitute(stage.value, at_zero)};
  if (stage.reduce == ReduceOp::kSum && IsFloat(stage.output->dtype))
    result.value = ReduceIdentity(stage.reduce, stage.output->dtype) + result.value;
  return result;
}

absl::StatusOr<std::vector<Stage>> PermutedStages(const Stage& stage, const std::vector<int64_t>& order) {
  std::vector<int64_t> dims(stage.axes.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (!std::is_permutation(order.begin(), order.end(), dims.begin(), dims.end())) {
    return Refusal("[", absl::StrJoin(order, ", "), "] is no order of the ", dims.size(), " dimensions of ",
                   stage.output->name);
  }
  std::vector<Var> axes;
  axes.reserve(order.size());
  for (const int64_t d : order) axes.push_back(stage.axes[d]);
  ValueStage permuted = StageOverAxes(absl::StrCat(stage.output->name, ".p"), stage.value, axes);
  permuted.stage.reduce = stage.reduce;
  permuted.stage.reduce_axes = stage.reduce_axes;
  Stage copy{stage.output, stage.axes, ReduceOp::kNone, {}, permuted.load};
  return std::vector<Stage>{std::move(permuted.stage), std::move(copy)};
}

ValueStage StageOfValue(const std::string& tensor, const Expr& value, const std::vector<Var>& axes) {
  std::vector<Var> used = axes;
  std::erase_if(used, [&](const Var& axis) { return !UsesVar(value, axis.get()); });
  return StageOverAxes(tensor, value, used);
}

bool IsComputedFactor(const Stage& stage, int factor) {
  return SumsProducts(stage) && Narrowest(stage.value->args[factor])->op != Op::kLoad;
}

absl::StatusOr<std::vector<Stage>> OperandStages(const Stage& stage, int factor) {
  if (!IsComputedFactor(stage, factor)) {
    return Refusal(stage.output->name, " is no sum of products whose ", factor == 0 ? "left" : "right",
                   " factor is computed");
  }
  const Expr &old = stage.value->args[factor], value = Narrowest(old);
  std::vector<Var> axes = stage.axes;
  axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  ValueStage operand = StageOfValue(absl::StrCat(stage.output->name, factor == 0 ? ".a" : ".b"), value,
                                    InOrderOfLoads(value, axes));
  Stage sum = stage;
  std::vector<Expr> factors = stage.value->args;
  factors[factor] = value == old ? operand.load : MakeCast(old->dtype, operand.load);
  sum.value = WithArgs(stage.value, std::move(factors));
  return std::vector<Stage>{std::move(operand.stage), std::move(sum)};
}

absl::StatusOr<std::vector<Stage>> FlippedSignStages(const Stage& stage, const Buffer& changed) {
  MYCC_RETURN_IF_ERROR(CheckLikeSigns(stage, changed));
  const std::string& name = stage.output->name;
  const int which = stage.value->args[0]->args[0]->buffer == changed ? 0 : 1;
  const Expr &factor = stage.value->args[which], &other = stage.value->args[1 - which];
  const Stage sign = ChangedSign(name + kChangedSign, changed);
  // The correction sums, over the axes of the sum that the other factor depends on.
  const int64_t correction = changed->dtype == DType::kI8 ? -128 : 128;
  ValueStage sums = StageOfValue(name + kSignSums, other * IntConst(correction, DType::kI32), stage.axes);
  sums.stage.reduce = ReduceOp::kSum;
  sums.stage.reduce_axes = stage.reduce_axes;
  Stage product = stage;
  product.output = MakeBuffer(name + kFlippedProduct, DType::kI32, stage.output->shape);
  const Expr changed_factor = MakeCast(DType::kI32, Load(sign.output, factor->args[0]->args));
  product.value = which == 0 ? changed_factor * other : other * changed_factor;
  Stage result{stage.output, stage.axes, ReduceOp::kNone, {}, nullptr};
  result.value = Load(product.output, IndexOf(stage.axes)) + sums.load;
  return std::vector<Stage>{sign, WithFreshAxes(sums.stage), product, WithFreshAxes(result)};
}

}  // namespace mycc
