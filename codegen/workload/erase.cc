// Makes the shape-erased text of a workload, which is the same for a computation at every shape. The second
// hash is computed from it.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/expr/print.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

// Replaces numbers that depend on the shape by `_`:
//  - in index arithmetic, every constant except strides and dilations. A factor counts as a stride unless it
//    is the number of values of the terms below it (56 in i*56 + j, with j of 56 values: a flattened index);
//  - in values, float constants that are an extent of a reduction, its root, or the reciprocal of either
//    (means, attention's scale).
class Eraser {
 public:
  explicit Eraser(const Workload& workload) {
    for (const Stage& stage : workload.stages) {
      double product = 1;
      for (const Var& axis : stage.reduce_axes) {
        AddCount(static_cast<double>(axis->extent));
        product *= static_cast<double>(axis->extent);
      }
      AddCount(product);
    }
  }

  Expr EraseValue(const Expr& expr) const {
    if (expr->op == Op::kConst)
      return IsFloat(expr->dtype) && IsCountOfReduction(*expr) ? Load(MakeBuffer("_", expr->dtype, {}), {})
                                                               : expr;
    std::vector<Expr> args;
    const bool of_axes = std::ranges::none_of(expr->args, HasLoad) && !expr->args.empty() &&
                         expr->args[0]->dtype == DType::kI64;
    for (const Expr& arg : expr->args)
      args.push_back(of_axes || expr->op == Op::kLoad ? EraseIndex(arg) : EraseValue(arg));
    return WithArgs(expr, std::move(args));
  }

 private:
  void AddCount(double count) {
    if (count > 1) counts_.insert(counts_.end(), {count, 1 / count, std::sqrt(count), 1 / std::sqrt(count)});
  }

  bool IsCountOfReduction(const ExprNode& constant) const {
    return std::ranges::any_of(counts_, [&](double count) {
      return RoundFloat(constant.dtype, count) == std::fabs(constant.value.f);
    });
  }

  struct Term {
    int64_t factor;
    int64_t values;  // the number of values of the term's axis; 0 for other terms
  };

  static void CollectTerms(const Expr& expr, std::vector<Term>* terms) {
    if (expr->op == Op::kAdd || expr->op == Op::kSub) {
      CollectTerms(expr->args[0], terms);
      CollectTerms(expr->args[1], terms);
    } else if (expr->op == Op::kVar) {
      terms->push_back({1, expr->var->extent});
    } else if (expr->op == Op::kMul) {
      const int constant = IsConstInt(expr->args[0]) ? 0 : 1;
      const Expr& other = expr->args[1 - constant];
      int64_t factor = 0;
      if (IsConstInt(expr->args[constant], &factor))
        terms->push_back({factor, other->op == Op::kVar ? other->var->extent : 0});
    }
  }

  Expr EraseIndex(const Expr& expr) const {
    std::vector<Term> terms;
    CollectTerms(expr, &terms);
    return EraseInSum(expr, terms);
  }

  Expr EraseInSum(const Expr& expr, const std::vector<Term>& terms) const {
    if (expr->op == Op::kConst) return unknown_;
    if (expr->args.empty()) return expr;
    if (expr->op == Op::kMul) return EraseFactor(expr, terms);
    std::vector<Expr> args;
    for (const Expr& arg : expr->args) {
      args.push_back(expr->op == Op::kAdd || expr->op == Op::kSub ? EraseInSum(arg, terms) : EraseIndex(arg));
    }
    return WithArgs(expr, std::move(args));
  }

  Expr EraseFactor(const Expr& product, const std::vector<Term>& terms) const {
    std::vector<Expr> args;
    for (const Expr& arg : product->args) {
      int64_t factor = 0;
      if (!IsConstInt(arg, &factor)) {
        args.push_back(EraseIndex(arg));
        continue;
      }
      int64_t below = 1;
      for (const Term& term : terms) {
        if (std::abs(term.factor) < std::abs(factor) && term.values > 0) below *= term.values;
      }
      args.push_back(below > 1 && std::abs(factor) == below ? unknown_ : arg);
    }
    return WithArgs(product, std::move(args));
  }

  const Expr unknown_ = VarRef(MakeVar("_", 1));
  std::vector<double> counts_;
};

std::string ErasedType(const Buffer& tensor) {
  return absl::StrCat(DTypeName(tensor->dtype), "[",
                      absl::StrJoin(std::vector<std::string>(tensor->rank(), "_"), ","), "]");
}

std::string AxisNames(const std::vector<Var>& axes) {
  return absl::StrJoin(axes, ",",
                       [](std::string* out, const Var& axis) { absl::StrAppend(out, axis->name); });
}

}  // namespace

std::string ShapeErasedText(const Workload& workload) {
  const Workload canonical = Canonicalize(workload);
  const Eraser eraser(canonical);
  std::string text = "v1 shapeless(";
  for (const Argument& input : canonical.inputs) {
    absl::StrAppend(&text, input.tensor->name, ": ", input.is_const ? "const " : "", ErasedType(input.tensor),
                    " ");
  }
  absl::StrAppend(&text, ") -> (");
  for (const Buffer& output : canonical.outputs)
    absl::StrAppend(&text, output->name, ": ", ErasedType(output), " ");
  absl::StrAppend(&text, ")\n");
  for (const Stage& stage : canonical.stages) {
    absl::StrAppend(&text, stage.output->name, "[", AxisNames(stage.axes), "]: ", ErasedType(stage.output),
                    " = ", std::string(ReduceOpName(stage.reduce)), "[", AxisNames(stage.reduce_axes), "] ",
                    PrintExpr(eraser.EraseValue(stage.value)), "\n");
  }
  return text;
}

}  // namespace mycc
