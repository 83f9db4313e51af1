// Pooling: reductions over windows of a padded image, or over all of it.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/windows.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// The windows of a node whose kernel_shape gives the kernel.
absl::StatusOr<Windows> PoolingWindows(const NodeImport& n, unsigned takes) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, takes));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 9));
  if (!n.HasAttribute("kernel_shape")) return n.Refuse("has no kernel_shape; expected one");
  MYCC_ASSIGN_OR_RETURN(Windows windows, WindowsOf(n, n.Shape(0), n.Ints("kernel_shape")));
  if (n.In(0)->num_elements() == 0) return n.NotSupported("an image without elements");
  return windows;
}

// The windows without the taps that never meet the image: those of a kernel that covers all of an axis and
// more.
Windows WithoutIdleTaps(Windows windows) {
  for (size_t i = 0; i < windows.rank(); ++i) {
    if (windows.out[i] != 1) continue;
    if (windows.dilations[i] == 1 && windows.before[i] < windows.kernel[i]) {
      windows.kernel[i] -= windows.before[i];
      windows.before[i] = 0;
    }
    const int64_t end = windows.before[i] + windows.image[i];
    windows.kernel[i] = std::min(windows.kernel[i], (end - 1) / windows.dilations[i] + 1);
  }
  return windows;
}

std::vector<int64_t> PooledShape(const Buffer& x, const Windows& windows) {
  std::vector<int64_t> shape = {x->shape[0], x->shape[1]};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  return shape;
}

// The element of a padded image that a window reads with its taps.
Expr LoadTap(const Buffer& padded, const Windows& windows, const Axes& a, const Axes& r) {
  Axes at = {a[0], a[1]};
  for (size_t i = 0; i < windows.rank(); ++i) at.push_back(windows.Place(i, a[i + 2], r[i]));
  return Load(padded, std::move(at));
}

Buffer ReduceWindows(GraphBuilder& g, ReduceOp op, const Buffer& padded, const Windows& windows,
                     const std::function<Expr(const Expr&)>& term) {
  return g.Reduce(op, PooledShape(padded, windows), windows.kernel,
                  [&](const Axes& a, const Axes& r) { return term(LoadTap(padded, windows, a, r)); });
}

// The position of each window's maximum in the whole tensor: the first one of those that are equal to it. In
// column-major order the first spatial axis runs fastest.
Buffer PositionsOfMaxima(GraphBuilder& g, const Buffer& x, const Buffer& padded, const Buffer& maxima,
                         const Windows& windows, bool is_column_major) {
  const size_t rank = windows.rank();
  const int64_t plane = ElementsOf(windows.image);
  const Buffer first =
      g.Reduce(ReduceOp::kMin, maxima->shape, windows.kernel, [&](const Axes& a, const Axes& r) {
        const Expr element = LoadTap(padded, windows, a, r), maximum = Load(maxima, a);
        Expr is_found = MakeBinary(Op::kEq, element, maximum), position = IntConst(0);
        if (IsFloat(x->dtype))
          is_found = MakeBinary(Op::kOr, is_found, MakeBinary(Op::kNe, element, element));
        for (size_t i = 0; i < rank; ++i) {
          const Expr place = windows.Place(i, a[i + 2], r[i]) - windows.before[i];
          const Expr is_inside =
              MakeBinary(Op::kAnd, AtMost(IntConst(0), place), LessThan(place, IntConst(windows.image[i])));
          is_found = MakeBinary(Op::kAnd, is_found, is_inside);
          position = position * windows.image[i] + place;
        }
        return MakeSelect(is_found, position, IntConst(plane));
      });
  return g.Map(maxima->shape, [&](const Axes& a) {
    const Expr position = Load(first, a);
    const Expr planes = (a[0] * x->shape[1] + a[1]) * plane;
    if (!is_column_major) return planes + position;
    Expr sum = planes;
    int64_t below = plane, stride = 1;
    for (size_t i = 0; i < rank; ++i) {
      below /= windows.image[i];
      sum = sum + Mod(FloorDiv(position, below), windows.image[i]) * stride;
      stride *= windows.image[i];
    }
    return sum;
  });
}

absl::Status MaxPool(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(Windows windows, PoolingWindows(n, kTakesNumbers));
  windows = WithoutIdleTaps(std::move(windows));
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0);
  const Buffer padded = PaddedImage(g, x, windows, ReduceIdentity(ReduceOp::kMax, x->dtype));
  const Buffer maxima =
      ReduceWindows(g, ReduceOp::kMax, padded, windows, [](const Expr& element) { return element; });
  n.Set(0, maxima, n.Typed(0).type);
  if (n.Wants(1)) n.Set(1, PositionsOfMaxima(g, x, padded, maxima, windows, n.Int("storage_order", 0) != 0));
  return absl::OkStatus();
}

// The taps of each window along an axis that count: those in the image, or also those in its padding.
std::vector<int64_t> CountsOf(const Windows& windows, size_t i, bool with_padding) {
  std::vector<int64_t> counts(windows.out[i]);
  const int64_t first = with_padding ? 0 : windows.before[i];
  const int64_t end = windows.before[i] + windows.image[i] + (with_padding ? windows.after[i] : 0);
  for (int64_t o = 0; o < windows.out[i]; ++o) {
    // Taps t with first <= o * stride + t * dilation < end.
    const int64_t from = first - o * windows.strides[i], to = end - o * windows.strides[i];
    const int64_t dilation = windows.dilations[i];
    const int64_t begin = from <= 0 ? 0 : (from + dilation - 1) / dilation;
    const int64_t limit = to <= 0 ? 0 : (to + dilation - 1) / dilation;
    counts[o] = std::max<int64_t>(std::min(limit, windows.kernel[i]) - begin, 0);
  }
  return counts;
}

// The number of taps that each window counts, a constant of the spatial axes; one number where all are equal.
Buffer WindowCounts(GraphBuilder& g, const Windows& windows, bool with_padding, DType dtype) {
  std::vector<std::vector<int64_t>> counts;
  bool all_equal = true;
  double product = 1;
  for (size_t i = 0; i < windows.rank(); ++i) {
    counts.push_back(CountsOf(windows, i, with_padding));
    product *= static_cast<double>(counts[i][0]);
    for (const int64_t count : counts[i]) all_equal &= count == counts[i][0];
  }
  if (all_equal) return g.Number(dtype, product);
  NDArray table = NDArray::Zeros(dtype, windows.out);
  for (int64_t flat = 0; flat < table.num_elements(); ++flat) {
    double number = 1;
    for (size_t i = windows.rank(), rest = static_cast<size_t>(flat); i-- > 0;) {
      number *= static_cast<double>(counts[i][rest % windows.out[i]]);
      rest /= windows.out[i];
    }
    table.Set(flat, Scalar{number, 0});
  }
  return g.AddConstant(std::move(table));
}

absl::Status AveragePool(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Windows windows, PoolingWindows(n, kTakesFloats));
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0);
  const DType dtype = SumType(x->dtype);
  const Windows read = WithoutIdleTaps(windows);
  const Buffer padded = PaddedImage(g, x, read, FloatConst(0, x->dtype));
  const Buffer sums = ReduceWindows(g, ReduceOp::kSum, padded, read,
                                    [&](const Expr& element) { return MakeCast(dtype, element); });
  const Buffer counts = WindowCounts(g, windows, n.Int("count_include_pad", 0) != 0, dtype);
  n.Set(0, g.Map(sums->shape, [&](const Axes& a) {
    const Expr count =
        counts->num_elements() == 1 ? OnlyElement(g, counts) : Load(counts, Axes(a.begin() + 2, a.end()));
    return MakeCast(x->dtype, Quotient(Load(sums, a), count));
  }));
  return absl::OkStatus();
}

// The p-th power of a magnitude, and the p-th root of a sum of them.
Expr PowerOfMagnitude(const Expr& x, int64_t p) {
  if (p == 2) return x * x;
  if (p == 1) return Magnitude(x);
  return MakeBinary(Op::kPow, Magnitude(x), NumberLike(x, static_cast<double>(p)));
}
Expr RootOfSum(const Expr& sum, int64_t p) {
  if (p == 2) return MakeUnary(Op::kSqrt, sum);
  if (p == 1) return sum;
  return MakeBinary(Op::kPow, sum, NumberLike(sum, 1.0 / static_cast<double>(p)));
}

absl::StatusOr<int64_t> NormOf(const NodeImport& n) {
  const int64_t p = n.Int("p", 2);
  if (p >= 1 && p <= 1000) return p;
  return n.Refuse(absl::StrCat("p is ", p, "; expected 1 to 1000"));
}

absl::Status LpPool(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(Windows windows, PoolingWindows(n, kTakesFloats));
  MYCC_ASSIGN_OR_RETURN(const int64_t p, NormOf(n));
  windows = WithoutIdleTaps(std::move(windows));
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0);
  const DType dtype = SumType(x->dtype);
  const Buffer padded = PaddedImage(g, x, windows, FloatConst(0, x->dtype));
  const Buffer sums = ReduceWindows(g, ReduceOp::kSum, padded, windows, [&](const Expr& element) {
    return PowerOfMagnitude(MakeCast(dtype, element), p);
  });
  n.Set(0,
        g.Map(sums->shape, [&](const Axes& a) { return MakeCast(x->dtype, RootOfSum(Load(sums, a), p)); }));
  return absl::OkStatus();
}

// Reduces all spatial axes, which stay with one element each.
absl::StatusOr<Buffer> ReducePlanes(NodeImport& n, ReduceOp op, DType dtype,
                                    const std::function<Expr(const Expr&)>& term) {
  const Buffer x = n.In(0);
  std::vector<int64_t> shape(x->shape.size(), 1);
  std::copy(x->shape.begin(), x->shape.begin() + 2, shape.begin());
  return n.g().Reduce(op, shape, {x->shape.begin() + 2, x->shape.end()}, [&](const Axes& a, const Axes& r) {
    Axes at = {a[0], a[1]};
    at.insert(at.end(), r.begin(), r.end());
    return term(MakeCast(dtype, Load(x, std::move(at))));
  });
}

absl::Status ExpectPlanes(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 16));
  if (n.In(0)->num_elements() == 0) return n.NotSupported("an image without elements");
  return absl::OkStatus();
}

absl::Status GlobalMaxPool(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectPlanes(n));
  MYCC_ASSIGN_OR_RETURN(const Buffer maxima,
                        ReducePlanes(n, ReduceOp::kMax, n.Type(0), [](const Expr& x) { return x; }));
  n.Set(0, maxima);
  return absl::OkStatus();
}

absl::Status GlobalAveragePool(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectPlanes(n));
  const DType dtype = SumType(n.Type(0));
  MYCC_ASSIGN_OR_RETURN(const Buffer sums,
                        ReducePlanes(n, ReduceOp::kSum, dtype, [](const Expr& x) { return x; }));
  const double count = static_cast<double>(n.In(0)->num_elements() / sums->num_elements());
  n.Set(0, n.g().Map(sums->shape, [&](const Axes& a) {
    return MakeCast(n.Type(0), Quotient(Load(sums, a), FloatConst(count, dtype)));
  }));
  return absl::OkStatus();
}

absl::Status GlobalLpPool(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectPlanes(n));
  MYCC_ASSIGN_OR_RETURN(const int64_t p, NormOf(n));
  const DType dtype = SumType(n.Type(0));
  MYCC_ASSIGN_OR_RETURN(const Buffer sums, ReducePlanes(n, ReduceOp::kSum, dtype, [&](const Expr& x) {
                          return PowerOfMagnitude(x, p);
                        }));
  n.Set(0, n.g().Map(sums->shape,
                     [&](const Axes& a) { return MakeCast(n.Type(0), RootOfSum(Load(sums, a), p)); }));
  return absl::OkStatus();
}

// The extents of the tensor that MaxPool read, as kernel, strides and pads say.
absl::StatusOr<std::vector<int64_t>> UnpooledShape(const NodeImport& n) {
  const std::vector<int64_t>& x = n.Shape(0);
  const size_t rank = x.size() - 2;
  MYCC_ASSIGN_OR_RETURN(const auto kernel, WindowInts(n, "kernel_shape", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const auto strides, WindowInts(n, "strides", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const auto pads, WindowInts(n, "pads", 2 * rank, 0));
  std::vector<int64_t> shape = {x[0], x[1]};
  for (size_t i = 0; i < rank; ++i)
    shape.push_back((x[i + 2] - 1) * strides[i] - pads[i] - pads[i + rank] + kernel[i]);
  const bool is_empty = std::ranges::any_of(shape, [](int64_t e) { return e < 1; });
  if (is_empty || !ShapeProblem(shape).empty())
    return n.Refuse(absl::StrCat("unpools to ", ShapeText(shape), "; expected extents above 0"));
  return shape;
}

// Each element of the result is looked for among the positions of its plane; the last one counts.
absl::Status MaxUnpool(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 1, kTakesSigned));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 9));
  const Buffer x = n.In(0);
  if (n.Shape(1) != x->shape || x->num_elements() == 0) {
    return n.Refuse(absl::StrCat("unpools ", TypeText(x), " to positions ", TypeText(n.In(1)),
                                 "; expected the same shape, with elements"));
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, UnpooledShape(n));
  GraphBuilder& g = n.g();
  const int64_t planes = x->shape[0] * x->shape[1], size = x->num_elements() / planes;
  const int64_t plane = ElementsOf(shape) / planes;
  const Buffer elements = g.AddReshape(x, {planes, size});
  const Buffer positions = g.AddReshape(g.Cast(n.In(1), DType::kI64), {planes, size});
  const Buffer last = g.Reduce(ReduceOp::kMax, {planes, plane}, {size}, [&](const Axes& a, const Axes& r) {
    const Expr is_here = MakeBinary(Op::kEq, Load(positions, {a[0], r[0]}), a[0] * plane + a[1]);
    return MakeSelect(is_here, r[0], IntConst(-1));
  });
  Buffer result = g.Map({planes, plane}, [&](const Axes& a) {
    const Expr place = Load(last, a);
    const Expr element = Load(elements, {a[0], ClampTo(place, IntConst(0), IntConst(size - 1))});
    return MakeSelect(LessThan(place, IntConst(0)), NumberLike(element, 0), element);
  });
  result = g.AddReshape(result, shape);
  if (n.Has(2)) {
    const std::vector<int64_t>* declared = n.Value(2) == nullptr ? n.DeclaredShape(0) : nullptr;
    MYCC_ASSIGN_OR_RETURN(const auto wanted, declared ? *declared : n.ConstantInts(2));
    const bool fits = wanted.size() == shape.size() && ShapeProblem(wanted).empty() &&
                      std::equal(wanted.begin(), wanted.begin() + 2, shape.begin()) &&
                      std::equal(shape.begin(), shape.end(), wanted.begin(), std::less_equal<>());
    if (!fits) {
      return n.Refuse(absl::StrCat("output_shape is ", ShapeText(wanted), "; expected extents of at least ",
                                   ShapeText(shape)));
    }
    const Buffer inner = result;
    const std::vector<int64_t> none(shape.size() - 2), spatial(wanted.begin() + 2, wanted.end());
    result = g.Map(wanted, [&](const Axes& a) {
      return LoadPadded(inner, none, a, FloatConst(0, inner->dtype), spatial);
    });
  }
  n.Set(0, result);
  return absl::OkStatus();
}

constexpr Operator kPoolingTable[] = {
    {"AveragePool", AveragePool},
    {"GlobalAveragePool", GlobalAveragePool},
    {"GlobalLpPool", GlobalLpPool},
    {"GlobalMaxPool", GlobalMaxPool},
    {"LpPool", LpPool},
    {"MaxPool", MaxPool},
    {"MaxUnpool", MaxUnpool, 9},
};

}  // namespace

std::span<const Operator> PoolingOperators() { return kPoolingTable; }

}  // namespace mycc::onnx
