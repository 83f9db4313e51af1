// Models of functions in f64, as the bytes of files, and their slopes: tests of the operator Gradient. Thread
// rule: thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"
#include "codegen/onnx/onnx.pb.h"
#include "tests/onnx/small_models.h"

namespace mycc::onnx {

OnnxAttribute NumberOf(double value);
OnnxNode GradientNodeOf(std::vector<std::string> inputs, std::vector<std::string> outputs,
                        const std::vector<std::string>& xs, const std::string& y,
                        const std::vector<std::string>& zs = {});

// A model that the whole importer reads. Its inputs are `a`, `b` and so on.
class FunctionModel {
 public:
  explicit FunctionModel(int64_t opset = 17);

  // Numbers between `least` and `most`, no two of them close to each other.
  FunctionModel& Input(std::vector<int64_t> shape, double least = -1.7, double most = 1.9);
  FunctionModel& Known(const std::string& name, const std::vector<int64_t>& values, int type = kInt64);
  FunctionModel& Add(const OnnxNode& node);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<NDArray>& inputs() const { return inputs_; }

  absl::StatusOr<Graph> Import(const std::vector<std::string>& outputs) const;
  absl::StatusOr<std::vector<NDArray>> Run(const std::vector<std::string>& outputs) const;

 private:
  onnx_file::Model file_;
  std::vector<NDArray> inputs_;
  std::vector<std::string> names_;
};

double SumOf(const NDArray& array);

// Compares output `gradient` with the slopes of the sum of output `y` in the elements of input `k`.
void ExpectSlopes(const Graph& graph, size_t y, size_t gradient, std::vector<NDArray> inputs, size_t k);

}  // namespace mycc::onnx
