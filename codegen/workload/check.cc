// Rules that hold for one stage alone: axes, reductions, operand types, and sizes within the limits.
#include "codegen/workload/check.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/workload/index.h"
#include "codegen/workload/limits.h"
#include "codegen/workload/operators.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

// The product of extents; -1 beyond `limit`. Extents of 0 count as 1, so that an empty tensor has legal
// strides too.
int64_t BoundedProduct(const std::vector<int64_t>& extents, int64_t limit) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (extent > 1 && product > limit / extent) return -1;
    product *= std::max<int64_t>(extent, 1);
  }
  return product;
}

std::string AxesProblem(const Stage& stage) {
  if (ExtentsOf(stage.axes) != stage.output->shape) {
    return absl::StrCat("the axes of `", stage.output->name,
                        "` do not run over its shape; expected one axis for each dimension");
  }
  std::vector<int64_t> points = stage.output->shape;
  std::unordered_set<std::string> names;
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Var& axis : *axes) {
      if (std::string problem = NameProblem(axis->name); !problem.empty()) return problem;
      if (!names.insert(axis->name).second)
        return absl::StrCat("the axis `", axis->name, "` is named twice; expected distinct axes");
      if (axis->extent < 0)
        return absl::StrCat("the axis `", axis->name, "` has extent ", axis->extent, "; expected 0 or more");
    }
  }
  for (const Var& axis : stage.reduce_axes) points.push_back(axis->extent);
  if (stage.reduce_axes.size() > kMaxRank)
    return absl::StrCat("a reduction over more than ", kMaxRank, " axes; expected fewer");
  return BoundedProduct(points, kMaxIterations) < 0 ? "the stage has more than 2^60 points; expected fewer"
                                                    : "";
}

std::string ReductionProblem(const Stage& stage) {
  const DType value = stage.value->dtype;
  const std::string name(ReduceOpName(stage.reduce));
  if (stage.reduce == ReduceOp::kNone && !stage.reduce_axes.empty())
    return "reduction axes without a reduction; expected none";
  if (stage.reduce != ReduceOp::kNone && stage.reduce_axes.empty())
    return absl::StrCat("`", name, "` over no axes; expected at least one");
  if (const std::string expected = ExpectedOperands(stage.reduce, value); !expected.empty()) {
    return absl::StrCat("`", name, "` of ", DTypeName(value), "; expected ", expected);
  }
  const bool is_arg = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
  if (is_arg) {
    if (stage.reduce_axes.size() != 1)
      return absl::StrCat("`", name, "` over ", stage.reduce_axes.size(), " axes; expected one");
    const int64_t extent = stage.reduce_axes[0]->extent;
    if (extent < 1 || extent > INT32_MAX)
      return absl::StrCat("`", name, "` over ", extent, " values; expected 1 to 2147483647");
  }
  const DType result = is_arg ? DType::kI32 : value;
  if (result == stage.output->dtype) return "";
  return absl::StrCat("`", stage.output->name, "` is ", DTypeName(stage.output->dtype), " and its value ",
                      DTypeName(result), "; expected one type (write a cast)");
}

// Visits each shared node once; counts nodes as in a tree.
class ExprChecker {
 public:
  ExprChecker(const Stage& stage, const BufferSet& readable) : readable_(readable) {
    for (const Var& axis : stage.axes) axes_.insert(axis.get());
    for (const Var& axis : stage.reduce_axes) axes_.insert(axis.get());
  }

  std::string Check(const Expr& expr) {
    Measure(expr);
    return problem_;
  }

 private:
  struct Size {
    int64_t nodes = 1;
    int divisions = 0;  // nested divisions of indices
  };

  Size Measure(const Expr& expr) {
    if (const auto known = sizes_.find(expr.get()); known != sizes_.end() || !problem_.empty()) {
      return problem_.empty() ? known->second : Size();
    }
    CheckNode(expr);
    Size size;
    for (const Expr& arg : expr->args) {
      const Size operand = Measure(arg);
      size.nodes = std::min(size.nodes + operand.nodes, kMaxExprNodes + 1);
      size.divisions = std::max(size.divisions, operand.divisions);
    }
    if (expr->dtype != DType::kI64) size.divisions = 0;
    if (expr->dtype == DType::kI64 && (expr->op == Op::kFloorDiv || expr->op == Op::kMod)) ++size.divisions;
    if (size.nodes > kMaxExprNodes)
      Refuse(absl::StrCat("the expression has more than ", kMaxExprNodes,
                          " operations; expected stages of their own"));
    if (size.divisions > kMaxDivisions) {
      Refuse(absl::StrCat("more than ", kMaxDivisions,
                          " divisions of i64 inside one another; expected stages of their own"));
    }
    return sizes_[expr.get()] = size;
  }

  void CheckNode(const Expr& expr) {
    if (expr->op == Op::kVar && axes_.count(expr->var.get()) == 0) {
      Refuse(absl::StrCat("`", expr->var->name, "` is no axis of the stage"));
    } else if (expr->op == Op::kLoad && readable_.count(expr->buffer.get()) == 0) {
      Refuse(absl::StrCat("`", expr->buffer->name, "` is read; expected an input or an earlier stage"));
    } else if (!expr->args.empty() && expr->op != Op::kLoad) {
      const DType operand = expr->args[0]->dtype;
      const std::string expected = ExpectedOperands(expr->op, operand);
      if (!expected.empty())
        Refuse(absl::StrCat("`", std::string(OpName(expr->op)), "` of ", DTypeName(operand), "; expected ",
                            expected));
    }
  }

  void Refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  const BufferSet& readable_;
  VarSet axes_;
  std::unordered_map<const ExprNode*, Size> sizes_;
  std::string problem_;
};

int DepthOf(const Expr& expr, std::unordered_map<const ExprNode*, int>* known) {
  const auto it = known->find(expr.get());
  if (it != known->end()) return it->second;
  int depth = 0;
  for (const Expr& arg : expr->args) depth = std::max(depth, DepthOf(arg, known));
  return (*known)[expr.get()] = depth + 1;
}

}  // namespace

std::string ShapeProblem(const std::vector<int64_t>& shape) {
  if (shape.size() > kMaxRank)
    return absl::StrCat("a tensor of rank ", shape.size(), "; expected at most ", kMaxRank);
  for (int64_t extent : shape) {
    if (extent < 0) return absl::StrCat("an extent of ", extent, "; expected 0 or more");
  }
  return BoundedProduct(shape, kMaxElements) < 0 ? "a tensor of more than 2^40 elements; expected fewer" : "";
}

std::string NameProblem(const std::string& name) {
  const bool word = !name.empty() && !absl::ascii_isdigit(name[0]) &&
                    std::ranges::all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
  if (!word)
    return absl::StrCat("`", name,
                        "` is no name; expected letters, digits and _, not beginning with a digit");
  return IsReservedWord(name) ? absl::StrCat("`", name, "` is a word of the language; expected another name")
                              : "";
}

int DepthOf(const Expr& expr) {
  std::unordered_map<const ExprNode*, int> known;
  return DepthOf(expr, &known);
}

std::optional<StageProblem> CheckStage(const Stage& stage, const BufferSet& readable) {
  std::string problem = NameProblem(stage.output->name);
  if (problem.empty()) problem = ShapeProblem(stage.output->shape);
  if (problem.empty()) problem = AxesProblem(stage);
  if (problem.empty() && DepthOf(stage.value) > kMaxExprDepth) {
    problem =
        absl::StrCat("the expression has more than ", kMaxExprDepth, " levels; expected stages of their own");
  }
  if (problem.empty()) problem = ExprChecker(stage, readable).Check(stage.value);
  if (problem.empty()) problem = ReductionProblem(stage);
  if (!problem.empty()) return StageProblem{std::move(problem)};
  return FindBadRead(stage);
}

}  // namespace mycc
