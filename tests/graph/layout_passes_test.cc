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

TEST(MoveRowReshapesTest, AProductKeepsWhatFollowsIt) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 6}), other = b.AddInput("other", DType::kF32, {2, 3, 8});
  const Buffer product = b.AddReshape(Product(&b, x, 8), {2, 3, 8});
  b.AddOutput("y", Sum(&b, BiasAndRelu(&b, product, 2), other));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(MoveRowReshapes, before)),
            "graph g\n"
            "  input x = v0: f32[6,6]\n"
            "  input other = v1: f32[2,3,8]\n"
            "  v2: f32[6,8] = constant\n"
            "  v3[a0,a1]: f32[6,8] = sum[r0:6](v0[a0,r0] * v2[r0,a1])\n"
            "  v5: f32[8] = constant\n"
            "  v6_r[rows,a2]: f32[6,8] = v3[rows,a2] + v5[a2]\n"
            "  v7_r[rows,a2]: f32[6,8] = max(v6_r[rows,a2], 0.0)\n"
            "  v1_rows: f32[6,8] = reshape(v1)\n"
            "  v8_r[rows,a2]: f32[6,8] = v7_r[rows,a2] + v1_rows[rows,a2]\n"
            "  v8: f32[2,3,8] = reshape(v8_r)\n"
            "  output y = v8\n");
}

TEST(MoveRowReshapesTest, StagesAlongOtherAxesStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 6});
  b.AddOutput("y", BiasAndRelu(&b, b.AddReshape(Product(&b, x, 8), {2, 3, 8}), 1));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(MoveRowReshapes, before)), PrintGraph(before));
}

TEST(MoveRowReshapesTest, WhatOnlyANormReadsStaysWithIt) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {8, 6});
  const Buffer batch = BiasAndRelu(&b, b.AddReshape(Product(&b, x, 8), {2, 4, 8}), 2);
  const Buffer squares = b.Map({2, 4, 8}, [&](const Axes& a) { return Load(batch, a) * Load(batch, a); });
  const Buffer sums = b.Reduce(ReduceOp::kSum, {2, 4}, {8}, [&](const Axes& a, const Axes& r) {
    return Load(squares, {a[0], a[1], r[0]});
  });
  b.AddOutput("y", b.Map({2, 4, 8}, [&](const Axes& a) {
    return Load(batch, a) * Load(sums, {a[0], a[1]});
  }));
  const Graph after = Cleaned(MoveRowReshapes, b.Finish());
  // The bias and the maximum work on rows, the squares on what the reshape behind them gives.
  EXPECT_THAT(PrintGraph(after), HasSubstr("v6_r[rows,a2]: f32[8,8] = max(v5_r[rows,a2], 0.0)"));
  EXPECT_THAT(PrintGraph(after), HasSubstr("v7[a0,a1,a2]: f32[2,4,8] = v6[a0,a1,a2] * v6[a0,a1,a2]"));
}

// x[2,3,4,5] with its leading dimensions joined, its matrices transposed, and the joined ones split into
// `leading`.
Graph TransposedMatrices(const std::vector<int64_t>& leading) {
  GraphBuilder b("g");
  const Buffer joined = b.AddReshape(b.AddInput("x", DType::kF32, {2, 3, 4, 5}), {6, 4, 5});
  std::vector<int64_t> shape = leading;
  shape.insert(shape.end(), {5, 4});
  b.AddOutput("y", b.AddReshape(Transposed(&b, joined, {0, 2, 1}), shape));
  return b.Finish();
}

TEST(FindViewsTest, TheReshapesAroundATransposeGo) {
  EXPECT_EQ(PrintGraph(Cleaned(FindViews, TransposedMatrices({2, 3}))),
            "graph g\n"
            "  input x = v0: f32[2,3,4,5]\n"
            "  v3[a0,a1,a2,a3]: f32[2,3,5,4] = v0[a0,a1,a3,a2]\n"
            "  output y = v3\n");
}

TEST(FindViewsTest, TheSourceIsSplitLikeTheTarget) {
  const Graph after = Cleaned(FindViews, TransposedMatrices({3, 2}));
  EXPECT_THAT(PrintGraph(after), HasSubstr("v3_split: f32[3,2,4,5] = reshape(v0)\n"));
}

TEST(FindViewsTest, HeadsOfAPartOfAProduct) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 24});
  const Buffer part = b.Map({6, 8}, [&](const Axes& a) { return Load(x, {a[0], a[1] + 8}); });
  const Buffer heads = b.AddReshape(part, {6, 4, 2});
  b.AddOutput("y", b.AddReshape(Transposed(&b, heads, {1, 0, 2}), {2, 2, 6, 2}));
  const Graph after = Cleaned(FindViews, b.Finish());
  EXPECT_THAT(PrintGraph(after), HasSubstr("_split: f32[6,6,2,2] = reshape(v0)\n"));
  EXPECT_THAT(PrintGraph(after), HasSubstr("[a0,a1,a2,a3]: f32[2,2,6,2] = "));
  EXPECT_EQ(CountStages(after), 1) << PrintGraph(after);
}

TEST(FindViewsTest, DimensionsThatAreJoinedAndSplitAgain) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 2, 3, 8});
  const Buffer part = b.Map({6, 2, 8}, [&](const Axes& a) {
    return Load(x, {a[0], a[1], IntConst(1), a[2]});
  });
  const Buffer joined = Transposed(&b, b.AddReshape(part, {6, 8, 2}), {1, 0, 2});
  b.AddOutput("y", b.AddReshape(joined, {2, 4, 6, 2}));
  const Graph after = Cleaned(FindViews, b.Finish());
  EXPECT_THAT(PrintGraph(after), HasSubstr("_split: f32[6,2,12,2] = reshape(v0)\n"));
  EXPECT_EQ(CountStages(after), 1) << PrintGraph(after);
}

TEST(FindViewsTest, PointsOfAnImageAreStoredWithChannelsLast) {
  GraphBuilder b("g");
  const Buffer image = Unary(&b, Op::kExp, b.AddInput("x", DType::kF32, {1, 8, 3, 5}));
  const Buffer points = Transposed(&b, b.AddReshape(image, {1, 8, 15}), {0, 2, 1});
  b.AddOutput("y", b.AddReshape(points, {1, 15, 4, 2}));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Cleaned(FindViews, before)), PrintGraph(before));
}

TEST(FindViewsTest, ElementsAtUnevenDistancesStayMoved) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 4});
  b.AddOutput("y", b.AddReshape(Transposed(&b, x, {0, 2, 1}), {8, 3, 1}));
  b.AddOutput("z", b.AddReshape(Transposed(&b, x, {1, 0, 2}), {24}));
  const std::string after = PrintGraph(Cleaned(FindViews, b.Finish()));
  EXPECT_THAT(after, HasSubstr("v4: f32[24] = reshape(v3)\n"));
  EXPECT_THAT(after, HasSubstr("v2: f32[8,3,1] = reshape(v1)\n"));
}

TEST(MoveRowReshapesTest, AReadOfOneRowOfATensorOfThatShapeStays) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 4}), c = b.AddInput("c", DType::kF32, {2, 3, 8});
  const Buffer t = b.AddReshape(Product(&b, x, 8), {2, 3, 8});
  b.AddOutput("y", b.Map({2, 3, 8}, [&](const Axes& a) {
    return Load(t, a) + Load(c, {IntConst(0), IntConst(1), a[2]});
  }));
  EXPECT_THAT(PrintGraph(Cleaned(MoveRowReshapes, b.Finish())), HasSubstr("v1[0,1,a2]"));
}

// Rounds over all nodes that each reach one more would take minutes.
TEST(ChooseChannelsLastTest, ALongChainInFrontOfAConvolution) {
  constexpr int kNodes = 20000;
  GraphBuilder b("g");
  Buffer x = b.AddInput("x", DType::kF32, {1, 3, 4, 5});
  for (int i = 0; i < kNodes; ++i) x = Unary(&b, Op::kTanh, x);
  b.AddOutput("y", Unary(&b, Op::kExp, Conv3x3(&b, x, 2)));
  const Graph before = b.Finish();
  const Graph after = ChooseChannelsLast(before, Target());
  EXPECT_NE(PrintGraph(after), PrintGraph(before));
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
