// Shapes as values, other shapes for the same elements, and elements that are repeated or counted up.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/moves_by_reads.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/check.h"
#include "codegen/workload/limits.h"

namespace mycc::onnx {
namespace {

absl::Status SetReshaped(NodeImport& n, const std::vector<int64_t>& shape) {
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  if (ElementsOf(shape) != n.In(0)->num_elements()) {
    return n.Refuse(absl::StrCat("gives ", TypeText(n.Typed(0)), " the shape ", ShapeText(shape),
                                 "; expected as many elements"));
  }
  n.Set(0, n.g().AddReshape(n.In(0), shape), n.Typed(0).type);
  return absl::OkStatus();
}

// A limit of Shape: counted from the end when negative, clamped.
int64_t AxisLimit(int64_t limit, int64_t rank) {
  return std::clamp<int64_t>(limit < 0 ? limit + rank : limit, 0, rank);
}

absl::Status ImportShape(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const std::vector<int64_t>& shape = n.Shape(0);
  const int64_t start = AxisLimit(n.Int("start", 0), n.Rank(0));
  const int64_t end = std::max(AxisLimit(n.Int("end", n.Rank(0)), n.Rank(0)), start);
  n.Set(0, n.g().Ints(std::vector<int64_t>(shape.begin() + start, shape.begin() + end)));
  return absl::OkStatus();
}

absl::Status ImportSize(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  n.Set(0, n.g().AddReshape(n.g().Ints({n.In(0)->num_elements()}), {}));
  return absl::OkStatus();
}

// 0 keeps the extent at its place, unless zeros are allowed; one -1 takes what is left.
absl::Status ImportReshape(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  if (const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1)) return SetReshaped(n, *declared);
  MYCC_ASSIGN_OR_RETURN(std::vector<int64_t> shape, n.ConstantInts(1));
  const std::vector<int64_t> asked = shape;
  const bool zero_is_zero = n.Int("allowzero", 0) != 0;
  int64_t left_over = -1, product = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero && i < n.Shape(0).size()) shape[i] = n.Shape(0)[i];
    const bool is_known = shape[i] >= 0 && (asked[i] != 0 || zero_is_zero || i < n.Shape(0).size());
    if (is_known && shape[i] <= kMaxElements / std::max<int64_t>(product, 1)) {
      product *= shape[i];
    } else if (shape[i] == -1 && left_over < 0) {
      left_over = static_cast<int64_t>(i);
    } else {
      return n.Refuse(absl::StrCat("gives ", TypeText(n.Typed(0)), " the shape ", ShapeText(asked),
                                   "; expected as many elements, and at most one -1"));
    }
  }
  if (left_over >= 0) {
    const int64_t elements = n.In(0)->num_elements();
    if (product == 0 || elements % product != 0) {
      return n.Refuse(absl::StrCat("gives ", TypeText(n.Typed(0)), " the shape ", ShapeText(asked),
                                   "; expected a number in place of -1 for which the elements suffice"));
    }
    shape[left_over] = elements / product;
  }
  return SetReshaped(n, shape);
}

absl::Status Flatten(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const std::vector<int64_t>& shape = n.Shape(0);
  const int64_t rank = n.Rank(0), given = n.Int("axis", 1);
  if (given < -rank || given > rank)
    return n.Refuse(
        absl::StrCat("axis ", given, " of ", TypeText(n.Typed(0)), "; expected -", rank, " to ", rank));
  const int64_t axis = given < 0 ? given + rank : given;
  return SetReshaped(n, {ElementsOf({shape.begin(), shape.begin() + axis}),
                         ElementsOf({shape.begin() + axis, shape.end()})});
}

// Axes that are named, and all of one element where none are.
absl::Status Squeeze(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  if (const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1)) return SetReshaped(n, *declared);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n.Rank(0); ++i) {
    if (n.Shape(0)[i] == 1) all.push_back(i);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> given, n.IntsOrInput("axes", 1, all));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, n.AxesOf(given, n.Rank(0)));
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < n.Rank(0); ++i) {
    if (!std::ranges::binary_search(axes, i)) {
      shape.push_back(n.Shape(0)[i]);
    } else if (n.Shape(0)[i] != 1) {
      return n.Refuse(
          absl::StrCat("removes axis ", i, " of ", TypeText(n.Typed(0)), "; expected an extent of 1"));
    }
  }
  return SetReshaped(n, shape);
}

// The axes are those of the result.
absl::Status Unsqueeze(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  if (!n.HasAttribute("axes") && !n.Has(1)) return n.Refuse("has no axes; expected them");
  if (const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1)) return SetReshaped(n, *declared);
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> given, n.IntsOrInput("axes", 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                        n.AxesOf(given, n.Rank(0) + static_cast<int64_t>(given.size())));
  std::vector<int64_t> shape = n.Shape(0);
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return SetReshaped(n, shape);
}

absl::Status Transpose(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  std::vector<int64_t> order;
  for (int64_t i = n.Rank(0); i-- > 0;) order.push_back(i);
  std::vector<int64_t> sorted(order.rbegin(), order.rend());
  order = n.Ints("perm", order);
  for (int64_t& axis : order) {
    MYCC_ASSIGN_OR_RETURN(axis, n.Axis(axis, n.Rank(0)));
  }
  if (!std::is_permutation(sorted.begin(), sorted.end(), order.begin(), order.end())) {
    return n.Refuse(
        absl::StrCat("perm is ", ShapeText(order), "; expected each of the ", n.Rank(0), " axes once"));
  }
  n.Set(0, Permuted(n.g(), n.In(0), order), n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status Expand(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  std::vector<int64_t> asked;
  if (const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1)) {
    asked = *declared;
  } else {
    MYCC_ASSIGN_OR_RETURN(asked, n.ConstantInts(1));
  }
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "is broadcast to", asked));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastShape({n.Shape(0), asked}));
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "is broadcast to", shape));
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) { return BroadcastLoad(n.In(0), axes); }), n.Typed(0).type);
  return absl::OkStatus();
}

// How often each axis is repeated: an input, or what the declared shape says.
absl::StatusOr<std::vector<int64_t>> Repeats(const NodeImport& n) {
  const std::vector<int64_t>* declared = ShapeInsteadOf(n, 1);
  if (declared == nullptr) return n.ConstantInts(1);
  std::vector<int64_t> repeats;
  for (size_t i = 0; i < declared->size() && i < n.Shape(0).size(); ++i) {
    const int64_t extent = n.Shape(0)[i];
    repeats.push_back(extent > 0 && (*declared)[i] % extent == 0 ? (*declared)[i] / extent : -1);
  }
  return repeats;
}

absl::Status ImportTile(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, Repeats(n));
  std::vector<int64_t> shape = n.Shape(0);
  bool fits = repeats.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = repeats[i] >= 0 && repeats[i] <= kMaxElements / std::max<int64_t>(shape[i], 1);
    if (fits) shape[i] *= repeats[i];
  }
  if (!fits) {
    return n.Refuse(absl::StrCat("repeats ", TypeText(n.Typed(0)), " ", ShapeText(repeats),
                                 " times; expected a number for each axis"));
  }
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  n.Set(0,
        Moved(n.g(), n.In(0), shape,
              [&](const Axes& axes) {
                Axes at = axes;
                for (size_t i = 0; i < at.size(); ++i) {
                  const int64_t extent = n.Shape(0)[i];
                  if (extent == 1) at[i] = IntConst(0);
                  if (extent > 1 && extent < shape[i]) at[i] = Mod(axes[i], extent);
                }
                return at;
              }),
        n.Typed(0).type);
  return absl::OkStatus();
}

// The number of elements of a range; -1 beyond what a tensor holds.
int64_t CountOfInts(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const __int128 distance = static_cast<__int128>(limit) - start, step = delta;
  const __int128 count = (distance + (step > 0 ? step - 1 : step + 1)) / step;
  return count > kMaxElements ? -1 : static_cast<int64_t>(count);
}

int64_t CountOfFloats(DType dtype, double start, double limit, double delta) {
  const double count = std::ceil(RoundFloat(dtype, limit - start) / delta);
  if (std::isnan(count) || count > static_cast<double>(kMaxElements)) return -1;
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

// The number of elements: by the limits, or where one is not known by the declared shape.
absl::StatusOr<int64_t> CountOfRange(const NodeImport& n) {
  Scalar limits[3];
  for (size_t i = 0; i < 3; ++i) {
    if (n.In(i)->num_elements() != 1)
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.Typed(i)), "; expected one number"));
    const std::vector<int64_t>* declared = ShapeInsteadOf(n, i);
    if (declared != nullptr && declared->size() == 1) return (*declared)[0];
    MYCC_RETURN_IF_ERROR(n.ConstantFloats(i).status());
    limits[i] = n.Value(i)->Get(0);
  }
  const auto& [start, limit, delta] = limits;
  if (IsFloat(n.Type(0)) ? delta.f == 0 : delta.i == 0) return n.Refuse("has a delta of 0; expected another");
  const int64_t count = IsFloat(n.Type(0)) ? CountOfFloats(n.Type(0), start.f, limit.f, delta.f)
                                           : CountOfInts(start.i, limit.i, delta.i);
  if (count < 0) return n.Refuse("has limits without end; expected at most 2^40 numbers");
  return count;
}

absl::Status ImportRange(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 2, kTakesNumbers));
  MYCC_ASSIGN_OR_RETURN(const int64_t count, CountOfRange(n));
  const DType dtype = n.Type(0), wide = IsFloat(dtype) ? DType::kF64 : DType::kI64;
  n.Set(0,
        n.g().Map({count},
                  [&](const Axes& axes) {
                    const Expr start = MakeCast(wide, OnlyElement(n.g(), n.In(0)));
                    const Expr delta = MakeCast(wide, OnlyElement(n.g(), n.In(2)));
                    return MakeCast(dtype, MakeCast(wide, axes[0]) * delta + start);
                  }),
        n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kShapeTable[] = {
    {"Expand", Expand, 8, "", false, kTextFirst},
    {"Flatten", Flatten, 1, "", false, kTextFirst},
    {"Range", ImportRange, 11},
    {"Reshape", ImportReshape, 1, "", false, kTextFirst},
    {"Shape", ImportShape, 1, "", false, kTextFirst},
    {"Size", ImportSize, 1, "", false, kTextFirst},
    {"Squeeze", Squeeze, 1, "", false, kTextFirst},
    {"Tile", ImportTile, 1, "", false, kTextFirst},
    {"Transpose", Transpose, 1, "", false, kTextFirst},
    {"Unsqueeze", Unsqueeze, 1, "", false, kTextFirst},
};

}  // namespace

std::span<const Operator> ShapeOperators() { return kShapeTable; }

}  // namespace mycc::onnx
