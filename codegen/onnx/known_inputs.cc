#include "codegen/onnx/known_inputs.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/onnx/check_model.h"
#include "codegen/onnx/node_import.h"
#include "codegen/onnx/small_types.h"
#include "codegen/workload/check.h"

namespace mycc {
namespace onnx {
namespace {

OnnxInput AsDeclared(const DeclaredValue& input) {
  OnnxInput declared{input.name, ElementTypeName(input.type), *StorageOf(input.type),
                     IsHeldAsBits(input.type), std::nullopt};
  if (!input.has_shape) return declared;
  declared.shape.emplace();
  for (const Dimension& dimension : input.shape) declared.shape->push_back(dimension.extent);
  return declared;
}

absl::StatusOr<NDArray> ReadValue(const OnnxInput& input, const OnnxValue& value) {
  MYCC_ASSIGN_OR_RETURN(NDArray array, value(input));
  if (array.dtype != input.dtype)
    return absl::InvalidArgumentError(
        absl::StrCat("is of type ", DTypeName(array.dtype), "; expected ", DTypeName(input.dtype)));
  MYCC_RETURN_IF_ERROR(CheckValueShape(input, array.shape));
  return array;
}

absl::Status CheckGivenShape(const OnnxOptions& options, const std::string& name, const NDArray& value) {
  const auto given = options.shapes.find(name);
  if (given == options.shapes.end() || given->second == value.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has shape ", ShapeText(value.shape), ", but --shape ", name, "=",
                   given->second.empty() ? "scalar" : absl::StrJoin(given->second, "x"),
                   " says another; expected one of the two options"));
}

}  // namespace

absl::StatusOr<std::map<std::string, Constant>> KnownInputs(const std::vector<const DeclaredValue*>& inputs,
                                                            const OnnxOptions& options) {
  std::map<std::string, Constant> known;
  for (const auto& [name, value] : options.values) {
    MYCC_RETURN_IF_ERROR(CheckIsInput(inputs, "--value", name));
  }
  for (const DeclaredValue* input : inputs) {
    const auto value = options.values.find(input->name);
    if (value != options.values.end() && input->kind == "tensor" && input->type == kString)
      return absl::UnimplementedError(
          absl::StrCat("--value ", input->name, ": values of type STRING are not supported"));
    // Inputs that no tensor can hold are refused with the others.
    if (value == options.values.end() || input->kind != "tensor" || !StorageOf(input->type)) continue;
    absl::StatusOr<NDArray> array = ReadValue(AsDeclared(*input), value->second);
    const absl::Status status = array.ok() ? CheckGivenShape(options, input->name, *array) : array.status();
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("--value ", input->name, ": ", std::string(status.message())));
    }
    known[input->name] = std::make_shared<const NDArray>(*std::move(array));
  }
  return known;
}

}  // namespace onnx

absl::Status CheckValueShape(const OnnxInput& input, const std::vector<int64_t>& shape) {
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return absl::InvalidArgumentError(problem);
  bool fits = !input.shape || input.shape->size() == shape.size();
  for (size_t i = 0; fits && input.shape && i < shape.size(); ++i)
    fits = (*input.shape)[i] < 0 || (*input.shape)[i] == shape[i];
  if (fits) return absl::OkStatus();
  const std::string expected = absl::StrJoin(*input.shape, ",", [](std::string* out, int64_t extent) {
    out->append(extent < 0 ? "?" : absl::StrCat(extent));
  });
  return absl::InvalidArgumentError(
      absl::StrCat("has shape ", onnx::ShapeText(shape), "; expected [", expected, "]"));
}

}  // namespace mycc
