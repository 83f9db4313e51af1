// Transposed convolutions. Element i of the result sums x[(i + before - r * dilation) / stride] * w[r] over
// the taps for which the division leaves no rest.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

struct TransposedConv {
  Buffer x, w;  // w[c, m / group, kernel...]
  int64_t group = 1;
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> before, out;  // the elements cut off at the front, and the result's extents
  size_t rank() const { return kernel.size(); }
  int64_t Reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  int64_t channels() const { return w->shape[1] * group; }
  int64_t group_inputs() const { return w->shape[0] / group; }
  // The channel of the input that result channel `m` reads as number `c` of its group.
  Expr InputChannel(const Expr& m, const Expr& c) const {
    return group == 1 ? c : FloorDiv(m, w->shape[1]) * group_inputs() + c;
  }
  Expr PlaceInGroup(const Expr& m) const { return group == 1 ? m : Mod(m, w->shape[1]); }
};

// The extents of the result, and what is cut off. output_shape decides before pads.
absl::Status SetResult(const NodeImport& n, TransposedConv* conv) {
  const size_t rank = conv->rank();
  MYCC_ASSIGN_OR_RETURN(conv->strides, WindowInts(n, "strides", rank, 1));
  MYCC_ASSIGN_OR_RETURN(conv->dilations, WindowInts(n, "dilations", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const auto pads, WindowInts(n, "pads", 2 * rank, 0));
  MYCC_ASSIGN_OR_RETURN(const auto output_padding, WindowInts(n, "output_padding", rank, 0));
  MYCC_ASSIGN_OR_RETURN(const std::string auto_pad, AutoPad(n));
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  std::vector<int64_t> wanted = n.Ints("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank)
    return n.Refuse(absl::StrCat("output_shape is ", ShapeText(wanted), "; expected ", rank, " extents"));
  for (size_t i = 0; i < rank; ++i) {
    const int64_t in = conv->x->shape[i + 2];
    const int64_t whole = conv->strides[i] * (in - 1) + output_padding[i] + conv->Reach(i);
    if (wanted.empty() && !is_same) {
      const bool is_valid = auto_pad == "VALID";
      conv->before.push_back(is_valid ? 0 : pads[i]);
      conv->out.push_back(whole - (is_valid ? 0 : pads[i] + pads[i + rank]));
    } else {
      conv->out.push_back(wanted.empty() ? in * conv->strides[i] : wanted[i]);
      const int64_t total = std::max<int64_t>(whole - conv->out[i], 0);
      conv->before.push_back(auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2);
    }
    if (conv->out[i] < 0 || conv->out[i] > kMostWindowExtent)
      return n.Refuse(absl::StrCat("spatial axis ", i, " of the result has ", conv->out[i],
                                   " elements; expected 0 to ", kMostWindowExtent));
  }
  return absl::OkStatus();
}

// The weights as an ordinary convolution's: w[m, c / group, kernel...] with the taps in reverse order.
Buffer FlippedWeights(GraphBuilder& g, const TransposedConv& conv) {
  std::vector<int64_t> shape = {conv.channels(), conv.group_inputs()};
  shape.insert(shape.end(), conv.kernel.begin(), conv.kernel.end());
  return g.Map(shape, [&](const Axes& a) {
    Axes at = {conv.InputChannel(a[0], a[1]), conv.PlaceInGroup(a[0])};
    for (size_t i = 0; i < conv.rank(); ++i) at.push_back(IntConst(conv.kernel[i] - 1) - a[i + 2]);
    return Load(conv.w, std::move(at));
  });
}

// The image as an ordinary convolution of stride 1 reads it: zeros between its elements and around them.
Buffer SpreadImage(GraphBuilder& g, const TransposedConv& conv) {
  std::vector<int64_t> shape = {conv.x->shape[0], conv.x->shape[1]};
  for (size_t i = 0; i < conv.rank(); ++i) shape.push_back(conv.out[i] + conv.Reach(i) - 1);
  return g.Map(shape, [&](const Axes& a) {
    Axes at = {a[0], a[1]};
    Expr is_element = BoolConst(true);
    const auto require = [&](const Expr& condition) {
      is_element = MakeBinary(Op::kAnd, is_element, condition);
    };
    for (size_t i = 0; i < conv.rank(); ++i) {
      const int64_t margin = conv.Reach(i) - 1 - conv.before[i], stride = conv.strides[i];
      const Expr place = a[i + 2] - margin;
      if (margin > 0) require(AtMost(IntConst(margin), a[i + 2]));
      require(LessThan(place, IntConst(stride * conv.x->shape[i + 2])));
      if (stride > 1) require(MakeBinary(Op::kEq, Mod(place, stride), IntConst(0)));
      at.push_back(FloorDiv(place, stride));
    }
    return MakeSelect(is_element, Load(conv.x, std::move(at)), FloatConst(0, conv.x->dtype));
  });
}

// Whether the compiler sums each phase of the strides apart: without dilations, of all channels or of one.
bool HasPhases(const TransposedConv& conv) {
  if (conv.group != 1 && conv.group_inputs() != 1) return false;
  bool any = false;
  for (size_t i = 0; i < conv.rank(); ++i) {
    if (conv.strides[i] == 1) continue;
    any = true;
    if (conv.dilations[i] != 1) return false;
  }
  return any;
}

// The same convolution with zero taps behind the others and a larger result, so that strides divide both.
TransposedConv WithWholePhases(GraphBuilder& g, const TransposedConv& conv) {
  TransposedConv whole = conv;
  for (size_t i = 0; i < conv.rank(); ++i) {
    const int64_t stride = conv.strides[i];
    whole.kernel[i] = (conv.kernel[i] + stride - 1) / stride * stride;
    whole.out[i] = (conv.out[i] + stride - 1) / stride * stride;
  }
  if (whole.kernel == conv.kernel) return whole;
  std::vector<int64_t> shape = {conv.w->shape[0], conv.w->shape[1]};
  shape.insert(shape.end(), whole.kernel.begin(), whole.kernel.end());
  whole.w = g.Map(shape, [&](const Axes& a) {
    return LoadPadded(conv.w, std::vector<int64_t>(conv.rank()), a, FloatConst(0, conv.w->dtype),
                      whole.kernel);
  });
  return whole;
}

// The sum whose terms select the elements that a tap meets: the form that is split into phases.
Buffer SumOfPhases(GraphBuilder& g, const TransposedConv& conv) {
  std::vector<int64_t> shape = {conv.x->shape[0], conv.channels()}, reduced = {conv.group_inputs()};
  shape.insert(shape.end(), conv.out.begin(), conv.out.end());
  reduced.insert(reduced.end(), conv.kernel.begin(), conv.kernel.end());
  const DType dtype = SumType(conv.x->dtype);
  return g.Reduce(ReduceOp::kSum, shape, reduced, [&](const Axes& a, const Axes& r) {
    const Expr channel = conv.InputChannel(a[1], r[0]);
    Axes at_x = {a[0], channel}, at_w = {channel, conv.PlaceInGroup(a[1])};
    Expr is_element = BoolConst(true);
    for (size_t i = 0; i < conv.rank(); ++i) {
      const int64_t stride = conv.strides[i];
      const Expr place = a[i + 2] + conv.before[i] - r[i + 1] * conv.dilations[i];
      is_element = MakeBinary(Op::kAnd, is_element, AtMost(IntConst(0), place));
      if (stride > 1)
        is_element = MakeBinary(Op::kAnd, is_element, MakeBinary(Op::kEq, Mod(place, stride), IntConst(0)));
      is_element = MakeBinary(Op::kAnd, is_element, LessThan(place, IntConst(stride * conv.x->shape[i + 2])));
      at_x.push_back(FloorDiv(place, stride));
      at_w.push_back(r[i + 1]);
    }
    const Expr x = MakeSelect(is_element, Load(conv.x, at_x), FloatConst(0, conv.x->dtype));
    return MakeCast(dtype, x) * MakeCast(dtype, Load(conv.w, at_w));
  });
}

// The front of each spatial axis.
Buffer FrontOf(GraphBuilder& g, const Buffer& source, const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape = {source->shape[0], source->shape[1]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  return g.Map(shape, [&](const Axes& a) { return Load(source, a); });
}

absl::StatusOr<Buffer> TransposedSums(NodeImport& n, const TransposedConv& conv) {
  GraphBuilder& g = n.g();
  if (HasPhases(conv)) {
    const TransposedConv whole = WithWholePhases(g, conv);
    return FrontOf(g, SumOfPhases(g, whole), conv.out);
  }
  Windows windows;
  windows.kernel = conv.kernel;
  windows.dilations = conv.dilations;
  windows.out = conv.out;
  windows.strides.assign(conv.rank(), 1);
  return ConvolutionSums(n, SpreadImage(g, conv), FlippedWeights(g, conv), conv.group, windows);
}

}  // namespace

absl::Status ImportConvTranspose(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, n.Has(2) ? 2 : 1, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 9));
  TransposedConv conv;
  conv.x = n.In(0);
  conv.w = n.In(1);
  MYCC_ASSIGN_OR_RETURN(conv.kernel, KernelOf(n, 1));
  conv.group = n.Int("group", 1);
  const bool fits = n.Rank(0) == n.Rank(1) && conv.group > 0 && conv.group <= kMostWindowExtent &&
                    conv.w->shape[1] > 0 && conv.w->shape[1] <= kMostWindowExtent &&
                    conv.x->shape[1] % conv.group == 0 && conv.w->shape[0] == conv.x->shape[1];
  if (!fits) {
    return n.Refuse(absl::StrCat("convolves ", TypeText(conv.x), " with ", TypeText(conv.w), " in ",
                                 conv.group, " groups; expected channels that fit"));
  }
  for (size_t i = 0; i < conv.rank(); ++i) {
    if (conv.x->shape[i + 2] < 1 || conv.x->shape[i + 2] > kMostWindowExtent || conv.kernel[i] < 1 ||
        conv.kernel[i] > kMostWindowExtent)
      return n.Refuse(absl::StrCat("convolves ", TypeText(conv.x), " with ", TypeText(conv.w),
                                   "; expected spatial extents above 0"));
  }
  MYCC_RETURN_IF_ERROR(SetResult(n, &conv));
  std::vector<int64_t> shape = {conv.x->shape[0], std::max(conv.channels(), conv.x->shape[1])};
  for (size_t i = 0; i < conv.rank(); ++i) shape.push_back(conv.out[i] + conv.Reach(i) + conv.strides[i]);
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("convolves to ", problem));
  MYCC_ASSIGN_OR_RETURN(const Buffer sums, TransposedSums(n, conv));
  MYCC_ASSIGN_OR_RETURN(const Buffer result, WithBias(n, sums, 2, conv.x->dtype));
  n.Set(0, result);
  return absl::OkStatus();
}

}  // namespace mycc::onnx
