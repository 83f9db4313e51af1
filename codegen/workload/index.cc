#include "codegen/workload/index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/workload/limits.h"

namespace mycc {
namespace {

// An integer expression of another type as i64, if converting its reads gives the same value; else nullptr.
Expr WidenOperands(const Expr& expr) {
  switch (expr->op) {
    case Op::kConst: return IntConst(expr->value.i);
    case Op::kLoad: return MakeCast(DType::kI64, expr);
    case Op::kMin:
    case Op::kMax: {
      if (expr->dtype == DType::kU64) return nullptr;  // as i64 its upper half is negative
      const Expr a = WidenOperands(expr->args[0]), b = WidenOperands(expr->args[1]);
      return a && b ? MakeBinary(expr->op, a, b) : nullptr;
    }
    default: return nullptr;
  }
}

struct Bounds {
  __int128 min = 0;
  __int128 max = 0;
};

// Checks the operations of an index, and that no intermediate value overflows 64 bits. Every axis counts as
// at least two values, so that the bounds also cover the coefficients that simplification computes.
class IndexChecker {
 public:
  explicit IndexChecker(bool data_allowed) : data_allowed_(data_allowed) {}

  Bounds Check(const Expr& expr) {
    switch (expr->op) {
      case Op::kConst: return Limited(expr, {expr->value.i, expr->value.i});
      case Op::kVar: return Limited(expr, {0, std::max<int64_t>(expr->var->extent, 1)});
      case Op::kLoad: return CheckData(expr);
      case Op::kCast:
        if (expr->args[0]->op == Op::kLoad && !IsFloat(expr->args[0]->dtype)) return CheckData(expr->args[0]);
        return Refuse(expr, " is not affine; expected the conversion of an integer read");
      case Op::kNeg: {
        const Bounds a = CheckOperand(expr->args[0]);
        return {-a.max, -a.min};
      }
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kMin:
      case Op::kMax: return CheckBinary(expr);
      case Op::kFloorDiv:
      case Op::kMod: return CheckDivision(expr);
      default:
        return Refuse(
            expr,
            " is not affine; expected +, -, a constant factor, // and % by a constant, min, max or clamp");
    }
  }

  const std::string& problem() const { return problem_; }

 private:
  Bounds CheckOperand(const Expr& expr) { return Limited(expr, Check(expr)); }

  Bounds CheckBinary(const Expr& expr) {
    if (expr->op == Op::kMin || expr->op == Op::kMax) {
      const Bounds a = Check(expr->args[0]), b = Check(expr->args[1]);
      if (expr->op == Op::kMin) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    const Bounds a = CheckOperand(expr->args[0]), b = CheckOperand(expr->args[1]);
    if (expr->op == Op::kAdd) return Limited(expr, {a.min + b.min, a.max + b.max});
    if (expr->op == Op::kSub) return Limited(expr, {a.min - b.max, a.max - b.min});
    if (!IsConstInt(expr->args[0]) && !IsConstInt(expr->args[1])) {
      return Refuse(expr, " is not affine; expected one factor to be a constant");
    }
    const auto corners = std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
    return Limited(expr, {corners.first, corners.second});
  }

  Bounds CheckDivision(const Expr& expr) {
    int64_t divisor = 0;
    if (!IsConstInt(expr->args[1], &divisor) || divisor <= 0)
      return Refuse(expr, " is not affine; expected a positive constant divisor");
    CheckOperand(expr->args[1]);
    const Bounds a = CheckOperand(expr->args[0]);
    if (expr->op == Op::kMod) return {0, divisor - 1};
    return {a.min / divisor - 1, a.max / divisor + 1};
  }

  Bounds CheckData(const Expr& read) {
    if (!data_allowed_) return Refuse(read, " is data within a data-dependent index; expected one level");
    for (const Expr& index : read->args) {
      IndexChecker inner(/*data_allowed=*/false);
      inner.CheckOperand(index);
      if (problem_.empty()) problem_ = inner.problem();
    }
    const int bits = DTypeBytes(read->dtype) * 8;
    return {-(static_cast<__int128>(1) << (bits - 1)), static_cast<__int128>(1) << bits};
  }

  Bounds Limited(const Expr& expr, Bounds bounds) {
    if (bounds.min >= -kMaxIndex && bounds.max <= kMaxIndex) return bounds;
    return Refuse(expr, " may leave 64 bits here; expected values below 2^60 (clamp what is read)");
  }

  Bounds Refuse(const Expr& expr, const char* why) {
    if (problem_.empty()) problem_ = absl::StrCat(Quote(expr), " in an index", why);
    return {};
  }

  bool data_allowed_;
  std::string problem_;
};

}  // namespace

std::string Quote(const Expr& expr) {
  constexpr size_t kShown = 80;
  std::string text = PrintExpr(expr);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return absl::StrCat("`", text, "`");
}

Expr WidenIndex(const Expr& index) {
  if (index->dtype != DType::kI64) return WidenOperands(index);
  return Rewrite(index, [](const Expr& expr) -> Expr {
    if (expr->op != Op::kCast || expr->dtype != DType::kI64 || !IsInt(expr->args[0]->dtype)) return nullptr;
    return WidenOperands(expr->args[0]);
  });
}

std::string IndexProblem(const Expr& index) {
  IndexChecker checker(/*data_allowed=*/true);
  checker.Check(index);
  return checker.problem();
}

bool IsAffineOfAxes(const Expr& expr) {
  if (expr->dtype != DType::kI64 || HasLoad(expr)) return false;
  IndexChecker checker(/*data_allowed=*/false);
  checker.Check(expr);
  return checker.problem().empty();
}

}  // namespace mycc
