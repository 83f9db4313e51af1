// The passes that change where elements are: reshapes, images with channels last, transposes.
#include <gmock/gmock.h>

#include "codegen/graph/passes/passes.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

Graph Cleaned(Graph (*pass)(Graph, const Target&), const Graph& graph) {
  Graph after = DropDeadNodes(RemoveCopies(pass(graph, Target()), Target()), Target());
  ExpectSameResults(graph, after);
  return after;
}

TEST(MoveUnitReshapesTest, AProductKeepsWhatFollowsIt) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer product = b.AddReshape(Product(&b, x, 8), {1, 4, 1, 8});
  b.AddOutput("y", BiasAndRelu(&b, product, 3));
  const Graph after = Cleaned(MoveUnitReshapes, b.Finish());
  EXPECT_EQ(PrintGraph(after),
            "graph g\n"
            "  input x = v0: f32[4,6]\n"
            "  v1: f32[6,8] = constant\n"
            "  v2[a0,a1]: f32[4,8] = sum[r0:6](v0[a0,r0] * v1[r0,a1])\n"
            "  v4: f32[8] = constant\n"
            "  v5_u[a0,a1]: f32[4,8] = v2[a0,a1] + v4[a1]\n"
            "  v6_u[a0,a1]: f32[4,8] = max(v5_u[a0,a1], 0.0)\n"
            "  v6: f32[1,4,1,8] = reshape(v6_u)\n"
            "  output y = v6\n");
}

TEST(MoveUnitReshapesTest, OtherReshapesStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  b.AddOutput("y", BiasAndRelu(&b, b.AddReshape(Product(&b, x, 8), {8, 4}), 0));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(MoveUnitReshapes, before)), PrintGraph(before));
}

TEST(MoveUnitReshapesTest, ReductionsReadTheSource) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer rows = b.AddReshape(Unary(&b, Op::kExp, x), {1, 4, 6});
  b.AddOutput("y", b.Reduce(ReduceOp::kSum, {1, 4}, {6}, [&](const Axes& a, const Axes& r) {
    return Load(rows, {a[0], a[1], r[0]});
  }));
  const Graph after = Cleaned(MoveUnitReshapes, b.Finish());
  EXPECT_THAT(PrintGraph(after), Not(HasSubstr("reshape")));
}

TEST(ChooseChannelsLastTest, TensorsBetweenConvolutionsAreStoredWithChannelsLast) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  const Buffer first = BiasAndRelu(&b, Conv3x3(&b, x, 2), 1);
  const Buffer second = Sum(&b, Conv3x3(&b, first, 2), first);
  b.AddOutput("y", b.AddReshape(second, {40}));
  const Graph before = b.Finish();
  const Graph after = Cleaned(ChooseChannelsLast, before);
  const std::string text = PrintGraph(after);
  // The input is read as it is, and the last stage writes what the reshape needs: there is no copy.
  EXPECT_EQ(CountStages(after), CountStages(before)) << text;
  EXPECT_THAT(text, HasSubstr("f32[1,6,7,3] = select("));
  EXPECT_THAT(text, HasSubstr("f32[1,4,5,2] = sum[r0:3, r1:3, r2:3]("));
  EXPECT_THAT(text, HasSubstr("f32[1,4,5,2] = max("));
  EXPECT_THAT(text, HasSubstr("f32[1,6,7,2] = select("));
  EXPECT_THAT(text, HasSubstr("[a0,a1,a2,a3]: f32[1,2,4,5] = v9_p[a0,a2,a3,a1] + v6_p[a0,a2,a3,a1]\n"));
}

TEST(ChooseChannelsLastTest, AConvolutionToFewChannelsReadsAndWritesPlanes) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 20});
  const Buffer features = BiasAndRelu(&b, Conv3x3(&b, x, 8), 1);
  b.AddOutput("y", Conv3x3(&b, features, 3));
  const std::string text = PrintGraph(Cleaned(ChooseChannelsLast, b.Finish()));
  EXPECT_THAT(text, HasSubstr("f32[1,4,20,8] = max("));
  EXPECT_THAT(text, HasSubstr("f32[1,8,6,22] = select("));
  EXPECT_THAT(text, HasSubstr("f32[1,3,4,20] = sum["));
}

TEST(ChooseChannelsLastTest, AGlobalPoolNeedsNoCopy) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  const Buffer image = Conv3x3(&b, x, 2);
  const Buffer pooled = b.Reduce(ReduceOp::kSum, {1, 2, 1, 1}, {4, 5}, [&](const Axes& a, const Axes& r) {
    return Load(image, {a[0], a[1], r[0], r[1]});
  });
  b.AddOutput("y", b.AddReshape(pooled, {1, 2}));
  const Graph before = b.Finish();
  const Graph after = Cleaned(ChooseChannelsLast, before);
  EXPECT_EQ(CountStages(after), CountStages(before)) << PrintGraph(after);
}

TEST(ChooseChannelsLastTest, WithoutConvolutionsNothingChanges) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  b.AddOutput("y", Softmax(&b, Unary(&b, Op::kTanh, x)));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(ChooseChannelsLast, before)), PrintGraph(before));
}

TEST(PushTransposesTest, TheStageInFrontStoresItsResultTransposed) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 4});
  const Buffer turned = Transposed(&b, Unary(&b, Op::kExp, x), {0, 2, 1});
  b.AddOutput("y", b.AddReshape(turned, {8, 3}));
  const Graph after = Cleaned(PushTransposes, b.Finish());
  EXPECT_EQ(PrintGraph(after),
            "graph g\n"
            "  input x = v0: f32[2,3,4]\n"
            "  v1_p[a0,a2,a1]: f32[2,4,3] = exp(v0[a0,a1,a2])\n"
            "  v3: f32[8,3] = reshape(v1_p)\n"
            "  output y = v3\n");
}

TEST(PushTransposesTest, AStageWithTwoReadersIsLeftAlone) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3});
  const Buffer powers = Unary(&b, Op::kExp, x);
  b.AddOutput("turned", Transposed(&b, powers, {1, 0}));
  b.AddOutput("abs", Unary(&b, Op::kAbs, powers));
  // So are a model's outputs and inputs.
  const Buffer kept = Unary(&b, Op::kTanh, x);
  b.AddOutput("kept", kept);
  b.AddOutput("kept turned", Transposed(&b, kept, {1, 0}));
  b.AddOutput("x turned", Transposed(&b, x, {1, 0}));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(PushTransposes, before)), PrintGraph(before));
}

}  // namespace
}  // namespace mycc
