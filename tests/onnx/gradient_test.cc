// The operator Gradient: which nodes it differentiates, in which variables, and where.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/function_model.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The loss of a small network, in its weights; its input is in zs.
FunctionModel Network() {
  FunctionModel model;
  model.Input({4, 3}).Input({3, 5}).Input({5}).Input({5, 2});
  return model.Add(NodeOf("Gemm", {"a", "b", "c"}, {"h"}))
      .Add(NodeOf("Tanh", {"h"}, {"t"}))
      .Add(NodeOf("MatMul", {"t", "d"}, {"scores"}))
      .Add(NodeOf("LogSoftmax", {"scores"}, {"logs"}))
      .Add(NodeOf("ReduceMean", {"logs"}, {"loss"}, {{"keepdims", IntOf(0)}}));
}

TEST(GradientTest, ANetwork) {
  FunctionModel model = Network();
  // Outputs may be left out.
  model.Add(GradientNodeOf({"b", "c", "d", "a"}, {"d_b", "", "d_d"}, {"b", "c", "d"}, "loss", {"a"}));
  const auto graph = model.Import({"loss", "d_b", "d_d"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectSlopes(*graph, 0, 1, model.inputs(), 1);
  ExpectSlopes(*graph, 0, 2, model.inputs(), 3);
}

TEST(GradientTest, TensorsInsideAreVariables) {
  FunctionModel model;
  model.Input({3}).Add(NodeOf("Sin", {"a"}, {"h"})).Add(NodeOf("Mul", {"h", "h"}, {"y"}));
  model.Add(GradientNodeOf({"h"}, {"d_h"}, {"h"}, "y"));
  const auto results = model.Run({"d_h", "h"});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ((*results)[0].Get(i).f, 2 * (*results)[1].Get(i).f);
}

// The inputs of Gradient say where it is computed, and need not be the variables. One tensor may stand for
// two of them.
TEST(GradientTest, OtherValues) {
  FunctionModel model;
  model.Input({2}).Input({2}).Input({2});
  model.Add(NodeOf("Mul", {"a", "a"}, {"squares"})).Add(NodeOf("Mul", {"squares", "b"}, {"y"}));
  model.Add(GradientNodeOf({"c", "c"}, {"d_a", "d_b"}, {"a", "b"}, "y"));
  const auto results = model.Run({"d_a", "d_b"});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 2; ++i) {
    const double c = model.inputs()[2].Get(i).f;
    EXPECT_DOUBLE_EQ((*results)[0].Get(i).f, 2 * c * c);
    EXPECT_DOUBLE_EQ((*results)[1].Get(i).f, c * c);
  }
}

TEST(GradientTest, SecondDerivatives) {
  FunctionModel model = Network();
  model.Add(GradientNodeOf({"b", "a", "c", "d"}, {"d_b"}, {"b"}, "loss", {"a", "c", "d"}));
  model.Add(GradientNodeOf({"b", "d", "a", "c"}, {"d_bb", "d_bd"}, {"b", "d"}, "d_b", {"a", "c"}));
  const auto graph = model.Import({"d_b", "d_bb", "d_bd"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectSlopes(*graph, 0, 1, model.inputs(), 1);
  ExpectSlopes(*graph, 0, 2, model.inputs(), 3);
  // The first one is computed at other values than the second.
  FunctionModel moved;
  moved.Input({2}).Input({2}).Add(NodeOf("Sin", {"a"}, {"y"}));
  moved.Add(GradientNodeOf({"a"}, {"d"}, {"a"}, "y")).Add(GradientNodeOf({"b"}, {"dd"}, {"a"}, "d"));
  const auto results = moved.Run({"dd"});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_DOUBLE_EQ((*results)[0].Get(i).f, -std::sin(moved.inputs()[1].Get(i).f));
}

TEST(GradientTest, WhatDoesNotDependHasNoSlope) {
  FunctionModel model;
  model.Input({2}).Input({3}).Add(NodeOf("Exp", {"a"}, {"y"}));
  model.Add(GradientNodeOf({"a", "b"}, {"d_a", "d_b"}, {"a", "b"}, "y"));
  const auto results = model.Run({"d_b"});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].shape, ElementsAre(3));
  EXPECT_EQ(SumOf((*results)[0]), 0);
}

// Without a rule for sequences the slope would be taken for zero.
TEST(GradientTest, ThroughASequenceIsRefused) {
  FunctionModel model;
  model.Input({2}).Known("first", {0}).Add(NodeOf("SequenceConstruct", {"a", "a"}, {"all"}));
  model.Add(NodeOf("SequenceAt", {"all", "first"}, {"y"})).Add(GradientNodeOf({"a"}, {"d"}, {"a"}, "y"));
  EXPECT_THAT(
      std::string(model.Import({"d"}).status().message()),
      HasSubstr("differentiates node `y` (SequenceAt); Gradient has no rule for the operator SequenceAt"));
}

TEST(GradientTest, WhatIsRefused) {
  const auto message = [](FunctionModel model, const OnnxNode& gradient) {
    model.Input({2}).Input({2}).Known("ints", {1, 2}).Add(NodeOf("Mul", {"a", "b"}, {"y"}));
    model.Add(NodeOf("CumSum", {"y", "zero"}, {"sums"})).Known("zero", {0}).Add(gradient);
    return std::string(model.Import({"d"}).status().message());
  };
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a", "b"}, {"d"}, {"a", "b"}, "sums")),
              HasSubstr("node `d` (Gradient): differentiates node `sums` (CumSum); Gradient has no rule for "
                        "the operator CumSum"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a"}, {"d"}, {"a"}, "y")),
              HasSubstr("`y` depends on `b`, which neither xs nor zs names"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a"}, {"d"}, {"a", "b"}, "y")),
              HasSubstr("has 1 inputs and 1 outputs for its xs and zs; expected 2 and at most 2"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a", "b"}, {"d"}, {"a", "a"}, "y")),
              HasSubstr("xs and zs name `a` twice"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"ints", "b"}, {"d"}, {"ints", "b"}, "y")),
              HasSubstr("input 0 for it is i64[2]; expected floats"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a"}, {"d"}, {"a"}, "none")),
              HasSubstr("reads `none`, which nothing defines"));
  EXPECT_THAT(message(FunctionModel(), GradientNodeOf({"a"}, {"d"}, {"a"}, "d")), HasSubstr("has a cycle"));
  EXPECT_THAT(message(FunctionModel(6), GradientNodeOf({"a", "b"}, {"d"}, {"a", "b"}, "y")),
              HasSubstr("opset 6"));
}

}  // namespace
}  // namespace mycc::onnx
