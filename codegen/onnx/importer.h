// Reads an ONNX model as a graph of the tensor language: shapes are inferred, and the arithmetic on shapes is
// computed, on the way. Thread rule: functions are re-entrant.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"

namespace mycc {

struct OnnxOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // of inputs, by name: they fix free dimensions
};

// Errors name the file and the node: InvalidArgument for a file that is no sound model, with all free
// dimensions where some are left; Unimplemented with all operators that are not supported; NotFound for a
// missing file or missing external data.
absl::StatusOr<Graph> ImportOnnx(const std::string& file, const OnnxOptions& options);
// The same for bytes that are in memory; `file` names them in errors, and its folder has the external data.
absl::StatusOr<Graph> ImportOnnxBytes(const std::string& bytes, const std::string& file,
                                      const OnnxOptions& options);

}  // namespace mycc
