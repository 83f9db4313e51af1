#include "codegen/onnx/attention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {

Expr HeadVectors::At(const Expr& b, const Expr& head, const Expr& position, const Expr& element) const {
  return is_position_first ? Load(tensor, {b, position, head, element})
                           : Load(tensor, {b, head, position, element});
}

absl::StatusOr<HeadVectors> HeadVectorsOf(const NodeImport& n, GraphBuilder& g, size_t i, int64_t heads) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 3, 4));
  const std::vector<int64_t>& shape = n.Shape(i);
  if (shape.size() == 4) return HeadVectors{n.In(i), false};
  if (heads < 1) {
    return n.Refuse(absl::StrCat(
        "input ", i, " is ", TypeText(n.In(i)),
        ", whose heads are not told; expected an attribute with their number, such as q_num_heads"));
  }
  if (shape[2] % heads != 0) {
    return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), " with ", heads,
                                 " heads; expected a number of heads that divides the last extent"));
  }
  return HeadVectors{g.AddReshape(n.In(i), {shape[0], shape[1], heads, shape[2] / heads}), true};
}

Buffer HeadFirst(GraphBuilder& g, const HeadVectors& vectors) {
  const std::vector<int64_t> shape = {vectors.batch(), vectors.heads(), vectors.positions(), vectors.size()};
  return g.Map(shape, [&](const Axes& a) { return vectors.At(a[0], a[1], a[2], a[3]); });
}

absl::Status CheckHeads(const NodeImport& n, const HeadVectors& q, const HeadVectors& k,
                        const HeadVectors& v) {
  const bool fits = q.batch() == k.batch() && k.batch() == v.batch() && k.heads() == v.heads() &&
                    k.positions() == v.positions() && q.size() == k.size() && k.heads() > 0 &&
                    q.heads() > 0 && q.heads() % k.heads() == 0;
  if (fits) return absl::OkStatus();
  return n.Refuse(absl::StrCat("its queries, keys and values by heads are ", TypeText(q.tensor), ", ",
                               TypeText(k.tensor), " and ", TypeText(v.tensor),
                               "; expected one batch, as many keys as values, vectors of queries and keys of "
                               "one size, and a multiple of the keys' heads"));
}

Buffer ProductsOfHeads(GraphBuilder& g, const HeadVectors& q, const HeadVectors& k, double scale) {
  const int64_t batch = q.batch(), heads = k.heads(), group = q.heads() / heads, queries = q.positions();
  const int64_t keys = k.positions(), size = q.size();
  const DType dtype = WideTypeOf(q.tensor->dtype);
  const auto wide = [&](const Expr& x) { return MakeCast(dtype, x); };
  Buffer products;
  if (group == 1) {
    products =
        g.Reduce(ReduceOp::kSum, {batch, heads, queries, keys}, {size}, [&](const Axes& a, const Axes& r) {
          return wide(q.At(a[0], a[1], a[2], r[0])) * wide(k.At(a[0], a[1], a[3], r[0]));
        });
  } else {
    const bool is_first = q.is_position_first;
    const std::vector<int64_t> shape = is_first ? std::vector<int64_t>{batch, queries, heads, group, size}
                                                : std::vector<int64_t>{batch, heads, group, queries, size};
    const Buffer grouped = g.AddReshape(q.tensor, shape);
    products = g.Reduce(ReduceOp::kSum, {batch, heads, group, queries, keys}, {size},
                        [&](const Axes& a, const Axes& r) {
                          const Expr query = is_first ? Load(grouped, {a[0], a[3], a[1], a[2], r[0]})
                                                      : Load(grouped, {a[0], a[1], a[2], a[3], r[0]});
                          return wide(query) * wide(k.At(a[0], a[1], a[4], r[0]));
                        });
  }
  return g.Map(products->shape,
               [&](const Axes& at) { return Load(products, at) * FloatConst(scale, dtype); });
}

Buffer WeightedValues(GraphBuilder& g, const Buffer& weights, const HeadVectors& v, bool is_position_first,
                      DType dtype) {
  const std::vector<int64_t>& shape = weights->shape;
  const bool is_grouped = shape.size() == 5;
  const int64_t batch = shape[0], heads = v.heads(), group = is_grouped ? shape[2] : 1, size = v.size();
  const int64_t queries = shape[shape.size() - 2], keys = shape.back();
  const DType sum_type =
      weights->dtype == DType::kF64 || v.tensor->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto wide = [&](const Expr& x) { return MakeCast(sum_type, x); };
  // The result's axes: those of the weights, in the order that is asked for, and the element.
  std::vector<size_t> order = is_grouped ? std::vector<size_t>{0, 1, 2, 3} : std::vector<size_t>{0, 1, 2};
  if (is_position_first) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  std::vector<int64_t> result;
  for (const size_t axis : order) result.push_back(shape[axis]);
  result.push_back(size);
  const Buffer sums = g.Reduce(ReduceOp::kSum, result, {keys}, [&](const Axes& a, const Axes& r) {
    Axes at(shape.size());
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = a[i];
    at.back() = r[0];
    return wide(Load(weights, at)) * wide(v.At(at[0], at[1], r[0], a.back()));
  });
  const int64_t all = heads * group;
  return g.AddReshape(g.Cast(sums, dtype), is_position_first
                                               ? std::vector<int64_t>{batch, queries, all * size}
                                               : std::vector<int64_t>{batch, all, queries, size});
}

}  // namespace mycc::onnx
