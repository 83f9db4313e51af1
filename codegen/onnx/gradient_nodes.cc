#include "codegen/onnx/gradient_nodes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mycc::onnx {
namespace {

constexpr int kIntType = 2, kTensorType = 4, kIntsType = 7;  // ONNX's numbers of attributes

}  // namespace

OnnxAttribute IntAttribute(int64_t value) {
  OnnxAttribute attribute;
  attribute.type = kIntType;
  attribute.i = value;
  return attribute;
}

OnnxAttribute IntsAttribute(std::vector<int64_t> values) {
  OnnxAttribute attribute;
  attribute.type = kIntsType;
  attribute.ints = std::move(values);
  return attribute;
}

const std::vector<int64_t>& Term::shape() const {
  static const auto* const none = new std::vector<int64_t>();
  const TypedTensor* value = IsThere() ? writer->Find(name) : nullptr;
  return value == nullptr || value->tensor == nullptr ? *none : value->tensor->shape;
}

int Term::type() const {
  const TypedTensor* value = IsThere() ? writer->Find(name) : nullptr;
  return value == nullptr ? kUndefined : value->type;
}

const Opsets& NodeWriter::OwnOpsets() {
  static const auto* const opsets = new Opsets{{"", 16}};
  return *opsets;
}

std::string NodeWriter::FreshName() {
  std::string name;
  do {
    name = absl::StrCat(prefix_, next_name_++);
  } while (Find(name) != nullptr);
  return name;
}

void NodeWriter::AddNode(OnnxNode node, const Opsets& opsets) {
  if (status_.ok()) status_ = around_->Add(std::move(node), opsets);
}

std::vector<Term> NodeWriter::AddMany(const std::string& op, const std::vector<Term>& inputs, size_t outputs,
                                      OnnxAttributes attributes) {
  std::vector<Term> results(outputs, Term{this, ""});
  if (!status_.ok()) return results;
  OnnxNode node;
  node.op = op;
  node.attributes = std::move(attributes);
  for (const Term& input : inputs) node.inputs.push_back(input.name);
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(FreshName());
  const std::vector<std::string> names = node.outputs;
  AddNode(std::move(node), OwnOpsets());
  for (size_t i = 0; status_.ok() && i < outputs; ++i) results[i].name = names[i];
  return results;
}

Term NodeWriter::Add(const std::string& op, const std::vector<Term>& inputs, OnnxAttributes attributes) {
  return AddMany(op, inputs, 1, std::move(attributes))[0];
}

Term NodeWriter::Constant(TypedConstant value) {
  OnnxAttribute attribute;
  attribute.type = kTensorType;
  attribute.tensor = std::move(value);
  return Add("Constant", {}, {{"value", attribute}});
}

Term NodeWriter::Ints(const std::vector<int64_t>& values) {
  NDArray array = NDArray::Zeros(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.Set(static_cast<int64_t>(i), Scalar{0, values[i]});
  return Constant({std::make_shared<const NDArray>(std::move(array)), kInt64});
}

Term NodeWriter::Number(double value, const Term& like) {
  const std::optional<DType> dtype = StorageOf(like.type());
  if (!status_.ok() || !dtype) return Term{this, ""};
  NDArray array = NDArray::Zeros(*dtype, {});
  array.Set(0, Scalar{value, static_cast<int64_t>(value)});
  return Constant({std::make_shared<const NDArray>(std::move(array)), like.type()});
}

Term NodeWriter::Filled(double value, const std::vector<int64_t>& shape, const Term& like) {
  return Expanded(Number(value, like), shape);
}

Term operator+(const Term& a, const Term& b) { return a.writer->Add("Add", {a, b}); }
Term operator-(const Term& a, const Term& b) { return a.writer->Add("Sub", {a, b}); }
Term operator*(const Term& a, const Term& b) { return a.writer->Add("Mul", {a, b}); }
Term operator/(const Term& a, const Term& b) { return a.writer->Add("Div", {a, b}); }
Term operator-(const Term& a) { return UnaryTerm("Neg", a); }
Term operator*(double a, const Term& b) { return a == 1 ? b : b.writer->Number(a, b) * b; }
Term operator+(double a, const Term& b) { return b.writer->Number(a, b) + b; }
Term operator-(double a, const Term& b) { return b.writer->Number(a, b) - b; }

Term UnaryTerm(const std::string& op, const Term& x) { return x.writer->Add(op, {x}); }
Term Power(const Term& x, const Term& exponent) { return x.writer->Add("Pow", {x, exponent}); }
Term IsGreater(const Term& a, const Term& b) { return a.writer->Add("Greater", {a, b}); }
Term ProductOf(const Term& a, const Term& b) { return a.writer->Add("MatMul", {a, b}); }

Term IsEqual(const Term& a, const Term& b) { return a.writer->Add("Equal", {a, b}); }

Term ConvertedTo(const Term& x, int type) {
  if (x.type() == type) return x;
  return x.writer->Add("Cast", {x}, {{"to", IntAttribute(type)}});
}

Term ChoiceOf(const Term& condition, const Term& then, const Term& otherwise) {
  return condition.writer->Add("Where", {condition, then, otherwise});
}

Term ReshapedTo(const Term& x, const std::vector<int64_t>& shape) {
  if (x.shape() == shape) return x;
  // An extent of zero is meant as it is.
  return x.writer->Add("Reshape", {x, x.writer->Ints(shape)}, {{"allowzero", IntAttribute(1)}});
}

Term Expanded(const Term& x, const std::vector<int64_t>& shape) {
  if (x.shape() == shape) return x;
  return x.writer->Add("Expand", {x, x.writer->Ints(shape)});
}

Term Permuted(const Term& x, const std::vector<int64_t>& permutation) {
  return x.writer->Add("Transpose", {x}, {{"perm", IntsAttribute(permutation)}});
}

Term TransposedMatrix(const Term& x) {
  if (x.rank() < 2) return x;
  std::vector<int64_t> permutation(x.shape().size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[permutation.size() - 2], permutation.back());
  return Permuted(x, permutation);
}

Term SummedOver(const Term& x, const std::vector<int64_t>& axes) {
  if (axes.empty()) return x;
  return x.writer->Add("ReduceSum", {x, x.writer->Ints(axes)});
}

Term SummedTo(const Term& x, const std::vector<int64_t>& shape) {
  if (!x.IsThere() || x.shape() == shape) return x;
  const size_t added = x.shape().size() - std::min(x.shape().size(), shape.size());
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    if (i < added || (shape[i - added] == 1 && x.shape()[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  return ReshapedTo(SummedOver(x, axes), shape);
}

}  // namespace mycc::onnx
