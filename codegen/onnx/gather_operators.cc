// Elements that are picked by tensors of indices. Indices that are known become plain slices where they
// advance evenly.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// Refuses indices that are no integers, and an axis without elements where one is read.
absl::Status ExpectIndices(const NodeImport& n, size_t i, int64_t extent) {
  if (!n.Has(i)) return n.Refuse(absl::StrCat("has no input ", i, "; expected indices"));
  if (IsFloat(n.Type(i)) || n.Type(i) == DType::kBool)
    return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected integers"));
  if (extent == 0 && n.In(i)->num_elements() > 0)
    return n.Refuse(absl::StrCat("picks from ", TypeText(n.In(0)), "; expected elements"));
  return absl::OkStatus();
}

// An axis without elements is read by no index; the form of the reads is checked all the same.
int64_t ReadableExtent(int64_t extent) { return std::max<int64_t>(extent, 1); }

absl::Status Gather(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  const Buffer data = n.In(0), indices = n.In(1);
  MYCC_RETURN_IF_ERROR(ExpectIndices(n, 1, data->shape[axis]));
  const int64_t count = n.Rank(1);
  std::vector<int64_t> shape = data->shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices->shape.begin(), indices->shape.end());
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  MYCC_ASSIGN_OR_RETURN(const IndexRead index, IndicesOf(n, 1, indices, ReadableExtent(data->shape[axis])));
  const auto source_of = [&](const Axes& axes) {
    Axes at(axes.begin(), axes.begin() + axis);
    at.push_back(index(Axes(axes.begin() + axis, axes.begin() + axis + count)));
    at.insert(at.end(), axes.begin() + axis + count, axes.end());
    return at;
  };
  n.Set(0, Moved(n.g(), data, shape, source_of), n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status GatherElements(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  const Buffer data = n.In(0), indices = n.In(1);
  MYCC_RETURN_IF_ERROR(ExpectIndices(n, 1, data->shape[axis]));
  bool fits = n.Rank(0) == n.Rank(1);
  for (int64_t i = 0; fits && i < n.Rank(0); ++i) fits = i == axis || indices->shape[i] <= data->shape[i];
  if (!fits) {
    return n.Refuse(absl::StrCat("picks from ", TypeText(data), " by ", TypeText(indices), " along axis ",
                                 axis, "; expected extents that fit on the other axes"));
  }
  MYCC_ASSIGN_OR_RETURN(const IndexRead index, IndicesOf(n, 1, indices, ReadableExtent(data->shape[axis])));
  const auto source_of = [&](const Axes& axes) {
    Axes at = axes;
    at[axis] = index(axes);
    return at;
  };
  n.Set(0, Moved(n.g(), data, indices->shape, source_of), n.Typed(0).type);
  return absl::OkStatus();
}

// Each column of the last axis of the indices is an index of one axis of the data, behind the axes that both
// share.
absl::Status GatherND(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const Buffer data = n.In(0), indices = n.In(1);
  const int64_t shared = n.Int("batch_dims", 0);
  const bool has_columns = n.Rank(1) > 0 && shared >= 0 && shared < std::min(n.Rank(0), n.Rank(1));
  const int64_t columns = has_columns ? indices->shape.back() : 0;
  if (columns < 1 || columns > n.Rank(0) - shared ||
      !std::equal(data->shape.begin(), data->shape.begin() + shared, indices->shape.begin())) {
    return n.Refuse(absl::StrCat("picks from ", TypeText(data), " by ", TypeText(indices), " with ", shared,
                                 " axes shared; expected extents that fit"));
  }
  std::vector<int64_t> places(indices->shape.begin(), indices->shape.end() - 1), shape = places;
  shape.insert(shape.end(), data->shape.begin() + shared + columns, data->shape.end());
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  std::vector<IndexRead> reads;
  for (int64_t k = 0; k < columns; ++k) {
    const int64_t extent = data->shape[shared + k];
    MYCC_RETURN_IF_ERROR(ExpectIndices(n, 1, extent));
    const bool is_known = n.g().ValueOf(indices) != nullptr;
    const Buffer column =
        is_known ? WithoutAxis(n.g(), Sliced(n.g(), indices, n.Rank(1) - 1, k, 1, 1), n.Rank(1) - 1)
                 : indices;
    MYCC_ASSIGN_OR_RETURN(const IndexRead read, IndicesOf(n, 1, column, ReadableExtent(extent)));
    reads.push_back([=](Axes at) {
      if (!is_known) at.push_back(IntConst(k));
      return read(at);
    });
  }
  const auto source_of = [&](const Axes& axes) {
    const Axes place(axes.begin(), axes.begin() + static_cast<int64_t>(places.size()));
    Axes at(axes.begin(), axes.begin() + shared);
    for (const IndexRead& read : reads) at.push_back(read(place));
    at.insert(at.end(), axes.begin() + static_cast<int64_t>(places.size()), axes.end());
    return at;
  };
  n.Set(0, Moved(n.g(), data, shape, source_of), n.Typed(0).type);
  return absl::OkStatus();
}

// Columns of the last axis; a vector counts as a matrix of one row.
absl::Status ArrayFeatureExtractor(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 15));
  const Buffer data = n.Rank(0) == 1 ? WithAxis(n.g(), n.In(0), 0) : n.In(0);
  MYCC_RETURN_IF_ERROR(ExpectIndices(n, 1, data->shape.back()));
  const Buffer indices = n.g().AddReshape(n.In(1), {n.In(1)->num_elements()});
  std::vector<int64_t> shape = data->shape;
  shape.back() = indices->shape[0];
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  MYCC_ASSIGN_OR_RETURN(const IndexRead index, IndicesOf(n, 1, indices, ReadableExtent(data->shape.back())));
  const auto source_of = [&](const Axes& axes) {
    Axes at = axes;
    at.back() = index({axes.back()});
    return at;
  };
  n.Set(0, Moved(n.g(), data, shape, source_of), n.Typed(0).type);
  return absl::OkStatus();
}

constexpr Operator kGatherTable[] = {
    {"ArrayFeatureExtractor", ArrayFeatureExtractor, 1, "ai.onnx.ml", false, kTextFirst},
    {"Gather", Gather, 1, "", false, kTextFirst},
    {"GatherElements", GatherElements, 11, "", false, kTextFirst},
    {"GatherND", GatherND, 11, "", false, kTextFirst},
};

}  // namespace

std::span<const Operator> GatherOperators() { return kGatherTable; }

}  // namespace mycc::onnx
