// The checks before nodes are imported: the order of nodes, operators, the shapes of inputs.
#include "codegen/onnx/check_model.h"

#include <gmock/gmock.h>

#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OnnxNode NodeOf(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  OnnxNode node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

// `name` with a graph inside that reads `read`, which it does not define.
OnnxNode WithGraph(OnnxNode node, const std::string& read) {
  auto graph = std::make_shared<OnnxGraph>();
  graph->nodes.push_back(NodeOf("Relu", {read}, {"inner"}));
  node.attributes["body"].graph = graph;
  return node;
}

// The names that are defined before the first node.
std::function<bool(const std::string&)> Known(const std::string& known) {
  return [known](const std::string& name) { return name == known; };
}

TEST(ExecutionOrderTest, NodesStandBehindThoseThatTheyRead) {
  const auto order = ExecutionOrder(
      {NodeOf("C", {"a", "b"}, {"c"}), NodeOf("B", {"a", ""}, {"b"}), NodeOf("A", {"x"}, {"a"})}, Known("x"));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, ElementsAre(2, 1, 0));
}

TEST(ExecutionOrderTest, GraphsInsideReadToo) {
  const auto order =
      ExecutionOrder({WithGraph(NodeOf("If", {"x"}, {"y"}), "a"), NodeOf("A", {"x"}, {"a"})}, Known("x"));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, ElementsAre(1, 0));
  EXPECT_THAT(ExecutionOrder({WithGraph(NodeOf("If", {"x"}, {"y"}), "z")}, Known("x")).status().message(),
              HasSubstr("node `y` (If): reads `z`, which nothing defines"));
}

TEST(ExecutionOrderTest, ALongChainNeedsNoStack) {
  constexpr size_t kNodes = 100000;
  std::vector<OnnxNode> nodes;
  for (size_t i = 0; i < kNodes; ++i)
    nodes.push_back(NodeOf("Relu", {std::to_string(i + 1)}, {std::to_string(i)}));
  const auto order = ExecutionOrder(nodes, Known(std::to_string(kNodes)));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->front(), kNodes - 1);
}

TEST(ExecutionOrderTest, CyclesAndNamesDefinedTwice) {
  EXPECT_EQ(ExecutionOrder({NodeOf("A", {"a"}, {"a"})}, Known("x")).status().message(),
            "the graph has a cycle through node `a` (A)");
  EXPECT_EQ(ExecutionOrder({NodeOf("A", {}, {"a", "a"})}, Known("x")).status().message(),
            "`a` is defined twice");
  // Outputs that are left out have no name.
  EXPECT_TRUE(ExecutionOrder({NodeOf("A", {}, {"", ""})}, Known("x")).ok());
}

OnnxModel ModelOf(std::vector<OnnxNode> nodes, int64_t opset) {
  OnnxModel model;
  model.opsets[""] = opset;
  model.graph.nodes = std::move(nodes);
  return model;
}

TEST(CheckOperatorsTest, AllThatAreNotSupportedAreListed) {
  OnnxNode inside = WithGraph(NodeOf("NoSuch", {"x"}, {"y"}), "x");
  auto graph = std::make_shared<OnnxGraph>(*inside.attributes["body"].graph);
  graph->nodes[0].op = "NoSuchInside";
  inside.attributes["body"].graph = graph;
  OnnxModel model = ModelOf({inside, NodeOf("Relu", {"y"}, {"z"})}, 7);
  model.functions["f:F"].nodes = {NodeOf("NoSuchInFunction", {}, {"q"})};
  const absl::Status status = CheckOperators(model);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "3 nodes are not supported\n"
            "  node `y`: operator NoSuch, opset 7\n"
            "  node `inner`: operator NoSuchInside, opset 7\n"
            "  node `q`: operator NoSuchInFunction, opset 1");
}

TEST(CheckOperatorsTest, Opsets) {
  const std::vector<OnnxNode> relu = {NodeOf("Relu", {"x"}, {"y"})};
  EXPECT_TRUE(CheckOperators(ModelOf(relu, kFirstOpset)).ok());
  EXPECT_TRUE(CheckOperators(ModelOf(relu, kLastOpset)).ok());
  EXPECT_EQ(CheckOperators(ModelOf(relu, 0)).code(), absl::StatusCode::kUnimplemented);
  // A function of the model's own needs no operator.
  OnnxModel model = ModelOf({NodeOf("Mine", {"x"}, {"y"})}, kLastOpset);
  model.functions[":Mine"] = {};
  EXPECT_TRUE(CheckOperators(model).ok());
}

DeclaredValue Input(const std::string& name, std::vector<Dimension> shape) {
  return {name, kFloat, true, std::move(shape)};
}

TEST(InputShapesTest, GivenShapesFixFreeDimensions) {
  const DeclaredValue x = Input("x", {{2, ""}, {-1, "n"}}), y = Input("y", {{3, ""}});
  const auto shapes = InputShapes({&x, &y}, {{"x", {2, 5}}});
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(ElementsAre(2, 5), ElementsAre(3)));
}

TEST(InputShapesTest, AllFreeDimensionsAreListed) {
  const DeclaredValue x = Input("x", {{2, ""}, {-1, "n"}, {-1, ""}}), y = Input("y", {{3, ""}});
  DeclaredValue any = Input("any", {});
  any.has_shape = false;
  EXPECT_EQ(InputShapes({&x, &y, &any}, {}).status().message(),
            "2 inputs have free dimensions; expected --shape NAME=1x3x48x192 for each\n"
            "  `x`: [2,n,?]\n"
            "  `any`: any shape");
}

TEST(InputShapesTest, ShapesThatDoNotFit) {
  const DeclaredValue x = Input("x", {{2, ""}, {-1, "n"}});
  for (const std::vector<int64_t>& given : {std::vector<int64_t>{3, 5}, {2}, {2, 5, 1}}) {
    EXPECT_THAT(InputShapes({&x}, {{"x", given}}).status().message(), HasSubstr("does not fit `x`: [2,n]"));
  }
  EXPECT_EQ(InputShapes({&x}, {{"x", {2, 5}}, {"z", {1}}}).status().message(),
            "--shape z: the model has no such input; expected x");
  EXPECT_EQ(InputShapes({&x}, {{"n", {5}}}).status().message(),
            "--shape n: `n` is a dimension; expected the shape of each input that has it\n"
            "  `x`: [2,n]");
  EXPECT_THAT(InputShapes({&x}, {{"x", {2, int64_t{1} << 40}}}).status().message(),
              HasSubstr("input `x`: a tensor of more than 2^40 elements"));
}

}  // namespace
}  // namespace mycc::onnx
