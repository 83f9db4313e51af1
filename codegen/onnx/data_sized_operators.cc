// Operators whose outputs have a size that depends on data: NonZero, Compress, Unique and NonMaxSuppression.
// A size that constants decide is known when the model is compiled. The result is then constant, or made of
// slices.
// Otherwise a library kernel computes it, in a tensor that has room for the most; nothing computes on with
// it.
#include "codegen/onnx/data_sized_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"

namespace mycc::onnx {
namespace {

bool IsTrue(const NDArray& array, int64_t i) {
  const Scalar element = array.Get(i);
  return IsFloat(array.dtype) ? element.f != 0 : element.i != 0;
}

}  // namespace

// The indices of the elements that are not zero: one row for each axis. A number has one axis of one element.
absl::Status NonZero(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const std::vector<int64_t> shape = n.Shape(0).empty() ? std::vector<int64_t>{1} : n.Shape(0);
  const NDArray* x = n.Value(0);
  if (x == nullptr) {
    const std::vector<int64_t> most = {static_cast<int64_t>(shape.size()), n.In(0)->num_elements()};
    MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", most));
    const auto results = n.g().Call("non_zero", {}, {n.g().AddReshape(n.In(0), shape)},
                                    {{DType::kI64, most}, {DType::kI64, {}}});
    n.SetSized(0, results[0], kInt64, {{1, results[1]}}, 0);
    return absl::OkStatus();
  }
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x->num_elements(); ++i) {
    if (IsTrue(*x, i)) places.push_back(i);
  }
  const auto count = static_cast<int64_t>(places.size());
  NDArray indices = NDArray::Zeros(DType::kI64, {static_cast<int64_t>(shape.size()), count});
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    for (int64_t k = 0; k < count; ++k)
      indices.Set(static_cast<int64_t>(axis) * count + k, Scalar{0, places[k] / stride % shape[axis]});
    if (shape[axis] == 0) break;
  }
  n.Set(0, n.g().AddConstant(std::move(indices)));
  return absl::OkStatus();
}

namespace {

// The slices of x at some constant places of an axis.
Buffer SlicesAt(GraphBuilder& g, const Buffer& x, int64_t axis, const std::vector<int64_t>& places) {
  std::vector<int64_t> shape = x->shape;
  shape[axis] = static_cast<int64_t>(places.size());
  if (places.empty()) return g.AddConstant(NDArray::Zeros(x->dtype, shape));
  const Buffer table = g.Ints(places);
  return g.Map(shape, [&](const Axes& axes) {
    Axes from = axes;
    from[axis] = ClampTo(Load(table, {axes[axis]}), IntConst(0), IntConst(x->shape[axis] - 1));
    return Load(x, from);
  });
}

}  // namespace

// Without an axis, x is flat. The condition may be shorter than the axis.
absl::Status Compress(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 1, kTakesBools));
  Buffer x = n.In(0);
  int64_t axis = 0;
  if (n.HasAttribute("axis")) {
    MYCC_ASSIGN_OR_RETURN(axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  } else {
    x = n.g().AddReshape(x, {x->num_elements()});
  }
  const NDArray* condition = n.Value(1);
  if (condition == nullptr) {
    std::vector<int64_t> most = x->shape;
    most[axis] = std::min(most[axis], n.In(1)->num_elements());
    const auto results = n.g().Call("compress", {axis}, {x, n.In(1)}, {{x->dtype, most}, {DType::kI64, {}}});
    n.SetSized(0, results[0], n.Typed(0).type, {{static_cast<int>(axis), results[1]}}, 1);
    return absl::OkStatus();
  }
  std::vector<int64_t> places;
  for (int64_t i = 0; i < condition->num_elements(); ++i) {
    if (IsTrue(*condition, i)) places.push_back(i);
  }
  if (!places.empty() && places.back() >= x->shape[axis]) {
    return n.Refuse(absl::StrCat("the condition selects element ", places.back(), " of ", x->shape[axis]));
  }
  n.Set(0, SlicesAt(n.g(), x, axis, places), n.Typed(0).type);
  return absl::OkStatus();
}

namespace {

// A slice as numbers that compare like its elements; NaN is equal to NaN and above all numbers.
struct SliceElement {
  bool is_nan;
  double f;
  int64_t i;
  auto operator<=>(const SliceElement&) const = default;
};
using SliceValue = std::vector<SliceElement>;

SliceValue SliceAt(const NDArray& x, int64_t outer, int64_t extent, int64_t inner, int64_t place) {
  SliceValue slice;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const Scalar element = x.Get((o * extent + place) * inner + i);
      const bool is_nan = IsFloat(x.dtype) && std::isnan(element.f);
      slice.push_back({is_nan, IsFloat(x.dtype) && !is_nan ? element.f : 0,
                       IsFloat(x.dtype) ? 0 : OrderOfInt(x.dtype, element.i)});
    }
  }
  return slice;
}

// `first` and `count` are of each distinct slice: its first place, and how often it occurs. `number` is of
// each slice: the distinct one that it equals.
struct UniqueSlices {
  std::vector<int64_t> first, number, count;
};

UniqueSlices FindUnique(const std::vector<SliceValue>& slices, bool is_sorted) {
  std::map<SliceValue, int64_t> numbers;
  for (const SliceValue& slice : slices) numbers.emplace(slice, static_cast<int64_t>(numbers.size()));
  int64_t next = 0;
  for (auto& [slice, number] : numbers) number = is_sorted ? next++ : number;
  UniqueSlices unique;
  unique.first.assign(numbers.size(), -1);
  unique.count.assign(numbers.size(), 0);
  for (size_t i = 0; i < slices.size(); ++i) {
    const int64_t number = numbers.at(slices[i]);
    if (unique.first[number] < 0) unique.first[number] = static_cast<int64_t>(i);
    unique.number.push_back(number);
    ++unique.count[number];
  }
  return unique;
}

// The outputs where the input is not known: all but the third have as many slices as are distinct.
void SetUnique(NodeImport& n, const Buffer& x, int64_t axis) {
  const std::vector<int64_t> extent = {x->shape[axis]};
  const auto results = n.g().Call("unique", {axis, n.Int("sorted", 1)}, {x},
                                  {{x->dtype, x->shape},
                                   {DType::kI64, extent},
                                   {DType::kI64, extent},
                                   {DType::kI64, extent},
                                   {DType::kI64, {}},
                                   {DType::kI64, {}},
                                   {DType::kI64, {}}});
  n.SetSized(0, results[0], n.Typed(0).type, {{static_cast<int>(axis), results[4]}}, 0);
  n.SetSized(1, results[1], kInt64, {{0, results[5]}}, 0);
  n.Set(2, results[2]);
  n.SetSized(3, results[3], kInt64, {{0, results[6]}}, 0);
}

}  // namespace

absl::Status Unique(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  Buffer x = n.In(0);
  int64_t axis = 0;
  if (n.HasAttribute("axis")) {
    MYCC_ASSIGN_OR_RETURN(axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  } else {
    x = n.g().AddReshape(x, {x->num_elements()});
  }
  const int64_t extent = x->shape[axis];
  UniqueSlices unique;
  if (extent == 1) {  // unique whatever its values are
    unique = {{0}, {0}, {1}};
  } else if (n.g().ValueOf(x) == nullptr) {
    SetUnique(n, x, axis);
    return absl::OkStatus();
  } else {
    const NDArray& value = *n.g().ValueOf(x);
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < x->shape.size(); ++i) {
      if (static_cast<int64_t>(i) != axis) (static_cast<int64_t>(i) < axis ? outer : inner) *= x->shape[i];
    }
    std::vector<SliceValue> slices;
    for (int64_t i = 0; i < extent; ++i) slices.push_back(SliceAt(value, outer, extent, inner, i));
    unique = FindUnique(slices, n.Int("sorted", 1) != 0);
  }
  n.Set(0, SlicesAt(n.g(), x, axis, unique.first), n.Typed(0).type);
  n.Set(1, n.g().Ints(unique.first));
  n.Set(2, n.g().Ints(unique.number));
  n.Set(3, n.g().Ints(unique.count));
  return absl::OkStatus();
}

namespace {

// A box by its corners.
struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box BoxAt(const NDArray& boxes, int64_t row, bool is_center) {
  const double a = boxes.Get(row * 4).f, b = boxes.Get(row * 4 + 1).f, c = boxes.Get(row * 4 + 2).f,
               d = boxes.Get(row * 4 + 3).f;
  if (is_center) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

bool Overlap(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return false;
  const double common = height * width, all = a.area() + b.area() - common;
  return all > 0 && common / all > threshold;
}

// The numbers that decide which boxes are kept.
struct Suppression {
  int64_t most = 0;
  double overlap = 0, score = -std::numeric_limits<double>::infinity();
  bool is_center = false;
};

// The boxes that are kept for the scores of one class, the best first.
std::vector<int64_t> KeptBoxes(const std::vector<Box>& boxes, const std::vector<double>& scores,
                               const Suppression& rule) {
  std::vector<int64_t> order, kept;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > rule.score) order.push_back(static_cast<int64_t>(i));
  }
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t box : order) {
    if (static_cast<int64_t>(kept.size()) >= rule.most) break;
    const bool is_hidden = std::ranges::any_of(
        kept, [&](int64_t other) { return Overlap(boxes[box], boxes[other], rule.overlap); });
    if (!is_hidden) kept.push_back(box);
  }
  return kept;
}

// The numbers that are known; a number of boxes that is not known is not limited.
absl::StatusOr<Suppression> SuppressionOf(const NodeImport& n) {
  Suppression rule;
  rule.is_center = n.Int("center_point_box", 0) != 0;
  if (n.Has(2) && n.Value(2) == nullptr) rule.most = std::numeric_limits<int64_t>::max();
  for (size_t i = 2; i < 5; ++i) {
    if (n.Has(i) && n.In(i)->num_elements() != 1)
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected a number"));
    if (n.Value(i) == nullptr) continue;
    if (i == 2) {  // often the largest i64, which no double holds
      MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> most, n.ConstantInts(i));
      rule.most = most[0];
      continue;
    }
    MYCC_ASSIGN_OR_RETURN(const std::vector<double> number, n.ConstantFloats(i));
    if (i == 3) rule.overlap = number[0];
    if (i == 4) rule.score = number[0];
  }
  return rule;
}

// A number that the kernel takes: an input, or what it is without one.
Buffer NumberFor(NodeImport& n, size_t i, DType dtype, double otherwise) {
  return n.Has(i) ? n.g().AddReshape(n.g().Cast(n.In(i), dtype), {}) : n.g().Number(dtype, otherwise);
}

// The rows where input `deciding`, and perhaps others, are not known.
absl::Status SetKeptBoxes(NodeImport& n, const Suppression& rule, size_t deciding) {
  const std::vector<int64_t>& shape = n.Shape(1);
  const std::vector<int64_t> most = {shape[0] * shape[1] * std::clamp<int64_t>(rule.most, 0, shape[2]), 3};
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", most));
  GraphBuilder& g = n.g();
  const auto results = g.Call("non_max_suppression", {rule.is_center ? 1 : 0},
                              {g.Cast(n.In(0), DType::kF32), g.Cast(n.In(1), DType::kF32),
                               NumberFor(n, 2, DType::kI64, 0), NumberFor(n, 3, DType::kF32, 0),
                               NumberFor(n, 4, DType::kF32, -std::numeric_limits<double>::infinity())},
                              {{DType::kI64, most}, {DType::kI64, {}}});
  n.SetSized(0, results[0], kInt64, {{0, results[1]}}, deciding);
  return absl::OkStatus();
}

}  // namespace

absl::Status NonMaxSuppression(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 3));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 3, 3));
  const std::vector<int64_t> shape = n.Shape(1);
  const int64_t batches = shape[0], classes = shape[1], count = shape[2];
  if (n.Shape(0) != std::vector<int64_t>{batches, count, 4}) {
    return n.Refuse(absl::StrCat("boxes are ", TypeText(n.In(0)), " and scores ", TypeText(n.In(1)),
                                 "; expected [batch,n,4] and [batch,classes,n]"));
  }
  MYCC_ASSIGN_OR_RETURN(const Suppression rule, SuppressionOf(n));
  for (size_t i = 0; i < 5 && rule.most > 0; ++i) {
    if (n.Has(i) && n.Value(i) == nullptr) return SetKeptBoxes(n, rule, i);
  }
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < batches && rule.most > 0; ++b) {
    const NDArray *all_boxes = n.Value(0), *all_scores = n.Value(1);
    std::vector<Box> boxes;
    for (int64_t i = 0; i < count; ++i) boxes.push_back(BoxAt(*all_boxes, b * count + i, rule.is_center));
    for (int64_t c = 0; c < classes; ++c) {
      std::vector<double> scores;
      for (int64_t i = 0; i < count; ++i) scores.push_back(all_scores->Get((b * classes + c) * count + i).f);
      for (int64_t box : KeptBoxes(boxes, scores, rule)) rows.insert(rows.end(), {b, c, box});
    }
  }
  n.Set(0, n.g().AddReshape(n.g().Ints(rows), {static_cast<int64_t>(rows.size()) / 3, 3}));
  return absl::OkStatus();
}

}  // namespace mycc::onnx
