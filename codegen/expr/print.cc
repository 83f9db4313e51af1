#include "codegen/expr/print.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mycc {
namespace {

// Precedence levels, from the loosest; the grammar in docs/language.md has one rule for each.
enum Precedence { kOrLevel, kAndLevel, kCompareLevel, kSumLevel, kProductLevel, kUnaryLevel, kPrimaryLevel };

struct Infix {
  Op op;
  const char* text;
  Precedence level;
};

constexpr Infix kInfix[] = {
    {Op::kOr, "||", kOrLevel},      {Op::kAnd, "&&", kAndLevel},          {Op::kLt, "<", kCompareLevel},
    {Op::kLe, "<=", kCompareLevel}, {Op::kEq, "==", kCompareLevel},       {Op::kNe, "!=", kCompareLevel},
    {Op::kAdd, "+", kSumLevel},     {Op::kSub, "-", kSumLevel},           {Op::kMul, "*", kProductLevel},
    {Op::kDiv, "/", kProductLevel}, {Op::kFloorDiv, "//", kProductLevel}, {Op::kMod, "%", kProductLevel},
};

const Infix* FindInfix(Op op) {
  const Infix* found = std::ranges::find(kInfix, op, &Infix::op);
  return found != std::end(kInfix) ? found : nullptr;
}

// The fewest digits that read back (decimal -> f64 -> type) as the same value, always with a point or an
// exponent; 40.0, not 4e+01.
std::string FloatDigits(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text;
  // %g prints an exponent when the precision is smaller than the number of digits before the point.
  const double magnitude = std::fabs(value);
  const int whole = magnitude >= 1 && magnitude < 1e6 ? static_cast<int>(std::log10(magnitude)) + 1 : 1;
  for (int precision = whole; precision <= 17; ++precision) {
    text = absl::StrFormat("%.*g", precision, value);
    double parsed = 0;
    if (absl::SimpleAtod(text, &parsed) && RoundFloat(dtype, parsed) == value) break;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Digits(DType dtype, Scalar value) {
  if (dtype == DType::kBool) return value.i != 0 ? "true" : "false";
  return IsFloat(dtype) ? FloatDigits(dtype, value.f) : PrintInt(dtype, value.i);
}

// A literal with its type written out.
std::string TypedLiteral(DType dtype, Scalar value) {
  return absl::StrCat(DTypeName(dtype), "(", Digits(dtype, value), ")");
}

bool IsDefaultLiteral(const ExprNode& expr) {
  return expr.op == Op::kConst && (expr.dtype == DType::kF32 || expr.dtype == DType::kI64);
}

// min(max(x, constant), constant), which the language writes as clamp.
bool IsClamp(const ExprNode& expr) {
  return expr.op == Op::kMin && expr.args[1]->op == Op::kConst && expr.args[0]->op == Op::kMax &&
         expr.args[0]->args[1]->op == Op::kConst;
}

class Printer {
 public:
  explicit Printer(const PrintNames& names) : names_(names) {}

  // `context` is the loosest level that needs no parentheses here; indices are printed without spaces.
  void Print(const ExprNode& expr, Precedence context, bool compact) {
    const Precedence level = LevelOf(expr);
    if (level < context) out_ += '(';
    PrintNode(expr, compact);
    if (level < context) out_ += ')';
  }

  std::string Take() { return std::move(out_); }

 private:
  static Precedence LevelOf(const ExprNode& expr) {
    if (const Infix* infix = FindInfix(expr.op)) return infix->level;
    return expr.op == Op::kNeg || expr.op == Op::kNot ? kUnaryLevel : kPrimaryLevel;
  }

  void PrintNode(const ExprNode& expr, bool compact) {
    switch (expr.op) {
      case Op::kConst: out_ += PrintLiteral(expr.dtype, expr.value); return;
      case Op::kVar: out_ += names_.var ? names_.var(*expr.var) : expr.var->name; return;
      case Op::kLoad:
        return PrintList(names_.buffer ? names_.buffer(*expr.buffer) : expr.buffer->name, '[', expr.args, ']',
                         /*compact=*/true);
      case Op::kNeg: return PrintNegation(*expr.args[0], compact);
      case Op::kNot: out_ += '!'; return Print(*expr.args[0], kUnaryLevel, compact);
      case Op::kCast: return PrintCast(expr, compact);
      default: break;
    }
    if (const Infix* infix = FindInfix(expr.op)) return PrintInfix(expr, *infix, compact);
    if (IsClamp(expr))
      return PrintList("clamp", '(', {expr.args[0]->args[0], expr.args[0]->args[1], expr.args[1]}, ')',
                       compact);
    PrintList(std::string(OpName(expr.op)), '(', expr.args, ')', compact);
  }

  // `-1.0` is a literal; a negation of the literal 1.0 needs parentheses.
  void PrintNegation(const ExprNode& operand, bool compact) {
    const bool literal = IsDefaultLiteral(operand) && !std::isnan(operand.value.f) &&
                         Digits(operand.dtype, operand.value)[0] != '-';
    out_ += '-';
    Print(operand, literal ? static_cast<Precedence>(kPrimaryLevel + 1) : kUnaryLevel, compact);
  }

  // `f16(0.5)` is a literal; in a conversion of a literal the literal's own type is written out.
  void PrintCast(const ExprNode& expr, bool compact) {
    absl::StrAppend(&out_, DTypeName(expr.dtype), "(");
    const ExprNode& operand = *expr.args[0];
    if (IsDefaultLiteral(operand)) {
      out_ += TypedLiteral(operand.dtype, operand.value);
    } else {
      Print(operand, kOrLevel, compact);
    }
    out_ += ')';
  }

  void PrintInfix(const ExprNode& expr, const Infix& infix, bool compact) {
    // Operators group to the left; comparisons do not group at all.
    const Precedence tighter = static_cast<Precedence>(infix.level + 1);
    Print(*expr.args[0], infix.level == kCompareLevel ? tighter : infix.level, compact);
    absl::StrAppend(&out_, compact ? "" : " ", infix.text, compact ? "" : " ");
    Print(*expr.args[1], tighter, compact);
  }

  void PrintList(const std::string& name, char open, const std::vector<Expr>& args, char close,
                 bool compact) {
    out_ += name;
    out_ += open;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += compact ? "," : ", ";
      Print(*args[i], kOrLevel, compact);
    }
    out_ += close;
  }

  const PrintNames& names_;
  std::string out_;
};

}  // namespace

std::string PrintExpr(const Expr& expr, const PrintNames& names) {
  Printer printer(names);
  printer.Print(*expr, kOrLevel, /*compact=*/false);
  return printer.Take();
}

std::string PrintLiteral(DType dtype, Scalar value) {
  const bool is_default = dtype == DType::kF32 || dtype == DType::kI64 || dtype == DType::kBool;
  return is_default ? Digits(dtype, value) : TypedLiteral(dtype, value);
}

}  // namespace mycc
