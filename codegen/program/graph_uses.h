// How the nodes of a graph use each other, and the kernel that a set of nodes makes. Both the partition and
// its alternatives are made of it. Thread rule: immutable; REQUIRES: the graph outlives it.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/graph/graph.h"

namespace mycc {

struct KernelGroup {
  std::vector<size_t> nodes;    // numbers of the graph's nodes, ascending
  std::vector<Buffer> inputs;   // what it reads from outside, in the order of the first read
  std::vector<Buffer> outputs;  // what is read outside
  bool is_chain = false;        // of stages along one axis, for one pass
};

class GraphUses {
 public:
  explicit GraphUses(const Graph& graph);

  const Graph& graph() const { return graph_; }
  // Null where the node is no stage.
  const Stage* StageAt(size_t i) const { return std::get_if<Stage>(&graph_.nodes[i].made_by); }
  // The nodes whose tensors a node reads; inputs have none.
  const std::vector<size_t>& SourcesOf(size_t i) const { return sources_[i]; }
  const std::vector<size_t>& ReadersOf(size_t i) const { return readers_[i]; }
  // Stages that do not are computed with the packing of the weights.
  bool DependsOnInput(size_t i) const { return depends_on_input_[i]; }
  bool IsOutput(size_t i) const { return is_output_[i]; }
  // Whether it is an output, or a node outside of the set reads it.
  bool IsReadOutside(size_t i, const std::unordered_set<size_t>& set) const;

  // Null where it is no reshape, or no constant, that makes the tensor.
  const Reshape* ReshapeOf(const Buffer& tensor) const { return MadeBy<Reshape>(tensor); }
  const Constant* ConstantOf(const Buffer& tensor) const { return MadeBy<Constant>(tensor); }
  // Whether a node makes it: it is no input.
  bool IsMade(const Buffer& tensor) const { return maker_.count(tensor.get()) > 0; }
  // The tensor whose memory a tensor has.
  Buffer RootOf(Buffer tensor) const;

  // The kernel of these nodes, and of the stages of constants alone that they read.
  KernelGroup MakeGroup(std::vector<size_t> nodes) const;
  // The computation of a group of stages, in normal form (normal_form.h), without a name.
  Workload WorkloadOf(const KernelGroup& group) const;

 private:
  template <typename Made>
  const Made* MadeBy(const Buffer& tensor) const {
    const auto maker = maker_.find(tensor.get());
    return maker == maker_.end() ? nullptr : std::get_if<Made>(&graph_.nodes[maker->second].made_by);
  }
  void ForceSources(size_t i);
  void ForceStages(size_t i);
  void AddConstantStages(std::vector<size_t>* nodes) const;

  const Graph& graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::vector<std::vector<size_t>> sources_, readers_;  // of each node
  std::vector<bool> depends_on_input_, is_output_;
};

}  // namespace mycc
