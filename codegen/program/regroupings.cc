#include "codegen/program/regroupings.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/graph/stage_reads.h"
#include "codegen/program/partition.h"

namespace mycc {
namespace {

using Nodes = std::vector<size_t>;
using NodeSet = std::unordered_set<size_t>;

int64_t ElementsOfAll(const std::vector<Buffer>& tensors) {
  int64_t elements = 0;
  for (const Buffer& tensor : tensors) elements += tensor->num_elements();
  return elements;
}

class Regrouper {
 public:
  Regrouper(const GraphUses& uses, const KernelGroup& group, int64_t least_elements)
      : uses_(uses), least_elements_(least_elements), is_chain_(group.is_chain) {
    for (size_t i : group.nodes) {
      if (uses.DependsOnInput(i)) nodes_.push_back(i);
    }
    set_.insert(nodes_.begin(), nodes_.end());
  }

  std::vector<Regrouping> Run() {
    std::vector<Regrouping> regroupings;
    const auto add = [&](const char* kind, const std::vector<Nodes>& parts) {
      Regrouping regrouping{kind, {}};
      for (const Nodes& part : parts) regrouping.parts.push_back(uses_.MakeGroup(part));
      if (IsWorthwhile(regrouping)) regroupings.push_back(std::move(regrouping));
    };
    if (is_chain_) {
      Regrouping regrouping{"chain", PartitionNodes(uses_, nodes_)};
      if (IsWorthwhile(regrouping)) regroupings.push_back(std::move(regrouping));
    } else if (const std::optional<size_t> heavy = First(StageKind::kHeavy)) {
      if (IsContraction(*uses_.StageAt(*heavy))) add("padding", WithoutProducers(*heavy));
      add("epilogue", WithoutEpilogue(*heavy));
    } else if (const std::optional<size_t> rows = First(StageKind::kRows)) {
      add("producers", WithoutProducers(*rows));
    }
    return regroupings;
  }

 private:
  std::optional<size_t> First(StageKind kind) const {
    for (size_t i : nodes_) {
      if (uses_.StageAt(i) != nullptr && KindOf(*uses_.StageAt(i)) == kind) return i;
    }
    return std::nullopt;
  }

  static bool IsContraction(const Stage& stage) {
    return stage.reduce == ReduceOp::kSum && TensorsIn(stage.value).size() > 1;
  }

  bool IsWorthwhile(const Regrouping& regrouping) const {
    if (regrouping.parts.size() < 2) return false;
    int64_t between = 0;
    for (size_t i = 0; i + 1 < regrouping.parts.size(); ++i) {
      if (regrouping.parts[i].outputs.size() != 1) return false;
      between += ElementsOfAll(regrouping.parts[i].outputs);
    }
    return between >= least_elements_;
  }

  // The group's nodes that a node depends on, ascending.
  Nodes ProducersOf(size_t anchor) const {
    Nodes producers;
    NodeSet seen;
    Nodes open = {anchor};
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      for (size_t source : uses_.SourcesOf(i)) {
        if (set_.count(source) == 0 || !seen.insert(source).second) continue;
        producers.push_back(source);
        open.push_back(source);
      }
    }
    std::ranges::sort(producers);
    return producers;
  }

  // A part for each chain of producers, and the rest.
  std::vector<Nodes> WithoutProducers(size_t anchor) const {
    const Nodes producers = ProducersOf(anchor);
    std::unordered_map<size_t, size_t> chain_of;  // by the first node of each
    for (size_t i : producers) {
      chain_of[i] = i;
      for (size_t source : uses_.SourcesOf(i)) {
        const auto known = chain_of.find(source);
        if (known == chain_of.end()) continue;
        const size_t from = std::max(known->second, chain_of[i]), to = std::min(known->second, chain_of[i]);
        for (auto& [node, chain] : chain_of) chain = chain == from ? to : chain;
      }
    }
    std::vector<Nodes> parts;
    Nodes rest;
    for (size_t first : producers) {
      if (chain_of[first] != first) continue;
      Nodes& chain = parts.emplace_back();
      for (size_t i : producers) {
        if (chain_of[i] == first) chain.push_back(i);
      }
    }
    for (size_t i : nodes_) {
      if (chain_of.count(i) == 0) rest.push_back(i);
    }
    parts.push_back(std::move(rest));
    return parts;
  }

  // The contraction with what is cheap, up to the last single tensor; and the rest. One part where all is
  // cheap.
  std::vector<Nodes> WithoutEpilogue(size_t anchor) const {
    Nodes head = ProducersOf(anchor);
    head.push_back(anchor);
    NodeSet in_head(head.begin(), head.end());
    size_t kept = head.size();
    for (size_t i : nodes_) {
      if (in_head.count(i) > 0 || !IsCheap(i) || !ReadsOnly(i, in_head)) continue;
      head.push_back(i);
      in_head.insert(i);
      const auto outputs =
          std::ranges::count_if(head, [&](size_t node) { return uses_.IsReadOutside(node, in_head); });
      if (outputs == 1) kept = head.size();
    }
    if (head.size() == nodes_.size()) return {nodes_};
    head.resize(kept);
    in_head = NodeSet(head.begin(), head.end());
    Nodes tail;
    for (size_t i : nodes_) {
      if (in_head.count(i) == 0) tail.push_back(i);
    }
    std::ranges::sort(head);
    return {head, tail};
  }

  // Whether the node reads nothing of the group that is not in the head.
  bool ReadsOnly(size_t i, const NodeSet& head) const {
    const std::vector<size_t>& sources = uses_.SourcesOf(i);
    return std::ranges::all_of(
        sources, [&](size_t source) { return set_.count(source) == 0 || head.count(source) > 0; });
  }

  bool IsCheap(size_t i) const {
    const Stage& stage = *uses_.StageAt(i);
    bool cheap = true;
    Visit(stage.value, [&](const ExprNode& e) {
      cheap = cheap && !IsTranscendental(e.op);
      if (e.op == Op::kLoad && e.buffer->shape == stage.output->shape)
        cheap = cheap && IsMadeHere(i, e.buffer.get());
    });
    return cheap;
  }

  // Whether a node of the group, or of constants alone, makes what the node reads.
  bool IsMadeHere(size_t reader, const BufferNode* tensor) const {
    for (size_t source : uses_.SourcesOf(reader)) {
      const std::vector<Buffer>& outputs = uses_.graph().nodes[source].outputs;
      const bool makes =
          std::ranges::any_of(outputs, [&](const Buffer& output) { return output.get() == tensor; });
      if (makes) return set_.count(source) > 0 || !uses_.DependsOnInput(source);
    }
    return false;
  }

  const GraphUses& uses_;
  const int64_t least_elements_;
  const bool is_chain_;
  Nodes nodes_;  // those that are not of constants alone, ascending
  NodeSet set_;
};

}  // namespace

std::vector<Regrouping> RegroupingsOf(const GraphUses& uses, const KernelGroup& group,
                                      int64_t least_elements) {
  return Regrouper(uses, group, least_elements).Run();
}

}  // namespace mycc
