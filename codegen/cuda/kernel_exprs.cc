// Emits expressions as CUDA C++: values, loads, and index arithmetic, in 32 bits wherever ranges allow it.
#include <algorithm>
#include <bit>

#include "codegen/cuda/kernel_emitter.h"

namespace mycc {
namespace {

// Values up to this fit an int, even after a few more additions.
constexpr int64_t kNarrowLimit = int64_t{1} << 30;

// Whether this is i64 arithmetic that cannot overflow, because all its parts have ranges. Loaded i64 data has
// none.
bool HasRange(const Expr& expr) {
  return RangeOf(expr).has_value() && std::ranges::all_of(expr->args, [](const Expr& arg) {
           return arg->dtype != DType::kI64 || RangeOf(arg).has_value();
         });
}

}  // namespace

Code KernelEmitter::Value(const Expr& expr) {
  switch (expr->op) {
    case Op::kConst: return arithmetic_.Literal(expr->dtype, expr->value);
    case Op::kVar: return Primary(vars_.at(expr->var.get()));
    case Op::kLoad: return LoadValue(expr);
    default: break;
  }
  if (expr->dtype == DType::kI64 && expr->op != Op::kCast && HasRange(expr)) return Index(expr);
  if (expr->op == Op::kSelect) return Choice(expr, Value(expr->args[1]), Value(expr->args[2]));
  return Operation(expr);
}

// Whether a load may run where the condition around it is false, at no cost. A lane's element and a value
// that threads exchange may. An element of an array in registers may if its index is always inside the array.
// So may an element in memory that is the same for all threads of the block.
bool KernelEmitter::IsAtHand(const ExprNode& load) {
  if (parts_.count(load.buffer.get()) != 0) return true;
  const Place& place = PlaceOf(load.buffer);
  if (place.vector > 0) return true;
  const auto is_of_block = [&](const Var& var) {
    return std::ranges::find(launch_.blocks, var, &For::var) != launch_.blocks.end();
  };
  const auto differs = [&](const ExprNode& e) {
    return e.op == Op::kLoad || (e.op == Op::kVar && !is_of_block(e.var));
  };
  if (!IsInside(*load.buffer, load.args)) return false;
  if (place.in_registers) return true;
  return load.buffer->scope == Scope::kGlobal &&
         std::ranges::none_of(load.args, [&](const Expr& index) { return AnyExpr(index, differs); });
}

// Both values are computed before one is taken, if what they read is at hand. NVVM makes a branch of a value
// that takes several instructions, and a thread's elements are then computed one after the other.
Code KernelEmitter::Choice(const Expr& select, const Code& then, const Code& otherwise) {
  const Code condition = Value(select->args[0]);
  bool computes = false, reads_others = false;
  for (const Expr& value : {select->args[1], select->args[2]}) {
    computes |= value->op != Op::kConst && value->op != Op::kLoad;
    reads_others |= AnyExpr(value, [&](const ExprNode& e) { return e.op == Op::kLoad && !IsAtHand(e); });
  }
  if (!computes || reads_others || arithmetic_.RegisterType(select->dtype) != "float")
    return Arithmetic::Select(condition, then, otherwise);
  return Primary(Call("choose", condition.text, then.text, otherwise.text));
}

Code KernelEmitter::Operation(const Expr& expr) {
  const DType operand = expr->args[0]->dtype;
  const Code a = Value(expr->args[0]);
  if (expr->op == Op::kCast) return arithmetic_.Cast(expr->dtype, operand, a);
  if (IsUnary(expr->op)) return arithmetic_.Unary(expr->op, expr->dtype, a);
  const Code b = Value(expr->args[1]);
  if (IsComparison(expr->op)) return Arithmetic::Compare(expr->op, a, b);
  return arithmetic_.Binary(expr->op, expr->dtype, a, b);
}

Code KernelEmitter::LoadValue(const Expr& load) {
  if (const auto part = parts_.find(load->buffer.get()); part != parts_.end()) return Primary(part->second);
  const std::string element = Element(load->buffer, load->args);
  const Place& place = PlaceOf(load->buffer);
  if (!place.in_registers) return arithmetic_.FromMemory(load->dtype, Primary(element));
  return place.form == RegisterForm::kWide ? arithmetic_.Round(load->dtype, Primary(element))
                                           : Primary(element);
}

bool KernelEmitter::IsNarrow(const Expr& expr) {
  const auto range = RangeOf(expr);
  if (!range || range->min < -kNarrowLimit || range->max > kNarrowLimit) return false;
  if (expr->op == Op::kLoad || expr->op == Op::kCast) return false;  // i64, whatever its value
  return std::ranges::all_of(expr->args,
                             [&](const Expr& arg) { return arg->dtype != DType::kI64 || IsNarrow(arg); });
}

// A part is an int if all of it fits an int; operations with a wider part widen it.
Code KernelEmitter::Index(const Expr& expr) {
  const bool wide = !IsNarrow(expr);
  const auto operand = [&](int i) {
    const Expr& arg = expr->args[i];
    const Code code = Index(arg);
    return wide && arg->dtype == DType::kI64 && IsNarrow(arg) ? Primary(Call("i64", code.text)) : code;
  };
  switch (expr->op) {
    case Op::kConst:
    case Op::kVar:
    case Op::kLoad: return Value(expr);
    case Op::kSelect: return Arithmetic::Select(Value(expr->args[0]), operand(1), operand(2));
    case Op::kFloorDiv:
    case Op::kMod: return IndexQuotient(expr);
    case Op::kMin: return Primary(Call("min_of", operand(0).text, operand(1).text));
    case Op::kMax: return Primary(Call("max_of", operand(0).text, operand(1).text));
    case Op::kNeg: return Code{"-" + operand(0).At(kPrimary), kUnaryLevel};
    case Op::kAdd: return Infix("+", kSum, operand(0), operand(1));
    case Op::kSub: return Infix("-", kSum, operand(0), operand(1));
    case Op::kMul: return Infix("*", kProduct, operand(0), operand(1));
    default: return Operation(expr);
  }
}

// Floored quotients and remainders: shifts and masks for powers of two, plain division for operands that are
// not negative.
Code KernelEmitter::IndexQuotient(const Expr& expr) {
  int64_t divisor = 0;
  const auto range = RangeOf(expr->args[0]);
  const bool by_constant = IsConstInt(expr->args[1], &divisor) && divisor > 0;
  const bool is_quotient = expr->op == Op::kFloorDiv;
  if (by_constant && std::has_single_bit(static_cast<uint64_t>(divisor))) {
    const Code a = Index(expr->args[0]);
    if (!is_quotient) return Code{absl::StrCat(a.At(kBitAnd + 1), " & ", divisor - 1), kBitAnd};
    const int shift = std::countr_zero(static_cast<uint64_t>(divisor));
    return Code{absl::StrCat(a.At(kShift + 1), " >> ", shift), kShift};
  }
  if (by_constant && range && range->min >= 0) {
    const Code a = Index(expr->args[0]);
    const bool narrow = IsNarrow(expr->args[0]) && divisor <= kNarrowLimit;
    const std::string unsigned_type = narrow ? "unsigned" : prelude_.Use("u64");
    const std::string type = narrow ? "int" : prelude_.Use("i64");
    return Primary(absl::StrCat(type, "(", unsigned_type, "(", a.text, ")", is_quotient ? " / " : " % ",
                                divisor, narrow ? "u" : "ull", ")"));
  }
  const Code quotient = Operation(expr);
  return IsNarrow(expr) ? Primary(absl::StrCat("int(", quotient.text, ")")) : quotient;
}

}  // namespace mycc
