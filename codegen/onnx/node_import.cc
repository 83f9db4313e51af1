#include "codegen/onnx/node_import.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc::onnx {

const TypedTensor& EmptyOptional() {
  static const auto* const empty =
      new TypedTensor{nullptr, kUndefined, std::make_shared<const std::vector<TypedTensor>>()};
  return *empty;
}

bool IsEmptyOptional(const TypedTensor& value) { return value.elements == EmptyOptional().elements; }

std::string TypeText(const TypedTensor& value) {
  if (value.IsText()) return absl::StrCat("string", ShapeText(value.tensor->shape));
  if (value.tensor != nullptr) return TypeText(value.tensor);
  if (value.elements == nullptr) return "left out";
  if (IsEmptyOptional(value)) return "an empty optional";
  return absl::StrCat("a sequence of ", value.elements->size());
}

NodeImport::NodeImport(const OnnxNode& node, int64_t opset, std::vector<TypedTensor> inputs,
                       GraphBuilder* builder, ImportSubgraph import_subgraph)
    : node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      outputs_(node.outputs.size()),
      builder_(builder),
      import_subgraph_(std::move(import_subgraph)) {}

absl::StatusOr<std::vector<int64_t>> NodeImport::ConstantInts(size_t i) const {
  if (!Has(i)) return Refuse(absl::StrCat("has no input ", i, "; expected one"));
  const NDArray* value = builder_->ValueOf(In(i));
  if (value == nullptr) return NotKnown(i);
  if (IsFloat(value->dtype))
    return Refuse(absl::StrCat("input ", i, " is of type ", DTypeName(value->dtype), "; expected integers"));
  std::vector<int64_t> ints(value->num_elements());
  for (size_t k = 0; k < ints.size(); ++k) ints[k] = value->Get(k).i;
  return ints;
}

absl::StatusOr<std::vector<double>> NodeImport::ConstantFloats(size_t i) const {
  if (!Has(i)) return Refuse(absl::StrCat("has no input ", i, "; expected one"));
  const NDArray* value = builder_->ValueOf(In(i));
  if (value == nullptr) return NotKnown(i);
  std::vector<double> numbers(value->num_elements());
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Scalar number = value->Get(k);
    numbers[k] = IsFloat(value->dtype) ? number.f : IntToDouble(value->dtype, number.i);
  }
  return numbers;
}

const OnnxAttribute* NodeImport::Attribute(const std::string& name) const {
  const auto at = node_.attributes.find(name);
  return at == node_.attributes.end() ? nullptr : &at->second;
}

const OnnxAttribute* NodeImport::OfType(const std::string& name, int type, const char* expected) const {
  const OnnxAttribute* attribute = Attribute(name);
  // Files of the first version of the format name no types.
  if (attribute != nullptr && attribute->type != 0 && attribute->type != type)
    builder_->Fail(Refuse(absl::StrCat("attribute ", name, " has another type; expected ", expected)));
  return attribute;
}

int64_t NodeImport::Int(const std::string& name, int64_t otherwise) const {
  const OnnxAttribute* attribute = OfType(name, 2, "an integer");
  return attribute == nullptr ? otherwise : attribute->i;
}

double NodeImport::Float(const std::string& name, double otherwise) const {
  const OnnxAttribute* attribute = OfType(name, 1, "a float");
  return attribute == nullptr ? otherwise : attribute->f;
}

std::string NodeImport::String(const std::string& name, const std::string& otherwise) const {
  const OnnxAttribute* attribute = OfType(name, 3, "a text");
  return attribute == nullptr ? otherwise : attribute->s;
}

std::vector<int64_t> NodeImport::Ints(const std::string& name, std::vector<int64_t> otherwise) const {
  const OnnxAttribute* attribute = OfType(name, 7, "integers");
  return attribute == nullptr ? otherwise : attribute->ints;
}

std::vector<double> NodeImport::Floats(const std::string& name) const {
  const OnnxAttribute* attribute = OfType(name, 6, "floats");
  return attribute == nullptr ? std::vector<double>() : attribute->floats;
}

std::vector<std::string> NodeImport::Strings(const std::string& name) const {
  const OnnxAttribute* attribute = OfType(name, 8, "texts");
  return attribute == nullptr ? std::vector<std::string>() : attribute->strings;
}

absl::StatusOr<std::vector<int64_t>> NodeImport::IntsOrInput(const std::string& name, size_t i,
                                                             std::vector<int64_t> otherwise) const {
  if (HasAttribute(name)) return Ints(name);
  if (Has(i)) return ConstantInts(i);
  return otherwise;
}

void NodeImport::Set(size_t i, const TypedTensor& value) {
  if (i < outputs_.size()) outputs_[i] = value;
}

void NodeImport::SetSized(size_t i, const Buffer& tensor, int type,
                          std::vector<std::pair<int, Buffer>> extents, size_t deciding) {
  const std::string& name = node_.name.empty() ? node_.outputs[0] : node_.name;
  DataSize size{std::move(extents), absl::StrCat("node `", name, "` (", node_.op, ")"),
                std::string(NotKnown(deciding).message())};
  Set(i, TypedTensor{tensor, type, nullptr, nullptr, nullptr,
                     std::make_shared<const DataSize>(std::move(size))});
}

absl::StatusOr<int64_t> NodeImport::Axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    return Refuse(
        absl::StrCat("axis ", axis, " of a tensor of rank ", rank, "; expected -", rank, " to ", rank - 1));
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NodeImport::AxesOf(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& axis : axes) {
    MYCC_ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) return Refuse("names an axis twice");
  return axes;
}

absl::Status NodeImport::NotKnown(size_t i) const {
  if (!Has(i)) return Refuse(absl::StrCat("has no input ", i, "; expected one"));
  const std::string name =
      i < node_.inputs.size() ? absl::StrCat(" (`", node_.inputs[i], "`)") : std::string();
  return absl::UnimplementedError(
      absl::StrCat("input ", i, name, " is not known when the model is compiled", HowToKnow(In(i))));
}

std::string NodeImport::HowToKnow(const Buffer& tensor) const { return onnx::HowToKnow(*builder_, tensor); }

std::string HowToKnow(const GraphBuilder& builder, const Buffer& tensor) {
  const std::vector<std::string> inputs = builder.InputsOf(tensor);
  if (inputs.empty()) return "";
  return absl::StrCat("; ",
                      absl::StrJoin(inputs, " ",
                                    [](std::string* out, const std::string& input) {
                                      absl::StrAppend(out, "--value ", input, "=...");
                                    }),
                      " would fix it");
}

absl::Status NodeImport::Expect(size_t least) const {
  for (size_t i = 0; i < least; ++i) {
    if (!Has(i)) return Refuse(absl::StrCat("has no input ", i, "; expected at least ", least));
  }
  return absl::OkStatus();
}

absl::Status NodeImport::ExpectRank(size_t i, int64_t least, int64_t most) const {
  if (Rank(i) >= least && Rank(i) <= most) return absl::OkStatus();
  return Refuse(absl::StrCat("input ", i, " is ", TypeText(In(i)), "; expected rank ", least,
                             least == most ? "" : absl::StrCat(" to ", most)));
}

absl::Status NodeImport::ExpectFloat(size_t i) const {
  if (IsFloat(Type(i))) return absl::OkStatus();
  return Refuse(absl::StrCat("input ", i, " is ", TypeText(In(i)), "; expected floats"));
}

int NodeImport::TypeNumber(DType dtype) {
  for (int type = kFloat; type <= kInt2; ++type) {
    if (type != kInt4 && type != kInt2 && StorageOf(type) == dtype) return type;
  }
  return kUndefined;
}

absl::StatusOr<std::vector<int64_t>> BroadcastShape(const std::vector<std::vector<int64_t>>& shapes) {
  size_t rank = 0;
  for (const auto& shape : shapes) rank = std::max(rank, shape.size());
  std::vector<int64_t> result(rank, 1);
  for (const auto& shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = result[rank - shape.size() + i];
      if (shape[i] == 1 || shape[i] == extent) continue;
      if (extent != 1) {
        std::string all = absl::StrJoin(shapes, " and ",
                                        [](std::string* out, const auto& s) { out->append(ShapeText(s)); });
        return absl::InvalidArgumentError(absl::StrCat("shapes ", all, " do not fit each other"));
      }
      extent = shape[i];
    }
  }
  return result;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace mycc::onnx
