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
  if (heads < 1 || shape[2] % heads != 0) {
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

// Query heads that share a head of keys are rows of one product. They join the positions when they lie side
// by side; else they have an axis of their own.
Buffer ProductsOfHeads(GraphBuilder& g, const HeadVectors& q, const HeadVectors& k, double scale) {
  const int64_t batch = q.batch(), heads = k.heads(), group = q.heads() / heads, queries = q.positions();
  const int64_t keys = k.positions(), size = q.size();
  const DType dtype = WideTypeOf(q.tensor->dtype);
  const std::vector<int64_t> shape = {batch, q.heads(), queries, keys};
  const auto wide = [&](const Expr& x) { return MakeCast(dtype, x); };
  const auto scaled = [&](const Buffer& products) {
    return g.Map(products->shape,
                 [&](const Axes& at) { return Load(products, at) * FloatConst(scale, dtype); });
  };
  if (group > 1 && q.is_position_first) {
    const Buffer grouped = g.AddReshape(q.tensor, {batch, queries, heads, group, size});
    const Buffer products = g.Reduce(
        ReduceOp::kSum, {batch, heads, group, queries, keys}, {size}, [&](const Axes& a, const Axes& r) {
          return wide(Load(grouped, {a[0], a[3], a[1], a[2], r[0]})) * wide(k.At(a[0], a[1], a[4], r[0]));
        });
    return g.AddReshape(scaled(products), shape);
  }
  const HeadVectors rows =
      group == 1 ? q : HeadVectors{g.AddReshape(q.tensor, {batch, heads, group * queries, size}), false};
  const Buffer products = g.Reduce(
      ReduceOp::kSum, {batch, heads, group * queries, keys}, {size}, [&](const Axes& a, const Axes& r) {
        return wide(rows.At(a[0], a[1], a[2], r[0])) * wide(k.At(a[0], a[1], a[3], r[0]));
      });
  return g.AddReshape(scaled(products), shape);
}

Buffer WeightedValues(GraphBuilder& g, const Buffer& weights, const HeadVectors& v, bool is_position_first,
                      DType dtype) {
  const std::vector<int64_t>& shape = weights->shape;
  const int64_t batch = shape[0], heads = v.heads(), queries = shape[2], keys = shape[3], size = v.size();
  const int64_t group = shape[1] / heads;
  const DType sum_type =
      weights->dtype == DType::kF64 || v.tensor->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto wide = [&](const Expr& x) { return MakeCast(sum_type, x); };
  if (!is_position_first) {
    const Buffer rows = g.AddReshape(weights, {batch, heads, group * queries, keys});
    const Buffer sums = g.Reduce(
        ReduceOp::kSum, {batch, heads, group * queries, size}, {keys}, [&](const Axes& a, const Axes& r) {
          return wide(Load(rows, {a[0], a[1], a[2], r[0]})) * wide(v.At(a[0], a[1], r[0], a[3]));
        });
    return g.AddReshape(g.Cast(sums, dtype), {batch, shape[1], queries, size});
  }
  if (group == 1) {
    const Buffer sums =
        g.Reduce(ReduceOp::kSum, {batch, queries, heads, size}, {keys}, [&](const Axes& a, const Axes& r) {
          return wide(Load(weights, {a[0], a[2], a[1], r[0]})) * wide(v.At(a[0], a[2], r[0], a[3]));
        });
    return g.AddReshape(g.Cast(sums, dtype), {batch, queries, heads * size});
  }
  const Buffer rows = g.AddReshape(weights, {batch, heads, group, queries, keys});
  const Buffer sums = g.Reduce(
      ReduceOp::kSum, {batch, queries, heads, group, size}, {keys}, [&](const Axes& a, const Axes& r) {
        return wide(Load(rows, {a[0], a[2], a[3], a[1], r[0]})) * wide(v.At(a[0], a[2], r[0], a[4]));
      });
  return g.AddReshape(g.Cast(sums, dtype), {batch, queries, shape[1] * size});
}

}  // namespace mycc::onnx
