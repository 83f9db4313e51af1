// Products of one tensor with several matrices become one, and the results are its parts.
#include <gmock/gmock.h>

#include "codegen/graph/passes/passes.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

// x[m,k] times a constant of [k,n], plus a bias of n numbers.
Buffer Projection(GraphBuilder* b, const Buffer& x, int64_t columns, int seed) {
  const Buffer weights = Weights(b, {x->shape[1], columns}, seed), bias = Weights(b, {columns}, seed + 1);
  const Buffer product =
      b->Reduce(ReduceOp::kSum, {x->shape[0], columns}, {x->shape[1]}, [&](const Axes& a, const Axes& r) {
        return Load(x, {a[0], r[0]}) * Load(weights, {r[0], a[1]});
      });
  return b->Map(product->shape, [&](const Axes& a) { return Load(product, a) + Load(bias, {a[1]}); });
}

Graph Merged(const Graph& before, int64_t stages) {
  const Graph after = MergeProducts(before, Target());
  ExpectSameResults(before, after);
  EXPECT_EQ(CountStages(after), stages) << PrintGraph(after);
  return after;
}

std::vector<int64_t> OffsetsIn(const Graph& graph) {
  std::vector<int64_t> offsets;
  for (const Node& node : graph.nodes) {
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) offsets.push_back(reshape->offset);
  }
  return offsets;
}

TEST(MergeProductsTest, ThreeProductsWithBiases) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  for (int i = 0; i < 3; ++i) {
    b.AddOutput(std::to_string(i), Transposed(&b, Projection(&b, x, 8, 10 * i), {1, 0}));
  }
  // One product, one sum, three transposes.
  const Graph after = Merged(b.Finish(), 5);
  EXPECT_THAT(OffsetsIn(after), testing::ElementsAre(0, 32, 64));
}

TEST(MergeProductsTest, OtherShapesAreMergedAmongThemselves) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6}), z = b.AddInput("z", DType::kF32, {4, 6});
  int seed = 0;
  for (const int64_t columns : {8, 16, 8, 32}) {
    b.AddOutput(std::to_string(seed), Transposed(&b, Projection(&b, x, columns, seed), {1, 0}));
    ++seed;
  }
  b.AddOutput("of another tensor", Transposed(&b, Projection(&b, z, 8, seed), {1, 0}));
  Merged(b.Finish(), 13);
}

TEST(MergeProductsTest, ChainsWithOtherStagesAreNotMerged) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer one = Unary(&b, Op::kExp, Projection(&b, x, 8, 1));
  const Buffer other = Unary(&b, Op::kTanh, Projection(&b, x, 8, 2));
  b.AddOutput("y", Sum(&b, one, other));
  Merged(b.Finish(), 7);
}

TEST(MergeProductsTest, AConstantThatIsReadTwiceIsAnotherChain) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const auto chain = [&](int seed, bool is_one) {
    const Buffer y = Product(&b, x, 8), scale = Weights(&b, {8}, seed);
    const Buffer shift = is_one ? scale : Weights(&b, {8}, seed + 1);
    const Buffer scaled = b.Map(
        y->shape, [&](const Axes& a) { return Load(y, a) * Load(scale, {a[1]}) + Load(shift, {a[1]}); });
    return Transposed(&b, scaled, {1, 0});
  };
  b.AddOutput("0", chain(1, false));
  b.AddOutput("1", chain(3, true));
  Merged(b.Finish(), 6);
}

TEST(MergeProductsTest, OutputsOfTheModelStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  b.AddOutput("an output", Projection(&b, x, 8, 1));
  b.AddOutput("in another shape", b.AddReshape(Projection(&b, x, 8, 2), {2, 16}));
  b.AddOutput("in two shapes", b.AddReshape(b.AddReshape(Projection(&b, x, 8, 3), {2, 16}), {32}));
  Merged(b.Finish(), 6);
}

TEST(MergeProductsTest, PartsAreAligned) {
  // A result of 3 x 5 numbers has 60 bytes: the second one would not be aligned.
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {3, 6});
  for (int i = 0; i < 2; ++i) b.AddOutput(std::to_string(i), Transposed(&b, Projection(&b, x, 5, i), {1, 0}));
  Merged(b.Finish(), 6);
}

TEST(MergeProductsTest, TheTensorMayBeReadByOthers) {
  GraphBuilder b("g");
  const Buffer x = Unary(&b, Op::kExp, b.AddInput("x", DType::kF32, {4, 6}));
  const Buffer one = Projection(&b, x, 8, 1), other = Projection(&b, x, 8, 2);
  b.AddOutput("sum", Sum(&b, one, other));
  b.AddOutput("x", x);
  Merged(b.Finish(), 4);
}

}  // namespace
}  // namespace mycc
