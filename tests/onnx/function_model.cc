#include "tests/onnx/function_model.h"

#include <cmath>

#include "base/status.h"
#include "codegen/graph/interpret.h"
#include "codegen/onnx/importer.h"
#include "codegen/onnx/operators.h"
#include "gtest/gtest.h"

namespace mycc::onnx {
namespace {

OnnxAttribute TextsOf(std::vector<std::string> values) {
  OnnxAttribute attribute;
  attribute.type = 8;
  attribute.strings = std::move(values);
  return attribute;
}

void AddOpset(onnx_file::Model* file, const std::string& domain, int64_t version) {
  onnx_file::OperatorSet* set = file->add_opset_import();
  set->set_domain(domain);
  set->set_version(version);
}

void DeclareDouble(onnx_file::Value* value, const std::string& name, const std::vector<int64_t>& shape) {
  value->set_name(name);
  auto* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(kDouble);
  tensor->mutable_shape();
  for (int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

}  // namespace

OnnxAttribute NumberOf(double value) {
  OnnxAttribute attribute;
  attribute.type = 1;
  attribute.f = value;
  return attribute;
}

OnnxNode GradientNodeOf(std::vector<std::string> inputs, std::vector<std::string> outputs,
                        const std::vector<std::string>& xs, const std::string& y,
                        const std::vector<std::string>& zs) {
  OnnxNode node = NodeOf("Gradient", std::move(inputs), std::move(outputs),
                         {{"xs", TextsOf(xs)}, {"zs", TextsOf(zs)}, {"y", StringOf(y)}});
  node.domain = kTrainingDomain;
  return node;
}

FunctionModel::FunctionModel(int64_t opset) {
  AddOpset(&file_, "", opset);
  AddOpset(&file_, kTrainingDomain, 1);
}

FunctionModel& FunctionModel::Input(std::vector<int64_t> shape, double least, double most) {
  const std::string name(1, static_cast<char>('a' + inputs_.size()));
  NDArray value = NDArray::Zeros(DType::kF64, std::move(shape));
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const double place = 0.13 * static_cast<double>(inputs_.size()) + 0.381966 * static_cast<double>(i);
    value.Set(i, Scalar{least + (most - least) * (place - std::floor(place)), 0});
  }
  DeclareDouble(file_.mutable_graph()->add_input(), name, value.shape);
  inputs_.push_back(std::move(value));
  names_.push_back(name);
  return *this;
}

FunctionModel& FunctionModel::Known(const std::string& name, const std::vector<int64_t>& values, int type) {
  onnx_file::Tensor* tensor = file_.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) {
    if (type == kInt64) tensor->add_int64_data(value);
    if (type == kDouble) tensor->add_double_data(static_cast<double>(value));
    if (type == kBool) tensor->add_int32_data(static_cast<int32_t>(value));
  }
  return *this;
}

FunctionModel& FunctionModel::Add(const OnnxNode& node) {
  onnx_file::Node* to = file_.mutable_graph()->add_node();
  to->set_op_type(node.op);
  to->set_domain(node.domain);
  for (const std::string& input : node.inputs) to->add_input(input);
  for (const std::string& output : node.outputs) to->add_output(output);
  for (const auto& [name, from] : node.attributes) {
    onnx_file::Attribute* attribute = to->add_attribute();
    attribute->set_name(name);
    attribute->set_type(from.type);
    attribute->set_i(from.i);
    attribute->set_f(static_cast<float>(from.f));
    attribute->set_s(from.s);
    for (const int64_t i : from.ints) attribute->add_ints(i);
    for (const std::string& s : from.strings) attribute->add_strings(s);
  }
  return *this;
}

absl::StatusOr<Graph> FunctionModel::Import(const std::vector<std::string>& outputs) const {
  onnx_file::Model file = file_;
  for (const std::string& output : outputs) {
    file.mutable_graph()->add_output()->set_name(output);
    file.mutable_graph()->mutable_output()->rbegin()->mutable_type()->mutable_tensor_type();
  }
  return ImportOnnxBytes(file.SerializeAsString(), "small.onnx", {});
}

absl::StatusOr<std::vector<NDArray>> FunctionModel::Run(const std::vector<std::string>& outputs) const {
  MYCC_ASSIGN_OR_RETURN(const Graph graph, Import(outputs));
  return InterpretGraph(graph, inputs_);
}

double SumOf(const NDArray& array) {
  double sum = 0;
  for (int64_t i = 0; i < array.num_elements(); ++i) sum += array.Get(i).f;
  return sum;
}

void ExpectSlopes(const Graph& graph, size_t y, size_t gradient, std::vector<NDArray> inputs, size_t k) {
  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  const auto results = InterpretGraph(graph, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  const NDArray& got = (*results)[gradient];
  ASSERT_EQ(got.shape, inputs[k].shape);
  ASSERT_EQ(got.dtype, DType::kF64);
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const double at = inputs[k].Get(i).f;
    double sums[2];
    for (const int side : {0, 1}) {
      inputs[k].Set(i, Scalar{side == 0 ? at - kStep : at + kStep, 0});
      const auto moved = InterpretGraph(graph, inputs);
      ASSERT_TRUE(moved.ok()) << moved.status();
      sums[side] = SumOf((*moved)[y]);
    }
    inputs[k].Set(i, Scalar{at, 0});
    const double slope = (sums[1] - sums[0]) / (2 * kStep);
    EXPECT_NEAR(got.Get(i).f, slope, kTolerance * (1 + std::abs(slope)))
        << "input " << k << ", element " << i;
  }
}

}  // namespace mycc::onnx
