// Resize and Upsample. Neighbours and weights are tables of each axis; where they follow a line they become
// plain arithmetic on indices.
#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/resized_axis.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// More axes than these, or taps, are interpolated one axis after the other.
constexpr size_t kMostAxesAtOnce = 3;
constexpr int64_t kMostTapsAtOnce = 2, kMostUnrolledTaps = 4;

// The inputs of a node by their meaning; those that are not there are of rank 1 without elements, or null.
struct ResizeInputs {
  Buffer x, roi, scales, sizes;
  std::vector<int64_t> axes;
  std::string policy = "stretch";
};

Buffer NonEmptyInput(const NodeImport& n, size_t i) {
  return n.Has(i) && n.In(i)->num_elements() > 0 ? n.In(i) : Buffer();
}

absl::Status ExpectOneForEachAxis(const NodeImport& n, const Buffer& input, const char* what, size_t count) {
  if (input == nullptr || input->shape == std::vector<int64_t>{static_cast<int64_t>(count)})
    return absl::OkStatus();
  return n.Refuse(absl::StrCat(what, " are ", TypeText(input), "; expected ", count, " numbers"));
}

Expr ResizeNumber(const GraphBuilder& g, const Buffer& tensor, size_t i) {
  if (const NDArray* value = g.ValueOf(tensor)) {
    const Scalar number = value->Get(static_cast<int64_t>(i));
    return FloatConst(IsFloat(tensor->dtype) ? number.f : static_cast<double>(number.i), DType::kF64);
  }
  return MakeCast(DType::kF64, Load(tensor, {IntConst(static_cast<int64_t>(i))}));
}

// The extents of the result, and the axes that change. Extents that depend on values of the call are those
// that the model declares.
class ResizeShape {
 public:
  ResizeShape(NodeImport& n, const ResizeInputs& inputs) : n_(n), in_(inputs), shape_(inputs.x->shape) {}

  absl::Status Find() {
    const Buffer& given = in_.scales != nullptr ? in_.scales : in_.sizes;
    if (const NDArray* value = n_.g().ValueOf(given)) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < value->num_elements(); ++i)
        numbers.push_back(ConvertScalar(DType::kF64, value->dtype, value->Get(i)).f);
      MYCC_RETURN_IF_ERROR(SetKnown(numbers));
    } else {
      const std::vector<int64_t>* declared = n_.DeclaredShape(0);
      if (declared == nullptr) return n_.NotKnown(IndexOf(given));
      if (declared->size() != shape_.size())
        return n_.Refuse(absl::StrCat("the result is declared as ", ShapeText(*declared), "; expected rank ",
                                      shape_.size()));
      shape_ = *declared;
      known_.resize(in_.axes.size());
    }
    if (const std::string problem = ShapeProblem(shape_); !problem.empty())
      return n_.Refuse(absl::StrCat("resizes to ", problem));
    return absl::OkStatus();
  }

  const std::vector<int64_t>& shape() const { return shape_; }
  // The scale of the axis in_.axes[k], where it is known.
  const std::optional<double>& known(size_t k) const { return known_[k]; }

 private:
  // The number of the input that is this tensor.
  size_t IndexOf(const Buffer& input) const {
    for (size_t i = 0; i < n_.num_inputs(); ++i) {
      if (n_.Has(i) && n_.In(i) == input) return i;
    }
    return n_.num_inputs();
  }

  absl::Status SetKnown(const std::vector<double>& numbers) {
    std::vector<double> scales = numbers;
    for (size_t k = 0; k < scales.size(); ++k) {
      const double extent = static_cast<double>(in_.x->shape[in_.axes[k]]);
      if (in_.scales == nullptr) scales[k] = numbers[k] / extent;
      if (!(scales[k] > 0) || !(scales[k] * extent < static_cast<double>(int64_t{1} << 40)))
        return n_.Refuse(
            absl::StrCat("axis ", in_.axes[k], " is resized by ", scales[k], "; expected a factor above 0"));
    }
    const bool keeps_aspect = in_.scales == nullptr && in_.policy != "stretch" && !scales.empty();
    if (keeps_aspect) {
      const auto [least, most] = std::ranges::minmax_element(scales);
      std::ranges::fill(scales, in_.policy == "not_larger" ? *least : *most);
    }
    for (size_t k = 0; k < scales.size(); ++k) {
      const size_t axis = in_.axes[k];
      const double extent = scales[k] * static_cast<double>(in_.x->shape[axis]);
      shape_[axis] = static_cast<int64_t>(keeps_aspect            ? std::floor(extent + 0.5)
                                          : in_.scales == nullptr ? numbers[k]
                                                                  : std::floor(extent));
      known_.push_back(scales[k]);
    }
    return absl::OkStatus();
  }

  NodeImport& n_;
  const ResizeInputs& in_;
  std::vector<int64_t> shape_;
  std::vector<std::optional<double>> known_;
};

// The scale of the axis inputs.axes[k] when it is known at run time alone.
Expr ScaleAtRunTime(const GraphBuilder& g, const ResizeInputs& inputs, size_t k) {
  if (inputs.scales != nullptr) return ResizeNumber(g, inputs.scales, k);
  const auto quotient = [&](size_t i) {
    const double extent = static_cast<double>(inputs.x->shape[inputs.axes[i]]);
    return Quotient(ResizeNumber(g, inputs.sizes, i), FloatConst(extent, DType::kF64));
  };
  if (inputs.policy == "stretch") return quotient(k);
  Expr scale = quotient(0);
  for (size_t i = 1; i < inputs.axes.size(); ++i)
    scale = MakeBinary(inputs.policy == "not_larger" ? Op::kMin : Op::kMax, scale, quotient(i));
  return scale;
}

// The axes that are interpolated.
std::vector<ResizedAxis> ResizedAxes(const GraphBuilder& g, const ResizeInputs& inputs,
                                     const ResizeShape& shape, bool is_cropped) {
  std::vector<ResizedAxis> resized;
  for (size_t k = 0; k < inputs.axes.size(); ++k) {
    ResizedAxis axis;
    axis.axis = static_cast<size_t>(inputs.axes[k]);
    axis.in = inputs.x->shape[axis.axis];
    axis.out = shape.shape()[axis.axis];
    axis.known_scale = shape.known(k);
    axis.scale = axis.known_scale ? FloatConst(*axis.known_scale, DType::kF64) : ScaleAtRunTime(g, inputs, k);
    bool is_whole = true;
    if (is_cropped) {
      axis.roi_begin = ResizeNumber(g, inputs.roi, k);
      axis.roi_end = ResizeNumber(g, inputs.roi, inputs.axes.size() + k);
      const auto is = [](const Expr& e, double value) { return e->op == Op::kConst && e->value.f == value; };
      is_whole = is(axis.roi_begin, 0) && is(axis.roi_end, 1);
    }
    const bool is_same = axis.in == axis.out && (axis.in == 1 || axis.known_scale == 1.0) && is_whole;
    if (!is_same) resized.push_back(axis);
  }
  return resized;
}

DType WideType(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kI64 || dtype == DType::kI32 ? DType::kF64 : DType::kF32;
}

// A sum of weighted elements as a number of a tensor's type. Integers are rounded; the cast keeps them in
// their range.
Expr Narrowed(const Expr& value, DType dtype) {
  if (value->dtype == dtype) return value;
  return MakeCast(dtype, IsFloat(dtype) ? value : MakeUnary(Op::kRound, value));
}

// Interpolates along axes `from` and later ones: the elements at `at`, whose earlier indices are replaced.
Expr InterpolatedAt(const GraphBuilder& g, const Buffer& x, const std::vector<AxisTaps>& taps, size_t from,
                    Axes at, DType wide) {
  if (from == taps.size()) return taps[0].weights == nullptr ? Load(x, at) : MakeCast(wide, Load(x, at));
  const AxisTaps& axis = taps[from];
  const Expr i = at[axis.axis];
  Expr sum;
  for (int64_t t = 0; t < axis.taps; ++t) {
    at[axis.axis] = TapIndex(g, axis, i, IntConst(t));
    Expr term = InterpolatedAt(g, x, taps, from + 1, at, wide);
    if (axis.weights != nullptr) term = MakeCast(wide, term) * Load(axis.weights, {i, IntConst(t)});
    sum = sum == nullptr ? term : sum + term;
  }
  return sum;
}

// One axis with many taps, as a sum over them.
Buffer InterpolatedAxis(GraphBuilder& g, const Buffer& x, const AxisTaps& taps, int64_t out, DType wide) {
  std::vector<int64_t> shape = x->shape;
  shape[taps.axis] = out;
  if (taps.taps <= kMostUnrolledTaps)
    return g.Map(shape, [&](const Axes& a) { return InterpolatedAt(g, x, {taps}, 0, a, wide); });
  return g.Reduce(ReduceOp::kSum, shape, {taps.taps}, [&](const Axes& a, const Axes& r) {
    Axes at = a;
    at[taps.axis] = TapIndex(g, taps, a[taps.axis], r[0]);
    return MakeCast(wide, Load(x, std::move(at))) * Load(taps.weights, {a[taps.axis], r[0]});
  });
}

// The result, with the extrapolation value where an axis says so.
Expr Extrapolated(const std::vector<AxisTaps>& taps, const Axes& a, Expr value, double extrapolation) {
  for (const AxisTaps& axis : taps) {
    if (axis.outside == nullptr) continue;
    value = MakeSelect(Load(axis.outside, {a[axis.axis]}), NumberLike(value, extrapolation), value);
  }
  return value;
}

Buffer Resized(GraphBuilder& g, const Buffer& x, const std::vector<ResizedAxis>& axes,
               const std::vector<int64_t>& shape, const ResizeOptions& options, double extrapolation) {
  const DType wide = WideType(x->dtype);
  std::vector<AxisTaps> taps;
  int64_t most = 1;
  for (const ResizedAxis& axis : axes) {
    taps.push_back(TapsOf(g, axis, options, wide));
    most = std::max(most, taps.back().taps);
  }
  // One tap each: the element itself.
  if (options.interpolation == Interpolation::kNearest || most == 1) {
    return g.Map(shape, [&](const Axes& a) {
      Axes at = a;
      for (const AxisTaps& axis : taps) at[axis.axis] = TapIndex(g, axis, a[axis.axis], IntConst(0));
      return Extrapolated(taps, a, Load(x, std::move(at)), extrapolation);
    });
  }
  // Axes of one tap last, so that the others are one after the other.
  std::stable_partition(taps.begin(), taps.end(), [](const AxisTaps& axis) { return axis.taps > 1; });
  const bool at_once = taps.size() <= kMostAxesAtOnce && most <= kMostTapsAtOnce;
  Buffer value = x;
  if (!at_once) {
    for (const AxisTaps& axis : taps) value = InterpolatedAxis(g, value, axis, shape[axis.axis], wide);
  }
  return g.Map(shape, [&](const Axes& a) {
    const Expr sum = at_once ? InterpolatedAt(g, x, taps, 0, a, wide) : Load(value, a);
    return Narrowed(Extrapolated(taps, a, sum, extrapolation), x->dtype);
  });
}

absl::StatusOr<ResizeOptions> OptionsOf(const NodeImport& n) {
  ResizeOptions options;
  const std::string mode = n.String("mode", "nearest");
  if (mode == "linear") {
    options.interpolation = Interpolation::kLinear;
  } else if (mode == "cubic") {
    options.interpolation = Interpolation::kCubic;
  } else if (mode != "nearest") {
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected nearest, linear or cubic"));
  }
  // Before opset 11 there was one way.
  const bool is_old = n.op() == "Upsample" || n.opset() < 11;
  options.coordinates = is_old ? "asymmetric" : n.String("coordinate_transformation_mode", "half_pixel");
  options.nearest = is_old ? "floor" : n.String("nearest_mode", "round_prefer_floor");
  options.cubic_a = n.Float("cubic_coeff_a", -0.75);
  options.antialias = n.Int("antialias", 0) != 0;
  options.exclude_outside = n.Int("exclude_outside", 0) != 0;
  const auto is_one_of = [](const std::string& value, std::initializer_list<const char*> values) {
    return std::ranges::any_of(values, [&](const char* one) { return value == one; });
  };
  if (!is_one_of(options.coordinates,
                 {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                  "tf_half_pixel_for_nn", "tf_crop_and_resize"}))
    return n.Refuse(absl::StrCat("coordinate_transformation_mode is `", options.coordinates,
                                 "`; expected one that ONNX defines"));
  if (!is_one_of(options.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return n.Refuse(absl::StrCat("nearest_mode is `", options.nearest,
                                 "`; expected round_prefer_floor, round_prefer_ceil, floor or ceil"));
  if (options.antialias && options.interpolation == Interpolation::kNearest)
    return n.Refuse("antialias with mode nearest; expected linear or cubic");
  return options;
}

absl::Status ImportResize(NodeImport& n, ResizeInputs inputs) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const ResizeOptions options, OptionsOf(n));
  if (options.interpolation != Interpolation::kNearest)
    MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  inputs.x = n.In(0);
  for (int64_t axis = 0; axis < n.Rank(0) && !n.HasAttribute("axes"); ++axis) inputs.axes.push_back(axis);
  for (const int64_t given : n.Ints("axes")) {
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(given, n.Rank(0)));
    if (std::ranges::count(inputs.axes, axis) > 0) return n.Refuse("names an axis twice");
    inputs.axes.push_back(axis);
  }
  inputs.policy = n.String("keep_aspect_ratio_policy", "stretch");
  if (inputs.policy != "stretch" && inputs.policy != "not_larger" && inputs.policy != "not_smaller")
    return n.Refuse(absl::StrCat("keep_aspect_ratio_policy is `", inputs.policy,
                                 "`; expected stretch, not_larger or not_smaller"));
  if ((inputs.scales == nullptr) == (inputs.sizes == nullptr))
    return n.Refuse("has neither scales nor sizes, or both; expected one of them");
  if (inputs.x->num_elements() == 0) return n.NotSupported("a tensor without elements");
  const bool is_cropped = options.coordinates == "tf_crop_and_resize";
  if (is_cropped && inputs.roi == nullptr) return n.Refuse("tf_crop_and_resize without roi; expected one");
  const size_t count = inputs.axes.size();
  MYCC_RETURN_IF_ERROR(ExpectOneForEachAxis(n, inputs.scales, "the scales", count));
  MYCC_RETURN_IF_ERROR(ExpectOneForEachAxis(n, inputs.sizes, "the sizes", count));
  if (is_cropped) MYCC_RETURN_IF_ERROR(ExpectOneForEachAxis(n, inputs.roi, "the ends of roi", 2 * count));
  ResizeShape shape(n, inputs);
  MYCC_RETURN_IF_ERROR(shape.Find());
  if (ElementsOf(shape.shape()) == 0) {
    n.Set(0, n.g().AddConstant(NDArray::Zeros(inputs.x->dtype, shape.shape())), n.Typed(0).type);
    return absl::OkStatus();
  }
  const std::vector<ResizedAxis> axes = ResizedAxes(n.g(), inputs, shape, is_cropped);
  const double extrapolation = n.Float("extrapolation_value", 0);
  n.Set(0, Resized(n.g(), inputs.x, axes, shape.shape(), options, extrapolation), n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status Resize(NodeImport& n) {
  ResizeInputs inputs;
  if (n.opset() < 11) {
    inputs.scales = NonEmptyInput(n, 1);
  } else {
    inputs.roi = NonEmptyInput(n, 1);
    inputs.scales = NonEmptyInput(n, 2);
    inputs.sizes = NonEmptyInput(n, 3);
  }
  return ImportResize(n, std::move(inputs));
}

// The scales are an attribute before opset 9.
absl::Status Upsample(NodeImport& n) {
  ResizeInputs inputs;
  inputs.scales = NonEmptyInput(n, 1);
  if (n.opset() < 9) {
    const std::vector<double> scales = n.Floats("scales");
    NDArray array = NDArray::Zeros(DType::kF32, {static_cast<int64_t>(scales.size())});
    for (size_t i = 0; i < scales.size(); ++i) array.Set(static_cast<int64_t>(i), Scalar{scales[i], 0});
    inputs.scales = n.g().AddConstant(std::move(array));
  }
  return ImportResize(n, std::move(inputs));
}

constexpr Operator kResizeTable[] = {
    {"Resize", Resize, 10},
    {"Upsample", Upsample},
};

}  // namespace

std::span<const Operator> ResizeOperators() { return kResizeTable; }

}  // namespace mycc::onnx
