// Files as graphs: bytes that are no model, and what a small model becomes.
#include <gmock/gmock.h>

#include "codegen/onnx/importer.h"
#include "codegen/onnx/onnx.pb.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr int kFloatType = 1;

void Declare(onnx_file::Value* value, const std::string& name, const std::vector<int64_t>& shape) {
  value->set_name(name);
  auto* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(kFloatType);
  for (int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

onnx_file::Node* AddNode(onnx_file::Graph* graph, const std::string& op,
                         const std::vector<std::string>& inputs, const std::string& output) {
  onnx_file::Node* node = graph->add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return node;
}

// y = relu(x + w), the nodes in the wrong order.
onnx_file::Model SmallModel() {
  onnx_file::Model model;
  model.add_opset_import()->set_version(17);
  onnx_file::Graph* graph = model.mutable_graph();
  Declare(graph->add_input(), "x", {2, 3});
  Declare(graph->add_output(), "y", {2, 3});
  onnx_file::Tensor* w = graph->add_initializer();
  w->set_name("w");
  w->set_data_type(kFloatType);
  w->add_dims(3);
  for (float value : {1.0f, 2.0f, 3.0f}) w->add_float_data(value);
  AddNode(graph, "Relu", {"sum"}, "y");
  AddNode(graph, "Add", {"x", "w"}, "sum")->set_name("plus");
  return model;
}

absl::StatusOr<Graph> Import(const onnx_file::Model& model, const OnnxOptions& options = {}) {
  return ImportOnnxBytes(model.SerializeAsString(), "folder/small.onnx", options);
}

// A text that is joined to itself forty times would have a tebibyte.
TEST(ImportOnnxTest, LongTextsAreJoinedWhenTheModelRuns) {
  onnx_file::Model model;
  model.add_opset_import()->set_version(20);
  onnx_file::Graph* graph = model.mutable_graph();
  onnx_file::Tensor* text = graph->add_initializer();
  text->set_name("0");
  text->set_data_type(8);
  text->add_string_data("x");
  for (int i = 0; i < 40; ++i) {
    const std::string from = std::to_string(i);
    AddNode(graph, "StringConcat", {from, from}, std::to_string(i + 1));
  }
  for (const char* name : {"12", "40"}) {
    onnx_file::Value* output = graph->add_output();
    output->set_name(name);
    output->mutable_type()->mutable_tensor_type()->set_elem_type(8);
  }
  const auto imported = Import(model);
  ASSERT_TRUE(imported.ok()) << imported.status();
  int joined = 0;
  for (const Node& node : imported->nodes) {
    const auto* call = std::get_if<LibraryCall>(&node.made_by);
    joined += call != nullptr && call->function == "concat_texts" ? 1 : 0;
  }
  EXPECT_EQ(joined, 14);
}

TEST(ImportOnnxTest, KnownInputsAreConstants) {
  const auto value = [](std::vector<int64_t> shape) {
    return [shape](const OnnxInput& input) -> absl::StatusOr<NDArray> {
      EXPECT_EQ(input.name, "x");
      EXPECT_EQ(input.type, "FLOAT");
      EXPECT_EQ(input.shape, (std::vector<int64_t>{2, 3}));
      return NDArray::Zeros(input.dtype, shape);
    };
  };
  OnnxOptions options;
  options.values["x"] = value({2, 3});
  const auto graph = Import(SmallModel(), options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph), "graph small\n  v5: f32[2,3] = constant  # Relu y\n  output y = v5\n");
  options.values["x"] = value({3, 2});
  EXPECT_EQ(Import(SmallModel(), options).status().message(),
            "folder/small.onnx: --value x: has shape [3,2]; expected [2,3]");
  options.values["x"] = [](const OnnxInput&) { return NDArray::Zeros(DType::kI32, {2, 3}); };
  EXPECT_EQ(Import(SmallModel(), options).status().message(),
            "folder/small.onnx: --value x: is of type i32; expected f32");
  options.values["w"] = value({3});
  EXPECT_EQ(Import(SmallModel(), options).status().message(),
            "folder/small.onnx: --value w: the model has no such input; expected x");
}

TEST(ImportOnnxTest, ASmallModel) {
  const auto graph = Import(SmallModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph),
            "graph small\n"
            "  input x = v0: f32[2,3]\n"
            "  v1: f32[3] = constant\n"
            "  v2[a0,a1]: f32[2,3] = v0[a0,a1] + v1[a1]  # Add plus\n"
            "  v3[a0,a1]: f32[2,3] = max(v2[a0,a1], 0.0)  # Relu y\n"
            "  output y = v3\n");
}

// y = the sequence of the last element of s, and of x where this is there.
onnx_file::Model SequenceModel() {
  onnx_file::Model model;
  model.add_opset_import()->set_version(18);
  onnx_file::Graph* graph = model.mutable_graph();
  onnx_file::Value* s = graph->add_input();
  s->set_name("s");
  s->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  onnx_file::Value* x = graph->add_input();
  x->set_name("x");
  auto* sequence = x->mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_sequence_type();
  auto* tensor = sequence->mutable_elem_type()->mutable_tensor_type();
  tensor->set_elem_type(kFloatType);
  tensor->mutable_shape()->add_dim()->set_dim_value(3);
  onnx_file::Tensor* last = graph->add_initializer();
  last->set_name("last");
  last->set_data_type(7);
  last->add_int64_data(-1);
  AddNode(graph, "SequenceAt", {"s", "last"}, "at");
  AddNode(graph, "SequenceConstruct", {"at"}, "y");
  AddNode(graph, "OptionalHasElement", {"x"}, "has");
  *graph->add_output() = *s;
  graph->mutable_output(0)->set_name("y");
  graph->add_output()->set_name("x");
  graph->add_output()->set_name("has");
  return model;
}

TEST(ImportOnnxTest, SequencesAreTheirTensors) {
  OnnxOptions options;
  options.shapes = {{"s[0]", {2}}, {"s[1]", {2, 2}}, {"x[0]", {3}}};
  auto graph = Import(SequenceModel(), options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph),
            "graph small\n"
            "  input s[0] = v0: f32[2]\n"
            "  input s[1] = v1: f32[2,2]\n"
            "  input x[0] = v2: f32[3]\n"
            "  v4: bool[] = constant  # OptionalHasElement has\n"
            "  output y[0] = v1\n"
            "  output x[0] = v2\n"
            "  output has = v4\n");
  options.shapes.erase("x[0]");
  options.forms["x"] = OnnxForm::kAbsent;
  graph = Import(SequenceModel(), options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 2);
  EXPECT_EQ(graph->outputs.size(), 2);
  options.forms.clear();
  options.shapes["x[0]"] = {4};
  EXPECT_EQ(Import(SequenceModel(), options).status().message(),
            "folder/small.onnx: --shape x[0]=4 does not fit `x[0]`: [3]");
}

// Maps, and sequences of other things than tensors.
TEST(ImportOnnxTest, ContainersThatAreRefused) {
  onnx_file::Model model = SmallModel();
  onnx_file::Type* type = model.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  EXPECT_THAT(Import(model).status().message(), HasSubstr("input `x` of type sequence of map is not"));
  type->mutable_optional_type()->mutable_elem_type()->mutable_sequence_type();
  EXPECT_THAT(Import(model).status().message(), HasSubstr("of type optional of sequence of nothing is not"));
}

TEST(ImportOnnxTest, NoModels) {
  const std::string good = SmallModel().SerializeAsString();
  for (size_t length = 0; length < good.size(); ++length) {
    const auto graph = ImportOnnxBytes(good.substr(0, length), "cut.onnx", {});
    EXPECT_FALSE(graph.ok());
    EXPECT_THAT(graph.status().message(), HasSubstr("cut.onnx"));
  }
  EXPECT_EQ(ImportOnnx("/no/such.onnx", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImportOnnxTest, InitializersMayBeDeclaredAsInputs) {
  onnx_file::Model model = SmallModel();
  Declare(model.mutable_graph()->add_input(), "w", {3});
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 1);
}

TEST(ImportOnnxTest, GraphsInsideOneAnother) {
  onnx_file::Model model = SmallModel();
  onnx_file::Graph* graph = model.mutable_graph();
  for (int depth = 0; depth < 33; ++depth) {
    onnx_file::Node* node = AddNode(graph, "If", {"x"}, "z" + std::to_string(depth));
    node->set_name("if");
    onnx_file::Attribute* attribute = node->add_attribute();
    attribute->set_name("then_branch");
    graph = attribute->mutable_g();
  }
  EXPECT_THAT(Import(model).status().message(), HasSubstr("graphs are nested too deeply"));
}

TEST(ImportOnnxTest, AttributesWithoutTheirValue) {
  onnx_file::Model model = SmallModel();
  onnx_file::Attribute* attribute = model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_name("value");
  attribute->set_type(4);
  EXPECT_THAT(Import(model).status().message(), HasSubstr("node `` (Relu), attribute value: has no value"));
}

}  // namespace
}  // namespace mycc
