// Evaluates stages element by element, on sets of values (value_set.h) instead of numbers.
#include "codegen/workload/permitted.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "codegen/expr/accuracy.h"
#include "codegen/expr/eval.h"
#include "codegen/expr/integers.h"
#include "codegen/expr/product.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/folded_stride.h"
#include "codegen/workload/joined_groups.h"
#include "codegen/workload/lanes.h"
#include "codegen/workload/sampled_values.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A cast from `from`. Tensor instructions multiply narrow floats without widening them first.
bool IsWidened(const Expr& expr, DType from) { return expr->op == Op::kCast && expr->args[0]->dtype == from; }

// Whether the product of two factors needs no set: f32, finite, and neither factor is so small that a tensor
// core takes it for zero. Most terms of sums are such.
bool IsPlain(DType dtype, double a, double b) {
  const double least = SmallestNormal(DType::kBF16), product = std::abs(a * b);
  return dtype == DType::kF32 && std::abs(a) >= least && std::abs(b) >= least &&
         product < LargestNumber(DType::kF32);
}

// The sum of terms in any order, with each partial sum rounded.
class SumSet {
 public:
  SumSet(const Stage& stage, int64_t terms) : dtype_(stage.value->dtype), terms_(static_cast<double>(terms)) {
    const Expr& value = stage.value;
    if (value->op != Op::kMul) return;
    flushes_ = IsWidened(value->args[0], DType::kBF16);
    const auto is_float8 = [](const Expr& factor) {
      return factor->op == Op::kCast && IsFloat8(factor->args[0]->dtype);
    };
    if (is_float8(value->args[0]) && is_float8(value->args[1])) share_ = 0x1p-9;
  }

  void Add(const ValueSet& term) {
    nan_ = nan_ || term.nan;
    if (!term.has_numbers()) {
      numbers_ = false;
      return;
    }
    if (term.high == kInf) may_rise_ = true, must_rise_ = must_rise_ || term.low == kInf;
    if (term.low == -kInf) may_fall_ = true, must_fall_ = must_fall_ || term.high == -kInf;
    low_ += term.low, high_ += term.high;
    magnitude_ += std::max(std::isinf(term.low) ? 0 : std::abs(term.low),
                           std::isinf(term.high) ? 0 : std::abs(term.high));
  }

  // Does what Add does, for a product of two plain factors.
  void AddPlain(double product) {
    const double rounded = RoundFloat(dtype_, product);
    low_ += std::min(product, rounded), high_ += std::max(product, rounded);
    magnitude_ += std::max(std::abs(product), std::abs(rounded));
  }

  ValueSet Result() const {
    if (!numbers_) return ValueSet::Floats(kInf, -kInf, true);
    const double roundoff = std::ldexp(1.0, -MantissaBits(dtype_) - 1);
    double error = terms_ > 1 ? (share_ + roundoff * (16 + 8 * std::sqrt(terms_))) * magnitude_ : 0;
    if (flushes_) error += terms_ * SmallestNormal(DType::kF32);
    if (magnitude_ + error >= LargestNumber(dtype_)) return ValueSet::Anything(dtype_);
    const bool nan = nan_ || (may_rise_ && may_fall_);
    if (must_rise_ && must_fall_) return ValueSet::Floats(kInf, -kInf, true);
    ValueSet result = ValueSet::Floats(may_fall_ ? -kInf : RoundFloat(dtype_, low_ - error),
                                       may_rise_ ? kInf : RoundFloat(dtype_, high_ + error), nan);
    if (must_rise_) result.low = kInf;
    if (must_fall_) result.high = -kInf;
    // The sign of a zero is not defined.
    if (result.low == 0) result.low = -0.0;
    if (result.high == 0) result.high = 0.0;
    return result;
  }

 private:
  const DType dtype_;
  const double terms_;
  bool flushes_ = false;
  double share_ = 0;
  bool nan_ = false, numbers_ = true;
  bool may_rise_ = false, must_rise_ = false, may_fall_ = false, must_fall_ = false;
  double low_ = 0, high_ = 0, magnitude_ = 0;
};

// The error of a product is bounded while all partial products are normal numbers; otherwise anything is
// permitted.
ValueSet ProductOf(DType dtype, const std::vector<ValueSet>& factors) {
  ValueSet product = ValueSet::Floats(1, 1);
  double rises = 0, falls = 0;
  for (const ValueSet& factor : factors) {
    if (factor.nan || !factor.has_numbers()) return factor.has_numbers() ? ValueSet::Anything(dtype) : factor;
    const double most = std::max(std::abs(factor.low), std::abs(factor.high));
    const double least =
        factor.low <= 0 && factor.high >= 0 ? 0 : std::min(std::abs(factor.low), std::abs(factor.high));
    rises += std::max(0.0, std::log2(most));
    falls += std::min(0.0, std::log2(least));
    product = PermittedProduct(DType::kF64, product, factor);
  }
  if (rises >= std::log2(LargestNumber(dtype)) || falls <= std::log2(SmallestNormal(dtype)))
    return ValueSet::Anything(dtype);
  const double roundoff = std::ldexp(1.0, -MantissaBits(dtype)), terms = static_cast<double>(factors.size());
  const double error = terms * roundoff * std::max(std::abs(product.low), std::abs(product.high));
  return ValueSet::Floats(RoundFloat(dtype, product.low - error), RoundFloat(dtype, product.high + error));
}

// The index of the first best value: an interval that contains all candidates. NaN is better than any number.
// `range` gives a value's least and most; the larger, the better.
template <typename T, typename RangeFn>
ValueSet BestIn(DType dtype, const std::vector<ValueSet>& values, const RangeFn& range) {
  std::optional<T> bound;  // the best value is at least this
  bool must_nan = false;
  for (const ValueSet& v : values) {
    const bool only_nan = IsFloat(dtype) && !v.has_numbers();
    must_nan = must_nan || only_nan;
    if (!only_nan) bound = bound ? std::max(*bound, range(v).first) : range(v).first;
  }
  int64_t first = -1, last = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueSet& v = values[i];
    const bool may_nan = IsFloat(dtype) && v.nan, only_nan = IsFloat(dtype) && !v.has_numbers();
    const bool may_win = may_nan || (!must_nan && !only_nan && range(v).second >= *bound);
    if (!may_win) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    last = static_cast<int64_t>(i);
    if (only_nan) break;  // later values cannot be better than the first NaN
  }
  // Among exactly known equal numbers only the first is right.
  const bool exact = std::ranges::all_of(values, [&](const ValueSet& v) {
    return !IsFloat(dtype) ? v.least == v.most : v.nan ? !v.has_numbers() : v.low == v.high;
  });
  return ValueSet::Integers(std::max<int64_t>(first, 0), exact ? std::max<int64_t>(first, 0) : last);
}

ValueSet BestOf(ReduceOp op, DType dtype, const std::vector<ValueSet>& values) {
  const bool smallest = op == ReduceOp::kArgMin;
  if (IsFloat(dtype)) {
    return BestIn<double>(dtype, values, [&](const ValueSet& v) {
      return smallest ? std::pair(-v.high, -v.low) : std::pair(v.low, v.high);
    });
  }
  return BestIn<int64_t>(dtype, values, [&](const ValueSet& v) {  // ~ turns the order around
    return smallest ? std::pair(~v.most, ~v.least) : std::pair(v.least, v.most);
  });
}

}  // namespace

struct PermittedReference::Impl {
  using Point = std::unordered_map<const VarNode*, int64_t>;

  // How a sum may have further terms, which are products with zero.
  struct FurtherTerms {
    std::optional<FoldedStride> fold;
    std::optional<GroupedSum> groups;
  };

  Impl(const Workload& w, InputElements elements_of) : workload(w), inputs(std::move(elements_of)) {
    for (size_t k = 0; k < workload.inputs.size(); ++k) numbers[workload.inputs[k].tensor.get()] = k;
    for (const Stage& stage : workload.stages) {
      stages[stage.output.get()] = &stage;
      if (IsSumOfProducts(stage)) {
        for (const Expr& factor : stage.value->args) factors[&stage].emplace_back(stage, factor);
      }
      FurtherTerms terms{FindFoldedStride(stage), FindGroupedSum(stage)};
      if (terms.groups && terms.groups->channels != terms.groups->kernels)
        terms.groups.reset();  // not joined
      if (terms.fold || terms.groups) further.emplace(&stage, std::move(terms));
    }
  }

  ValueSet Element(const BufferNode& tensor, int64_t flat) {
    if (const auto input = numbers.find(&tensor); input != numbers.end())
      return ValueSet::Only(tensor.dtype, inputs(input->second, flat));
    auto& known = elements[&tensor];
    if (const auto found = known.find(flat); found != known.end()) return found->second;
    const ValueSet value = Compute(*stages.at(&tensor), flat);
    elements[&tensor].emplace(flat, value);
    return value;
  }

  ValueSet Compute(const Stage& stage, const int64_t element) {
    Point point;
    int64_t flat = element;
    for (size_t k = stage.axes.size(); k-- > 0;) {
      point[stage.axes[k].get()] = flat % stage.axes[k]->extent;
      flat /= stage.axes[k]->extent;
    }
    if (const auto found = factors.find(&stage); found != factors.end())
      return SumOfProducts(stage, element, point, &found->second);
    if (stage.reduce != ReduceOp::kNone) return Reduced(stage, &point);
    // A product that another stage adds may be unrounded.
    return stage.value->op == Op::kMul && IsFloat(stage.value->dtype) && !IsOutput(stage.output)
               ? Term(stage.value, point)
               : Evaluate(stage.value, point);
  }

  bool IsOutput(const Buffer& tensor) const {
    return std::ranges::find(workload.outputs, tensor) != workload.outputs.end();
  }

  // An element of an input at a known place, as it is or widened without rounding.
  bool IsInputElement(const Expr& factor) const {
    const bool is_widened = factor->op == Op::kCast && !IsNarrowFloat(factor->dtype) &&
                            IsFloat(factor->args[0]->dtype) &&
                            DTypeBytes(factor->args[0]->dtype) < DTypeBytes(factor->dtype);
    const Expr& load = is_widened ? factor->args[0] : factor;
    return load->op == Op::kLoad && numbers.contains(load->buffer.get()) &&
           std::ranges::none_of(load->args, HasLoad);
  }

  // Most of the work of a network: sums of terms with two exact factors.
  bool IsSumOfProducts(const Stage& stage) const {
    const Expr& value = stage.value;
    return stage.reduce == ReduceOp::kSum && value->op == Op::kMul && IsFloat(value->dtype) &&
           IsInputElement(value->args[0]) && IsInputElement(value->args[1]) && !MayBeWinograd(stage);
  }

  // Gives what Reduced gives. It computes the factors of many terms at once.
  ValueSet SumOfProducts(const Stage& stage, int64_t element, const Point& point,
                         std::vector<LaneProgram>* programs) {
    const Expr& product = stage.value;
    const LaneReader read = [&](const LaneReads& reads) {
      const size_t input = numbers.at(&reads.tensor);
      return reads.Fill([&](int64_t position) { return inputs(input, position); });
    };
    const int64_t points = PointsOf(stage.reduce_axes);
    SumSet sum(stage, points);
    for (int64_t done = 0; done < points; done += kLanes) {
      const int count = static_cast<int>(std::min<int64_t>(kLanes, points - done));
      for (LaneProgram& program : *programs)
        MYCC_CHECK(program.Run(element * points + done, count, read)) << "a read outside of a tensor";
      for (int lane = 0; lane < count; ++lane) {
        const Scalar a = programs->front().value(lane), b = programs->back().value(lane);
        if (IsPlain(product->dtype, a.f, b.f)) {
          sum.AddPlain(a.f * b.f);
        } else {
          sum.Add(ProductTerm(product, ValueSet::Only(product->dtype, a), ValueSet::Only(product->dtype, b)));
        }
      }
    }
    ValueSet result = sum.Result();
    result.nan = result.nan || HasFurtherNan(stage, point);
    return result;
  }

  ValueSet Reduced(const Stage& stage, Point* point) {
    const DType dtype = stage.value->dtype;
    const int64_t points = PointsOf(stage.reduce_axes);
    const bool is_float = IsFloat(dtype), is_sum = stage.reduce == ReduceOp::kSum && is_float;
    const bool keeps = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin ||
                       (stage.reduce == ReduceOp::kProd && is_float);
    SumSet sum(stage, points);
    std::vector<ValueSet> kept;
    ValueSet running;
    if (!keeps) running = ValueSet::Only(dtype, ReduceIdentity(stage.reduce, dtype)->value);
    for (int64_t at = 0; at < points; ++at) {
      int64_t rest = at;
      for (size_t k = stage.reduce_axes.size(); k-- > 0;) {
        (*point)[stage.reduce_axes[k].get()] = rest % stage.reduce_axes[k]->extent;
        rest /= stage.reduce_axes[k]->extent;
      }
      const ValueSet value = is_sum ? Term(stage.value, *point) : Evaluate(stage.value, *point);
      if (is_sum) {
        sum.Add(value);
      } else if (keeps) {
        kept.push_back(value);
      } else {
        const ValueSet args[] = {running, value};
        running = PermittedOf(CombinerOf(stage.reduce), dtype, dtype, args);
      }
    }
    if (is_sum && MayBeWinograd(stage)) return ValueSet::Floats(-LargestNumber(dtype), LargestNumber(dtype));
    if (is_sum) {
      ValueSet result = sum.Result();
      result.nan = result.nan || HasFurtherNan(stage, *point);
      return result;
    }
    if (stage.reduce == ReduceOp::kProd && is_float) return ProductOf(dtype, kept);
    return keeps ? BestOf(stage.reduce, dtype, kept) : running;
  }

  // Whether a further term of the sum may be NaN: zero times an infinity or NaN. Folded strides round the
  // window up to a multiple of the stride; joined groups read the channels of other groups.
  bool HasFurtherNan(const Stage& stage, Point point) {
    const auto found = further.find(&stage);
    if (found == further.end()) return false;
    const auto& [fold, groups] = found->second;
    const ExprNode& x = *LoadOfFactor(stage.value->args[fold ? fold->input : groups->input]);
    std::vector<int64_t> extents = ExtentsOf(stage.reduce_axes);
    for (size_t f = 0; fold && f < fold->dims.size(); ++f) {
      int64_t& window = extents[fold->reduce_axes[f]];
      window = CeilDiv(window, fold->strides[f]) * fold->strides[f];
    }
    if (groups) extents[groups->reduce_axis] = x.buffer->shape[groups->input_dim];
    int64_t points = 1;
    for (const int64_t extent : extents) points *= extent;
    for (int64_t at = 0; at < points; ++at) {
      int64_t rest = at;
      for (size_t k = extents.size(); k-- > 0; rest /= extents[k])
        point[stage.reduce_axes[k].get()] = rest % extents[k];
      const int64_t channel = groups ? point[stage.reduce_axes[groups->reduce_axis].get()] : 0;
      if (IsNotFinite(x, point, groups ? groups->input_dim : -1, channel)) return true;
    }
    return false;
  }

  // Whether the element that is read at the point is an infinity or NaN. Its index in dimension `dim` is
  // `at`, unless `dim` is -1. Elements beyond the tensor's end are zero.
  bool IsNotFinite(const ExprNode& load, const Point& point, int dim, int64_t at) {
    int64_t flat = 0;
    for (int d = 0; d < load.buffer->rank(); ++d) {
      const int64_t index = d == dim ? at : Evaluate(load.args[d], point).least;
      if (index < 0 || index >= load.buffer->shape[d]) return false;
      flat = flat * load.buffer->shape[d] + index;
    }
    const ValueSet value = Element(*load.buffer, flat);
    return value.nan || !(std::abs(value.low) < kInf && std::abs(value.high) < kInf);
  }

  // The terms of a sum. A product may be added before it is rounded, a term with a padding zero may be left
  // out, and a subnormal bf16 may count as zero.
  ValueSet Term(const Expr& expr, const Point& point) {
    if (expr->op != Op::kMul || !IsFloat(expr->dtype)) {
      const ValueSet term = Evaluate(expr, point);
      return term.is_padding ? Hull(term, ValueSet::Floats(-0.0, 0.0)) : term;
    }
    return ProductTerm(expr, Evaluate(expr->args[0], point), Evaluate(expr->args[1], point));
  }

  static ValueSet ProductTerm(const Expr& expr, const ValueSet& a, const ValueSet& b) {
    const ValueSet zero = ValueSet::Floats(-0.0, 0.0);
    ValueSet product = PermittedProduct(expr->dtype, a, b);
    const bool is_padding = a.is_padding || b.is_padding;
    if (is_padding) product = Hull(product, zero);
    const auto flushed = [&](const Expr& factor, const ValueSet& value, const ValueSet& other) {
      const bool subnormal =
          value.has_numbers() && value.low != 0 && std::abs(value.low) < SmallestNormal(DType::kBF16);
      if (IsWidened(factor, DType::kBF16) && subnormal)
        product = Hull(product, PermittedProduct(expr->dtype, zero, other));
    };
    flushed(expr->args[0], a, b);
    flushed(expr->args[1], b, a);
    product.is_padding = is_padding;
    product.is_weight = a.is_weight || b.is_weight;
    return product;
  }

  // A weight that is rounded while it is relative to an earlier maximum, or before it is divided, and scaled
  // then: a roundoff away.
  static ValueSet RoundedElsewhere(DType dtype, const ValueSet& weight) {
    const double roundoff = std::ldexp(1.0, -MantissaBits(dtype) - 1);
    ValueSet result = weight;
    result.low = RoundFloat(DType::kF32, result.low - roundoff * std::abs(result.low));
    result.high = RoundFloat(DType::kF32, result.high + roundoff * std::abs(result.high));
    return result;
  }

  static bool IsDifference(const Expr& expr) {
    if (expr->op == Op::kMul) return IsDifference(expr->args[0]) || IsDifference(expr->args[1]);
    return expr->op == Op::kSub;
  }

  // The largest magnitude of a number that a difference is made of; infinity where one is infinite.
  double LargestTerm(const Expr& expr, const Point& point) {
    if (expr->op == Op::kSub || expr->op == Op::kAdd)
      return std::max(LargestTerm(expr->args[0], point), LargestTerm(expr->args[1], point));
    if (expr->op == Op::kMul && IsDifference(expr)) {
      const bool is_left = IsDifference(expr->args[0]);
      const ValueSet factor = Evaluate(expr->args[is_left ? 1 : 0], point);
      return LargestTerm(expr->args[is_left ? 0 : 1], point) *
             std::max(std::abs(factor.low), std::abs(factor.high));
    }
    const ValueSet term = Evaluate(expr, point);
    return term.has_numbers() ? std::max(std::abs(term.low), std::abs(term.high)) : 0;
  }

  // exp(x - y) may be computed as 2^(x * log2(e) - y * log2(e)), whose terms are rounded: an error of |x| +
  // |y| units in the last place. A result below the normal numbers may be any number from 0 to the least
  // normal one: a weight may be 0 relative to the last maximum, and positive relative to an earlier one.
  static ValueSet PowerOfDifference(double term, ValueSet power) {
    const double largest = 2 * term;
    const double error = std::isinf(largest) ? 0 : (1 + largest) * 0x1p-23;
    const double normal = SmallestNormal(DType::kF32);
    if (power.low < normal) power.low = std::min(power.low, 0.0);
    if (power.high < normal && !power.is_padding) power.high = normal;
    power.low = RoundFloat(DType::kF32, power.low * (1 - error));
    power.high = RoundFloat(DType::kF32, power.high * (1 + error));
    return power;
  }

  // Whether the operation of a masked score, or of the weight 0 that it becomes, is one, too.
  static void KeepMask(const Expr& expr, const ValueSet* args, ValueSet* result) {
    switch (expr->op) {
      case Op::kExp:
        result->is_padding = args[0].is_masked;
        result->is_weight = IsDifference(expr->args[0]);
        return;
      case Op::kSub: result->is_masked = args[0].is_masked; return;
      case Op::kAdd: result->is_masked = args[0].is_masked || args[1].is_masked; return;
      case Op::kCast:
      case Op::kDiv:
        result->is_padding = args[0].is_padding && IsFloat(expr->dtype);
        result->is_masked = args[0].is_masked && IsFloat(expr->dtype);
        result->is_weight = args[0].is_weight && IsFloat(expr->dtype);
        return;
      case Op::kMul:
        result->is_weight = args[0].is_weight || args[1].is_weight;
        result->is_padding = args[0].is_padding || args[1].is_padding;
        result->is_masked = (args[0].is_masked && args[1].low > 0) || (args[1].is_masked && args[0].low > 0);
        return;
      default: return;
    }
  }

  ValueSet Evaluate(const Expr& expr, const Point& point) {
    switch (expr->op) {
      case Op::kConst: return ValueSet::Only(expr->dtype, expr->value);
      case Op::kVar: return ValueSet::Integers(point.at(expr->var.get()), point.at(expr->var.get()));
      case Op::kLoad: return Loaded(expr, point);
      case Op::kSelect: return Selected(expr, point);
      case Op::kAdd:
      case Op::kSub: {
        if (!IsFloat(expr->dtype)) break;
        const ValueSet args[] = {Term(expr->args[0], point), Term(expr->args[1], point)};
        ValueSet sum = PermittedOf(expr->op, expr->dtype, expr->dtype, args);
        KeepMask(expr, args, &sum);
        return sum;
      }
      default: break;
    }
    ValueSet args[2];
    for (size_t i = 0; i < expr->args.size(); ++i) args[i] = Evaluate(expr->args[i], point);
    ValueSet result = PermittedOf(expr->op, expr->dtype, expr->args[0]->dtype, args);
    if (expr->op == Op::kCast && args[0].is_weight && IsNarrowFloat(expr->dtype))
      result = Hull(result, RoundedElsewhere(expr->dtype, args[0]));
    KeepMask(expr, args, &result);
    if (expr->op == Op::kExp && expr->dtype == DType::kF32 && IsDifference(expr->args[0]))
      return PowerOfDifference(LargestTerm(expr->args[0], point), result);
    if (expr->op != Op::kDiv || expr->args[1]->op != Op::kSqrt || expr->dtype != DType::kF32) return result;
    // a / sqrt(b) may be computed as a * rsqrt(b).
    const ValueSet square = Evaluate(expr->args[1]->args[0], point);
    args[1] = PermittedOf(Op::kRsqrt, expr->dtype, expr->dtype, &square);
    return Hull(result, PermittedOf(Op::kMul, expr->dtype, expr->dtype, args));
  }

  ValueSet Loaded(const Expr& load, const Point& point) {
    int64_t flat = 0;
    for (int d = 0; d < load->buffer->rank(); ++d) {
      const ValueSet index = Evaluate(load->args[d], point);
      // Nothing is known about a load from several possible places, or from one that only the other arm would
      // read.
      if (index.least != index.most || index.least < 0 || index.most >= load->buffer->shape[d])
        return ValueSet::Anything(load->dtype);
      flat = flat * load->buffer->shape[d] + index.least;
    }
    return Element(*load->buffer, flat);
  }

  ValueSet Selected(const Expr& select, const Point& point) {
    const ValueSet condition = Evaluate(select->args[0], point);
    const auto arm = [&](int i) {
      ValueSet value = Evaluate(select->args[i], point);
      const bool is_constant = select->args[i]->op == Op::kConst && IsFloat(select->dtype);
      value.is_padding |= is_constant && value.low == 0;
      value.is_masked |= is_constant && value.high == -kInf;
      return value;
    };
    if (condition.least == 1) return arm(1);
    if (condition.most == 0) return arm(2);
    return Hull(arm(1), arm(2));
  }

  const Workload workload;
  const InputElements inputs;
  std::unordered_map<const BufferNode*, size_t> numbers;  // of the inputs
  std::unordered_map<const BufferNode*, const Stage*> stages;
  std::unordered_map<const Stage*, FurtherTerms> further;
  std::unordered_map<const Stage*, std::vector<LaneProgram>> factors;  // of sums of products of inputs
  std::unordered_map<const BufferNode*, std::unordered_map<int64_t, ValueSet>> elements;
};

PermittedReference::PermittedReference(const Workload& workload, InputElements inputs)
    : impl_(std::make_unique<Impl>(workload, std::move(inputs))) {}
PermittedReference::~PermittedReference() = default;

ValueSet PermittedReference::Output(int output, int64_t flat) {
  return impl_->Element(*impl_->workload.outputs[output], flat);
}

PermittedValues PermitOutput(const Workload& workload, PermittedReference* reference, int output,
                             int64_t count, double seconds, uint64_t seed, PlaceShare share) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const Buffer& tensor = workload.outputs[output];
  PermittedValues permitted{tensor->dtype, {}, {}};
  for (const int64_t place : PickPlaces(tensor->num_elements(), count, seed, share)) {
    if (!permitted.places.empty() && Clock::now() >= end) break;
    permitted.places.push_back(place);
    permitted.sets.push_back(reference->Output(output, place));
  }
  return permitted;
}

std::string FirstForbidden(const PermittedValues& permitted, const uint8_t* got) {
  const size_t bytes = static_cast<size_t>(DTypeBytes(permitted.dtype));
  std::vector<uint8_t> elements(permitted.places.size() * bytes);
  for (size_t i = 0; i < permitted.places.size(); ++i)
    std::memcpy(&elements[i * bytes], got + static_cast<size_t>(permitted.places[i]) * bytes, bytes);
  return FirstForbiddenOf(permitted, elements.data());
}

std::string FirstForbiddenOf(const PermittedValues& permitted, const uint8_t* elements) {
  for (size_t i = 0; i < permitted.places.size(); ++i) {
    const uint8_t* stored = elements + i * static_cast<size_t>(DTypeBytes(permitted.dtype));
    Scalar value = LoadScalar(permitted.dtype, stored);
    if (permitted.dtype == DType::kBool) value.i = *stored;  // only 1 is true
    if (permitted.sets[i].Contains(permitted.dtype, value)) continue;
    return absl::StrCat("element ", permitted.places[i], " is ",
                        IsFloat(permitted.dtype) ? PrintNumber(value.f) : PrintInt(permitted.dtype, value.i),
                        ", expected ", Describe(permitted.dtype, permitted.sets[i]),
                        ", on inputs with special values");
  }
  return "";
}

}  // namespace mycc
