#include "codegen/program/stream_groups.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/program/normal_form.h"
#include "codegen/workload/stream_chain.h"

namespace mycc {
namespace {

// All stages of a graph as one workload.
struct StagesOfGraph {
  Workload workload;
  std::vector<size_t> nodes;  // of each stage
};

StagesOfGraph StagesOf(const GraphUses& uses) {
  StagesOfGraph all;
  BufferSet known;
  for (size_t i = 0; i < uses.graph().nodes.size(); ++i) {
    const Stage* stage = uses.StageAt(i);
    if (stage == nullptr) continue;
    for (const Buffer& read : ReadsOf(uses.graph().nodes[i])) {
      if (known.insert(read.get()).second) all.workload.inputs.push_back({read});
    }
    known.insert(stage->output.get());
    const std::vector<size_t>& readers = uses.ReadersOf(i);
    const bool is_kept = uses.IsOutput(i) || std::ranges::any_of(readers, [&](size_t reader) {
                           return uses.StageAt(reader) == nullptr;
                         });
    if (is_kept) all.workload.outputs.push_back(stage->output);
    all.workload.stages.push_back(*stage);
    all.nodes.push_back(i);
  }
  return all;
}

}  // namespace

std::vector<std::vector<size_t>> StreamChainsOf(const GraphUses& uses) {
  StagesOfGraph all = StagesOf(uses);
  const Workload workload = WithoutUnits(std::move(all.workload));
  const StageLinks links(workload);
  std::vector<std::vector<size_t>> chains;
  std::unordered_set<int> taken;
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    const std::optional<StreamChain> chain = FindStreamChain(workload, links, s);
    if (!chain) continue;
    const std::vector<int> members = chain->Members();
    if (std::ranges::any_of(members, [&](int m) { return taken.count(m) > 0; })) continue;
    taken.insert(members.begin(), members.end());
    std::vector<size_t>& nodes = chains.emplace_back();
    for (const int m : members) nodes.push_back(all.nodes[m]);
  }
  return chains;
}

}  // namespace mycc
