#include "tests/graph/graph_cases.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "codegen/graph/interpret.h"

namespace mycc {

Buffer Weights(GraphBuilder* builder, std::vector<int64_t> shape, int seed) {
  NDArray array = NDArray::Zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i)
    array.Set(i, Scalar{static_cast<double>((i * 37 + seed * 11) % 64) / 32 - 1, 0});
  return builder->AddConstant(std::move(array));
}

Buffer Conv3x3(GraphBuilder* builder, const Buffer& x, int64_t filters) {
  const int64_t batch = x->shape[0], channels = x->shape[1], rows = x->shape[2], columns = x->shape[3];
  const auto inside = [](const Expr& at, int64_t extent) {
    return MakeBinary(Op::kAnd, MakeBinary(Op::kLe, IntConst(1), at),
                      MakeBinary(Op::kLe, at, IntConst(extent)));
  };
  const Buffer padded = builder->Map({batch, channels, rows + 2, columns + 2}, [&](const Axes& a) {
    return MakeSelect(MakeBinary(Op::kAnd, inside(a[2], rows), inside(a[3], columns)),
                      Load(x, {a[0], a[1], a[2] - 1, a[3] - 1}), Number32(0));
  });
  const Buffer weights = Weights(builder, {filters, channels, 3, 3});
  return builder->Reduce(
      ReduceOp::kSum, {batch, filters, rows, columns}, {channels, 3, 3}, [&](const Axes& a, const Axes& r) {
        return Load(padded, {a[0], r[0], a[2] + r[1], a[3] + r[2]}) * Load(weights, {a[1], r[0], r[1], r[2]});
      });
}

Buffer Product(GraphBuilder* builder, const Buffer& x, int64_t columns) {
  const Buffer weights = Weights(builder, {x->shape[1], columns}, 2);
  return builder->Reduce(ReduceOp::kSum, {x->shape[0], columns}, {x->shape[1]},
                         [&](const Axes& a, const Axes& r) {
                           return Load(x, {a[0], r[0]}) * Load(weights, {r[0], a[1]});
                         });
}

Buffer BiasAndRelu(GraphBuilder* builder, const Buffer& x, int channel) {
  const Buffer bias = Weights(builder, {x->shape[channel]}, 3);
  const Buffer sum =
      builder->Map(x->shape, [&](const Axes& a) { return Load(x, a) + Load(bias, {a[channel]}); });
  return builder->Map(x->shape,
                      [&](const Axes& a) { return MakeBinary(Op::kMax, Load(sum, a), Number32(0)); });
}

Buffer Unary(GraphBuilder* builder, Op op, const Buffer& x) {
  return builder->Map(x->shape, [&](const Axes& a) { return MakeUnary(op, Load(x, a)); });
}

Buffer Sum(GraphBuilder* builder, const Buffer& a, const Buffer& b) {
  return builder->Map(a->shape, [&](const Axes& axes) { return Load(a, axes) + Load(b, axes); });
}

Buffer Transposed(GraphBuilder* builder, const Buffer& x, const std::vector<int>& permutation) {
  std::vector<int64_t> shape;
  for (int dim : permutation) shape.push_back(x->shape[dim]);
  return builder->Map(shape, [&](const Axes& a) {
    Axes indices(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i) indices[permutation[i]] = a[i];
    return Load(x, indices);
  });
}

Buffer Softmax(GraphBuilder* builder, const Buffer& x) {
  std::vector<int64_t> rows = x->shape;
  const int64_t length = rows.back();
  rows.back() = 1;
  // The index of a row's result, and that of an element of the row.
  const auto row = [](Axes a) {
    a.back() = IntConst(0);
    return a;
  };
  const auto element = [](Axes a, const Expr& r) {
    a.back() = r;
    return a;
  };
  const Buffer most = builder->Reduce(ReduceOp::kMax, rows, {length}, [&](const Axes& a, const Axes& r) {
    return Load(x, element(a, r[0]));
  });
  const Buffer powers = builder->Map(
      x->shape, [&](const Axes& a) { return MakeUnary(Op::kExp, Load(x, a) - Load(most, row(a))); });
  const Buffer sums = builder->Reduce(ReduceOp::kSum, rows, {length}, [&](const Axes& a, const Axes& r) {
    return Load(powers, element(a, r[0]));
  });
  return builder->Map(
      x->shape, [&](const Axes& a) { return MakeBinary(Op::kDiv, Load(powers, a), Load(sums, row(a))); });
}

std::vector<NDArray> RandomValues(const Graph& graph, uint64_t seed) {
  Workload inputs{"inputs", {}, {}, {}};
  for (const NamedTensor& input : graph.inputs) inputs.inputs.push_back({input.tensor, false});
  return RandomInputs(inputs, seed);
}

namespace {

// Expects `is_alike` of the values of each output of both graphs, for the same random inputs.
void CompareResults(const Graph& before, const Graph& after,
                    const std::function<bool(const NDArray&, const NDArray&)>& is_alike) {
  ASSERT_TRUE(VerifyGraph(before).ok()) << VerifyGraph(before) << "\n" << PrintGraph(before);
  ASSERT_TRUE(VerifyGraph(after).ok()) << VerifyGraph(after) << "\n" << PrintGraph(after);
  ASSERT_EQ(before.outputs.size(), after.outputs.size());
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<NDArray> inputs = RandomValues(before, seed);
    const auto expected = InterpretGraph(before, inputs), got = InterpretGraph(after, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < expected->size(); ++i) {
      ASSERT_EQ((*expected)[i].shape, (*got)[i].shape) << before.outputs[i].name;
      EXPECT_TRUE(is_alike((*expected)[i], (*got)[i])) << before.outputs[i].name << "\n"
                                                       << PrintGraph(before) << PrintGraph(after);
    }
  }
}

bool AreClose(const NDArray& a, const NDArray& b, double bound) {
  if (a.dtype != b.dtype) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.Get(i).f, y = b.Get(i).f;
    const bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    if (!is_same && !(std::abs(x - y) <= bound * std::max(1.0, std::abs(x)))) return false;
  }
  return true;
}

}  // namespace

void ExpectSameResults(const Graph& before, const Graph& after) {
  CompareResults(before, after, [](const NDArray& a, const NDArray& b) { return a.bytes == b.bytes; });
}

void ExpectCloseResults(const Graph& before, const Graph& after, double bound) {
  CompareResults(before, after,
                 [bound](const NDArray& a, const NDArray& b) { return AreClose(a, b, bound); });
}

int64_t CountStages(const Graph& graph) {
  return std::ranges::count_if(graph.nodes,
                               [](const Node& node) { return std::holds_alternative<Stage>(node.made_by); });
}

}  // namespace mycc
