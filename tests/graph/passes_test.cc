// The passes that make a graph smaller: each keeps the values of all outputs.
#include "codegen/graph/passes/passes.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

using testing::HasSubstr;

Graph WithoutDeadNodes(Graph graph) { return DropDeadNodes(std::move(graph), Target()); }

// The graph behind a pass, without the nodes that no output needs.
Graph After(Graph (*pass)(Graph, const Target&), const Graph& graph) {
  Graph after = WithoutDeadNodes(pass(graph, Target()));
  ExpectSameResults(graph, after);
  return after;
}

// A stage that copies x, which the builder itself would not add.
Buffer AddCopy(GraphBuilder* builder, const Buffer& x, const std::string& name) {
  Stage stage;
  stage.output = MakeBuffer(name, x->dtype, x->shape);
  Axes indices;
  for (int64_t extent : x->shape) {
    stage.axes.push_back(MakeVar("i" + std::to_string(indices.size()), extent));
    indices.push_back(VarRef(stage.axes.back()));
  }
  stage.value = Load(x, indices);
  builder->AddNode({{stage.output}, stage, {}});
  return stage.output;
}

TEST(InlineConstantsTest, SingleNumbersBecomeLiterals) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4});
  const Buffer two = b.Number(DType::kF32, 2), half = Weights(&b, {1, 1});
  b.AddOutput("y", b.Map({4}, [&](const Axes& a) {
    return Load(x, a) * (Load(two, {}) + Load(half, {IntConst(0), IntConst(0)}));
  }));
  const Graph after = After(InlineConstants, b.Finish());
  EXPECT_EQ(after.nodes.size(), 1);
  EXPECT_THAT(PrintGraph(after), HasSubstr("= v0[a0] * 1.34375\n"));
}

TEST(InlineConstantsTest, SelectsOfLiteralsAreDecided) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kI64, {4}), one = b.Number(DType::kI64, 1);
  b.AddOutput("y", b.Map({4}, [&](const Axes& a) {
    const Expr is_two = MakeBinary(Op::kEq, Load(one, {}) + Load(one, {}), IntConst(2));
    return MakeSelect(is_two, Load(x, a) * 3, Load(x, a) * 5);
  }));
  const Graph after = After(InlineConstants, b.Finish());
  EXPECT_THAT(PrintGraph(after), HasSubstr("= v0[a0] * 3\n"));
}

TEST(InlineConstantsTest, TablesStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2});
  b.AddOutput("y", Sum(&b, x, Weights(&b, {2})));
  EXPECT_EQ(After(InlineConstants, b.Finish()).nodes.size(), 2);
}

TEST(RemoveCopiesTest, ReadersReadTheSource) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 2});
  const Buffer copy = AddCopy(&b, AddCopy(&b, x, "c0"), "c1");
  const Buffer same = MakeBuffer("c2", DType::kF32, {4, 2});
  b.AddNode({{same}, Reshape{copy}, {}});
  b.AddOutput("exp", Unary(&b, Op::kExp, same));
  b.AddOutput("flat", b.AddReshape(same, {8}));
  b.AddOutput("call", b.Call("copy", {}, {copy}, {{DType::kF32, {4, 2}}})[0]);
  b.AddOutput("x", copy);
  const Graph before = b.Finish();
  EXPECT_EQ(before.nodes.size(), 6);
  const Graph after = After(RemoveCopies, before);
  EXPECT_EQ(after.nodes.size(), 3);
  EXPECT_EQ(after.outputs[3].tensor, x);
}

TEST(MergeCommonNodesTest, EqualComputationsBecomeOne) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 2});
  const auto branch = [&] {
    const Buffer sum = Sum(&b, x, Weights(&b, {2, 2}));
    const Buffer flat = b.AddReshape(sum, {4});
    return b.Call("copy", {3}, {flat}, {{DType::kF32, {4}}})[0];
  };
  const Buffer one = branch(), other = branch();
  b.AddOutput("both", Sum(&b, one, other));
  b.AddOutput("other", other);
  const Graph before = b.Finish();
  EXPECT_EQ(before.nodes.size(), 9);
  const Graph after = After(MergeCommonNodes, before);
  EXPECT_EQ(after.nodes.size(), 5);
  EXPECT_EQ(after.outputs[1].tensor, one);
}

TEST(MergeCommonNodesTest, WhatDiffersStays) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 2}), y = b.AddInput("y", DType::kF32, {2, 2});
  b.AddOutput("0", Unary(&b, Op::kExp, x));
  b.AddOutput("1", Unary(&b, Op::kExp, y));
  b.AddOutput("2", Unary(&b, Op::kAbs, x));
  b.AddOutput("3", Transposed(&b, x, {1, 0}));
  b.AddOutput("4", b.AddReshape(x, {4}));
  b.AddOutput("5", b.AddReshape(x, {4, 1}));
  b.AddOutput("6", Weights(&b, {4}, 1));
  b.AddOutput("7", Weights(&b, {4}, 2));
  b.AddOutput("8", Weights(&b, {2, 2}, 1));
  b.AddOutput("9", b.Call("copy", {1}, {x}, {{DType::kF32, {2, 2}}})[0]);
  b.AddOutput("10", b.Call("copy", {2}, {x}, {{DType::kF32, {2, 2}}})[0]);
  EXPECT_EQ(After(MergeCommonNodes, b.Finish()).nodes.size(), 11);
}

TEST(InlineMovesTest, ReadersReadThroughTransposesSlicesAndBroadcasts) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3});
  const Buffer turned = Transposed(&b, x, {1, 0});
  const Buffer rows = b.Map({2, 2}, [&](const Axes& a) { return Load(turned, {a[0] + 1, a[1]}); });
  const Buffer wide = b.Map({4, 2, 2}, [&](const Axes& a) { return Load(rows, {a[1], a[2]}); });
  b.AddOutput("y", Unary(&b, Op::kExp, wide));
  const Graph after = After(InlineMoves, b.Finish());
  EXPECT_EQ(after.nodes.size(), 1);
  EXPECT_THAT(PrintGraph(after), HasSubstr("= exp(v0[a2,a1+1])\n"));
}

TEST(InlineMovesTest, ContractionsKeepPlainIndices) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6});
  const Buffer halves = b.Map({4, 6}, [&](const Axes& a) { return Load(x, {a[0], FloorDiv(a[1], 2)}); });
  b.AddOutput("product", Product(&b, halves, 5));
  b.AddOutput("turned", Product(&b, Transposed(&b, x, {1, 0}), 5));
  b.AddOutput("exp", Unary(&b, Op::kExp, halves));
  const Graph after = After(InlineMoves, b.Finish());
  const std::string text = PrintGraph(after);
  // The product of halves reads them from memory; the others read x.
  EXPECT_EQ(CountStages(after), 4) << text;
  EXPECT_THAT(text, HasSubstr("sum[r0:6](v1[a0,r0] * "));
  EXPECT_THAT(text, HasSubstr("sum[r0:4](v0[r0,a0] * "));
  EXPECT_THAT(text, HasSubstr("= exp(v0[a0,a1//2])\n"));
}

TEST(InlineMovesTest, ExpressionsKeepToTheLimitsOfTheLanguage) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {12}), y = b.AddInput("y", DType::kF32, {12});
  Buffer shuffled = x, flipped = y;
  for (int i = 0; i < 300; ++i) {
    shuffled =
        b.Map({12}, [&](const Axes& a) { return Load(shuffled, {Mod(a[0], 3) * 4 + FloorDiv(a[0], 3)}); });
    flipped = b.Map({12}, [&](const Axes& a) { return Load(flipped, {IntConst(11) - a[0]}); });
  }
  b.AddOutput("y", Sum(&b, shuffled, flipped));
  After(InlineMoves, b.Finish());
}

TEST(InlineMovesTest, GathersStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4}), at = b.AddInput("at", DType::kI64, {3});
  const Buffer picked = b.Map({3}, [&](const Axes& a) {
    return Load(x, {MakeBinary(Op::kMin, MakeBinary(Op::kMax, Load(at, a), IntConst(0)), IntConst(3))});
  });
  b.AddOutput("y", Unary(&b, Op::kExp, picked));
  EXPECT_EQ(CountStages(After(InlineMoves, b.Finish())), 2);
}

TEST(MoveRowReshapesTest, ElementwiseStagesWorkOnTheRows) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 5}), z = b.AddInput("z", DType::kF32, {2, 3, 4});
  const Buffer batch = b.AddReshape(Product(&b, x, 4), {2, 3, 4});
  b.AddOutput("y", Unary(&b, Op::kExp, Sum(&b, BiasAndRelu(&b, batch, 2), z)));
  const Graph after = After(MoveRowReshapes, b.Finish());
  EXPECT_THAT(PrintGraph(after), HasSubstr("[rows,a2]: f32[6,4] = exp("));
}

TEST(MoveRowReshapesTest, StagesThatReadOtherRowsStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {6, 5}), z = b.AddInput("z", DType::kF32, {2, 3, 4});
  const Buffer batch = b.AddReshape(Product(&b, x, 4), {2, 3, 4});
  const auto add = [&](const std::function<Axes(const Axes&)>& at) {
    b.AddOutput("y", b.Map({2, 3, 4}, [&](const Axes& a) { return Load(batch, a) + Load(z, at(a)); }));
  };
  add([](const Axes& a) { return Axes{IntConst(0), IntConst(0), a[2]}; });
  add([](const Axes& a) { return Axes{a[0], IntConst(2), a[2]}; });
  add([](const Axes& a) { return Axes{a[0], IntConst(2) - a[1], a[2]}; });
  const Buffer scales = Weights(&b, {3});
  b.AddOutput("by the middle",
              b.Map({2, 3, 4}, [&](const Axes& a) { return Load(batch, a) * Load(scales, {a[1]}); }));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(After(MoveRowReshapes, before)), PrintGraph(before));
}

TEST(DropDeadNodesTest, KeepsWhatOutputsNeed) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4});
  const Buffer y = Unary(&b, Op::kExp, x), z = Unary(&b, Op::kTanh, y);
  b.AddOutput("y", y);
  b.AddOutput("z", z);
  Graph graph = b.Finish();
  EXPECT_EQ(WithoutDeadNodes(graph).nodes.size(), 2);
  graph.outputs.pop_back();
  EXPECT_EQ(WithoutDeadNodes(graph).nodes.size(), 1);
  graph.outputs.clear();
  EXPECT_EQ(WithoutDeadNodes(graph).nodes.size(), 0);
}

}  // namespace
}  // namespace mycc
