// One ONNX node, imported and interpreted: tests of operators with attributes that no stored case has.
// Tensors are given and returned as numbers in f64. Thread rule: thread-compatible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/builder.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;

  // Pseudo-random multiples of 1/8 in [-2, 2], which every float type holds.
  static Numbers Random(std::vector<int64_t> shape, uint64_t seed);
  double At(const std::vector<int64_t>& index) const;
  double& At(const std::vector<int64_t>& index);
};

// Calls `visit` with every index of a shape, in row-major order.
void ForEachIndex(const std::vector<int64_t>& shape,
                  const std::function<void(const std::vector<int64_t>&)>& visit);

class OneOperator {
 public:
  explicit OneOperator(std::string op, int64_t opset, std::string domain = "");

  OneOperator& Input(ElementType type, Numbers numbers);     // known when the model runs
  OneOperator& Constant(ElementType type, Numbers numbers);  // known when it is compiled
  OneOperator& Omit();
  OneOperator& Int(const std::string& name, int64_t value);
  OneOperator& Float(const std::string& name, double value);
  OneOperator& String(const std::string& name, const std::string& value);
  OneOperator& Ints(const std::string& name, std::vector<int64_t> values);
  OneOperator& Declare(std::vector<int64_t> shape);  // of output 0

  absl::StatusOr<Graph> Import(size_t outputs = 1) const;
  // The outputs; `type` is the expected element type of output 0.
  absl::StatusOr<std::vector<Numbers>> Run(size_t outputs = 1, std::optional<DType> type = {}) const;

 private:
  struct Argument {
    ElementType type = kUndefined;
    NDArray value;
    bool is_constant = false;
  };
  OneOperator& Add(ElementType type, const Numbers& numbers, bool is_constant);

  OnnxNode node_;
  int64_t opset_;
  std::vector<Argument> arguments_;
  std::optional<std::vector<int64_t>> declared_;
};

// Fails the test unless the numbers agree, with NaN equal to NaN.
void ExpectNumbers(const absl::StatusOr<std::vector<Numbers>>& got, size_t output, const Numbers& expected,
                   double tolerance = 1e-5);

}  // namespace mycc::onnx
