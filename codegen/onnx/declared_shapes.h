// The shapes that a model declares for its outputs, and that follow from them for the values before. Internal
// to this folder. Thread rule: a pure function.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/onnx/model.h"

namespace mycc::onnx {

// Fixed shapes by the names of values: those of the graph's outputs, and of the values that have the same
// shape whatever it is, by nodes that keep the shape of a value, alone, with a number, or with another one of
// that shape.
std::unordered_map<std::string, std::vector<int64_t>> DeclaredShapesOf(const OnnxGraph& graph);

}  // namespace mycc::onnx
