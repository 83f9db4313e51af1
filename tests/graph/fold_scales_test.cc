// Factors of channels behind a product go into its weights, where nothing else sees what stands between.
#include <gmock/gmock.h>

#include "codegen/graph/passes/passes.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

// x, and a number for each index of a dimension.
Buffer WithChannels(GraphBuilder* b, Op op, const Buffer& x, int channel, int seed) {
  const Buffer numbers = Weights(b, {x->shape[channel]}, seed);
  return b->Map(x->shape,
                [&](const Axes& a) { return MakeBinary(op, Load(x, a), Load(numbers, {a[channel]})); });
}

Buffer WithNumber(GraphBuilder* b, Op op, const Buffer& x, double number) {
  return b->Map(x->shape, [&](const Axes& a) { return MakeBinary(op, Load(x, a), Number32(number)); });
}

// The graph behind the pass. `stages` of them are left.
Graph Folded(const Graph& before, int64_t stages, double bound = 1e-5) {
  const Graph after = FoldScales(before, Target());
  ExpectCloseResults(before, after, bound);
  EXPECT_EQ(CountStages(after), stages) << PrintGraph(after);
  return after;
}

void ExpectNotFolded(const Graph& before) {
  EXPECT_EQ(PrintGraph(FoldScales(before, Target())), PrintGraph(before));
}

TEST(FoldScalesTest, ABatchNormalizationBehindAConvolution) {
  GraphBuilder b("g");
  Buffer y = Conv3x3(&b, b.AddInput("x", DType::kF32, {1, 3, 4, 5}), 4);
  y = WithChannels(&b, Op::kSub, y, 1, 4);  // the mean
  y = WithChannels(&b, Op::kMul, y, 1, 5);
  y = WithChannels(&b, Op::kAdd, y, 1, 6);
  b.AddOutput("y", y);
  // The padding, the convolution, and one sum.
  const Graph after = Folded(b.Finish(), 3);
  EXPECT_EQ(after.nodes.size(), 5) << PrintGraph(after);
}

TEST(FoldScalesTest, BiasFactorAndShiftInOneStage) {
  GraphBuilder b("g");
  const Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  const Buffer bias = Weights(&b, {4}, 4), scale = Weights(&b, {4}, 5), shift = Weights(&b, {4}, 6);
  b.AddOutput("y", b.Map({3, 4}, [&](const Axes& a) {
    return Load(shift, {a[1]}) + Load(scale, {a[1]}) * (Load(y, a) + Load(bias, {a[1]}));
  }));
  Folded(b.Finish(), 2);
}

TEST(FoldScalesTest, TheReluBehindStays) {
  GraphBuilder b("g");
  const Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  b.AddOutput("y", BiasAndRelu(&b, WithChannels(&b, Op::kMul, y, 1, 4), 1));
  EXPECT_THAT(PrintGraph(Folded(b.Finish(), 3)), HasSubstr("max("));
}

TEST(FoldScalesTest, ADepthwiseConvolution) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 4, 8}), weights = Weights(&b, {4, 3});
  const Buffer y = b.Reduce(ReduceOp::kSum, {2, 4, 6}, {3}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], a[1], a[2] + r[0]}) * Load(weights, {a[1], r[0]});
  });
  b.AddOutput("y", WithChannels(&b, Op::kMul, y, 1, 4));
  Folded(b.Finish(), 2);
}

TEST(FoldScalesTest, WeightsWithTheirChannelsInTheMiddle) {
  // A transposed convolution stores its weights so.
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3, 8}), weights = Weights(&b, {3, 4, 2});
  const Buffer y = b.Reduce(ReduceOp::kSum, {2, 4, 16}, {3, 2}, [&](const Axes& a, const Axes& r) {
    const Expr from = a[2] - r[1];
    const Expr is_element = MakeBinary(Op::kAnd, MakeBinary(Op::kLe, IntConst(0), from),
                                       MakeBinary(Op::kEq, Mod(from, 2), IntConst(0)));
    const Expr element = MakeSelect(is_element, Load(x, {a[0], r[0], FloorDiv(from, 2)}), Number32(0));
    return element * Load(weights, {r[0], a[1], r[1]});
  });
  ASSERT_TRUE(b.status().ok()) << b.status();
  b.AddOutput("y", WithChannels(&b, Op::kAdd, WithChannels(&b, Op::kMul, y, 1, 4), 1, 5));
  Folded(b.Finish(), 2);
}

TEST(FoldScalesTest, FactorsThatAreOneNumber) {
  GraphBuilder b("g");
  Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  y = WithNumber(&b, Op::kMul, WithNumber(&b, Op::kAdd, y, 3), 0.125);
  b.AddOutput("y", y);
  EXPECT_THAT(PrintGraph(Folded(b.Finish(), 2)), HasSubstr(" + 0.375\n"));
}

TEST(FoldScalesTest, NumbersAndChannelsMixed) {
  GraphBuilder b("g");
  Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  y = WithNumber(&b, Op::kMul, WithChannels(&b, Op::kAdd, y, 1, 4), 0.5);
  y = WithNumber(&b, Op::kSub, WithChannels(&b, Op::kMul, y, 1, 5), 2);
  b.AddOutput("y", y);
  Folded(b.Finish(), 2);
}

TEST(FoldScalesTest, NarrowTypesWithCasts) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF16, {3, 6});
  const Buffer weights = b.Cast(Weights(&b, {6, 4}), DType::kF16);
  const Buffer product = b.Reduce(ReduceOp::kSum, {3, 4}, {6}, [&](const Axes& a, const Axes& r) {
    return MakeCast(DType::kF32, Load(x, {a[0], r[0]})) * MakeCast(DType::kF32, Load(weights, {r[0], a[1]}));
  });
  b.AddOutput("y", b.Cast(WithChannels(&b, Op::kMul, product, 1, 4), DType::kF16));
  // The factor is gone, and with it the rounding between.
  const Graph after = Folded(b.Finish(), 2, 1e-2);
  EXPECT_THAT(PrintGraph(after), HasSubstr("f16("));
}

TEST(FoldScalesTest, WhatOthersReadStays) {
  GraphBuilder b("g");
  const Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  b.AddOutput("scaled", WithChannels(&b, Op::kMul, y, 1, 4));
  b.AddOutput("exp", Unary(&b, Op::kExp, y));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, AnOutputOfTheModelStays) {
  GraphBuilder b("g");
  const Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  b.AddOutput("y", y);
  b.AddOutput("scaled", WithChannels(&b, Op::kMul, y, 1, 4));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, FactorsBehindWhatOthersReadStay) {
  // The bias is read twice; the chain behind it does not reach the product.
  GraphBuilder b("g");
  const Buffer y = WithChannels(&b, Op::kAdd, Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4), 1, 4);
  b.AddOutput("scaled", WithChannels(&b, Op::kMul, y, 1, 5));
  b.AddOutput("exp", Unary(&b, Op::kExp, y));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, FactorsOfOtherDimensionsStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {3, 6});
  b.AddOutput("rows", WithChannels(&b, Op::kMul, Product(&b, x, 4), 0, 4));
  const Buffer both = WithChannels(&b, Op::kMul, Product(&b, x, 4), 1, 4);
  b.AddOutput("rows and columns", WithChannels(&b, Op::kMul, both, 0, 5));
  const Graph before = b.Finish();
  // The columns' factors go into weights, those of rows stay.
  const Graph after = Folded(before, 5);
  EXPECT_THAT(PrintGraph(after), Not(HasSubstr("_t")));
}

Buffer InOneStage(GraphBuilder* b, const Buffer& y, DType dtype, double first, double second) {
  return b->Map(y->shape, [&](const Axes& a) {
    return MakeCast(dtype, Load(y, a)) * FloatConst(first, dtype) * FloatConst(second, dtype);
  });
}

TEST(FoldScalesTest, FactorsThatTheWeightsDoNotHoldStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {3, 6});
  b.AddOutput("infinite", InOneStage(&b, Product(&b, x, 4), DType::kF32, 1e30, 1e30));
  b.AddOutput("none", InOneStage(&b, Product(&b, x, 5), DType::kF32, 1e-30, 1e-30));
  b.AddOutput("shift", b.Map({3, 7}, [&, y = Product(&b, x, 7)](const Axes& a) {
    return (Load(y, a) + Number32(3e38)) * Number32(10);
  }));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, FactorsInAWiderTypeThanTheProductsStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF16, {3, 6}), w = b.Cast(Weights(&b, {6, 4}), DType::kF16);
  const Buffer y = b.Reduce(ReduceOp::kSum, {3, 4}, {6}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0]}) * Load(w, {r[0], a[1]});
  });
  b.AddOutput("y", InOneStage(&b, y, DType::kF32, 1000, 60));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, ASquareOfConstantsStays) {
  GraphBuilder b("g");
  const Buffer w = Weights(&b, {6, 4});
  Stage stage;
  const Var row = MakeVar("r", 6), column = MakeVar("c", 4);
  const Expr read = Load(w, {VarRef(row), VarRef(column)});
  b.AddOutput("w", w);
  Graph before = b.Finish();
  stage.axes = {column};
  stage.reduce_axes = {row};
  stage.reduce = ReduceOp::kSum;
  stage.value = read * read;
  stage.output = MakeBuffer("v90", DType::kF32, {4});
  before.nodes.push_back({{stage.output}, stage, {}});
  const Var axis = MakeVar("i", 4);
  Stage last;
  last.axes = {axis};
  last.value = Load(stage.output, {VarRef(axis)}) * Number32(3);
  last.output = MakeBuffer("v91", DType::kF32, {4});
  before.nodes.push_back({{last.output}, last, {}});
  before.outputs.push_back({"y", last.output});
  ExpectNotFolded(before);
}

// A walk from each stage back to the product would take minutes.
TEST(FoldScalesTest, ALongChain) {
  constexpr int kNodes = 20000;
  GraphBuilder b("g");
  Buffer y = Product(&b, b.AddInput("x", DType::kF32, {3, 6}), 4);
  for (int i = 0; i < kNodes; ++i)
    y = WithNumber(&b, i % 2 == 0 ? Op::kAdd : Op::kMul, y, 1 + 1e-6 * (i % 7));
  b.AddOutput("y", y);
  const Graph before = b.Finish();
  const Graph after = FoldScales(before, Target());
  EXPECT_EQ(CountStages(after), 2);
}

TEST(FoldScalesTest, WeightsThatAreReadInPartStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {3, 6}), weights = Weights(&b, {6, 9});
  const Buffer y = b.Reduce(ReduceOp::kSum, {3, 4}, {6}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0]}) * Load(weights, {r[0], a[1]});
  });
  b.AddOutput("y", WithChannels(&b, Op::kMul, y, 1, 4));
  ExpectNotFolded(b.Finish());
}

TEST(FoldScalesTest, ShiftsAloneAndOtherArithmeticStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {3, 6});
  b.AddOutput("shift", WithChannels(&b, Op::kAdd, Product(&b, x, 4), 1, 4));
  const Buffer y = Product(&b, x, 5);
  b.AddOutput("from one", b.Map({3, 5}, [&](const Axes& a) { return Number32(1) - Load(y, a); }));
  b.AddOutput("quotient", WithNumber(&b, Op::kDiv, Product(&b, x, 7), 3));
  const Buffer z = Product(&b, x, 6);
  b.AddOutput("square", b.Map({3, 6}, [&](const Axes& a) { return Load(z, a) * Load(z, a); }));
  b.AddOutput("by an input", b.Map({3, 6}, [&](const Axes& a) { return Load(x, a) * Number32(2); }));
  ExpectNotFolded(b.Finish());
}

}  // namespace
}  // namespace mycc
