#include "codegen/schedule/flipped_sign.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/operand_stage.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

bool IsWidenedByte(const Expr& factor) {
  if (factor->op != Op::kCast || factor->dtype != DType::kI32) return false;
  const Expr& load = factor->args[0];
  return load->op == Op::kLoad && (load->dtype == DType::kI8 || load->dtype == DType::kU8);
}

absl::Status CheckLikeSigns(const Stage& stage, const Buffer& changed) {
  const Expr& value = stage.value;
  const auto refused = [&](const std::string& why) { return Refusal(stage.output->name, why); };
  if (!SumsProducts(stage) || !IsWidenedByte(value->args[0]) || !IsWidenedByte(value->args[1]))
    return refused(" is not a sum of i32(a[..]) * i32(b[..]) of bytes");
  const Expr &a = value->args[0]->args[0], &b = value->args[1]->args[0];
  if (a->dtype != b->dtype) return refused(" multiplies u8 by i8 already");
  if (a->buffer == b->buffer) return refused(" multiplies a tensor by itself");
  if (a->buffer != changed && b->buffer != changed)
    return refused(absl::StrCat(" does not multiply ", changed->name));
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
