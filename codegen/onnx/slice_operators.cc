// Parts of tensors, tensors joined, and elements kept or moved by their place along an axis.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/moves_by_reads.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/limits.h"

namespace mycc::onnx {
namespace {

// Elements first, first + step, ... of an axis.
struct AxisSlice {
  int64_t first = 0, step = 1, count = 0;
};

// Limits are counted from the end when negative, and clamped to what a walk in the step's direction reaches.
AxisSlice SliceOf(int64_t extent, int64_t start, int64_t end, int64_t step) {
  step = std::clamp(step, -kMaxElements, kMaxElements);
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  AxisSlice slice{0, step, 0};
  if (extent == 0) return slice;
  if (step > 0) {
    slice.first = std::clamp<int64_t>(start, 0, extent);
    const int64_t distance = std::clamp<int64_t>(end, 0, extent) - slice.first;
    slice.count = distance <= 0 ? 0 : (distance + step - 1) / step;
  } else {
    slice.first = std::clamp<int64_t>(start, 0, extent - 1);
    const int64_t distance = slice.first - std::clamp<int64_t>(end, -1, extent - 1);
    slice.count = distance <= 0 ? 0 : (distance - step - 1) / -step;
  }
  return slice;
}

// Until opset 9 the limits are attributes, and the step is 1.
absl::Status Slice(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(n.opset() < 10 ? 1 : 3));
  for (size_t i = 1; i < 5; ++i) {
    const std::vector<int64_t>* declared = ShapeInsteadOf(n, i);
    if (declared == nullptr) continue;
    MYCC_ASSIGN_OR_RETURN(const Buffer result, SlicedByReads(n, *declared));
    n.Set(0, result, n.Typed(0).type);
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, n.IntsOrInput("starts", 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, n.IntsOrInput("ends", 2));
  std::vector<int64_t> all(starts.size());
  std::iota(all.begin(), all.end(), 0);
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, n.IntsOrInput("axes", 3, all));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                        n.IntsOrInput("steps", 4, std::vector<int64_t>(starts.size(), 1)));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return n.Refuse(absl::StrCat("has ", starts.size(), " starts, ", ends.size(), " ends, ", axes.size(),
                                 " axes and ", steps.size(), " steps; expected as many of each"));
  }
  MYCC_RETURN_IF_ERROR(n.AxesOf(axes, n.Rank(0)).status());
  std::vector<int64_t> shape = n.Shape(0);
  std::vector<AxisSlice> slices(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return n.Refuse("has a step of 0; expected another");
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(axes[i], n.Rank(0)));
    slices[axis] = SliceOf(shape[axis], starts[i], ends[i], steps[i]);
    shape[axis] = slices[axis].count;
  }
  const auto indices = [&](const Axes& result) {
    Axes at = result;
    for (size_t i = 0; i < at.size(); ++i) at[i] = result[i] * slices[i].step + slices[i].first;
    return at;
  };
  n.Set(0, Moved(n.g(), n.In(0), shape, indices), n.Typed(0).type);
  return absl::OkStatus();
}

// The extents that an axis of `extent` elements is split into, where none are given: equal ones, and from
// opset 18 on a last one that may be smaller.
absl::StatusOr<std::vector<int64_t>> EqualParts(const NodeImport& n, int64_t extent) {
  const int64_t count = n.Int("num_outputs", static_cast<int64_t>(n.num_outputs()));
  if (count < 1 || count > static_cast<int64_t>(std::max<size_t>(n.num_outputs(), 1)))
    return n.Refuse(absl::StrCat("splits into ", count, " parts; expected one for each output"));
  const int64_t part = (extent + count - 1) / count, last = extent - part * (count - 1);
  if (last < 0 || (last != part && n.opset() < 18))
    return n.Refuse(
        absl::StrCat("splits ", extent, " elements into ", count, " parts; expected equal parts"));
  std::vector<int64_t> parts(count, part);
  parts.back() = last;
  return parts;
}

// The extents that the model declares for the parts, where the input that has them is not known.
absl::StatusOr<std::vector<int64_t>> GivenParts(const NodeImport& n, int64_t axis) {
  std::vector<int64_t> parts;
  if (ShapeInsteadOf(n, 1) == nullptr) return n.IntsOrInput("split", 1);
  for (size_t i = 0; i < n.num_outputs(); ++i) {
    const std::vector<int64_t>* declared = n.DeclaredShape(i);
    if (declared == nullptr || declared->size() != n.Shape(0).size()) return n.ConstantInts(1);
    parts.push_back((*declared)[axis]);
  }
  return parts;
}

absl::Status Split(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  const int64_t extent = n.Shape(0)[axis];
  std::vector<int64_t> parts;
  if (n.HasAttribute("split") || n.Has(1)) {
    MYCC_ASSIGN_OR_RETURN(parts, GivenParts(n, axis));
  } else {
    MYCC_ASSIGN_OR_RETURN(parts, EqualParts(n, extent));
  }
  int64_t end = 0;
  for (const int64_t part : parts) end = part < 0 || part > extent - end ? extent + 1 : end + part;
  if (end != extent || parts.size() < n.num_outputs()) {
    return n.Refuse(absl::StrCat("splits ", extent, " elements into ", ShapeText(parts),
                                 "; expected parts that make up the whole, one for each output"));
  }
  int64_t first = 0;
  for (size_t i = 0; i < n.num_outputs(); ++i) {
    if (n.Wants(i)) n.Set(i, Sliced(n.g(), n.In(0), axis, first, 1, parts[i]), n.Typed(0).type);
    first += parts[i];
  }
  return absl::OkStatus();
}

absl::Status Concat(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(std::max<size_t>(n.num_inputs(), 1)));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 1), n.Rank(0)));
  std::vector<Buffer> parts;
  std::vector<int64_t> shape = n.Shape(0);
  shape[axis] = 0;
  for (size_t i = 0; i < n.num_inputs(); ++i) {
    std::vector<int64_t> other = n.Shape(i);
    const int64_t extent = other.size() == shape.size() ? std::exchange(other[axis], shape[axis]) : 0;
    if (other != shape || n.Typed(i).type != n.Typed(0).type) {
      return n.Refuse(absl::StrCat("joins ", TypeText(n.Typed(0)), " and ", TypeText(n.Typed(i)),
                                   " along axis ", axis,
                                   "; expected one type, and shapes that differ there alone"));
    }
    shape[axis] += extent;
    parts.push_back(n.In(i));
  }
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  n.Set(0, Joined(n.g(), parts, axis), n.Typed(0).type);
  return absl::OkStatus();
}

// A place inside the source on every axis, where `before` elements stand in front of it; otherwise zero.
Expr ElementOrZero(const Buffer& source, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& shape, const Axes& axes) {
  const Expr zero = ZeroOf(source->dtype);
  if (source->num_elements() == 0) return zero;
  Expr is_inside = BoolConst(true);
  Axes at = axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t end = before[i] + source->shape[i];
    if (before[i] > 0) {
      is_inside = MakeBinary(Op::kAnd, is_inside, MakeBinary(Op::kLe, IntConst(before[i]), axes[i]));
    }
    if (end < shape[i])
      is_inside = MakeBinary(Op::kAnd, is_inside, MakeBinary(Op::kLt, axes[i], IntConst(end)));
    at[i] = axes[i] + -before[i];
  }
  const Expr element = Load(source, std::move(at));
  return is_inside->op == Op::kConst ? element : MakeSelect(is_inside, element, zero);
}

// The middle is taken from axes that are too long; zeros stand around those that are too short. An odd
// element goes to the end.
absl::Status CenterCropPad(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1);
  std::vector<int64_t> axes(n.Shape(0).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (declared == nullptr) axes = n.Ints("axes", axes);
  MYCC_RETURN_IF_ERROR(n.AxesOf(axes, n.Rank(0)).status());
  std::vector<int64_t> asked;
  if (declared != nullptr) {
    asked = *declared;
  } else {
    MYCC_ASSIGN_OR_RETURN(asked, n.ConstantInts(1));
  }
  if (asked.size() != axes.size()) {
    return n.Refuse(
        absl::StrCat("crops ", axes.size(), " axes to ", ShapeText(asked), "; expected an extent for each"));
  }
  std::vector<int64_t> shape = n.Shape(0), before(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(axes[i], n.Rank(0)));
    const int64_t extent = std::exchange(shape[axis], asked[i]);
    MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
    before[axis] = asked[i] < extent ? -((extent - asked[i]) / 2) : (asked[i] - extent) / 2;
  }
  n.Set(0, n.g().Map(shape, [&](const Axes& at) { return ElementOrZero(n.In(0), before, shape, at); }),
        n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status ReverseSequence(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, kMaxRank));
  const int64_t batch = n.Int("batch_axis", 1), time = n.Int("time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch)
    return n.Refuse(absl::StrCat("batch_axis is ", batch, " and time_axis ", time, "; expected 0 and 1"));
  const Buffer x = n.In(0), lengths = n.In(1);
  if (IsFloat(lengths->dtype) || lengths->shape != std::vector<int64_t>{x->shape[batch]}) {
    return n.Refuse(
        absl::StrCat("the lengths are ", TypeText(lengths), "; expected ", x->shape[batch], " integers"));
  }
  const int64_t steps = x->shape[time];
  n.Set(0,
        n.g().Map(x->shape,
                  [&](const Axes& axes) {
                    const Expr read = MakeCast(DType::kI64, Load(lengths, {axes[batch]}));
                    const Expr at_least = MakeBinary(Op::kMax, read, IntConst(0));
                    const Expr length = MakeBinary(Op::kMin, at_least, IntConst(steps));
                    const Expr mirrored = MakeBinary(Op::kMax, length - axes[time] - 1, IntConst(0));
                    Axes at = axes;
                    at[time] = MakeBinary(Op::kMin, mirrored, IntConst(steps - 1));
                    return MakeSelect(MakeBinary(Op::kLt, axes[time], length), Load(x, at), Load(x, axes));
                  }),
        n.Typed(0).type);
  return absl::OkStatus();
}

// The diagonal k, which need not be known, lies far outside of the matrix at most.
absl::Status Trilu(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, kMaxRank));
  if (n.Has(1) && (n.In(1)->num_elements() != 1 || IsFloat(n.Type(1))))
    return n.Refuse(absl::StrCat("k is ", TypeText(n.Typed(1)), "; expected one integer"));
  const bool is_upper = n.Int("upper", 1) != 0;
  Expr k = IntConst(0);
  if (n.Has(1)) {
    const NDArray* value = n.Value(1);
    k = value != nullptr ? IntConst(value->Get(0).i)
                         : MakeCast(DType::kI64, Load(n.In(1), Axes(n.Shape(1).size(), IntConst(0))));
    k = MakeBinary(Op::kMin, MakeBinary(Op::kMax, k, IntConst(-kMaxElements)), IntConst(kMaxElements));
  }
  n.Set(0,
        n.g().Map(n.Shape(0),
                  [&](const Axes& axes) {
                    const Expr diagonal = axes[axes.size() - 2] + k, column = axes.back();
                    const Expr is_kept = is_upper ? MakeBinary(Op::kLe, diagonal, column)
                                                  : MakeBinary(Op::kLe, column, diagonal);
                    return MakeSelect(is_kept, Load(n.In(0), axes), ZeroOf(n.Type(0)));
                  }),
        n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kSliceTable[] = {
    {"CenterCropPad", CenterCropPad, 18},       {"Concat", Concat, 1, "", false, kTextAnywhere},
    {"ReverseSequence", ReverseSequence, 10},   {"Slice", Slice, 1, "", false, kTextFirst},
    {"Split", Split, 1, "", false, kTextFirst}, {"Trilu", Trilu, 14},
};

}  // namespace

std::span<const Operator> SliceOperators() { return kSliceTable; }

}  // namespace mycc::onnx
