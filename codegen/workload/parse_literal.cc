// Parses literals, typed ones and casts among them, and gives untyped ones their type.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse_expr.h"

namespace mycc {
namespace {

// A literal's constant of type `dtype`; nullptr when it does not fit.
Expr LiteralOfType(DType dtype, bool is_float, double f, int64_t i) {
  if (!IsFloat(dtype)) {
    if (is_float || dtype == DType::kBool || WrapInt(dtype, i) != i) return nullptr;
    return IntConst(i, dtype);
  }
  const double value = is_float ? f : static_cast<double>(i);
  const double rounded = RoundFloat(dtype, value);
  // 8-bit floats do not overflow; they saturate at their largest number.
  const bool beyond = IsFloat8(dtype) ? std::fabs(value) > RoundFloat(dtype, 1e30) && rounded != value
                                      : std::isfinite(value) && !std::isfinite(rounded);
  return beyond ? nullptr : FloatConst(rounded, dtype);
}

}  // namespace

bool ExprParser::AtLiteral() const {
  const Token& token = tokens_.Peek();
  return token.kind == Token::Kind::kInt || token.kind == Token::Kind::kFloat || token.Is("inf");
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseLiteral(bool negative, std::optional<DType> dtype) {
  const Token& token = tokens_.Next();
  const bool is_float = token.kind != Token::Kind::kInt;
  double f = token.Is("inf")   ? std::numeric_limits<double>::infinity()
             : token.Is("nan") ? std::numeric_limits<double>::quiet_NaN()
                               : token.float_value;
  if (negative) f = -f;
  if (!is_float && !negative &&
      token.int_value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return tokens_.Error(token.position,
                         "9223372036854775808 is out of range; expected at most 9223372036854775807");
  }
  const int64_t i = static_cast<int64_t>(negative ? 0 - token.int_value : token.int_value);
  const DType type = dtype.value_or(is_float ? DType::kF64 : DType::kI64);
  Operand literal{LiteralOfType(type, is_float, f, i), token.position};
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
  Expr resolved = LiteralOfType(dtype, is_float, literal.value.f, literal.value.i);
  if (resolved == nullptr) {
    return tokens_.Error(operand->position, absl::StrCat("the literal is no value of ", DTypeName(dtype),
                                                         "; expected one in its range"));
  }
  operand->expr = std::move(resolved);
  operand->untyped = false;
  return absl::OkStatus();
}

}  // namespace mycc
