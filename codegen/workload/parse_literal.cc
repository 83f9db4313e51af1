// Parses literals, typed ones and casts among them, and gives untyped ones their type.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse_expr.h"

namespace mycc {
namespace {

// A literal's constant of type `dtype`; nullptr when it does not fit. `held` is the type in which it is held:
// f64, i64 or u64.
Expr LiteralOfType(DType dtype, DType held, double f, int64_t i) {
  if (!IsFloat(dtype)) {
    const bool beyond = dtype == DType::kU64 ? held == DType::kI64 && i < 0 : held == DType::kU64;
    if (IsFloat(held) || dtype == DType::kBool || beyond || WrapInt(dtype, i) != i) return nullptr;
    return IntConst(i, dtype);
  }
  const double value = IsFloat(held) ? f : IntToDouble(held, i);
  const double rounded = RoundFloat(dtype, value);
  // 8-bit floats do not overflow; they saturate at their largest number.
  const bool beyond = IsFloat8(dtype) ? std::fabs(value) > RoundFloat(dtype, 1e30) && rounded != value
                                      : std::isfinite(value) && !std::isfinite(rounded);
  return beyond ? nullptr : FloatConst(rounded, dtype);
}

constexpr uint64_t kMostI64 = std::numeric_limits<int64_t>::max();

}  // namespace

bool ExprParser::AtLiteral() const {
  const Token& token = tokens_.Peek();
  return token.kind == Token::Kind::kInt || token.kind == Token::Kind::kFloat || token.Is("inf");
}

absl::Status ExprParser::OutOfI64(Position position, uint64_t literal) {
  return tokens_.Error(position, absl::StrCat(literal, " is out of range; expected at most ", kMostI64));
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseLiteral(bool negative, std::optional<DType> dtype) {
  const Token& token = tokens_.Next();
  const bool is_float = token.kind != Token::Kind::kInt;
  double f = token.Is("inf")   ? std::numeric_limits<double>::infinity()
             : token.Is("nan") ? std::numeric_limits<double>::quiet_NaN()
                               : token.float_value;
  if (negative) f = -f;
  const bool is_large = !is_float && token.int_value > kMostI64;
  if (negative ? is_large && token.int_value > kMostI64 + 1 : is_large && dtype == DType::kI64)
    return OutOfI64(token.position, token.int_value);
  const int64_t i = static_cast<int64_t>(negative ? 0 - token.int_value : token.int_value);
  const DType held = is_float ? DType::kF64 : is_large && !negative ? DType::kU64 : DType::kI64;
  const DType type = dtype.value_or(held);
  Operand literal{LiteralOfType(type, held, f, i), token.position};
  literal.untyped = !dtype;
  if (literal.expr == nullptr) {
    return tokens_.Error(
        token.position,
        absl::StrCat(negative ? "-" : "", token.text, " is no value of ", DTypeName(type), "; expected ",
                     is_float && !IsFloat(type) ? "an integer" : "one in its range"));
  }
  return literal;
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseCastOrTypedLiteral(DType dtype) {
  const Position position = tokens_.Next().position;
  MYCC_RETURN_IF_ERROR(
      tokens_.Expect("(", absl::StrCat("after the type ", DTypeName(dtype), " (a cast or a typed literal)")));
  const bool negative = tokens_.Peek().Is("-");
  const Token& first = tokens_.Peek(negative ? 1 : 0);
  const bool number = first.kind == Token::Kind::kInt || first.kind == Token::Kind::kFloat ||
                      first.Is("inf") || first.Is("nan");
  if (number && dtype != DType::kBool && tokens_.Peek(negative ? 2 : 1).Is(")")) {
    if (negative) tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(Operand literal, ParseLiteral(negative, dtype));
    tokens_.Next();
    literal.position = position;
    return literal;
  }
  MYCC_ASSIGN_OR_RETURN(Operand operand, ParseInfix(0));
  MYCC_RETURN_IF_ERROR(Expect(")", "after the operand of a cast"));
  MYCC_RETURN_IF_ERROR(ResolveLiteralType(&operand, std::nullopt));
  return Finish(MakeCast(dtype, operand.expr), position, {operand});
}

absl::Status ExprParser::ResolveLiteralType(Operand* operand, std::optional<DType> wanted) {
  if (!operand->untyped) return absl::OkStatus();
  const ExprNode& literal = *operand->expr;
  const bool is_float = IsFloat(literal.dtype);
  const bool takes_wanted = wanted && IsFloat(*wanted) == is_float && *wanted != DType::kBool;
  const DType dtype = takes_wanted ? *wanted : is_float ? DType::kF32 : DType::kI64;
  if (dtype == DType::kI64 && literal.dtype == DType::kU64)
    return OutOfI64(operand->position, static_cast<uint64_t>(literal.value.i));
  Expr resolved = LiteralOfType(dtype, literal.dtype, literal.value.f, literal.value.i);
  if (resolved == nullptr) {
    return tokens_.Error(operand->position, absl::StrCat("the literal is no value of ", DTypeName(dtype),
                                                         "; expected one in its range"));
  }
  operand->expr = std::move(resolved);
  operand->untyped = false;
  return absl::OkStatus();
}

}  // namespace mycc
