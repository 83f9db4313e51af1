// Padding: elements around a tensor, constant or taken from its border. Negative numbers cut elements off.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/moves_by_reads.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/limits.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kMostPaddedExtent = int64_t{1} << 29;

// Elements in front of and behind each axis.
struct Padding {
  std::vector<int64_t> before, after;
};

absl::StatusOr<Padding> PaddingOf(const NodeImport& n) {
  std::vector<int64_t> axes(n.Shape(0).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (n.Has(3)) {
    MYCC_ASSIGN_OR_RETURN(axes, n.ConstantInts(3));
  }
  MYCC_RETURN_IF_ERROR(n.AxesOf(axes, n.Rank(0)).status());
  if (!n.HasAttribute("pads") && !n.Has(1)) return n.Refuse("has no pads; expected them");
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, n.IntsOrInput("pads", 1));
  const size_t count = axes.size();
  bool fits = pads.size() == 2 * count;
  for (const int64_t pad : pads) fits &= pad >= -kMaxElements && pad <= kMaxElements;
  if (!fits) {
    return n.Refuse(absl::StrCat("pads are ", ShapeText(pads), "; expected ", 2 * count, " numbers for ",
                                 count, " axes"));
  }
  Padding padding{std::vector<int64_t>(n.Shape(0).size()), std::vector<int64_t>(n.Shape(0).size())};
  for (size_t i = 0; i < count; ++i) {
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(axes[i], n.Rank(0)));
    padding.before[axis] = pads[i];
    padding.after[axis] = pads[count + i];
  }
  return padding;
}

// The constant around the tensor: an attribute until opset 10, then an input, which need not be known.
absl::StatusOr<Expr> PadValue(const NodeImport& n, const GraphBuilder& g) {
  if (!n.Has(2)) {
    const double value = n.Float("value", 0);
    return n.Type(0) == DType::kBool ? BoolConst(value != 0) : NumberLike(ZeroOf(n.Type(0)), value);
  }
  if (n.Typed(2).type != n.Typed(0).type || n.In(2)->num_elements() != 1) {
    return n.Refuse(absl::StrCat("the constant is ", TypeText(n.In(2)),
                                 "; expected one element of the type of ", TypeText(n.In(0))));
  }
  return OnlyElement(g, n.In(2));
}

Expr ConstantPadded(const Buffer& x, const Padding& padding, const Expr& value, const Axes& axes) {
  if (x->num_elements() == 0) return value;
  Expr is_inside;
  const auto require = [&](const Expr& condition) {
    is_inside = is_inside == nullptr ? condition : MakeBinary(Op::kAnd, is_inside, condition);
  };
  Axes at = axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t before = padding.before[i], end = before + x->shape[i];
    if (before > 0) require(AtMost(IntConst(before), axes[i]));
    if (padding.after[i] > 0) require(LessThan(axes[i], IntConst(end)));
    at[i] = axes[i] + -before;
  }
  const Expr element = Load(x, std::move(at));
  return is_inside == nullptr ? element : MakeSelect(is_inside, element, value);
}

// The place in an axis of `extent` elements that a place before it, behind it or inside takes its element
// from. Padding that is longer than the axis repeats.
Expr BorderIndex(const std::string& mode, const Expr& place, int64_t before, int64_t after, int64_t extent) {
  if (before == 0 && after == 0) return place;
  if (extent == 1) return IntConst(0);
  if (mode == "wrap") return Mod(place, extent);
  if (mode == "edge") return ClampTo(place, IntConst(0), IntConst(extent - 1));
  const int64_t period = 2 * (extent - 1);
  if (before >= extent || after >= extent) {
    const Expr in_period = Mod(place, period);
    return MakeBinary(Op::kMin, in_period, IntConst(period) - in_period);
  }
  Expr index = place;
  if (before > 0) index = MakeBinary(Op::kMax, index, IntConst(0) - index);
  if (after > 0) index = MakeBinary(Op::kMin, index, IntConst(period) - index);
  return index;
}

// Refuses axes whose places are too large for the proof that reads are inside of the tensor.
absl::Status ExpectSmallPlaces(const NodeImport& n, const Padding& padding) {
  for (size_t i = 0; i < padding.before.size(); ++i) {
    const int64_t before = std::max<int64_t>(padding.before[i], 0);
    const int64_t after = std::max<int64_t>(padding.after[i], 0);
    if (before + after == 0 || before + n.Shape(0)[i] + after <= kMostPaddedExtent) continue;
    return n.Refuse(absl::StrCat("axis ", i, " of ", TypeText(n.In(0)), " has padding of ", before, " and ",
                                 after, " elements; expected at most ", kMostPaddedExtent,
                                 " elements in all"));
  }
  return absl::OkStatus();
}

// Elements are cut off first: the border is that of what stays.
absl::StatusOr<Buffer> CutOff(NodeImport& n, Padding* padding) {
  Buffer x = n.In(0);
  for (size_t i = 0; i < padding->before.size(); ++i) {
    int64_t &before = padding->before[i], &after = padding->after[i];
    const int64_t first = std::max<int64_t>(-before, 0);
    const int64_t count = x->shape[i] - first - std::max<int64_t>(-after, 0);
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
    if (count < 0 || (count == 0 && before + after > 0)) {
      return n.Refuse(absl::StrCat("axis ", i, " of ", TypeText(n.In(0)),
                                   " has no elements that the padding is taken from; expected some"));
    }
    x = Sliced(n.g(), x, static_cast<int64_t>(i), first, 1, count);
  }
  return x;
}

absl::Status ImportPad(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const std::string mode = n.String("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected constant, reflect, edge or wrap"));
  for (const size_t i : {1, 3}) {
    const std::vector<int64_t>* declared = ShapeInsteadOf(n, i);
    if (declared == nullptr) continue;
    MYCC_ASSIGN_OR_RETURN(const Expr value, PadValue(n, n.g()));
    MYCC_ASSIGN_OR_RETURN(const Buffer result, PaddedByReads(n, mode, value, *declared));
    n.Set(0, result, n.Typed(0).type);
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(Padding padding, PaddingOf(n));
  std::vector<int64_t> shape = n.Shape(0);
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += padding.before[i] + padding.after[i];
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "is padded to", shape));
  MYCC_RETURN_IF_ERROR(ExpectSmallPlaces(n, padding));
  Buffer result;
  if (mode == "constant") {
    MYCC_ASSIGN_OR_RETURN(const Expr value, PadValue(n, n.g()));
    result =
        n.g().Map(shape, [&](const Axes& axes) { return ConstantPadded(n.In(0), padding, value, axes); });
  } else {
    MYCC_ASSIGN_OR_RETURN(const Buffer x, CutOff(n, &padding));
    result = Moved(n.g(), x, shape, [&](const Axes& axes) {
      Axes at;
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t before = padding.before[i];
        at.push_back(BorderIndex(mode, axes[i] + -before, before, padding.after[i], x->shape[i]));
      }
      return at;
    });
  }
  n.Set(0, result, n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kPadTable[] = {
    {"Pad", ImportPad},
};

}  // namespace

std::span<const Operator> PadOperators() { return kPadTable; }

}  // namespace mycc::onnx
