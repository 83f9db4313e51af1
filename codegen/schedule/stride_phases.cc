#include "codegen/schedule/stride_phases.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/integers.h"
#include "codegen/expr/product.h"

namespace mycc {
namespace {

// One dimension of the convolution, in which i + offset - r is divided by the stride.
struct Dimension {
  int axis, tap;  // indices of the stage's axis and reduction axis
  int64_t stride, offset;
  int64_t first, last;  // range of the input's elements that the taps read; it may exceed the input
};

// i + offset - r.
std::optional<Dimension> DimensionOf(const Expr& sum, int64_t stride, const Stage& stage) {
  const Linear linear = ToLinear(sum);
  Dimension result{-1, -1, stride, linear.constant, 0, 0};
  for (const auto& [atom, coefficient] : linear.terms) {
    if (coefficient == 1 && result.axis < 0) result.axis = PlaceOf(atom, stage.axes);
    if (coefficient == -1 && result.tap < 0) result.tap = PlaceOf(atom, stage.reduce_axes);
  }
  if (linear.terms.size() != 2 || result.axis < 0 || result.tap < 0) return std::nullopt;
  const int64_t extent = stage.axes[result.axis]->extent, taps = stage.reduce_axes[result.tap]->extent;
  if (extent % stride != 0 || taps % stride != 0) return std::nullopt;
  result.first = 1 - taps / stride + FloorDivInt(result.offset, stride);
  result.last = extent / stride - 1 + FloorDivInt(stride - 1 + result.offset, stride);
  return result;
}

class Matcher {
 public:
  explicit Matcher(const Stage& stage) : stage_(stage) {}

  std::vector<Stage> Match() {
    const Expr& value = stage_.value;
    if (!SumsProducts(stage_)) return {};
    const int which = value->args[0]->op == Op::kSelect ? 0 : 1;
    const Expr &select = value->args[which], &weights = value->args[1 - which];
    if (select->op != Op::kSelect || select->args[1]->op != Op::kLoad || weights->op != Op::kLoad ||
        select->args[2]->op != Op::kConst || select->args[2]->value.f != 0 || !IsFloat(select->dtype))
      return {};
    if (!MatchConditions(select->args[0])) return {};
    ShortenTaps();
    if (!MatchInput(*select->args[1], select->args[2]) || !MatchWeights(*weights)) return {};
    sum_.value = which == 0 ? input_ * weights_ : weights_ * input_;
    return {in_, sum_};
  }

 private:
  // Every condition bounds a dimension's i + offset - r, or says that the stride divides it.
  bool MatchConditions(const Expr& condition) {
    for (const Expr& part : SplitConjunction(condition)) {
      int64_t stride = 0, zero = 1;
      if (part->op != Op::kEq) {
        bounds_.push_back(part);
        continue;
      }
      const Expr& mod = part->args[0];
      if (!IsConstInt(part->args[1], &zero) || zero != 0 || mod->op != Op::kMod ||
          !IsConstInt(mod->args[1], &stride) || stride < 2)
        return false;
      const auto dimension = DimensionOf(mod->args[0], stride, stage_);
      if (!dimension) return false;
      dimensions_.push_back(*dimension);
    }
    return !dimensions_.empty();
  }

  bool IsUsed(const Expr& expr, const Dimension& dimension) const {
    return UsesVar(expr, stage_.axes[dimension.axis].get()) ||
           UsesVar(expr, stage_.reduce_axes[dimension.tap].get());
  }

  // The dimension whose i + offset - r is divided in an index of the input.
  const Dimension* DividedIn(const Expr& index) const {
    for (const Dimension& d : dimensions_) {
      int64_t stride = 0;
      if (index->op != Op::kFloorDiv || !IsConstInt(index->args[1], &stride) || stride != d.stride) continue;
      const auto same = DimensionOf(index->args[0], stride, stage_);
      if (same && same->axis == d.axis && same->tap == d.tap && same->offset == d.offset) return &d;
    }
    return nullptr;
  }

  bool MatchInput(const ExprNode& load, const Expr& zero) {
    std::vector<Expr> from, index;
    std::vector<int64_t> shape;
    VarMap at;  // values of i and r for which i + offset - r is an element's index times the stride
    for (size_t d = 0; d < load.args.size(); ++d) {
      const Dimension* dimension = DividedIn(load.args[d]);
      const bool plain = std::ranges::none_of(
          dimensions_, [&](const Dimension& other) { return IsUsed(load.args[d], other); });
      if (dimension == nullptr && !plain) return false;
      shape.push_back(dimension ? dimension->last - dimension->first + 1 : load.buffer->shape[d]);
      in_.axes.push_back(MakeVar(absl::StrCat("a", d), shape.back()));
      const Expr here = VarRef(in_.axes.back());
      from.push_back(dimension ? here + dimension->first : here);
      index.push_back(dimension ? IndexOf(*dimension) : load.args[d]);
      if (dimension == nullptr) continue;
      at[stage_.axes[dimension->axis].get()] = from.back() * dimension->stride - dimension->offset;
      at[stage_.reduce_axes[dimension->tap].get()] = IntConst(0);
    }
    if (at.size() != 2 * dimensions_.size()) return false;
    Expr inside = BoolConst(true);
    for (const Expr& bound : bounds_) {
      if (!IsOfOneDimension(bound)) return false;
      inside = MakeBinary(Op::kAnd, inside, Simplify(Substitute(bound, at)));
    }
    in_.output = MakeBuffer(absl::StrCat(stage_.output->name, ".in"), load.buffer->dtype, shape);
    in_.value = Simplify(MakeSelect(inside, Load(load.buffer, from), zero));
    input_ = Load(in_.output, index);
    return true;
  }

  // A comparison that depends only on i - r, for one dimension.
  bool IsOfOneDimension(const Expr& bound) const {
    if ((bound->op != Op::kLt && bound->op != Op::kLe) || bound->args[0]->dtype != DType::kI64) return false;
    const Linear linear = ToLinear(bound->args[0] - bound->args[1]);
    return linear.terms.size() == 2 && std::ranges::any_of(dimensions_, [&](const Dimension& d) {
             const int64_t i = linear.CoefficientOf(stage_.axes[d.axis].get());
             return i != 0 && i == -linear.CoefficientOf(stage_.reduce_axes[d.tap].get());
           });
  }

  Expr IndexOf(const Dimension& d) const {
    const Expr i = VarRef(stage_.axes[d.axis]), r = VarRef(sum_.reduce_axes[d.tap]);
    return FloorDiv(i, d.stride) - r + FloorDiv(Mod(i, d.stride) + d.offset, d.stride) - d.first;
  }

  bool MatchWeights(const ExprNode& load) {
    std::vector<Expr> index;
    for (const Expr& old : load.args) {
      index.push_back(old);
      for (const Dimension& d : dimensions_) {
        if (!IsUsed(old, d)) continue;
        if (PlaceOf(old, stage_.reduce_axes) != d.tap) return false;
        index.back() = VarRef(sum_.reduce_axes[d.tap]) * d.stride +
                       Mod(Mod(VarRef(stage_.axes[d.axis]), d.stride) + d.offset, d.stride);
      }
    }
    weights_ = Load(load.buffer, index);
    return true;
  }

  // The sum runs over fewer taps, with the old names; other reduction axes stay.
  void ShortenTaps() {
    sum_ = stage_;
    for (const Dimension& d : dimensions_) {
      Var& tap = sum_.reduce_axes[d.tap];
      tap = MakeVar(tap->name, tap->extent / d.stride);
    }
  }

  const Stage& stage_;
  Stage in_, sum_;  // what StridePhaseStages returns
  std::vector<Dimension> dimensions_;
  std::vector<Expr> bounds_;
  Expr input_, weights_;
};

}  // namespace

std::vector<Stage> StridePhaseStages(const Stage& stage) { return Matcher(stage).Match(); }

}  // namespace mycc
