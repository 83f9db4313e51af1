#include "codegen/workload/bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/workload/facts.h"
#include "codegen/workload/index.h"

namespace mycc {
namespace {

bool IsEmpty(const std::vector<Var>& axes) {
  return std::ranges::any_of(axes, [](const Var& axis) { return axis->extent == 0; });
}

// The first min or max whose operands contain no other one; nullptr when there is none.
Expr InnermostMinMax(const Expr& expr) {
  for (const Expr& arg : expr->args) {
    if (Expr found = InnermostMinMax(arg)) return found;
  }
  return expr->op == Op::kMin || expr->op == Op::kMax ? expr : nullptr;
}

IndexRange RangeOfIndex(const Expr& index, const Facts& facts) {
  constexpr int kEffort = 3;
  return RangeUnder(ToLinear(index), facts, Arithmetic::kExact, kEffort);
}

// Whether 0 <= index < extent follows from the facts. When ranges do not prove it, min and max are split into
// their two cases (reflections at a border need that), to the depth `splits`.
bool IsInside(const Expr& index, int64_t extent, const Facts& facts, int splits) {
  const auto [lower, upper] = RangeOfIndex(index, facts);
  if (lower && upper && ((*lower >= 0 && *upper < extent) || *lower > *upper)) return true;
  const Expr choice = splits > 0 ? InnermostMinMax(index) : nullptr;
  if (choice == nullptr) return false;
  for (int taken = 0; taken < 2; ++taken) {
    const Expr &value = choice->args[taken], &other = choice->args[1 - taken];
    Facts extended = facts;
    extended.push_back(ToLinear(choice->op == Op::kMin ? other - value : value - other));
    if (IsContradictory(extended)) continue;
    const Expr taken_index = Rewrite(
        index, [&](const Expr& expr) -> Expr { return StructurallyEqual(expr, choice) ? value : nullptr; });
    if (!IsInside(taken_index, extent, extended, splits - 1)) return false;
  }
  return true;
}

class ReadChecker {
 public:
  std::optional<StageProblem> Check(const Expr& expr, const FactCases& known) {
    if (expr->op == Op::kSelect) {
      const Expr& condition = expr->args[0];
      if (auto problem = Check(condition, known)) return problem;
      if (auto problem = Check(expr->args[1], Assume(condition, true, known))) return problem;
      return Check(expr->args[2], Assume(condition, false, known));
    }
    for (const Expr& arg : expr->args) {
      if (auto problem = Check(arg, known)) return problem;
    }
    return expr->op == Op::kLoad ? CheckRead(*expr, known) : std::nullopt;
  }

 private:
  static std::optional<StageProblem> CheckRead(const ExprNode& read, const FactCases& known) {
    for (int d = 0; d < read.buffer->rank(); ++d) {
      std::string problem = IndexProblem(read.args[d]);
      if (problem.empty()) problem = RangeProblem(read, d, known);
      if (!problem.empty()) return StageProblem{std::move(problem), &read, d};
    }
    return std::nullopt;
  }

  static std::string RangeProblem(const ExprNode& read, int d, const FactCases& known) {
    const int64_t extent = read.buffer->shape[d];
    for (const Facts& facts : known) {
      constexpr int kSplits = 4;
      if (IsInside(read.args[d], extent, facts, kSplits)) continue;
      const auto [lower, upper] = RangeOfIndex(read.args[d], facts);
      const std::string range =
          lower && upper ? absl::StrCat("ranges over ", *lower, "..", *upper) : "has no known bounds";
      const std::string expected = extent == 0
                                       ? absl::StrCat("no read, for `", read.buffer->name, "` is empty there")
                                       : absl::StrCat("0..", extent - 1);
      return absl::StrCat("index ", Quote(read.args[d]), " of `", read.buffer->name, "` (dimension ", d, ") ",
                          range, "; expected ", expected, " (guard the read with select, or clamp the index",
                          SharingHint(read.args[d], extent), ")");
    }
    return "";
  }

  // Heads that share keys are written so.
  static std::string SharingHint(const Expr& index, int64_t extent) {
    const bool shares = index->op == Op::kVar && extent > 0 && index->var->extent % extent == 0;
    if (!shares) return "";
    const int64_t number = index->var->extent / extent;
    return absl::StrCat("; ", index->var->name, "//", number, " where ", number, " share one");
  }
};

}  // namespace

std::optional<StageProblem> FindBadRead(const Stage& stage) {
  // A stage without points reads nothing; only the form of its indices is checked.
  const bool empty = IsEmpty(stage.axes) || IsEmpty(stage.reduce_axes);
  return ReadChecker().Check(stage.value, empty ? FactCases{} : FactCases{{}});
}

}  // namespace mycc
