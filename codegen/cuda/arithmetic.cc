#include "codegen/cuda/arithmetic.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace mycc {
namespace {

// The shortest decimal that parses to the same value.
template <typename T>
std::string Shortest(T value, int max_digits) {
  for (int digits = 1; digits < max_digits; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    if (static_cast<T>(std::strtod(text.c_str(), nullptr)) == value) return text;
  }
  return absl::StrFormat("%.*g", max_digits, value);
}

// Integers that are ints in registers.
bool IsShortInt(DType dtype) { return IsInt(dtype) && DTypeBytes(dtype) < 4; }

// Unsigned integers that are unsigned in registers.
bool IsWideUnsigned(DType dtype) { return dtype == DType::kU32 || dtype == DType::kU64; }

}  // namespace

std::string Arithmetic::MemoryType(DType dtype) const {
  switch (dtype) {
    case DType::kF64: return "double";
    case DType::kF32: return "float";
    case DType::kI32: return "int";
    case DType::kBool: return "bool";
    default: return prelude_.Use(DTypeName(dtype));
  }
}

std::string Arithmetic::RegisterType(DType dtype) const {
  if (IsNarrowFloat(dtype)) return "float";
  if (IsShortInt(dtype)) return "int";
  return MemoryType(dtype);
}

Code Arithmetic::FromMemory(DType dtype, Code stored) const {
  if (!IsNarrowFloat(dtype)) return stored;
  return Call(prelude_.Use(absl::StrCat("from_", DTypeName(dtype))), stored);
}

Code Arithmetic::ToMemory(DType dtype, Code value) const {
  if (!IsNarrowFloat(dtype)) return value;
  return Call(prelude_.Use(absl::StrCat("to_", DTypeName(dtype))), value);
}

Code Arithmetic::Literal(DType dtype, Scalar value) const {
  if (dtype == DType::kBool) return Primary(value.i != 0 ? "true" : "false");
  if (IsWideUnsigned(dtype))
    return Primary(absl::StrCat(PrintInt(dtype, value.i), dtype == DType::kU64 ? "ull" : "u"));
  if (!IsFloat(dtype)) {
    // C++ has no literal for the lowest integer.
    if (value.i == INT32_MIN && dtype != DType::kI64) return Primary("(-2147483647 - 1)");
    if (value.i == INT64_MIN) return Primary("(-9223372036854775807ll - 1)");
    const bool is_long = value.i > INT32_MAX || value.i < -INT32_MAX;
    return Code{absl::StrCat(value.i, is_long ? "ll" : ""), value.i < 0 ? kUnaryLevel : kPrimary};
  }
  const bool is_double = dtype == DType::kF64;
  if (std::isnan(value.f)) {
    return Primary(is_double ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)");
  }
  if (std::isinf(value.f)) {
    const Code infinity =
        Primary(is_double ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)");
    return value.f > 0 ? infinity : Code{"-" + infinity.text, kUnaryLevel};
  }
  std::string digits = is_double ? Shortest(value.f, 17) : Shortest(static_cast<float>(value.f), 9);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (!is_double) digits += "f";
  return Code{digits, std::signbit(value.f) ? kUnaryLevel : kPrimary};
}

Code Arithmetic::Round(DType dtype, const Code& value) const {
  if (IsNarrowFloat(dtype)) return FromMemory(dtype, ToMemory(dtype, value));
  if (IsShortInt(dtype)) return Call("int", Call(prelude_.Use(DTypeName(dtype)), value));
  return value;
}

Code Arithmetic::FloatUnary(Op op, DType dtype, const Code& a) const {
  if (op == Op::kNeg) return Code{absl::StrCat("-", a.At(kPrimary)), kUnaryLevel};
  if (op == Op::kTF32) {
    const Code rounded = Call(prelude_.Use("round_tf32"), dtype == DType::kF64 ? Call("float", a) : a);
    return dtype == DType::kF64 ? Call("double", rounded) : rounded;
  }
  if (op == Op::kExp2 && dtype != DType::kF64) return Round(dtype, Call(prelude_.Use("exp2_approx"), a));
  const std::string name = op == Op::kRound ? "rint" : op == Op::kAbs ? "fabs" : std::string(OpName(op));
  const Code result = Call(dtype == DType::kF64 ? name : name + "f", a);
  return IsExact(op) ? result : Round(dtype, result);
}

Code Arithmetic::Unary(Op op, DType dtype, const Code& a) const {
  if (IsFloat(dtype)) return FloatUnary(op, dtype, a);
  if (op == Op::kNot) return Code{absl::StrCat("!", a.At(kUnaryLevel)), kUnaryLevel};
  const Code zero = Literal(dtype, Scalar{});
  const Code negated = Binary(Op::kSub, dtype, zero, a);
  if (op == Op::kNeg) return negated;
  MYCC_CHECK(op == Op::kAbs) << "no " << OpName(op) << " of integers";
  if (IsWideUnsigned(dtype)) return a;
  return Select(Compare(Op::kLt, a, zero), negated, a);
}

Code Arithmetic::IntBinary(Op op, DType dtype, const Code& a, const Code& b) const {
  if (dtype == DType::kBool) {
    switch (op) {
      case Op::kAnd:
      case Op::kMin:
      case Op::kMul: return Infix("&&", kBothOf, a, b);
      case Op::kOr:
      case Op::kMax:
      case Op::kAdd: return Infix("||", kEitherOf, a, b);
      case Op::kSub: return Infix("!=", kEquality, a, b);
      default: break;
    }
  }
  // Both operands must have the same type, which selects the template.
  const auto call = [&](const char* function) {
    const std::string type = RegisterType(dtype);
    return Call(prelude_.Use(function), Call(type, a), Call(type, b));
  };
  switch (op) {
    case Op::kAdd: return call("wrap_add");
    case Op::kSub: return call("wrap_sub");
    case Op::kMul: return call("wrap_mul");
    case Op::kFloorDiv: return call("floor_div");
    case Op::kMod: return call("floor_mod");
    case Op::kMin: return call("min_of");
    case Op::kMax: return call("max_of");
    default: break;
  }
  MYCC_CHECK(false) << "no " << OpName(op) << " of " << DTypeName(dtype);
  return a;
}

Code Arithmetic::WideBinary(Op op, DType dtype, const Code& a, const Code& b) const {
  if (!IsFloat(dtype)) return IntBinary(op, dtype, a, b);
  switch (op) {
    case Op::kAdd: return Infix("+", kSum, a, b);
    case Op::kSub: return Infix("-", kSum, a, b);
    case Op::kMul: return Infix("*", kProduct, a, b);
    case Op::kDiv:
      return dtype == DType::kF64 ? Infix("/", kProduct, a, b) : Call(prelude_.Use("divide"), a, b);
    case Op::kPow: return Call(dtype == DType::kF64 ? "pow" : "powf", a, b);
    case Op::kMin: return Call(prelude_.Use("min_of"), a, b);
    case Op::kMax: return Call(prelude_.Use("max_of"), a, b);
    default: break;
  }
  MYCC_CHECK(false) << "no " << OpName(op) << " of floats";
  return a;
}

Code Arithmetic::Binary(Op op, DType dtype, const Code& a, const Code& b) const {
  const Code result = WideBinary(op, dtype, a, b);
  return IsExact(op) ? result : Round(dtype, result);
}

Code Arithmetic::Compare(Op op, const Code& a, const Code& b) {
  switch (op) {
    case Op::kLt: return Infix("<", kRelation, a, b);
    case Op::kLe: return Infix("<=", kRelation, a, b);
    case Op::kEq: return Infix("==", kEquality, a, b);
    default: return Infix("!=", kEquality, a, b);
  }
}

Code Arithmetic::Select(const Code& condition, const Code& then, const Code& otherwise) {
  return Code{
      absl::StrCat(condition.At(kTernary + 1), " ? ", then.At(kTernary + 1), " : ", otherwise.At(kTernary)),
      kTernary};
}

Code Arithmetic::FloatToInt(DType to, const Code& value) const {
  if (to == DType::kI64 || IsWideUnsigned(to))
    return Call(prelude_.Use(absl::StrCat("to_", DTypeName(to))), value);
  const Code truncated = Call(prelude_.Use("to_i32"), value);
  if (to == DType::kI32) return truncated;
  const char* range = to == DType::kI8    ? "-128, 127"
                      : to == DType::kU8  ? "0, 255"
                      : to == DType::kI16 ? "-32768, 32767"
                                          : "0, 65535";
  return Primary(absl::StrCat(prelude_.Use("clamp_i32"), "(", truncated.text, ", ", range, ")"));
}

Code Arithmetic::Cast(DType to, DType from, const Code& value) const {
  if (to == from) return value;
  if (to == DType::kBool) return Compare(Op::kNe, value, Literal(from, Scalar{}));
  if (!IsFloat(to)) {
    if (IsFloat(from)) return FloatToInt(to, value);
    return Round(to, Call(RegisterType(to), value));
  }
  if (to == DType::kF64) return Call("double", value);
  if (IsFloat(from)) {
    if (to == DType::kF32) return from == DType::kF64 ? Call("float", value) : value;
    return Round(to, from == DType::kF64 ? Call(prelude_.Use("narrow_f64"), value) : value);
  }
  // Integers: those of 8 and 16 bits and bool are exact in a float, those of 32 bits in a double.
  const int bytes = DTypeBytes(from);
  const bool is_double = bytes == 8 || (bytes == 4 && to != DType::kF32);
  Code wide = Call(is_double ? "double" : "float", value);
  if (bytes == 8) wide = Call(prelude_.Use("narrow_int"), Call(RegisterType(from), value));
  if (to == DType::kF32) return is_double ? Call("float", wide) : wide;
  return Round(to, is_double ? Call(prelude_.Use("narrow_f64"), wide) : wide);
}

}  // namespace mycc
