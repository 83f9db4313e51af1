// Checks of a model before its nodes are imported: the order of nodes, operators that are not supported, and
// free dimensions. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/onnx/model.h"

namespace mycc::onnx {

// An order in which every node stands behind those that it reads. `is_known`: whether a name is defined
// before the first node. InvalidArgument for a name that is defined twice or nowhere, and for a cycle.
absl::StatusOr<std::vector<size_t>> ExecutionOrder(const std::vector<OnnxNode>& nodes,
                                                   const std::function<bool(const std::string&)>& is_known);

// The names that a node reads, those of the graphs inside it and of the tensor that a Gradient is of
// included.
std::vector<std::string> ReadNames(const OnnxNode& node);

// Unimplemented with all nodes whose operator or opset is not supported, each with its node, operator and
// opset.
absl::Status CheckOperators(const OnnxModel& model);

// The shape of each input. InvalidArgument with all free dimensions that `given` leaves free, for a shape
// that does not fit a declared one, and for a name that is no input; where it is a dimension's, with the
// inputs that have the dimension.
absl::StatusOr<std::vector<std::vector<int64_t>>> InputShapes(
    const std::vector<const DeclaredValue*>& inputs,
    const std::map<std::string, std::vector<int64_t>>& given);

// InvalidArgument for a name that `option` gives and no input has; it lists all that there are.
absl::Status CheckIsInput(const std::vector<const DeclaredValue*>& inputs, const std::string& option,
                          const std::string& name);

}  // namespace mycc::onnx
