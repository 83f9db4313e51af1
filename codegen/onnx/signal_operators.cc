// DFT and STFT, the windows, MelWeightMatrix, and Det.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/fourier.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/small_types.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// The one number of a constant input; nullopt where it is not known.
absl::StatusOr<std::optional<int64_t>> KnownNumber(const NodeImport& n, size_t i) {
  if (n.Value(i) == nullptr) return std::optional<int64_t>();
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> values, n.ConstantInts(i));
  if (values.size() != 1)
    return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected a number"));
  return std::optional<int64_t>(values[0]);
}

// Results of one shape, by the value of an input that is not known: that of the number it has, or the last.
Buffer ChosenBy(GraphBuilder& g, const Buffer& number,
                const std::vector<std::pair<int64_t, Buffer>>& results) {
  return g.Map(results[0].second->shape, [&](const Axes& axes) {
    Expr chosen = Load(results.back().second, axes);
    for (size_t i = results.size() - 1; i-- > 0;) {
      const Expr is_it =
          MakeBinary(Op::kEq, OnlyElement(g, number), IntConst(results[i].first, number->dtype));
      chosen = MakeSelect(is_it, Load(results[i].second, axes), chosen);
    }
    return chosen;
  });
}

// The transform of one axis of x[..., parts]. A length of 0 is that of the axis.
absl::StatusOr<Buffer> TransformAxis(NodeImport& n, const Buffer& x, int64_t axis, FourierTransform t) {
  const auto rank = static_cast<int64_t>(x->shape.size());
  if (t.length == 0) t.length = t.is_inverse && t.is_one_sided ? 2 * (x->shape[axis] - 1) : x->shape[axis];
  if (t.length < 1 || t.length > (int64_t{1} << 30))
    return n.Refuse(absl::StrCat("a transform of length ", t.length, "; expected 1 or more"));
  std::vector<int64_t> sides = {1, x->shape[axis], 1, x->shape.back()};
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (i != axis) sides[i < axis ? 0 : 2] *= x->shape[i];
  }
  const DType dtype = x->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<int64_t> shape = x->shape;
  shape[axis] = TransformedExtent(t);
  shape.back() = TransformedParts(t);
  if (const std::string problem = ShapeProblem(shape); !problem.empty()) return n.Refuse(problem);
  const Buffer y = Transformed(n.g(), n.g().AddReshape(n.g().Cast(x, dtype), sides), t);
  return n.g().Cast(n.g().AddReshape(y, shape), x->dtype);
}

// Up to opset 19 the axis is an attribute. An input that is not known is one of those that give the shape
// that the model declares.
absl::Status Dft(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 16));
  const Buffer x = n.In(0);
  FourierTransform t{0, n.Int("inverse", 0) != 0, n.Int("onesided", 0) != 0};
  const int64_t parts = x->shape.back();
  if ((parts != 1 && parts != 2) || (t.is_one_sided && parts != (t.is_inverse ? 2 : 1))) {
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(x), "; expected a last axis of ",
                                 !t.is_one_sided ? "1 or 2"
                                 : t.is_inverse  ? "2"
                                                 : "1"));
  }
  if (n.Has(1)) {
    MYCC_ASSIGN_OR_RETURN(const auto length, KnownNumber(n, 1));
    if (!length) return n.NotKnown(1);
    if (*length < 1) return n.Refuse(absl::StrCat("a transform of length ", *length, "; expected 1 or more"));
    t.length = *length;
  }
  std::optional<int64_t> given = n.opset() < 20 ? n.Int("axis", 1) : -2;
  if (n.opset() >= 20 && n.Has(2)) {
    MYCC_ASSIGN_OR_RETURN(given, KnownNumber(n, 2));
  }
  Buffer y;
  if (given) {
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(*given, n.Rank(0)));
    if (axis == n.Rank(0) - 1)
      return n.Refuse("transforms the last axis, which is that of the parts of a number");
    MYCC_ASSIGN_OR_RETURN(y, TransformAxis(n, x, axis, t));
  } else {
    std::vector<std::pair<int64_t, Buffer>> results;
    for (int64_t axis = 0; n.DeclaredShape(0) != nullptr && axis + 1 < n.Rank(0); ++axis) {
      const absl::StatusOr<Buffer> one = TransformAxis(n, x, axis, t);
      if (!one.ok() || (*one)->shape != *n.DeclaredShape(0)) continue;
      results.emplace_back(axis, *one);
      results.emplace_back(axis - n.Rank(0), *one);
    }
    if (results.empty()) return n.NotKnown(2);
    y = ChosenBy(n.g(), n.In(2), results);
  }
  n.Set(0, y, n.Typed(0).type);
  return absl::OkStatus();
}

// The frames of signal[batch, n, parts]: frame f begins at f times the step, which may be known at a call
// alone. [batch, frames, length, parts], times the window.
Buffer FramesOf(NodeImport& n, const Buffer& signal, std::optional<int64_t> step, int64_t frames,
                int64_t length) {
  GraphBuilder& g = n.g();
  const int64_t last = signal->shape[1] - length;
  Buffer begins;
  if (!step) {
    begins = g.Map({frames}, [&](const Axes& axes) {
      const Expr number = OnlyElement(g, n.In(1)),
                 wide = number->dtype == DType::kI64 ? number : MakeCast(DType::kI64, number);
      return axes[0] * wide;
    });
  }
  const std::vector<int64_t> shape = {signal->shape[0], frames, length, signal->shape[2]};
  return g.Map(shape, [&](const Axes& axes) {
    const Expr begin = step ? axes[1] * *step : ClampTo(Load(begins, {axes[1]}), IntConst(0), IntConst(last));
    const Expr element = Load(signal, {axes[0], begin + axes[2], axes[3]});
    return n.Has(2) ? element * Load(n.In(2), {axes[2]}) : element;
  });
}

// The lengths that a frame may have: one, or the two that have half a spectrum of the declared size.
absl::StatusOr<std::vector<int64_t>> FrameLengths(const NodeImport& n, bool is_one_sided) {
  if (n.Has(2)) {
    MYCC_RETURN_IF_ERROR(n.ExpectRank(2, 1, 1));
    MYCC_RETURN_IF_ERROR(ExpectOneType(n, 2, 2, kTakesFloats));
  }
  if (n.Has(3)) {
    MYCC_ASSIGN_OR_RETURN(const auto length, KnownNumber(n, 3));
    if (length && n.Has(2) && *length != n.Shape(2)[0])
      return n.Refuse(absl::StrCat("the window is ", TypeText(n.In(2)), " and the frame length ", *length,
                                   "; expected the same"));
    if (length) return std::vector<int64_t>{*length};
  }
  if (n.Has(2)) return std::vector<int64_t>{n.Shape(2)[0]};
  if (!n.Has(3)) return std::vector<int64_t>{n.Shape(0)[1]};
  const std::vector<int64_t>* declared = n.DeclaredShape(0);
  if (declared == nullptr || declared->size() != 4) return n.NotKnown(3);
  if (!is_one_sided) return std::vector<int64_t>{(*declared)[2]};
  return std::vector<int64_t>{2 * (*declared)[2] - 2, 2 * (*declared)[2] - 1};
}

absl::StatusOr<int64_t> NumberOfFrames(const NodeImport& n, std::optional<int64_t> step, int64_t length) {
  const int64_t signal = n.Shape(0)[1];
  if (length < 1 || length > signal)
    return n.Refuse(absl::StrCat("frames of length ", length, " of a signal of ", signal));
  if (step && *step < 1) return n.Refuse(absl::StrCat("the frame step is ", *step, "; expected 1 or more"));
  if (step) return 1 + (signal - length) / *step;
  const std::vector<int64_t>* declared = n.DeclaredShape(0);
  if (declared == nullptr || declared->size() != 4) return n.NotKnown(1);
  return (*declared)[1];
}

absl::Status Stft(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 3));
  std::vector<int64_t> shape = n.Shape(0);
  if (shape.size() == 2) shape.push_back(1);
  const bool is_one_sided = n.Int("onesided", 1) != 0;
  if ((shape[2] != 1 && shape[2] != 2) || (is_one_sided && shape[2] == 2)) {
    return n.Refuse(absl::StrCat("the signal is ", TypeText(n.In(0)), "; expected a last axis of 1",
                                 is_one_sided ? ", as the spectrum is one-sided" : " or 2"));
  }
  const Buffer signal = n.g().AddReshape(n.In(0), shape);
  if (n.Has(2) && n.Type(2) != signal->dtype)
    return n.Refuse("the window is of another type than the signal");
  MYCC_ASSIGN_OR_RETURN(const auto step, KnownNumber(n, 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, FrameLengths(n, is_one_sided));
  std::vector<std::pair<int64_t, Buffer>> results;
  for (int64_t length : lengths) {
    MYCC_ASSIGN_OR_RETURN(const int64_t frames, NumberOfFrames(n, step, length));
    const Buffer x = FramesOf(n, signal, step, frames, length);
    MYCC_ASSIGN_OR_RETURN(const Buffer y, TransformAxis(n, x, 2, {length, false, is_one_sided}));
    results.emplace_back(length, y);
  }
  const bool is_chosen = results.size() == 2 && results[0].second->shape == results[1].second->shape;
  n.Set(0, is_chosen ? ChosenBy(n.g(), n.In(3), results) : results[0].second, n.Typed(0).type);
  return absl::OkStatus();
}

// Sets output 0 to numbers of the type that the attribute output_datatype names.
absl::Status SetAsDeclared(NodeImport& n, const Buffer& numbers) {
  const int64_t type = n.Int("output_datatype", kFloat);
  const bool is_type = type > kUndefined && type <= kInt2;
  if (!is_type || !StorageOf(static_cast<int>(type)))
    return n.NotSupported(absl::StrCat(
        "output_datatype ", is_type ? ElementTypeName(static_cast<int>(type)) : absl::StrCat(type)));
  n.Set(0, Encoded(n.g(), numbers, static_cast<int>(type), {}), static_cast<int>(type));
  return absl::OkStatus();
}

// The extent of axis `axis` of output 0, which input `i` tells, or else the declared shape.
absl::StatusOr<int64_t> SizeFrom(const NodeImport& n, size_t i, size_t axis) {
  MYCC_RETURN_IF_ERROR(n.Expect(i + 1));
  MYCC_ASSIGN_OR_RETURN(std::optional<int64_t> size, KnownNumber(n, i));
  const std::vector<int64_t>* declared = n.DeclaredShape(0);
  if (!size && declared != nullptr && axis < declared->size()) size = (*declared)[axis];
  if (!size) return n.NotKnown(i);
  if (*size < 0) return n.Refuse(absl::StrCat("input ", i, " is ", *size, "; expected 0 or more"));
  if (const std::string problem = ShapeProblem({*size}); !problem.empty()) return n.Refuse(problem);
  return *size;
}

// A window as a function of the angle, from 0 to a whole turn.
absl::Status Window(NodeImport& n, double (*value)(double angle)) {
  MYCC_ASSIGN_OR_RETURN(const int64_t size, SizeFrom(n, 0, 0));
  const int64_t period = n.Int("periodic", 1) != 0 ? size : size - 1;
  NDArray window = NDArray::Zeros(DType::kF64, {size});
  for (int64_t i = 0; i < size; ++i) {
    const double angle = period == 0 ? M_PI : 2 * M_PI * static_cast<double>(i) / static_cast<double>(period);
    window.Set(i, Scalar{value(angle), 0});
  }
  return SetAsDeclared(n, n.g().AddConstant(std::move(window)));
}

absl::Status HannWindow(NodeImport& n) {
  return Window(n, [](double angle) { return std::sin(angle / 2) * std::sin(angle / 2); });
}

absl::Status HammingWindow(NodeImport& n) {
  return Window(n, [](double angle) { return 25.0 / 46 - 21.0 / 46 * std::cos(angle); });
}

absl::Status BlackmanWindow(NodeImport& n) {
  return Window(n, [](double angle) { return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle); });
}

Expr AsF64(NodeImport& n, size_t i) { return MakeCast(DType::kF64, OnlyElement(n.g(), n.In(i))); }

// The corners of the triangles, as numbers of bins: [bands + 2].
Buffer MelCorners(NodeImport& n, int64_t bands) {
  const auto number = [](double value) { return FloatConst(value, DType::kF64); };
  const auto mel = [&](const Expr& hertz) {
    return number(2595 / M_LN10) * MakeUnary(Op::kLog, number(1) + Quotient(hertz, number(700)));
  };
  return n.g().Map({bands + 2}, [&](const Axes& axes) {
    const Expr low = mel(AsF64(n, 3)), high = mel(AsF64(n, 4));
    const Expr step = Quotient(high - low, number(static_cast<double>(bands + 2)));
    const Expr at = MakeCast(DType::kF64, axes[0]) * step + low;
    const Expr hertz = number(700) * (ExpOf(at * number(M_LN10 / 2595)) - number(1));
    const Expr bin = Quotient((AsF64(n, 1) + number(1)) * hertz, AsF64(n, 2));
    return MakeCast(DType::kI64, MakeUnary(Op::kFloor, bin));
  });
}

// A triangle for each band: it rises from its left corner to its centre and falls to its right corner.
absl::Status MelWeightMatrix(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(5));
  MYCC_ASSIGN_OR_RETURN(const int64_t bands, SizeFrom(n, 0, 1));
  MYCC_ASSIGN_OR_RETURN(const auto length, KnownNumber(n, 1));
  int64_t bins = length ? *length / 2 + 1 : 0;
  if (!length) {
    MYCC_ASSIGN_OR_RETURN(bins, SizeFrom(n, 1, 0));
  }
  if (bins < 1)
    return n.Refuse(absl::StrCat("the length of the transform is ", *length, "; expected 0 or more"));
  const Buffer corners = MelCorners(n, bands);
  const Buffer weights = n.g().Map({bins, bands}, [&](const Axes& a) {
    const Expr left = Load(corners, {a[1]}), centre = Load(corners, {a[1] + 1}),
               right = Load(corners, {a[1] + 2});
    const auto share = [](const Expr& part, const Expr& all) {
      return Quotient(MakeCast(DType::kF64, part), MakeCast(DType::kF64, all));
    };
    const auto within = [](const Expr& low, const Expr& x, const Expr& high) {
      return MakeBinary(Op::kAnd, AtMost(low, x), AtMost(x, high));
    };
    const Expr zero = FloatConst(0, DType::kF64), one = FloatConst(1, DType::kF64);
    const Expr falls = MakeBinary(Op::kAnd, within(centre, a[0], right), LessThan(a[0], right));
    const Expr point = MakeSelect(MakeBinary(Op::kEq, a[0], centre), one, zero);
    const Expr rising = MakeSelect(within(left, a[0], centre), share(a[0] - left, centre - left), zero);
    return MakeSelect(falls, share(right - a[0], right - centre),
                      MakeSelect(MakeBinary(Op::kEq, left, centre), point, rising));
  });
  return SetAsDeclared(n, weights);
}

absl::Status Det(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 16));
  std::vector<int64_t> shape = n.Shape(0);
  const int64_t size = shape.back();
  if (shape[shape.size() - 2] != size)
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(n.In(0)), "; expected square matrices"));
  shape.resize(shape.size() - 2);
  const DType dtype = n.Type(0) == DType::kF64 ? DType::kF64 : DType::kF32;
  const Buffer x = n.g().Cast(n.In(0), dtype);
  Buffer det;
  if (size == 0) {
    det = n.g().Map(shape, [&](const Axes&) { return FloatConst(1, dtype); });
  } else if (size <= 2) {
    det = n.g().Map(shape, [&](const Axes& axes) {
      const auto at = [&](int64_t i, int64_t j) {
        Axes from = axes;
        from.push_back(IntConst(i));
        from.push_back(IntConst(j));
        return Load(x, from);
      };
      return size == 1 ? at(0, 0) : at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0);
    });
  } else {
    det = n.g().Call("det", {}, {x}, {{dtype, shape}})[0];
  }
  n.Set(0, n.g().Cast(det, n.Type(0)), n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kSignalTable[] = {
    {"BlackmanWindow", BlackmanWindow, 17},
    {"DFT", Dft, 17},
    {"Det", Det, 11},
    {"HammingWindow", HammingWindow, 17},
    {"HannWindow", HannWindow, 17},
    {"MelWeightMatrix", MelWeightMatrix, 17},
    {"STFT", Stft, 17},
};

}  // namespace

std::span<const Operator> SignalOperators() { return kSignalTable; }

}  // namespace mycc::onnx
