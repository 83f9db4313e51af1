#include "codegen/program/graph_uses.h"

#include <algorithm>

#include "codegen/program/normal_form.h"

namespace mycc {

GraphUses::GraphUses(const Graph& graph) : graph_(graph), maker_(Definitions(graph)) {
  const size_t count = graph.nodes.size();
  sources_.resize(count);
  readers_.resize(count);
  depends_on_input_.resize(count);
  is_output_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    for (const Buffer& read : ReadsOf(graph.nodes[i])) {
      const auto found = maker_.find(read.get());
      depends_on_input_[i] =
          depends_on_input_[i] || found == maker_.end() || depends_on_input_[found->second];
      if (found == maker_.end()) continue;
      sources_[i].push_back(found->second);
      readers_[found->second].push_back(i);
    }
    if (StageAt(i) == nullptr && !std::holds_alternative<Constant>(graph.nodes[i].made_by)) ForceSources(i);
  }
  for (const NamedTensor& output : graph.outputs) {
    const auto found = maker_.find(output.tensor.get());
    if (found == maker_.end()) continue;
    is_output_[found->second] = true;
    // So is a model's output that is made of constants alone.
    ForceStages(found->second);
  }
}

// The tensor that a reshape or a library call reads is in memory, also where it is made of constants alone.
void GraphUses::ForceSources(size_t i) {
  for (size_t source : sources_[i]) ForceStages(source);
  depends_on_input_[i] = true;
}

void GraphUses::ForceStages(size_t i) {
  if (StageAt(i) != nullptr) depends_on_input_[i] = true;
}

bool GraphUses::IsReadOutside(size_t i, const std::unordered_set<size_t>& set) const {
  return IsOutput(i) ||
         std::ranges::any_of(readers_[i], [&](size_t reader) { return set.count(reader) == 0; });
}

// Stages of constants alone belong to each group that reads them.
void GraphUses::AddConstantStages(std::vector<size_t>* nodes) const {
  std::unordered_set<size_t> set(nodes->begin(), nodes->end());
  for (size_t next = 0; next < nodes->size(); ++next) {
    for (size_t source : sources_[(*nodes)[next]]) {
      if (DependsOnInput(source) || StageAt(source) == nullptr) continue;
      if (set.insert(source).second) nodes->push_back(source);
    }
  }
  std::ranges::sort(*nodes);
}

Buffer GraphUses::RootOf(Buffer tensor) const {
  while (const Reshape* reshape = ReshapeOf(tensor)) tensor = reshape->source;
  return tensor;
}

KernelGroup GraphUses::MakeGroup(std::vector<size_t> nodes) const {
  AddConstantStages(&nodes);
  KernelGroup group;
  BufferSet made, seen;
  const std::unordered_set<size_t> set(nodes.begin(), nodes.end());
  for (size_t i : nodes) {
    for (const Buffer& output : graph_.nodes[i].outputs) made.insert(output.get());
  }
  for (size_t i : nodes) {
    const Node& node = graph_.nodes[i];
    for (const Buffer& read : ReadsOf(node)) {
      if (!made.count(read.get()) && seen.insert(read.get()).second) group.inputs.push_back(read);
    }
    if (StageAt(i) == nullptr || (IsReadOutside(i, set) && DependsOnInput(i)))
      group.outputs.insert(group.outputs.end(), node.outputs.begin(), node.outputs.end());
  }
  group.nodes = std::move(nodes);
  return group;
}

Workload GraphUses::WorkloadOf(const KernelGroup& group) const {
  Workload workload;
  for (const Buffer& input : group.inputs)
    workload.inputs.push_back({input, ConstantOf(RootOf(input)) != nullptr});
  workload.outputs = group.outputs;
  for (size_t i : group.nodes) workload.stages.push_back(*StageAt(i));
  return group.is_chain ? NormalFormWithoutImages(std::move(workload)) : NormalForm(std::move(workload));
}

}  // namespace mycc
