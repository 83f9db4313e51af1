// Convolutions of quantized tensors: sums of products of integers in i32, then scaled.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/quantization.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// Above this no sum or product of two extents overflows.
constexpr int64_t kLargestConvExtent = int64_t{1} << 30;

// A convolution of x[n, c, spatial...] with w[m, c / group, kernel...], as the attributes and shapes say.
struct QuantizedConv {
  Buffer x, w, x_zero, w_zero;  // zero points are one number, w's also one for each m; null: 0
  int64_t group = 1;
  std::vector<int64_t> kernel, strides, dilations, before, padded, out;  // of the spatial axes
  size_t rank() const { return kernel.size(); }
};

// An attribute with one number for each spatial axis, of at least `least`.
absl::StatusOr<std::vector<int64_t>> SpatialInts(const NodeImport& n, const std::string& name, size_t count,
                                                 int64_t least) {
  const std::vector<int64_t> values = n.Ints(name, std::vector<int64_t>(count, least));
  const bool fits = values.size() == count && std::ranges::all_of(values, [&](int64_t value) {
                      return value >= least && value <= kLargestConvExtent;
                    });
  if (fits) return values;
  return n.Refuse(absl::StrCat(name, " is ", ShapeText(values), "; expected ", count, " numbers from ", least,
                               " to ", kLargestConvExtent));
}

// The padding and the extents of the result.
absl::Status SetExtents(const NodeImport& n, QuantizedConv* conv) {
  const size_t rank = conv->rank();
  MYCC_ASSIGN_OR_RETURN(conv->strides, SpatialInts(n, "strides", rank, 1));
  MYCC_ASSIGN_OR_RETURN(conv->dilations, SpatialInts(n, "dilations", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, SpatialInts(n, "pads", 2 * rank, 0));
  const std::string mode = n.String("auto_pad", "NOTSET");
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!is_same && mode != "VALID" && mode != "NOTSET" && !mode.empty()) {
    return n.Refuse(
        absl::StrCat("auto_pad is `", mode, "`; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
  }
  for (size_t i = 0; i < rank; ++i) {
    const int64_t in = conv->x->shape[i + 2], reach = (conv->kernel[i] - 1) * conv->dilations[i] + 1;
    int64_t before = mode == "VALID" ? 0 : pads[i], after = mode == "VALID" ? 0 : pads[i + rank];
    if (is_same) {
      const int64_t out = (in + conv->strides[i] - 1) / conv->strides[i];
      const int64_t total = std::max<int64_t>((out - 1) * conv->strides[i] + reach - in, 0);
      before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    conv->before.push_back(before);
    conv->padded.push_back(before + in + after);
    if (conv->padded[i] < reach) {
      return n.Refuse(absl::StrCat("the kernel reaches over ", reach, " elements of spatial axis ", i,
                                   ", which has ", conv->padded[i], " with its padding; expected as many"));
    }
    conv->out.push_back((conv->padded[i] - reach) / conv->strides[i] + 1);
  }
  return absl::OkStatus();
}

// The convolution of inputs `x` and `w` with these zero points.
absl::StatusOr<QuantizedConv> ConvOf(NodeImport& n, size_t x, size_t w, size_t x_zero, size_t w_zero) {
  QuantizedConv conv;
  for (const auto& [i, zero] : {std::pair(x, x_zero), std::pair(w, w_zero)}) {
    const int type = n.Typed(i).type;
    if ((type != kInt8 && type != kUint8) || (n.Has(zero) && n.Typed(zero).type != type)) {
      return n.Refuse(absl::StrCat("input ", i, " is of type ", ElementTypeName(type),
                                   "; expected INT8 or UINT8, and a zero point of the same"));
    }
    MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 3, 9));
  }
  conv.x = n.In(x);
  conv.w = n.In(w);
  conv.kernel.assign(conv.w->shape.begin() + 2, conv.w->shape.end());
  conv.group = n.Int("group", 1);
  const bool fits = n.Rank(x) == n.Rank(w) && conv.group > 0 && conv.group <= kLargestConvExtent &&
                    conv.w->shape[0] % conv.group == 0 && conv.x->shape[1] % conv.group == 0 &&
                    conv.x->shape[1] / conv.group == conv.w->shape[1];
  if (!fits) {
    return n.Refuse(absl::StrCat("convolves ", TypeText(conv.x), " with ", TypeText(conv.w), " in ",
                                 conv.group, " groups; expected channels that fit"));
  }
  for (const int64_t extent : conv.kernel) {
    if (extent < 1 || extent > kLargestConvExtent || n.Ints("kernel_shape", conv.kernel) != conv.kernel)
      return n.Refuse(
          absl::StrCat("the kernel is ", ShapeText(conv.kernel), "; expected kernel_shape, above 0"));
  }
  for (size_t i = 2; i < conv.x->shape.size(); ++i) {
    if (conv.x->shape[i] > kLargestConvExtent)
      return n.NotSupported(absl::StrCat("an extent of ", conv.x->shape[i]));
  }
  MYCC_RETURN_IF_ERROR(SetExtents(n, &conv));
  if (n.Has(x_zero)) conv.x_zero = n.In(x_zero);
  if (n.Has(w_zero)) conv.w_zero = n.In(w_zero);
  return conv;
}

// One number, or where channels are allowed one for each, under a shape that is broadcast to [n, m,
// spatial...].
absl::StatusOr<Buffer> ChannelParameter(NodeImport& n, const Buffer& parameter, const QuantizedConv& conv,
                                        bool channels_allowed) {
  if (parameter == nullptr) return parameter;
  if (parameter->num_elements() == 1) return n.g().AddReshape(parameter, {});
  if (!channels_allowed || parameter->shape != std::vector<int64_t>{conv.w->shape[0]}) {
    return n.Refuse(absl::StrCat("a scale, zero point or bias is ", TypeText(parameter),
                                 "; expected one number",
                                 channels_allowed ? absl::StrCat(" or ", conv.w->shape[0]) : ""));
  }
  std::vector<int64_t> shape(conv.rank() + 1, 1);
  shape[0] = conv.w->shape[0];
  return n.g().AddReshape(parameter, shape);
}

// x with its padding, which is the zero point: such elements count nothing.
Buffer PaddedInput(GraphBuilder& g, const QuantizedConv& conv) {
  std::vector<int64_t> shape = conv.x->shape;
  std::ranges::copy(conv.padded, shape.begin() + 2);
  if (shape == conv.x->shape) return conv.x;
  return g.Map(shape, [&](const Axes& axes) {
    const Expr zero = conv.x_zero == nullptr ? IntConst(0, conv.x->dtype) : OnlyElement(g, conv.x_zero);
    if (conv.x->num_elements() == 0) return zero;
    Expr is_inside = BoolConst(true);
    Axes at = axes;
    for (size_t i = 0; i < conv.rank(); ++i) {
      const int64_t before = conv.before[i], in = conv.x->shape[i + 2];
      Expr& index = at[i + 2];
      if (before > 0) is_inside = MakeBinary(Op::kAnd, is_inside, AtMost(IntConst(before), index));
      if (before + in < conv.padded[i])
        is_inside = MakeBinary(Op::kAnd, is_inside, LessThan(index, IntConst(before + in)));
      index = index - before;
    }
    return MakeSelect(is_inside, Load(conv.x, at), zero);
  });
}

absl::StatusOr<Buffer> ConvSums(NodeImport& n, const QuantizedConv& conv) {
  GraphBuilder& g = n.g();
  std::vector<int64_t> shape = {conv.x->shape[0], conv.w->shape[0]}, padded = shape;
  shape.insert(shape.end(), conv.out.begin(), conv.out.end());
  padded[1] = conv.x->shape[1];
  padded.insert(padded.end(), conv.padded.begin(), conv.padded.end());
  for (const auto& extents : {shape, padded}) {
    if (const std::string problem = ShapeProblem(extents); !problem.empty())
      return n.Refuse(absl::StrCat("convolves to ", problem));
  }
  const std::vector<int64_t> reduced(conv.w->shape.begin() + 1, conv.w->shape.end());
  const int64_t channels = conv.w->shape[1];
  const int64_t group_size = std::max<int64_t>(conv.w->shape[0] / conv.group, 1);
  MYCC_ASSIGN_OR_RETURN(const Buffer w_zero, ChannelParameter(n, conv.w_zero, conv, true));
  const Buffer x = PaddedInput(g, conv);
  return g.Reduce(ReduceOp::kSum, shape, reduced, [&](const Axes& a, const Axes& r) {
    const Expr channel = conv.group == 1 ? r[0] : FloorDiv(a[1], group_size) * channels + r[0];
    Axes at_x = {a[0], channel}, at_w = {a[1]};
    for (size_t i = 0; i < conv.rank(); ++i)
      at_x.push_back(a[i + 2] * conv.strides[i] + r[i + 1] * conv.dilations[i]);
    at_w.insert(at_w.end(), r.begin(), r.end());
    Expr left = MakeCast(DType::kI32, Load(x, at_x)), right = MakeCast(DType::kI32, Load(conv.w, at_w));
    if (!IsZero(g, conv.x_zero)) left = left - MakeCast(DType::kI32, OnlyElement(g, conv.x_zero));
    if (!IsZero(g, w_zero)) {
      const Expr zero = w_zero->num_elements() == 1 ? OnlyElement(g, w_zero) : BroadcastLoad(w_zero, a);
      right = right - MakeCast(DType::kI32, zero);
    }
    return left * right;
  });
}

absl::Status ExpectOneNumber(const NodeImport& n, size_t i) {
  if (!n.Has(i) || n.In(i)->num_elements() == 1) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected one number"));
}

absl::Status ConvInteger(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneNumber(n, 2));
  MYCC_ASSIGN_OR_RETURN(const QuantizedConv conv, ConvOf(n, 0, 1, 2, 3));
  MYCC_ASSIGN_OR_RETURN(const Buffer sums, ConvSums(n, conv));
  n.Set(0, sums);
  return absl::OkStatus();
}

// Inputs: x, its scale and zero point, w, its, those of the result, and a bias of w's channels.
absl::Status QLinearConv(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(8));
  for (size_t i : {1, 2, 6, 7}) MYCC_RETURN_IF_ERROR(ExpectOneNumber(n, i));
  for (size_t i : {1, 4, 6}) MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
  const int type = n.Typed(7).type;
  if (type != kInt8 && type != kUint8)
    return n.Refuse(absl::StrCat("input 7 is of type ", ElementTypeName(type), "; expected INT8 or UINT8"));
  if (n.Has(8) && n.Typed(8).type != kInt32)
    return n.Refuse(absl::StrCat("the bias is ", TypeText(n.In(8)), "; expected INT32"));
  MYCC_ASSIGN_OR_RETURN(const QuantizedConv conv, ConvOf(n, 0, 3, 2, 5));
  MYCC_ASSIGN_OR_RETURN(Buffer sums, ConvSums(n, conv));
  ProductScales scales;
  MYCC_ASSIGN_OR_RETURN(scales.a, ChannelParameter(n, n.In(1), conv, false));
  MYCC_ASSIGN_OR_RETURN(scales.b, ChannelParameter(n, n.In(4), conv, true));
  MYCC_ASSIGN_OR_RETURN(scales.result, ChannelParameter(n, n.In(6), conv, false));
  MYCC_ASSIGN_OR_RETURN(scales.zero_point, ChannelParameter(n, n.In(7), conv, false));
  if (n.Has(8)) {
    MYCC_ASSIGN_OR_RETURN(const Buffer bias, ChannelParameter(n, n.In(8), conv, true));
    const Buffer products = sums;
    sums = n.g().Map(products->shape,
                     [&](const Axes& axes) { return Load(products, axes) + BroadcastLoad(bias, axes); });
  }
  n.Set(0, Requantized(n.g(), sums, scales, type), type);
  return absl::OkStatus();
}

constexpr Operator kQuantizedConvTable[] = {
    {"ConvInteger", ConvInteger, 10},
    {"QLinearConv", QLinearConv, 10},
};

}  // namespace

std::span<const Operator> QuantizedConvOperators() { return kQuantizedConvTable; }

}  // namespace mycc::onnx
