// ScatterElements, its old name Scatter, ScatterND and TensorScatter. Constant indices without a reduction
// become a table that tells the update of each element, so that the scatter is a select between two reads.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kMostTableElements = int64_t{1} << 20;

absl::StatusOr<int64_t> ReductionOf(const NodeImport& n) {
  constexpr const char* kNames[] = {"none", "add", "mul", "max", "min"};
  const std::string name = n.String("reduction", "none");
  for (int64_t i = 0; i < 5; ++i) {
    if (name == kNames[i]) return i;
  }
  return n.Refuse(absl::StrCat("the reduction is `", name, "`; expected none, add, mul, max or min"));
}

// A call of a scatter kernel. Narrow floats are reduced in f32; the sum of bools is whether one is true, and
// the product whether all are.
Buffer CallScatter(NodeImport& n, const std::string& function, int64_t reduction, int64_t axis) {
  Buffer data = n.In(0), updates = n.In(2);
  const DType dtype = data->dtype;
  const bool is_bool = dtype == DType::kBool;
  if (reduction != kMyccScatterNone && (IsNarrowFloat(dtype) || is_bool)) {
    const DType wide = is_bool ? DType::kU8 : DType::kF32;
    data = n.g().Cast(data, wide);
    updates = n.g().Cast(updates, wide);
    if (is_bool && reduction == kMyccScatterAdd) reduction = kMyccScatterMax;
    if (is_bool && reduction == kMyccScatterMul) reduction = kMyccScatterMin;
  }
  const Buffer scattered =
      n.g().Call(function, {reduction, axis}, {data, n.In(1), updates}, {{data->dtype, data->shape}})[0];
  return n.g().Cast(scattered, dtype);
}

absl::Status ExpectScatter(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  if (n.Type(1) != DType::kI64 && n.Type(1) != DType::kI32)
    return n.Refuse(absl::StrCat("indices are ", TypeText(n.In(1)), "; expected i32 or i64"));
  if (n.Typed(0).type == n.Typed(2).type) return absl::OkStatus();
  return n.Refuse(absl::StrCat("data are ", TypeText(n.In(0)), " and updates ", TypeText(n.In(2)),
                               "; expected one type"));
}

// An index of an axis of an extent; -1 where it is outside.
int64_t PlainIndex(const NDArray& indices, int64_t i, int64_t extent) {
  int64_t index = indices.Get(i).i;
  if (index < 0) index += extent;
  return index < 0 || index >= extent ? -1 : index;
}

// data where the table, of the shape of its first axes, has -1; elsewhere the slice of updates[n, ...] that
// it tells.
Buffer SelectUpdates(GraphBuilder& g, const Buffer& data, const Buffer& updates, NDArray table) {
  const size_t rank = table.shape.size();
  const Buffer from = g.AddConstant(std::move(table));
  return g.Map(data->shape, [&](const Axes& axes) {
    const Expr number = Load(from, Axes(axes.begin(), axes.begin() + static_cast<int64_t>(rank)));
    Axes slice = {ClampTo(number, IntConst(0), IntConst(updates->shape[0] - 1))};
    slice.insert(slice.end(), axes.begin() + static_cast<int64_t>(rank), axes.end());
    return MakeSelect(LessThan(number, IntConst(0)), Load(data, axes), Load(updates, slice));
  });
}

NDArray EmptyTable(std::vector<int64_t> shape) {
  NDArray table = NDArray::Zeros(DType::kI64, std::move(shape));
  for (int64_t i = 0; i < table.num_elements(); ++i) table.Set(i, Scalar{0, -1});
  return table;
}

// The number of the last update of each element of data.
NDArray ElementTable(const NDArray& indices, const std::vector<int64_t>& shape, int64_t axis) {
  NDArray table = EmptyTable(shape);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    int64_t rest = i, place = 0, stride = 1;
    bool is_inside = true;
    for (auto k = static_cast<int64_t>(shape.size()); k-- > 0; stride *= shape[k]) {
      const int64_t at = k == axis ? PlainIndex(indices, i, shape[k]) : rest % indices.shape[k];
      rest /= indices.shape[k];
      is_inside &= at >= 0;
      place += at * stride;
    }
    if (is_inside) table.Set(place, Scalar{0, i});
  }
  return table;
}

absl::Status ScatterElements(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectScatter(n));
  const Buffer data = n.In(0), indices = n.In(1), updates = n.In(2);
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  MYCC_ASSIGN_OR_RETURN(const int64_t reduction, ReductionOf(n));
  bool fits = indices->shape == updates->shape && n.Rank(1) == n.Rank(0);
  for (int64_t i = 0; fits && i < n.Rank(0); ++i) fits = i == axis || indices->shape[i] <= data->shape[i];
  if (!fits) {
    return n.Refuse(absl::StrCat("data are ", TypeText(data), ", indices ", TypeText(indices),
                                 " and updates ", TypeText(updates),
                                 "; expected indices and updates of one shape inside of data's"));
  }
  Buffer result;
  if (updates->num_elements() == 0) {
    result = data;
  } else if (const NDArray* known = n.Value(1); known != nullptr && reduction == kMyccScatterNone &&
                                                data->num_elements() <= kMostTableElements) {
    result = SelectUpdates(n.g(), data, n.g().AddReshape(updates, {updates->num_elements()}),
                           ElementTable(*known, data->shape, axis));
  } else {
    result = CallScatter(n, "scatter_elements", reduction, axis);
  }
  n.Set(0, result, n.Typed(0).type);
  return absl::OkStatus();
}

// The number of the last update of each slice of data.
NDArray SliceTable(const NDArray& indices, std::vector<int64_t> shape) {
  const auto depth = static_cast<int64_t>(shape.size());
  NDArray table = EmptyTable(std::move(shape));
  for (int64_t i = 0; i < indices.num_elements() / depth; ++i) {
    int64_t place = 0;
    bool is_inside = true;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = PlainIndex(indices, i * depth + k, table.shape[k]);
      is_inside &= at >= 0;
      place = place * table.shape[k] + at;
    }
    if (is_inside) table.Set(place, Scalar{0, i});
  }
  return table;
}

absl::Status ScatterND(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectScatter(n));
  const Buffer data = n.In(0), indices = n.In(1), updates = n.In(2);
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 1, 16));
  MYCC_ASSIGN_OR_RETURN(const int64_t reduction, ReductionOf(n));
  const int64_t depth = indices->shape.back();
  if (depth < 1 || depth > n.Rank(0)) {
    return n.Refuse(absl::StrCat("indices are ", TypeText(indices), "; expected tuples of 1 to ", n.Rank(0)));
  }
  const std::vector<int64_t> sliced(data->shape.begin(), data->shape.begin() + depth);
  const std::vector<int64_t> slice(data->shape.begin() + depth, data->shape.end());
  std::vector<int64_t> expected(indices->shape.begin(), indices->shape.end() - 1);
  expected.insert(expected.end(), slice.begin(), slice.end());
  if (updates->shape != expected) {
    return n.Refuse(
        absl::StrCat("updates are ", TypeText(updates), "; expected the shape ", ShapeText(expected)));
  }
  Buffer result;
  if (updates->num_elements() == 0) {
    result = data;
  } else if (const NDArray* known = n.Value(1);
             known != nullptr && reduction == kMyccScatterNone && ElementsOf(sliced) <= kMostTableElements) {
    std::vector<int64_t> flat = {indices->num_elements() / depth};
    flat.insert(flat.end(), slice.begin(), slice.end());
    result = SelectUpdates(n.g(), data, n.g().AddReshape(updates, flat), SliceTable(*known, sliced));
  } else {
    result = CallScatter(n, "scatter_nd", reduction, 0);
  }
  n.Set(0, result, n.Typed(0).type);
  return absl::OkStatus();
}

// The cache with the update of each batch written from an index on, which is brought into the cache.
absl::Status TensorScatter(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const Buffer cache = n.In(0), update = n.In(1);
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 16));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -2), n.Rank(0)));
  const std::string mode = n.String("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.Refuse(absl::StrCat("the mode is `", mode, "`; expected linear or circular"));
  std::vector<int64_t> expected = cache->shape;
  const bool has_length = n.Rank(1) == n.Rank(0) && update->shape[axis] <= cache->shape[axis];
  if (has_length) expected[axis] = update->shape[axis];
  if (axis == 0 || update->shape != expected || n.Typed(0).type != n.Typed(1).type) {
    return n.Refuse(absl::StrCat("the cache is ", TypeText(cache), " and the update ", TypeText(update),
                                 "; expected one type, and shapes that differ in the axis that is written"));
  }
  if (n.Has(2) && (n.Shape(2) != std::vector<int64_t>{cache->shape[0]} || n.Type(2) != DType::kI64))
    return n.Refuse(
        absl::StrCat("write indices are ", TypeText(n.In(2)), "; expected i64[", cache->shape[0], "]"));
  const int64_t extent = cache->shape[axis], length = update->shape[axis];
  const bool is_circular = mode == "circular";
  // Brought into the cache by a stage of its own, as an index reads no more than clamped values.
  Buffer begin;
  if (n.Has(2)) {
    begin = n.g().Map(n.Shape(2), [&](const Axes& axes) {
      const Expr first = Load(n.In(2), axes);
      return is_circular ? Mod(first, extent) : ClampTo(first, IntConst(0), IntConst(extent - length));
    });
  }
  const auto written = [&](const Axes& axes) {
    const Expr last = IntConst(is_circular ? extent - 1 : extent - length);
    const Expr first = begin == nullptr ? IntConst(0) : ClampTo(Load(begin, {axes[0]}), IntConst(0), last);
    Expr number = axes[axis] - first;
    if (is_circular) number = Mod(number + extent, extent);
    Axes from = axes;
    from[axis] = ClampTo(number, IntConst(0), IntConst(length - 1));
    const Expr is_new = MakeBinary(Op::kAnd, AtMost(IntConst(0), number), LessThan(number, IntConst(length)));
    return MakeSelect(is_new, Load(update, from), Load(cache, axes));
  };
  n.Set(0, update->num_elements() == 0 ? cache : n.g().Map(cache->shape, written), n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kScatterTable[] = {
    {"Scatter", ScatterElements, 9},
    {"ScatterElements", ScatterElements, 11},
    {"ScatterND", ScatterND, 11},
    {"TensorScatter", TensorScatter, 24},
};

}  // namespace

std::span<const Operator> ScatterOperators() { return kScatterTable; }

}  // namespace mycc::onnx
