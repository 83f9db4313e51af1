// Graphs that break a rule are refused by the tensor's name; graphs as text.
#include <gmock/gmock.h>

#include "codegen/graph/interpret.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

// An input, a constant, a stage, a reshape and a call, in this order.
Graph OneOfEach() {
  GraphBuilder b("each");
  const Buffer x = b.AddInput("the input", DType::kF32, {2, 3});
  b.SetOrigins({"Add a", "Relu r"});
  const Buffer y = Sum(&b, x, Weights(&b, {2, 3}));
  b.SetOrigins({});
  const Buffer flat = b.AddReshape(y, {6});
  b.AddOutput("out", b.Call("copy", {1, 2}, {flat}, {{DType::kF32, {6}}})[0]);
  return b.Finish();
}

void ExpectBroken(const Graph& graph, const std::string& message) {
  const absl::Status status = VerifyGraph(graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
}

TEST(VerifyGraphTest, ASoundGraph) { EXPECT_TRUE(VerifyGraph(OneOfEach()).ok()); }

TEST(VerifyGraphTest, ReadsStandBehindDefinitions) {
  Graph graph = OneOfEach();
  std::swap(graph.nodes[0], graph.nodes[1]);
  ExpectBroken(graph, "graph, tensor v2: reads v1, which is not defined before it");
  graph = OneOfEach();
  graph.inputs.clear();
  ExpectBroken(graph, "tensor v2: reads v0, which is not defined before it");
}

TEST(VerifyGraphTest, EachTensorIsDefinedOnce) {
  Graph graph = OneOfEach();
  graph.nodes.push_back(graph.nodes[1]);
  ExpectBroken(graph, "tensor v2: is defined twice");
  graph = OneOfEach();
  graph.outputs.push_back({"other", MakeBuffer("v9", DType::kF32, {1})});
  ExpectBroken(graph, "tensor v9: is an output that nothing defines");
  graph.nodes[3].outputs.clear();
  ExpectBroken(graph, "a node without an output");
}

TEST(VerifyGraphTest, TypesAndShapesFit) {
  Graph graph = OneOfEach();
  graph.nodes[0].made_by = std::make_shared<const NDArray>(NDArray::Zeros(DType::kF32, {3, 2}));
  ExpectBroken(graph, "tensor v1: its constant has another type or shape");
  graph.nodes[0].made_by = std::make_shared<const NDArray>(NDArray::Zeros(DType::kI32, {2, 3}));
  ExpectBroken(graph, "tensor v1: its constant has another type or shape");
  graph = OneOfEach();
  graph.nodes[2].outputs = {MakeBuffer("v3", DType::kF32, {7})};
  ExpectBroken(graph, "tensor v3: reshapes v2 of another size or type");
  graph = OneOfEach();
  std::get<Stage>(graph.nodes[1].made_by).output = MakeBuffer("v2", DType::kF32, {2, 3});
  ExpectBroken(graph, "tensor v2: its stage defines another tensor");
}

TEST(VerifyGraphTest, StagesAreSound) {
  Graph graph = OneOfEach();
  Stage& stage = std::get<Stage>(graph.nodes[1].made_by);
  stage.value = Load(graph.inputs[0].tensor, {VarRef(stage.axes[0]), VarRef(stage.axes[1]) + 1});
  ExpectBroken(graph, "graph, tensor v2: ");
}

TEST(PrintGraphTest, OneLineForEachNode) {
  EXPECT_EQ(PrintGraph(OneOfEach()),
            "graph each\n"
            "  input the input = v0: f32[2,3]\n"
            "  v1: f32[2,3] = constant  # Add a + Relu r\n"
            "  v2[a0,a1]: f32[2,3] = v0[a0,a1] + v1[a0,a1]  # Add a + Relu r\n"
            "  v3: f32[6] = reshape(v2)\n"
            "  v4: f32[6] = copy<1,2>(v3)\n"
            "  output out = v4\n");
}

TEST(InterpretGraphTest, InputsAreChecked) {
  const Graph graph = OneOfEach();
  EXPECT_EQ(InterpretGraph(graph, {}).status().message(), "each got 0 inputs; expected 1");
  EXPECT_EQ(InterpretGraph(graph, {NDArray::Zeros(DType::kF32, {3, 2})}).status().message(),
            "input `the input` has another type or shape than the model's");
  const auto outputs = InterpretGraph(graph, {NDArray::Zeros(DType::kF32, {2, 3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].shape, testing::ElementsAre(6));
}

TEST(InterpretGraphTest, UnknownLibraryKernelsAreAnError) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {1});
  b.AddOutput("y", b.Call("no such", {}, {x}, {{DType::kF32, {1}}})[0]);
  EXPECT_EQ(InterpretGraph(b.Finish(), {NDArray::Zeros(DType::kF32, {1})}).status().message(),
            "no library kernel is called `no such`");
}

}  // namespace
}  // namespace mycc
