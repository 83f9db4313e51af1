// The builder: which stages it computes at once, and which stay as they are.
#include "codegen/graph/builder.h"

#include <gmock/gmock.h>

#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> IntegersOf(const NDArray* array) {
  std::vector<int64_t> values;
  for (int64_t i = 0; array != nullptr && i < array->num_elements(); ++i) values.push_back(array->Get(i).i);
  return values;
}

TEST(GraphBuilderTest, ArithmeticOnConstantsIsComputed) {
  GraphBuilder b("g");
  const Buffer shape = b.Ints({2, 3, 4});
  const Buffer doubled =
      b.Map({3}, [&](const Axes& a) { return Load(shape, a) * Load(b.Number(DType::kI64, 2), {}); });
  EXPECT_THAT(IntegersOf(b.ValueOf(doubled)), ElementsAre(4, 6, 8));
  const Buffer product =
      b.Reduce(ReduceOp::kProd, {}, {3}, [&](const Axes&, const Axes& r) { return Load(doubled, {r[0]}); });
  EXPECT_THAT(IntegersOf(b.ValueOf(product)), ElementsAre(192));
  const Buffer narrow = b.Cast(product, DType::kI32);
  EXPECT_EQ(narrow->dtype, DType::kI32);
  EXPECT_THAT(IntegersOf(b.ValueOf(b.AddReshape(narrow, {1, 1}))), ElementsAre(192));
  b.AddOutput("y", narrow);
  const Graph graph = b.Finish();
  EXPECT_EQ(graph.nodes.size(), 1);
  EXPECT_TRUE(std::holds_alternative<Constant>(graph.nodes[0].made_by));
}

TEST(GraphBuilderTest, WhatReadsAnInputIsNot) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4});
  const Buffer y = Sum(&b, x, Weights(&b, {4}));
  EXPECT_EQ(b.ValueOf(y), nullptr);
  EXPECT_EQ(b.ValueOf(x), nullptr);
}

TEST(GraphBuilderTest, TensorsDependOnInputs) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 3}), y = b.AddInput("y", DType::kF32, {2, 3});
  const Buffer z = b.AddInput("z", DType::kF32, {2, 3});
  const auto sum = [&](const Buffer& one, const Buffer& other) {
    return b.Map({2, 3},
                 [&](const Axes& axes) { return MakeBinary(Op::kAdd, Load(one, axes), Load(other, axes)); });
  };
  const Buffer of_two = b.AddReshape(sum(z, sum(x, b.AddConstant(NDArray::Zeros(DType::kF32, {2, 3})))), {6});
  sum(y, z);
  EXPECT_EQ(b.InputsOf(of_two), (std::vector<std::string>{"x", "z"}));
  EXPECT_EQ(b.InputsOf(y), std::vector<std::string>{"y"});
  EXPECT_TRUE(b.InputsOf(b.Number(DType::kF32, 1)).empty());
}

TEST(GraphBuilderTest, LargeStagesOfConstantsStay) {
  GraphBuilder b("g");
  const Buffer one = b.Number(DType::kF32, 1);
  const Buffer large = b.Map({2049, 2049}, [&](const Axes&) { return Load(one, {}); });
  EXPECT_EQ(b.ValueOf(large), nullptr);
  // So do those over many values.
  const Buffer sum =
      b.Reduce(ReduceOp::kSum, {1}, {2049, 2049}, [&](const Axes&, const Axes&) { return Load(one, {}); });
  EXPECT_EQ(b.ValueOf(sum), nullptr);
  EXPECT_TRUE(b.status().ok()) << b.status();
}

TEST(GraphBuilderTest, TensorsWithoutElementsAreConstants) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {0, 3});
  const Buffer y = Unary(&b, Op::kExp, x);
  ASSERT_NE(b.ValueOf(y), nullptr);
  EXPECT_THAT(b.ValueOf(y)->shape, ElementsAre(0, 3));
}

TEST(GraphBuilderTest, CopiesAndCastsToTheSameTypeAreTheirSource) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 1});
  EXPECT_EQ(b.Map({4, 1}, [&](const Axes& a) { return Load(x, a); }), x);
  EXPECT_EQ(b.Map({4, 1}, [&](const Axes& a) { return Load(x, {a[0], IntConst(0)}); }), x);
  EXPECT_EQ(b.Cast(x, DType::kF32), x);
  EXPECT_NE(b.Map({2, 1}, [&](const Axes& a) { return Load(x, a); }), x);
}

TEST(GraphBuilderTest, ReshapesReadTheFirstTensor) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {2, 6});
  const Buffer flat = b.AddReshape(x, {12});
  EXPECT_EQ(b.AddReshape(flat, {2, 6}), x);
  b.AddOutput("y", b.AddReshape(flat, {3, 4}));
  EXPECT_EQ(PrintGraph(b.Finish()),
            "graph g\n"
            "  input x = v0: f32[2,6]\n"
            "  v2: f32[3,4] = reshape(v0)\n"
            "  output y = v2\n");
}

TEST(GraphBuilderTest, ReductionsOverOneValueAreNone) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 1, 3});
  const auto read = [&](const Axes& a, const Axes& r) { return Load(x, {a[0], r[0], r[1]}); };
  b.AddOutput("sum", b.Reduce(ReduceOp::kSum, {4}, {1, 3}, read));
  b.AddOutput("first", b.Reduce(ReduceOp::kSum, {4}, {1}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0], IntConst(0)});
  }));
  const Buffer most = b.Reduce(ReduceOp::kArgMax, {4}, {1}, [&](const Axes& a, const Axes& r) {
    return Load(x, {a[0], r[0], IntConst(0)});
  });
  EXPECT_EQ(most->dtype, DType::kI32);
  b.AddOutput("most", most);
  EXPECT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(PrintGraph(b.Finish()),
            "graph g\n"
            "  input x = v0: f32[4,1,3]\n"
            "  v1[a0]: f32[4] = sum[r1:3](v0[a0,0,r1])\n"
            "  v2[a0]: f32[4] = v0[a0,0,0]\n"
            "  v3[a0]: i32[4] = argmax[r0:1](v0[a0,r0,0])\n"
            "  output sum = v1\n"
            "  output first = v2\n"
            "  output most = v3\n");
}

TEST(GraphBuilderTest, TheFirstUnsoundStageIsTheStatus) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4});
  const Buffer beyond = b.Map({4}, [&](const Axes& a) { return Load(x, {a[0] + 1}); });
  EXPECT_EQ(b.status().code(), absl::StatusCode::kInternal);
  const std::string first = b.status().ToString();
  EXPECT_THAT(first, HasSubstr("its stage is not sound: "));
  b.Fail(absl::NotFoundError("a later one"));
  b.Map({3}, [&](const Axes& a) { return Load(beyond, {a[0] + 7}); });
  EXPECT_EQ(b.status().ToString(), first);
}

TEST(GraphBuilderTest, FinishKeepsWhatOutputsNeed) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4}), unread = b.AddInput("unread", DType::kI64, {});
  Unary(&b, Op::kExp, x);
  const std::vector<Buffer> two = b.Call("copy", {7}, {x, x}, {{DType::kF32, {4}}, {DType::kI64, {2}}});
  Unary(&b, Op::kAbs, two[0]);
  b.SetOrigins({"Neg n", "Add b"});
  b.AddOutput("y", b.Map({2}, [&](const Axes& a) { return Load(two[1], a) + Load(unread, {}); }));
  EXPECT_EQ(PrintGraph(b.Finish()),
            "graph g\n"
            "  input x = v0: f32[4]\n"
            "  input unread = v1: i64[]\n"
            "  v3: f32[4], v4: i64[2] = copy<7>(v0, v0)\n"
            "  v6[a0]: i64[2] = v4[a0] + v1[]  # Neg n + Add b\n"
            "  output y = v6\n");
}

TEST(GraphBuilderTest, AddressesOfTextsAreNeverConstants) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1}), names = b.AddInput("names", DType::kU64, {1}, true);
  const Buffer texts = b.AddTexts({"a", "bc"}, {2});
  const Buffer printed = b.Call("print_numbers", {}, {b.Ints({7})}, {{DType::kU64, {1}}})[0];
  EXPECT_EQ(b.ValueOf(texts), nullptr);
  EXPECT_EQ(b.ValueOf(printed), nullptr);
  EXPECT_EQ(b.InputsOf(Unary(&b, Op::kExp, x)), std::vector<std::string>{"x"});
  EXPECT_TRUE(b.InputsOf(b.Call("concat_texts", {}, {names, printed}, {{DType::kU64, {1}}})[0]).empty());
  b.AddOutput({"t", texts, /*is_text=*/true, {0}});
  b.AddOutput(
      {"", b.Call("non_zero", {}, {x}, {{DType::kI64, {1, 1}}, {DType::kI64, {}}})[1], false, {}, true});
  const std::string text = PrintGraph(b.Finish());
  EXPECT_NE(text.find("  output t (texts) = "), std::string::npos) << text;
  EXPECT_NE(text.find("  extent = "), std::string::npos) << text;
}

TEST(GraphBuilderTest, RewritingGivesNewNames) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4});
  b.AddOutput("y", Unary(&b, Op::kExp, Unary(&b, Op::kTanh, x)));
  const Graph graph = b.Finish();
  GraphBuilder again = GraphBuilder::Rewriting(graph);
  for (const Node& node : graph.nodes) again.AddNode(node);
  const Buffer y = Unary(&again, Op::kNeg, graph.outputs[0].tensor);
  again.AddOutput("z", y);
  const Graph longer = again.Finish();
  EXPECT_TRUE(VerifyGraph(longer).ok());
  EXPECT_EQ(longer.nodes.size(), 3);
  for (const Node& node : graph.nodes) EXPECT_NE(node.outputs[0]->name, y->name);
}

TEST(GraphBuilderTest, BroadcastReadsAlignAtTheLastAxis) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1, 5});
  b.AddOutput("y", b.Map({2, 3, 5}, [&](const Axes& a) { return BroadcastLoad(x, a); }));
  EXPECT_THAT(PrintGraph(b.Finish()), HasSubstr("v1[a0,a1,a2]: f32[2,3,5] = v0[0,a2]\n"));
}

// A model of many small reads of large constants would otherwise take minutes.
TEST(GraphBuilderTest, FoldsNoMoreThanTakesSeconds) {
  constexpr int64_t kElements = int64_t{1} << 22;
  GraphBuilder b("g");
  const Buffer large = b.AddConstant(NDArray::Zeros(DType::kU8, {kElements}));
  const auto element = [&](int64_t i) {
    return b.Map({1}, [&](const Axes&) { return Load(large, {IntConst(i)}); });
  };
  int64_t folded = 0;
  while (folded < 1000 && b.ValueOf(element(folded)) != nullptr) ++folded;
  EXPECT_GE(folded, 16);
  EXPECT_LE(folded, 32);
  // Arithmetic on shapes is still computed.
  const Buffer small = b.Ints({1, 2, 3});
  EXPECT_NE(b.ValueOf(b.Map({3}, [&](const Axes& a) { return Load(small, a) + IntConst(1); })), nullptr);
}

}  // namespace
}  // namespace mycc
