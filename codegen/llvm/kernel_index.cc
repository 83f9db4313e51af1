// Emits index arithmetic. Terms of outer loops are added first, so that LLVM can hoist them. Vectors of
// indices have 32-bit lanes if the values fit.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"

namespace mycc {
namespace {

// Index vectors whose values are below this have 32-bit lanes: they need half of the registers, and cheaper
// comparisons.
constexpr int64_t kNarrowLimit = int64_t{1} << 30;

}  // namespace

int LlvmKernelEmitter::DepthOf(const Expr& expr) {
  if (expr->op == Op::kVar) {
    const auto it = vars_.find(expr->var.get());
    return it == vars_.end() ? depth_ : it->second.depth;
  }
  if (expr->op == Op::kLoad) return depth_;
  int depth = 0;
  for (const Expr& arg : expr->args) depth = std::max(depth, DepthOf(arg));
  return depth;
}

// The terms of outer loops come first, so that their sum is loop-invariant further in.
Value* LlvmKernelEmitter::Index(const Expr& expr) {
  if (expr->op == Op::kFloorDiv || expr->op == Op::kMod) return IndexDivision(expr, Emit(expr->args[0]));
  if (!IsLinearOp(expr->op)) return Emit(expr);
  Linear linear = ToLinear(expr);
  // A product of two variables is its own only term.
  if (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].first == expr)
    return EmitOperation(expr);
  std::ranges::stable_sort(linear.terms, {}, [&](const auto& term) { return DepthOf(term.first); });
  Value* sum = b_.getInt64(0);
  for (const auto& [atom, coefficient] : linear.terms) {
    keep_.push_back(atom);
    sum = b_.CreateAdd(sum, b_.CreateMul(Emit(atom), b_.getInt64(coefficient)));
  }
  return b_.CreateAdd(sum, b_.getInt64(linear.constant));
}

Value* LlvmKernelEmitter::IndexDivision(const Expr& expr, Value* a) {
  int64_t divisor = 0;
  const bool by_constant = IsConstInt(expr->args[1], &divisor) && divisor > 0;
  Value* b = by_constant ? llvm::ConstantInt::get(a->getType(), divisor) : Emit(expr->args[1]);
  const auto range = RangeOf(expr->args[0]);
  if (by_constant && range && range->min >= 0)
    return expr->op == Op::kFloorDiv ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  if (IsVector(a)) b = b_.Splat(b, lanes_->count);
  const bool narrow = a->getType()->getScalarSizeInBits() == 32;
  return b_.Binary(expr->op, narrow ? DType::kI32 : DType::kI64, a, b);
}

bool LlvmKernelEmitter::IsNarrow(const Expr& expr) {
  const auto range = RangeOf(expr);
  if (!range || range->min < -kNarrowLimit || range->max > kNarrowLimit) return false;
  if (expr->op == Op::kLoad || expr->op == Op::kCast) return true;
  const bool compared = expr->op == Op::kMin || expr->op == Op::kMax;
  return std::ranges::all_of(expr->args, [&](const Expr& arg) {
    return arg->dtype != DType::kI64 || (compared ? FitsI32(arg) : IsNarrow(arg));
  });
}

// Whether an i64 value fits 32 bits. For a loaded index that is only clamped, saturating it to 32 bits is
// enough.
bool LlvmKernelEmitter::FitsI32(const Expr& expr) {
  if (expr->op == Op::kCast && expr->args[0]->dtype == DType::kI32) return true;
  if (expr->op != Op::kMin && expr->op != Op::kMax) return IsNarrow(expr);
  return FitsI32(expr->args[0]) && FitsI32(expr->args[1]);
}

llvm::Constant* LlvmKernelEmitter::LaneNumbers(llvm::Type* element, int64_t step) {
  llvm::SmallVector<llvm::Constant*, 64> numbers;
  for (int lane = 0; lane < lanes_->count; ++lane)
    numbers.push_back(llvm::ConstantInt::get(element, lane * step, /*IsSigned=*/true));
  return llvm::ConstantVector::get(numbers);
}

Value* LlvmKernelEmitter::LaneIndex(const Expr& expr, llvm::Type* element) {
  const int count = lanes_->count;
  llvm::Type* type = llvm::FixedVectorType::get(element, count);
  const auto resized = [&](Value* value) {
    return b_.CreateSExtOrTrunc(value, IsVector(value) ? type : element);
  };
  if (!Varies(expr)) return b_.Splat(resized(Emit(expr)), count);
  const DType dtype = element->isIntegerTy(32) ? DType::kI32 : DType::kI64;
  switch (expr->op) {
    case Op::kVar: return b_.CreateAdd(b_.Splat(resized(lanes_->first), count), LaneNumbers(element, 1));
    case Op::kFloorDiv:
    case Op::kMod: return IndexDivision(expr, LaneIndex(expr->args[0], element));
    case Op::kMin:
    case Op::kMax:
      return b_.Binary(expr->op, dtype, LaneIndex(expr->args[0], element), LaneIndex(expr->args[1], element));
    case Op::kSelect:
      if (MayEscape(expr)) return resized(Emit(expr));
      return b_.CreateSelect(Emit(expr->args[0]), LaneIndex(expr->args[1], element),
                             LaneIndex(expr->args[2], element));
    default: break;
  }
  if (expr->op == Op::kLoad) return resized(Emit(expr));
  if (!IsLinearOp(expr->op)) return resized(EmitOperation(expr));
  const Linear linear = ToLinear(expr);
  if (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].first == expr)
    return resized(EmitOperation(expr));
  Value* uniform = b_.getInt64(linear.constant);
  Value* sum = nullptr;
  for (const auto& [atom, coefficient] : linear.terms) {
    keep_.push_back(atom);
    if (!Varies(atom)) {
      uniform = b_.CreateAdd(uniform, b_.CreateMul(Emit(atom), b_.getInt64(coefficient)));
      continue;
    }
    Value* term = nullptr;
    if (atom->op == Op::kVar) {
      uniform = b_.CreateAdd(uniform, b_.CreateMul(lanes_->first, b_.getInt64(coefficient)));
      term = LaneNumbers(element, coefficient);
    } else {
      term = b_.CreateMul(LaneIndex(atom, element),
                          llvm::ConstantInt::get(type, coefficient, /*IsSigned=*/true));
    }
    sum = sum ? b_.CreateAdd(sum, term) : term;
  }
  return b_.CreateAdd(b_.Splat(resized(uniform), count), sum);
}

}  // namespace mycc
