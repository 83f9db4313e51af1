// Reads an ONNX model as a graph of the tensor language: shapes are inferred, and the arithmetic on shapes is
// computed, on the way. Thread rule: functions are re-entrant.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"

namespace mycc {

// An input as the model declares it, for whoever gives its value.
struct OnnxInput {
  std::string name, type;                     // ONNX's name of the element type: "INT64"
  DType dtype;                                // of the array that holds its elements
  bool is_bits = false;                       // the elements are the bits of floats that `dtype` does not say
  std::optional<std::vector<int64_t>> shape;  // -1: a free extent; nullopt: any shape
};
// Makes the value of an input, of its type.
using OnnxValue = std::function<absl::StatusOr<NDArray>(const OnnxInput&)>;

// An input that is no tensor: a sequence without elements, or an optional without a value.
enum class OnnxForm { kEmpty, kAbsent };

// The elements of an input `x` that is a sequence are inputs `x[0]`, `x[1]` and so on. There are as many as
// have a shape or a value here.
struct OnnxOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // of inputs, by name: they fix free dimensions
  std::map<std::string, OnnxValue> values;             // of inputs, by name, which become constants
  std::map<std::string, OnnxForm> forms;               // of inputs, by name
};

// InvalidArgument for a shape that does not fit the declared one.
absl::Status CheckValueShape(const OnnxInput& input, const std::vector<int64_t>& shape);

// Errors name the file and the node: InvalidArgument for a file that is no sound model, with all free
// dimensions where some are left; Unimplemented with all operators that are not supported; NotFound for a
// missing file or missing external data.
absl::StatusOr<Graph> ImportOnnx(const std::string& file, const OnnxOptions& options);
// The same for bytes that are in memory; `file` names them in errors, and its folder has the external data.
absl::StatusOr<Graph> ImportOnnxBytes(const std::string& bytes, const std::string& file,
                                      const OnnxOptions& options);

}  // namespace mycc
