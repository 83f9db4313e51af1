// Emits expressions as LLVM values: scalars, or vectors when an expression varies along the vector loop.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"
#include "llvm/Support/SaveAndRestore.h"

namespace mycc {
namespace {

// Whether the expression is so expensive that a branch is better than computing both arms of a select.
bool IsCostly(const Expr& expr) {
  int budget = 12;
  return AnyExpr(expr, [&](const ExprNode& node) { return --budget < 0 || IsTranscendental(node.op); });
}

}  // namespace

bool LlvmKernelEmitter::Varies(const Expr& expr) {
  return lanes_ && AnyExpr(expr, [&](const ExprNode& node) {
           return node.op == Op::kVar ? node.var.get() == lanes_->var
                                      : node.op == Op::kLoad && PlaceOf(node.buffer).lanes > 0;
         });
}

bool LlvmKernelEmitter::MayEscape(const Expr& expr) {
  const auto known = escapes_.find(expr.get());
  if (known != escapes_.end()) return known->second;
  const bool escapes = (expr->op == Op::kLoad && !IsInside(*expr->buffer, expr->args)) ||
                       llvm::any_of(expr->args, [&](const Expr& arg) { return MayEscape(arg); });
  return escapes_[expr.get()] = escapes;
}

Value* LlvmKernelEmitter::Emit(const Expr& expr) {
  if (expr->op == Op::kConst) return b_.Constant(expr->dtype, expr->value);
  for (auto level = memo_.rbegin(); level != memo_.rend(); ++level) {
    const auto known = level->find(expr.get());
    if (known != level->end()) return known->second;
  }
  Value* value = EmitNode(expr);
  memo_.back()[expr.get()] = value;
  return value;
}

Value* LlvmKernelEmitter::EmitWide(const Expr& expr) {
  Value* value = Emit(expr);
  return lanes_ ? b_.Splat(value, lanes_->count) : value;
}

Value* LlvmKernelEmitter::EmitNode(const Expr& expr) {
  switch (expr->op) {
    case Op::kVar: return Varies(expr) ? LaneIndex(expr, b_.getInt64Ty()) : vars_.at(expr->var.get()).value;
    case Op::kLoad:
      for (const auto& [load, value] : turned_) {
        if (IsSameRead(*load, *expr)) return value;
      }
      return LoadAccess(AccessOf(*expr));
    case Op::kSelect: return EmitSelect(expr);
    default: break;
  }
  const bool is_index = IsLinearOp(expr->op) || expr->op == Op::kFloorDiv || expr->op == Op::kMod;
  if (expr->dtype == DType::kI64 && is_index && !Varies(expr)) return Index(expr);
  return EmitOperation(expr);
}

std::pair<Value*, Value*> LlvmKernelEmitter::EmitOperands(const Expr& a, const Expr& b) {
  Value* x = Emit(a);
  Value* y = Emit(b);
  const int lanes = std::max(LanesOf(x), LanesOf(y));
  return {b_.Splat(x, lanes), b_.Splat(y, lanes)};
}

Value* LlvmKernelEmitter::EmitOperation(const Expr& expr) {
  const Expr& a = expr->args[0];
  if (IsComparison(expr->op)) return EmitCompare(expr);
  if (expr->op == Op::kCast) {
    if (a->dtype == DType::kI64 && Varies(a) && IsNarrow(a))
      return b_.Cast(expr->dtype, DType::kI32, LaneIndex(a, b_.getInt32Ty()));
    return b_.Cast(expr->dtype, a->dtype, Emit(a));
  }
  if (IsUnary(expr->op)) {
    // Next to a tie or an integer, the error of a faster form would give another integer.
    const bool gives_integers = expr->op == Op::kRound || expr->op == Op::kFloor || expr->op == Op::kCeil;
    const llvm::SaveAndRestore exact(exact_quotients_, exact_quotients_ || gives_integers);
    return b_.Unary(expr->op, expr->dtype, Emit(a));
  }
  if (expr->op == Op::kDiv && Varies(expr) && !exact_quotients_) {
    if (Value* quotient = EmitQuotient(expr)) return quotient;
  }
  const auto [x, y] = EmitOperands(a, expr->args[1]);
  return b_.Binary(expr->op, expr->dtype, x, y);
}

// Emits a division of lanes that has a faster form than the division of vectors; null when it has none.
Value* LlvmKernelEmitter::EmitQuotient(const Expr& expr) {
  const Expr& divisor = expr->args[1];
  if (expr->dtype != DType::kF64 && !Varies(divisor)) {
    Value* dividend = Emit(expr->args[0]);
    return b_.DivideByScalar(expr->dtype, dividend, Emit(divisor));
  }
  if (expr->dtype != DType::kF32 || divisor->op != Op::kSqrt) return nullptr;
  const auto [dividend, square] = EmitOperands(expr->args[0], divisor->args[0]);
  return b_.DivideByRoot(dividend, square);
}

Value* LlvmKernelEmitter::EmitCompare(const Expr& expr) {
  const Expr& a = expr->args[0];
  const Expr& b = expr->args[1];
  if (a->dtype == DType::kI64 && (Varies(a) || Varies(b)) && IsNarrow(a) && IsNarrow(b)) {
    return b_.Compare(expr->op, DType::kI32, LaneIndex(a, b_.getInt32Ty()), LaneIndex(b, b_.getInt32Ty()));
  }
  const auto [x, y] = EmitOperands(a, b);
  return b_.Compare(expr->op, a->dtype, x, y);
}

// A load in an arm may be out of bounds when the other arm is selected. Then a uniform condition becomes a
// branch, and a varying one a mask.
Value* LlvmKernelEmitter::EmitSelect(const Expr& expr) {
  Value* condition = Emit(expr->args[0]);
  const Expr& then = expr->args[1];
  const Expr& otherwise = expr->args[2];
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return Emit(constant->isZero() ? otherwise : then);
  const bool escapes = MayEscape(then) || MayEscape(otherwise);
  if (IsVector(condition) && escapes) {
    Value *x = nullptr, *y = nullptr;
    UnderMask(condition, [&] { x = EmitArm(then, /*wide=*/true); });
    UnderMask(b_.CreateNot(condition), [&] { y = EmitArm(otherwise, /*wide=*/true); });
    return b_.CreateSelect(condition, x, y);
  }
  if (!IsVector(condition)) {
    if (Value* padded = escapes ? EmitPadded(expr, condition) : nullptr) return padded;
    if (escapes || IsCostly(then) || IsCostly(otherwise)) {
      // Both arms get the same type: a vector if one of them is.
      const bool wide = Varies(then) || Varies(otherwise);
      return b_.Choice(
          condition, [&] { return EmitArm(then, wide); }, [&] { return EmitArm(otherwise, wide); });
    }
  }
  const auto [x, y] = EmitOperands(then, otherwise);
  const int lanes = LanesOf(condition);
  return b_.CreateSelect(condition, b_.Splat(x, lanes), b_.Splat(y, lanes));
}

// The value of an expression that runs under a condition: others do not use what it computes.
Value* LlvmKernelEmitter::EmitArm(const Expr& expr, bool wide) {
  memo_.emplace_back();
  Value* value = wide ? EmitWide(expr) : Emit(expr);
  memo_.pop_back();
  return value;
}

// Emits select(inside, x[i-1], 0.0), the padded read of a window, without a branch: as a load from the tensor
// or from a block of zeros. Null when the select is not of that form.
Value* LlvmKernelEmitter::EmitPadded(const Expr& expr, Value* condition) {
  const Expr &load = expr->args[1], &pad = expr->args[2];
  if (llvm::isa<llvm::Constant>(condition) || HasHoles() || load->op != Op::kLoad || pad->op != Op::kConst ||
      llvm::any_of(load->args, HasLoad))
    return nullptr;
  auto* element =
      llvm::dyn_cast<llvm::Constant>(b_.ToMemory(pad->dtype, b_.Constant(pad->dtype, pad->value)));
  if (element == nullptr) return nullptr;
  Access access = AccessOf(*load);
  const int64_t stride = access.stride.value_or(kMostStride + 1);
  if (stride < 0 || stride > kMostStride || access.place->on_stack) return nullptr;
  const auto elements = static_cast<unsigned>(lanes_ ? lanes_->count * std::max<int64_t>(stride, 1) : 1);
  llvm::Constant* filled = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(elements), element);
  auto* place = new llvm::GlobalVariable(kernel_.module, filled->getType(), /*isConstant=*/true,
                                         llvm::GlobalValue::PrivateLinkage, filled, "mycc_pad");
  place->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  access.pointer = b_.CreateSelect(condition, access.pointer, place);
  return LoadAccess(access);
}

}  // namespace mycc
