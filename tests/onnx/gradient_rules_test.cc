// The rules of Gradient, each against differences of the function, computed by the interpreter in f64.
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/onnx/function_model.h"

namespace mycc::onnx {
namespace {

// Differentiates the squares of `y` in all inputs, so that the gradients that reach it differ.
void ExpectGradients(FunctionModel model, const std::string& y = "y") {
  std::vector<std::string> outputs = {"squares"};
  for (const std::string& name : model.names()) outputs.push_back(absl::StrCat("d_", name));
  model.Add(NodeOf("Mul", {y, y}, {"squares"}));
  model.Add(GradientNodeOf(model.names(), {outputs.begin() + 1, outputs.end()}, model.names(), "squares"));
  const auto graph = model.Import(outputs);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (size_t k = 0; k < model.inputs().size(); ++k) ExpectSlopes(*graph, 0, k + 1, model.inputs(), k);
}

TEST(GradientRulesTest, FunctionsOfOneTensor) {
  for (const char* op : {"Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Identity", "LeakyRelu", "Neg",
                         "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Tanh"}) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel().Input({2, 4}).Add(NodeOf(op, {"a"}, {"y"})));
  }
  for (const char* op : {"Log", "Sqrt", "Reciprocal"}) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel().Input({5}, 0.3, 2).Add(NodeOf(op, {"a"}, {"y"})));
  }
  ExpectGradients(
      FunctionModel().Input({5}).Add(NodeOf("LeakyRelu", {"a"}, {"y"}, {{"alpha", NumberOf(0.5)}})));
  ExpectGradients(FunctionModel().Input({5}).Add(NodeOf("Elu", {"a"}, {"y"}, {{"alpha", NumberOf(0.5)}})));
}

TEST(GradientRulesTest, BroadcastingIsUndone) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel().Input({2, 3}).Input({2, 3}, 0.5, 2).Add(NodeOf(op, {"a", "b"}, {"y"})));
    ExpectGradients(
        FunctionModel().Input({3, 1}).Input({2, 1, 4}, 0.5, 2).Add(NodeOf(op, {"a", "b"}, {"y"})));
    ExpectGradients(FunctionModel().Input({2, 2}).Input({}, 0.5, 2).Add(NodeOf(op, {"a", "b"}, {"y"})));
    ExpectGradients(FunctionModel().Input({}).Input({1, 2}, 0.5, 2).Add(NodeOf(op, {"a", "b"}, {"y"})));
  }
  for (const char* op : {"Sum", "Mean"}) {
    SCOPED_TRACE(op);
    ExpectGradients(
        FunctionModel().Input({2, 3}).Input({3}).Input({2, 1}).Add(NodeOf(op, {"a", "b", "c"}, {"y"})));
  }
  ExpectGradients(
      FunctionModel().Input({2, 1}).Known("shape", {2, 2, 3}).Add(NodeOf("Expand", {"a", "shape"}, {"y"})));
}

TEST(GradientRulesTest, Powers) {
  ExpectGradients(FunctionModel().Input({4}).Known("p", {3}).Add(NodeOf("Pow", {"a", "p"}, {"y"})));
  ExpectGradients(
      FunctionModel().Input({4}, 0.2, 2).Known("p", {-2}, kDouble).Add(NodeOf("Pow", {"a", "p"}, {"y"})));
  ExpectGradients(
      FunctionModel().Input({3, 2}, 0.2, 2).Input({2}, -1, 2).Add(NodeOf("Pow", {"a", "b"}, {"y"})));
  // At zero the powers 0, 1 and 2 have the slopes 0, 1 and 0.
  ExpectGradients(
      FunctionModel().Input({3}, 0, 0).Known("p", {0, 1, 2}).Add(NodeOf("Pow", {"a", "p"}, {"y"})));
}

TEST(GradientRulesTest, ChoicesAndCasts) {
  ExpectGradients(FunctionModel()
                      .Input({2, 3})
                      .Input({3})
                      .Known("c", {1, 0, 1}, kBool)
                      .Add(NodeOf("Where", {"c", "a", "b"}, {"y"})));
  // The condition depends on a, but has no gradient.
  ExpectGradients(FunctionModel()
                      .Input({2, 3})
                      .Input({3})
                      .Add(NodeOf("Greater", {"a", "b"}, {"c"}))
                      .Add(NodeOf("Where", {"c", "a", "b"}, {"y"})));
  ExpectGradients(FunctionModel()
                      .Input({2})
                      .Add(NodeOf("Cast", {"a"}, {"i"}, {{"to", IntOf(kInt64)}}))
                      .Add(NodeOf("Cast", {"i"}, {"r"}, {{"to", IntOf(kDouble)}}))
                      .Add(NodeOf("Cast", {"a"}, {"s"}, {{"to", IntOf(kDouble)}}))
                      .Add(NodeOf("Mul", {"r", "s"}, {"y"})));
}

TEST(GradientRulesTest, MatrixProducts) {
  using Shape = std::vector<int64_t>;
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 3}, {3, 2}},          {{3}, {3, 2}},       {{2, 3}, {3}},    {{3}, {3}},       {{2, 2, 3}, {3, 2}},
      {{2, 1, 2, 3}, {2, 3, 2}}, {{2, 3}, {2, 3, 1}}, {{3}, {2, 3, 2}}, {{2, 2, 3}, {3}},
  };
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(absl::StrCat(ShapeText(a), " ", ShapeText(b)));
    ExpectGradients(FunctionModel().Input(a).Input(b).Add(NodeOf("MatMul", {"a", "b"}, {"y"})));
  }
}

TEST(GradientRulesTest, Gemm) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const OnnxAttributes attributes = {
          {"transA", IntOf(a)}, {"transB", IntOf(b)}, {"alpha", NumberOf(0.5)}, {"beta", NumberOf(2)}};
      ExpectGradients(FunctionModel()
                          .Input(a ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3})
                          .Input(b ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{3, 4})
                          .Input({4})
                          .Add(NodeOf("Gemm", {"a", "b", "c"}, {"y"}, attributes)));
    }
  }
  ExpectGradients(FunctionModel().Input({2, 3}).Input({3, 1}).Add(NodeOf("Gemm", {"a", "b"}, {"y"})));
}

TEST(GradientRulesTest, Convolutions) {
  const auto conv = [](std::vector<int64_t> x, std::vector<int64_t> w, OnnxAttributes attributes) {
    const int64_t results = w[0];
    ExpectGradients(FunctionModel()
                        .Input(std::move(x))
                        .Input(std::move(w))
                        .Input({results})
                        .Add(NodeOf("Conv", {"a", "b", "c"}, {"y"}, std::move(attributes))));
  };
  conv({2, 2, 4}, {2, 2, 2}, {});
  conv({1, 2, 4, 5}, {2, 2, 3, 2}, {{"pads", IntsOf({1, 0, 1, 1})}, {"dilations", IntsOf({1, 2})}});
  // The last elements of the image are not read.
  conv({1, 1, 6, 7}, {1, 1, 2, 3}, {{"strides", IntsOf({3, 3})}});
  conv({2, 4, 5}, {6, 2, 2}, {{"group", IntOf(2)}, {"strides", IntsOf({2})}, {"dilations", IntsOf({2})}});
  conv({1, 2, 5}, {2, 1, 3}, {{"group", IntOf(2)}, {"auto_pad", StringOf("SAME_UPPER")}});
}

TEST(GradientRulesTest, Reductions) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceSumSquare"}) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel(18).Input({2, 3}).Add(NodeOf(op, {"a"}, {"y"}, {{"keepdims", IntOf(0)}})));
    ExpectGradients(FunctionModel(18)
                        .Input({2, 3, 2})
                        .Known("axes", {-2, 0})
                        .Add(NodeOf(op, {"a", "axes"}, {"y"}, {{"keepdims", IntOf(0)}})));
    ExpectGradients(FunctionModel(11).Input({2, 3}).Add(NodeOf(op, {"a"}, {"y"}, {{"axes", IntsOf({1})}})));
    ExpectGradients(FunctionModel(18)
                        .Input({3})
                        .Known("axes", {})
                        .Add(NodeOf(op, {"a", "axes"}, {"y"}, {{"noop_with_empty_axes", IntOf(1)}})));
  }
  ExpectGradients(FunctionModel().Input({2, 2, 2, 3}).Add(NodeOf("GlobalAveragePool", {"a"}, {"y"})));
}

TEST(GradientRulesTest, Shapes) {
  ExpectGradients(
      FunctionModel().Input({2, 3}).Known("to", {3, -1}).Add(NodeOf("Reshape", {"a", "to"}, {"y"})));
  ExpectGradients(FunctionModel().Input({2, 3, 2}).Add(NodeOf("Flatten", {"a"}, {"y"})));
  ExpectGradients(
      FunctionModel().Input({2, 1}).Known("axes", {1}).Add(NodeOf("Squeeze", {"a", "axes"}, {"y"})));
  ExpectGradients(
      FunctionModel().Input({2}).Known("axes", {0}).Add(NodeOf("Unsqueeze", {"a", "axes"}, {"y"})));
  ExpectGradients(FunctionModel().Input({2, 3}).Add(NodeOf("Transpose", {"a"}, {"y"})));
  ExpectGradients(
      FunctionModel().Input({2, 3, 4}).Add(NodeOf("Transpose", {"a"}, {"y"}, {{"perm", IntsOf({1, 2, 0})}})));
  ExpectGradients(FunctionModel().Input({2, 1}).Input({2, 3}).Add(
      NodeOf("Concat", {"a", "b", "a"}, {"y"}, {{"axis", IntOf(-1)}})));
  // No gradient reaches the second part.
  ExpectGradients(FunctionModel()
                      .Input({5, 2})
                      .Known("parts", {1, 3, 1})
                      .Add(NodeOf("Split", {"a", "parts"}, {"y", "u", "v"})));
}

TEST(GradientRulesTest, LimitsAndExtremes) {
  ExpectGradients(FunctionModel(6 + 1).Input({2, 3}).Add(
      NodeOf("Clip", {"a"}, {"y"}, {{"min", NumberOf(-1)}, {"max", NumberOf(0.75)}})));
  for (const char* op : {"Max", "Min"}) {
    SCOPED_TRACE(op);
    ExpectGradients(
        FunctionModel().Input({2, 3}).Input({3}).Input({2, 1}).Add(NodeOf(op, {"a", "b", "c"}, {"y"})));
  }
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel().Input({2, 3}).Add(NodeOf(op, {"a"}, {"y"}, {{"axes", IntsOf({0})}})));
    ExpectGradients(FunctionModel().Input({2, 3}).Add(NodeOf(op, {"a"}, {"y"}, {{"keepdims", IntOf(0)}})));
  }
  // Equal elements share the gradient.
  FunctionModel equal;
  equal.Input({2}, 1, 1).Input({2}, 1, 1).Add(NodeOf("Max", {"a", "b"}, {"m"}));
  equal.Add(NodeOf("ReduceMax", {"m"}, {"y"})).Add(GradientNodeOf({"a", "b"}, {"d"}, {"a", "b"}, "y"));
  const auto results = equal.Run({"d"});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ((*results)[0].Get(i).f, 0.25);
}

TEST(GradientRulesTest, Pooling) {
  const auto pool = [](const char* op, std::vector<int64_t> x, OnnxAttributes attributes) {
    SCOPED_TRACE(op);
    ExpectGradients(FunctionModel().Input(std::move(x)).Add(NodeOf(op, {"a"}, {"y"}, std::move(attributes))));
  };
  for (const char* op : {"AveragePool", "MaxPool"}) {
    pool(op, {2, 2, 5}, {{"kernel_shape", IntsOf({2})}});
    pool(op, {1, 2, 4, 5},
         {{"kernel_shape", IntsOf({3, 2})}, {"strides", IntsOf({2, 1})}, {"pads", IntsOf({1, 0, 1, 1})}});
    pool(op, {1, 1, 6}, {{"kernel_shape", IntsOf({2})}, {"strides", IntsOf({3})}, {"ceil_mode", IntOf(1)}});
    pool(op, {1, 1, 5},
         {{"kernel_shape", IntsOf({2})}, {"strides", IntsOf({2})}, {"auto_pad", StringOf("SAME_LOWER")}});
  }
  pool("AveragePool", {1, 1, 4, 4},
       {{"kernel_shape", IntsOf({3, 3})}, {"pads", IntsOf({1, 1, 1, 1})}, {"count_include_pad", IntOf(1)}});
  pool("MaxPool", {1, 2, 3, 4}, {{"kernel_shape", IntsOf({2, 2})}, {"storage_order", IntOf(1)}});
}

TEST(GradientRulesTest, Normalizations) {
  const auto batch = [](const OnnxAttributes& attributes) {
    ExpectGradients(FunctionModel()
                        .Input({3, 2, 2})
                        .Input({2})
                        .Input({2})
                        .Input({2})
                        .Input({2}, 0.5, 2)
                        .Add(NodeOf("BatchNormalization", {"a", "b", "c", "d", "e"}, {"y"}, attributes)));
  };
  batch({});
  batch({{"training_mode", IntOf(1)}, {"epsilon", NumberOf(0.125)}});
  ExpectGradients(FunctionModel().Input({2, 3, 2}).Input({2}).Input({2}).Add(
      NodeOf("LayerNormalization", {"a", "b", "c"}, {"y"}, {{"stash_type", IntOf(kDouble)}})));
  ExpectGradients(FunctionModel().Input({2, 3, 2}).Input({3, 2}).Add(
      NodeOf("LayerNormalization", {"a", "b"}, {"y"}, {{"stash_type", IntOf(kDouble)}, {"axis", IntOf(1)}})));
}

TEST(GradientRulesTest, Losses) {
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    for (const char* reduction : {"none", "sum", "mean"}) {
      SCOPED_TRACE(absl::StrCat(op, " ", reduction));
      const OnnxAttributes attributes = {{"reduction", StringOf(reduction)}};
      ExpectGradients(FunctionModel()
                          .Input({4, 3})
                          .Known("labels", {2, 0, 1, 2})
                          .Add(NodeOf(op, {"a", "labels"}, {"y"}, attributes)));
      OnnxAttributes ignoring = attributes;
      ignoring["ignore_index"] = IntOf(-1);
      ExpectGradients(FunctionModel()
                          .Input({2, 3, 2})
                          .Known("flat", {2, -1, 1, 2})
                          .Known("to", {2, 2})
                          .Known("weights", {1, 2, 3}, kDouble)
                          .Add(NodeOf("Reshape", {"flat", "to"}, {"labels"}))
                          .Add(NodeOf(op, {"a", "labels", "weights"}, {"y"}, ignoring)));
    }
  }
}

TEST(GradientRulesTest, ElementsByTheirPlaces) {
  const auto gather = [](std::vector<int64_t> shape, int64_t axis) {
    ExpectGradients(FunctionModel()
                        .Input(std::move(shape))
                        .Known("i", {1, -1, 0, 1})
                        .Add(NodeOf("Gather", {"a", "i"}, {"y"}, {{"axis", IntOf(axis)}})));
  };
  gather({3}, 0);
  gather({2, 3, 4}, 1);
  gather({2, 3, 2}, -1);
  ExpectGradients(FunctionModel()
                      .Input({2, 3, 2})
                      .Known("flat", {1, 2, -3, 1})
                      .Known("to", {2, 2})
                      .Add(NodeOf("Reshape", {"flat", "to"}, {"i"}))
                      .Add(NodeOf("Gather", {"a", "i"}, {"y"}, {{"axis", IntOf(1)}})));
  ExpectGradients(FunctionModel()
                      .Input({4, 5})
                      .Known("starts", {-3, 1})
                      .Known("ends", {99, -1})
                      .Known("axes", {-1, 0})
                      .Add(NodeOf("Slice", {"a", "starts", "ends", "axes"}, {"y"})));
  ExpectGradients(FunctionModel(9).Input({4, 5}).Add(
      NodeOf("Slice", {"a"}, {"y"}, {{"starts", IntsOf({1})}, {"ends", IntsOf({3})}})));
  ExpectGradients(FunctionModel().Input({3}).Add(NodeOf("Dropout", {"a"}, {"y"})));
}

TEST(GradientRulesTest, Softmax) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    SCOPED_TRACE(op);
    for (const int64_t opset : {11, 13}) {
      ExpectGradients(FunctionModel(opset).Input({2, 2, 3}).Add(NodeOf(op, {"a"}, {"y"})));
      ExpectGradients(
          FunctionModel(opset).Input({2, 2, 3}).Add(NodeOf(op, {"a"}, {"y"}, {{"axis", IntOf(1)}})));
    }
  }
}

}  // namespace
}  // namespace mycc::onnx
