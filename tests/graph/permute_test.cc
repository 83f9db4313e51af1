// Tensors stored in another order of dimensions.
#include "codegen/graph/permute.h"

#include <gmock/gmock.h>

#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

Buffer OutputOf(const Graph& graph, size_t node) { return graph.nodes[node].outputs[0]; }

TEST(PermuteTensorsTest, StagesReadAndWriteTheOtherOrder) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 4});
  b.AddOutput("y", Unary(&b, Op::kAbs, Unary(&b, Op::kExp, x)));
  const Graph before = b.Finish();
  const Graph after = PermuteTensors(before, {{OutputOf(before, 0).get(), {2, 0, 1}}});
  ExpectSameResults(before, after);
  EXPECT_EQ(PrintGraph(after),
            "graph g\n"
            "  input x = v0: f32[2,3,4]\n"
            "  v1_p[a2,a0,a1]: f32[4,2,3] = exp(v0[a0,a1,a2])\n"
            "  v2[a0,a1,a2]: f32[2,3,4] = abs(v1_p[a2,a0,a1])\n"
            "  output y = v2\n");
}

TEST(PermuteTensorsTest, ConstantsAreMoved) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 4}), weights = Weights(&b, {2, 3, 4});
  b.AddOutput("y", Sum(&b, x, weights));
  const Graph before = b.Finish();
  const Graph after = PermuteTensors(before, {{weights.get(), {1, 2, 0}}});
  ExpectSameResults(before, after);
  EXPECT_THAT(OutputOf(after, 0)->shape, testing::ElementsAre(3, 4, 2));
}

TEST(PermuteTensorsTest, WhoeverHoldsOnToTheOldOrderGetsACopy) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 1});
  const Buffer y = Unary(&b, Op::kExp, x);
  b.AddOutput("y", y);
  b.AddOutput("flat", b.AddReshape(y, {6}));
  b.AddOutput("call", b.Call("copy", {}, {y}, {{DType::kF32, {2, 3, 1}}})[0]);
  const Graph before = b.Finish();
  // All share one copy.
  const Graph moved = PermuteTensors(before, {{y.get(), {1, 0, 2}}});
  ExpectSameResults(before, moved);
  EXPECT_EQ(CountStages(moved), 2);
  // A dimension of one element moves nothing, so a reshape does.
  const Graph same = PermuteTensors(before, {{y.get(), {2, 0, 1}}});
  ExpectSameResults(before, same);
  EXPECT_EQ(CountStages(same), 1);
}

TEST(PermuteTensorsTest, AReshapeOfPermutedTensorsStaysOne) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 4, 5});
  const Buffer image = Unary(&b, Op::kExp, x), rows = b.AddReshape(image, {2, 3, 20});
  b.AddOutput("y", Unary(&b, Op::kAbs, rows));
  const Graph before = b.Finish();
  const Graph after = PermuteTensors(before, {{image.get(), {0, 2, 3, 1}}, {rows.get(), {0, 2, 1}}});
  ExpectSameResults(before, after);
  EXPECT_EQ(after.nodes.size(), before.nodes.size());
}

TEST(KeepsOrderTest, OnlyDimensionsOfOneElementMayMove) {
  EXPECT_TRUE(KeepsOrder({2, 3}, {0, 1}));
  EXPECT_FALSE(KeepsOrder({2, 3}, {1, 0}));
  EXPECT_TRUE(KeepsOrder({2, 1, 3}, {1, 0, 2}));
  EXPECT_TRUE(KeepsOrder({1, 64, 1, 1}, {0, 2, 3, 1}));
  EXPECT_FALSE(KeepsOrder({1, 64, 1, 2}, {0, 2, 3, 1}));
}

}  // namespace
}  // namespace mycc
