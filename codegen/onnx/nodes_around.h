// The graph that a node stands in while it is imported, for an operator that reads its other nodes and adds
// some: Gradient. Internal to this folder. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/onnx/model.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

using Opsets = std::map<std::string, int64_t>;  // by domain

struct ImportedNode {
  const OnnxNode* node;
  const Opsets* opsets;
};

class NodesAround {
 public:
  virtual ~NodesAround() = default;
  // The nodes imported and added so far, in that order.
  virtual const std::vector<ImportedNode>& nodes() const = 0;
  // The place in nodes() of the one that makes a tensor; a Gradient stands behind a node that is recorded for
  // each of its outputs.
  virtual std::optional<size_t> MakerOf(const std::string& name) const = 0;
  // The value of a name; null without one.
  virtual const TypedTensor* Find(const std::string& name) const = 0;
  // Imports one more node. The opsets have to live as long as the graph.
  virtual absl::Status Add(OnnxNode node, const Opsets& opsets) = 0;
  // Lists a node that makes what the node which is being imported returns.
  virtual void Record(OnnxNode node, const Opsets& opsets) = 0;
};

}  // namespace mycc::onnx
