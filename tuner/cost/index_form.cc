#include "tuner/cost/index_form.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

void AddScaled(IndexForm* to, const IndexForm& from, double factor) {
  const auto constant = [](const IndexForm& form) {
    return std::ranges::all_of(form.per_step, [](double step) { return step == 0; });
  };
  const bool alone = constant(*to);
  if (alone) {
    to->distinct = from.distinct;
  } else if (!constant(from)) {
    to->distinct *= from.distinct;
  }
  for (size_t l = 0; l < to->per_step.size(); ++l) to->per_step[l] += factor * from.per_step[l];
  to->gather = to->gather || from.gather;
}

}  // namespace

double IndexScope::Values(const IndexForm& form, size_t from) const {
  double span = 1, product = 1;
  for (size_t l = from; l < loops_.size(); ++l) {
    if (form.per_step[l] == 0) continue;
    span += std::abs(form.per_step[l]) * (loops_[l].extent - 1);
    product *= loops_[l].extent;
  }
  return std::min({form.gather ? product : std::min(span, product), form.distinct});
}

IndexForm IndexScope::OfVar(const VarNode* var) const {
  for (const auto& [bound, form] : bound_) {
    if (bound == var) return form;
  }
  IndexForm form(loops_.size());
  for (size_t l = 0; l < loops_.size(); ++l) {
    if (loops_[l].var == var) form.per_step[l] = 1;
  }
  return form;
}

double IndexScope::Span(const IndexForm& form) const {
  double span = 1;
  for (size_t l = 0; l < loops_.size(); ++l) span += std::abs(form.per_step[l]) * (loops_[l].extent - 1);
  return span;
}

// Steps that are multiples of the divisor move the quotient, the others the remainder; when those never reach
// the divisor, the two are apart (16 * j + i over 16 with i < 16).
IndexForm IndexScope::OfQuotient(IndexForm form, double divisor) const {
  const IndexForm remainder = WithoutMultiples(form, divisor);
  const bool apart = Span(remainder) <= divisor;
  for (size_t l = 0; l < loops_.size(); ++l)
    form.per_step[l] = (form.per_step[l] - (apart ? remainder.per_step[l] : 0)) / divisor;
  form.distinct = form.distinct / divisor + 1;
  return form;
}

IndexForm IndexScope::OfRemainder(IndexForm form, double divisor) const {
  form = WithoutMultiples(std::move(form), divisor);
  if (Span(form) > divisor) form.distinct = std::min(form.distinct, divisor);
  return form;
}

IndexForm IndexScope::WithoutMultiples(IndexForm form, double divisor) const {
  for (double& step : form.per_step) step = std::fmod(step, divisor);
  return form;
}

IndexForm IndexScope::OfData(const std::vector<Expr>& args) const {
  IndexForm form(loops_.size());
  form.gather = true;
  for (const Expr& arg : args) {
    const IndexForm inner = FormOf(arg);
    for (size_t l = 0; l < loops_.size(); ++l)
      form.per_step[l] = std::max(form.per_step[l], inner.per_step[l] != 0 ? 1.0 : 0.0);
  }
  return form;
}

IndexForm IndexScope::FormOf(const Expr& expr) const {
  int64_t constant = 0;
  switch (expr->op) {
    case Op::kConst: return IndexForm(loops_.size());
    case Op::kVar: return OfVar(expr->var.get());
    case Op::kAdd:
    case Op::kSub: {
      IndexForm sum = FormOf(expr->args[0]);
      if (!IsConstInt(expr->args[1])) AddScaled(&sum, FormOf(expr->args[1]), expr->op == Op::kAdd ? 1 : -1);
      return sum;
    }
    case Op::kNeg:
    case Op::kCast: return FormOf(expr->args[0]);
    case Op::kMul: {
      const bool second = IsConstInt(expr->args[1], &constant);
      if (!second && !IsConstInt(expr->args[0], &constant)) return OfData(expr->args);
      IndexForm form = FormOf(expr->args[second ? 0 : 1]);
      for (double& step : form.per_step) step *= static_cast<double>(constant);
      return form;
    }
    case Op::kFloorDiv:
    case Op::kMod: {
      if (!IsConstInt(expr->args[1], &constant) || constant <= 0) return OfData(expr->args);
      IndexForm form = FormOf(expr->args[0]);
      return expr->op == Op::kFloorDiv ? OfQuotient(std::move(form), static_cast<double>(constant))
                                       : OfRemainder(std::move(form), static_cast<double>(constant));
    }
    case Op::kMin:
    case Op::kMax: {  // a clamp: as the operand that moves
      IndexForm form = FormOf(expr->args[0]);
      return std::ranges::all_of(form.per_step, [](double s) { return s == 0; }) ? FormOf(expr->args[1])
                                                                                 : form;
    }
    case Op::kSelect: return FormOf(expr->args[1]);
    default: return OfData(expr->args);
  }
}

}  // namespace mycc
