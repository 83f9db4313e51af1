#include "tests/onnx/one_operator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/graph/interpret.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

size_t FlatIndex(const std::vector<int64_t>& shape, const std::vector<int64_t>& index) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<size_t>(flat);
}

NDArray ArrayOf(DType dtype, const Numbers& numbers) {
  NDArray array = NDArray::Zeros(dtype, numbers.shape);
  for (size_t i = 0; i < numbers.values.size(); ++i) {
    const double value = numbers.values[i];
    const auto flat = static_cast<int64_t>(i);
    array.Set(flat, IsFloat(dtype) ? Scalar{value, 0} : Scalar{0, static_cast<int64_t>(value)});
  }
  return array;
}

Numbers NumbersOf(const NDArray& array) {
  Numbers numbers{array.shape, {}};
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    const Scalar value = array.Get(i);
    numbers.values.push_back(IsFloat(array.dtype) ? value.f : static_cast<double>(value.i));
  }
  return numbers;
}

}  // namespace

Numbers Numbers::Random(std::vector<int64_t> shape, uint64_t seed) {
  Numbers numbers{std::move(shape), {}};
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (int64_t i = 0; i < ElementsOf(numbers.shape); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    numbers.values.push_back((static_cast<double>(state >> 33 & 31) - 16) / 8);
  }
  return numbers;
}

double Numbers::At(const std::vector<int64_t>& index) const { return values[FlatIndex(shape, index)]; }
double& Numbers::At(const std::vector<int64_t>& index) { return values[FlatIndex(shape, index)]; }

void ForEachIndex(const std::vector<int64_t>& shape,
                  const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> index(shape.size());
  const int64_t count = ElementsOf(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
    visit(index);
  }
}

OneOperator::OneOperator(std::string op, int64_t opset, std::string domain) : opset_(opset) {
  node_.op = std::move(op);
  node_.domain = std::move(domain);
}

OneOperator& OneOperator::Add(ElementType type, const Numbers& numbers, bool is_constant) {
  arguments_.push_back({type, ArrayOf(*StorageOf(type), numbers), is_constant});
  return *this;
}
OneOperator& OneOperator::Input(ElementType type, Numbers numbers) { return Add(type, numbers, false); }
OneOperator& OneOperator::Constant(ElementType type, Numbers numbers) { return Add(type, numbers, true); }
OneOperator& OneOperator::Omit() {
  arguments_.emplace_back();
  return *this;
}

OneOperator& OneOperator::Int(const std::string& name, int64_t value) {
  node_.attributes[name].type = 2;
  node_.attributes[name].i = value;
  return *this;
}
OneOperator& OneOperator::Float(const std::string& name, double value) {
  node_.attributes[name].type = 1;
  node_.attributes[name].f = value;
  return *this;
}
OneOperator& OneOperator::String(const std::string& name, const std::string& value) {
  node_.attributes[name].type = 3;
  node_.attributes[name].s = value;
  return *this;
}
OneOperator& OneOperator::Ints(const std::string& name, std::vector<int64_t> values) {
  node_.attributes[name].type = 7;
  node_.attributes[name].ints = std::move(values);
  return *this;
}
OneOperator& OneOperator::Declare(std::vector<int64_t> shape) {
  declared_ = std::move(shape);
  return *this;
}

absl::StatusOr<Graph> OneOperator::Import(size_t outputs) const {
  const Operator* op = FindOperator(node_.domain, node_.op);
  if (op == nullptr) return absl::NotFoundError(node_.op);
  GraphBuilder builder("one");
  std::vector<TypedTensor> inputs;
  for (const Argument& argument : arguments_) {
    if (argument.type == kUndefined) {
      inputs.emplace_back();
    } else if (argument.is_constant) {
      inputs.push_back({builder.AddConstant(argument.value), argument.type});
    } else {
      const std::string name = absl::StrCat("x", inputs.size());
      inputs.push_back({builder.AddInput(name, argument.value.dtype, argument.value.shape), argument.type});
    }
  }
  OnnxNode node = node_;
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(absl::StrCat("y", i));
  NodeImport import(node, opset_, std::move(inputs), &builder, nullptr);
  import.Declare({declared_});
  MYCC_RETURN_IF_ERROR(op->import(import));
  MYCC_RETURN_IF_ERROR(builder.status());
  for (size_t i = 0; i < outputs; ++i) {
    if (import.outputs()[i].tensor == nullptr) return absl::InternalError(absl::StrCat("no output ", i));
    NamedTensor output{node.outputs[i], import.outputs()[i].tensor, import.outputs()[i].IsText()};
    if (const auto& size = import.outputs()[i].size) {
      for (const auto& [axis, extent] : size->extents) output.bounded.push_back(axis);
    }
    builder.AddOutput(std::move(output));
  }
  for (size_t i = 0; i < outputs; ++i) {
    const auto& size = import.outputs()[i].size;
    if (size == nullptr) continue;
    for (const auto& [axis, extent] : size->extents) builder.AddOutput({"", extent, false, {}, true});
  }
  Graph graph = builder.Finish();
  MYCC_RETURN_IF_ERROR(VerifyGraph(graph));
  return graph;
}

absl::StatusOr<std::vector<Numbers>> OneOperator::Run(size_t outputs, std::optional<DType> type) const {
  MYCC_ASSIGN_OR_RETURN(const Graph graph, Import(outputs));
  std::vector<NDArray> inputs;
  for (const Argument& argument : arguments_) {
    if (argument.type != kUndefined && !argument.is_constant) inputs.push_back(argument.value);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> results, InterpretGraph(graph, inputs));
  if (type && results[0].dtype != *type)
    return absl::InternalError(absl::StrCat("output 0 is of type ", DTypeName(results[0].dtype)));
  std::vector<Numbers> numbers;
  for (const NDArray& result : results) numbers.push_back(NumbersOf(result));
  return numbers;
}

void ExpectNumbers(const absl::StatusOr<std::vector<Numbers>>& got, size_t output, const Numbers& expected,
                   double tolerance) {
  ASSERT_TRUE(got.ok()) << got.status();
  const Numbers& numbers = (*got)[output];
  ASSERT_EQ(numbers.shape, expected.shape);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double a = numbers.values[i], b = expected.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b))) << "element " << i << ": " << a << ", " << b;
  }
}

}  // namespace mycc::onnx
