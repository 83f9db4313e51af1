#include "codegen/program/partition.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "codegen/graph/stage_reads.h"
#include "codegen/program/stream_groups.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

constexpr size_t kMostStages = 48;  // of a group

using Nodes = std::vector<size_t>;

class Partitioner {
 public:
  explicit Partitioner(const GraphUses& uses) : graph_(uses.graph()), uses_(uses) {
    group_of_.assign(graph_.nodes.size(), -1);
    is_cut_.assign(graph_.nodes.size(), true);
  }

  std::vector<KernelGroup> RunOn(const Nodes& nodes) {
    is_cut_.assign(graph_.nodes.size(), false);
    for (size_t i : nodes) is_cut_[i] = true;
    return Run({});
  }

  std::vector<KernelGroup> Run(const StreamTest& streams) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_cut_[i] && std::holds_alternative<LibraryCall>(graph_.nodes[i].made_by)) NewGroup({i});
    }
    if (streams) TakeChains(streams);
    ForEachStage([&](size_t i, const Stage& stage) {
      if (KindOf(stage) == StageKind::kHeavy) NewGroup(GrowHeavy(i));
    });
    ForEachStage([&](size_t i, const Stage& stage) {
      if (KindOf(stage) == StageKind::kRows) NewGroup(GrowRows(i, stage));
    });
    ForEachStage([&](size_t i, const Stage& stage) {
      NewGroup(
          Grow({i}, [&](size_t, const Stage& next) { return next.output->shape == stage.output->shape; }));
    });
    MergeIntoReaders();
    std::vector<KernelGroup> groups;
    for (const std::vector<size_t>& nodes : InOrder()) {
      groups.push_back(uses_.MakeGroup(nodes));
      groups.back().is_chain = chain_starts_.count(nodes.front()) > 0;
    }
    return groups;
  }

 private:
  using May = std::function<bool(size_t, const Stage&)>;

  const Stage* StageAt(size_t i) const { return uses_.StageAt(i); }
  bool IsFree(size_t i) const {
    return is_cut_[i] && StageAt(i) != nullptr && group_of_[i] < 0 && uses_.DependsOnInput(i);
  }

  template <typename Function>
  void ForEachStage(const Function& function) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (IsFree(i)) function(i, *StageAt(i));
    }
  }

  // Chains along one axis with one result, and what is cheap and only they read, such as a mask.
  void TakeChains(const StreamTest& streams) {
    std::unordered_map<std::string, bool> known;  // by canonical text
    for (Nodes nodes : StreamChainsOf(uses_)) {
      if (!std::ranges::all_of(nodes, [&](size_t i) { return IsFree(i); })) continue;
      PullProducers(&nodes, [&](size_t i, size_t reader) {
        return KindOf(*StageAt(reader)) == StageKind::kInjective && IsCheap(*StageAt(i));
      });
      if (OutputsOf({nodes.begin(), nodes.end()}) != 1) continue;
      KernelGroup group = uses_.MakeGroup(nodes);
      group.is_chain = true;
      const Workload workload = uses_.WorkloadOf(group);
      const auto [at, is_new] = known.emplace(CanonicalText(workload), false);
      if (is_new) at->second = streams(workload);
      if (!at->second) continue;
      NewGroup(std::move(nodes));
      chain_starts_.insert(groups_.back().front());
    }
  }

  // The tensors of a set that are read outside of it.
  size_t OutputsOf(const std::unordered_set<size_t>& set) const {
    return std::ranges::count_if(set, [&](size_t i) { return uses_.IsReadOutside(i, set); });
  }

  // Adds readers to the set, in the graph's order, and returns the largest set on the way with one output. No
  // reader may depend on the set through a node outside of it.
  Nodes Grow(const Nodes& begin, const May& may) const {
    std::unordered_set<size_t> set(begin.begin(), begin.end());
    Nodes best = begin, now = begin;
    std::unordered_set<size_t> tainted;  // nodes outside that depend on the set
    std::priority_queue<size_t, Nodes, std::greater<>> open;
    std::unordered_set<size_t> seen(begin.begin(), begin.end());
    const auto push_readers = [&](size_t i) {
      for (size_t reader : uses_.ReadersOf(i)) {
        if (seen.insert(reader).second) open.push(reader);
      }
    };
    for (size_t i : begin) push_readers(i);
    // A long chain outside of the set says no more than a short one.
    size_t outside = 0;
    while (!open.empty() && set.size() < kMostStages && outside < 4 * kMostStages) {
      const size_t i = open.top();
      open.pop();
      if (CanJoin(i, set, tainted) && may(i, *StageAt(i))) {
        set.insert(i);
        now.push_back(i);
        if (OutputsOf(set) == 1) best = now;
      } else {
        tainted.insert(i);
        ++outside;
      }
      push_readers(i);
    }
    return best;
  }

  bool CanJoin(size_t i, const std::unordered_set<size_t>& set,
               const std::unordered_set<size_t>& tainted) const {
    if (!IsFree(i)) return false;
    for (size_t source : uses_.SourcesOf(i)) {
      if (tainted.count(source)) return false;
      if (set.count(source) && KindOf(*StageAt(i)) == StageKind::kHeavy) return false;
    }
    return true;
  }

  // Injective producers that only the set reads, and that `may` allows for one of their readers.
  void PullProducers(Nodes* nodes, const std::function<bool(size_t producer, size_t reader)>& may) const {
    std::unordered_set<size_t> set(nodes->begin(), nodes->end());
    for (size_t next = 0; next < nodes->size() && nodes->size() < kMostStages; ++next) {
      for (size_t i : uses_.SourcesOf((*nodes)[next])) {
        if (set.count(i) || !IsFree(i)) continue;
        if (KindOf(*StageAt(i)) != StageKind::kInjective || uses_.IsReadOutside(i, set)) continue;
        if (!may(i, (*nodes)[next])) continue;
        set.insert(i);
        nodes->push_back(i);
      }
    }
  }

  // A stage that moves elements and computes nothing.
  static bool IsMove(const Stage& stage) {
    const Expr* value = &stage.value;
    if ((*value)->op == Op::kSelect) {
      const Expr& other = (*value)->args[2];
      if (other->op != Op::kConst && other->op != Op::kLoad) return false;
      value = &(*value)->args[1];
    }
    return (*value)->op == Op::kLoad;
  }

  Nodes GrowHeavy(size_t anchor) const {
    Nodes nodes = {anchor};
    PullProducers(&nodes, [&](size_t i, size_t) { return IsMove(*StageAt(i)); });
    const std::vector<int64_t>& shape = StageAt(anchor)->output->shape;
    return Grow(nodes, [&](size_t, const Stage& stage) {
      return KindOf(stage) == StageKind::kInjective && stage.output->shape == shape &&
             ReadsOwnElements(stage);
    });
  }

  // Whether a stage reads tensors of its own shape at its own axes alone.
  static bool ReadsOwnElements(const Stage& stage) {
    for (const Buffer& read : TensorsIn(stage.value)) {
      if (read->shape == stage.output->shape && !ReadsElementwise(stage, read)) return false;
    }
    return true;
  }

  Nodes GrowRows(size_t first, const Stage& reduction) const {
    const std::vector<int64_t>& rows = reduction.output->shape;
    int64_t points = reduction.output->num_elements();
    for (const Var& axis : reduction.reduce_axes) points *= axis->extent;
    Nodes nodes = {first};
    PullProducers(&nodes, [](size_t, size_t) { return true; });
    return Grow(nodes, [&](size_t, const Stage& stage) {
      if (KindOf(stage) == StageKind::kHeavy) return false;
      if (KindOf(stage) == StageKind::kRows)
        return stage.output->num_elements() == reduction.output->num_elements();
      return stage.output->shape == rows || stage.output->num_elements() == points ||
             stage.output->num_elements() == reduction.output->num_elements();
    });
  }

  void NewGroup(Nodes nodes) {
    std::ranges::sort(nodes);
    for (size_t i : nodes) group_of_[i] = static_cast<int64_t>(groups_.size());
    groups_.push_back(std::move(nodes));
  }

  // Element-wise groups that only one other reads become part of it, where each of their elements is still
  // computed once: a chain that grows from its first stage lacks the other operands of its later ones. A
  // negated half of a rotated tensor is one.
  void MergeIntoReaders() {
    for (size_t g = groups_.size(); g-- > 0;) {
      const std::optional<size_t> into = OnlyReaderOf(groups_[g]);
      if (!into) continue;
      for (size_t i : groups_[g]) group_of_[i] = static_cast<int64_t>(*into);
      Nodes& nodes = groups_[*into];
      nodes.insert(nodes.end(), groups_[g].begin(), groups_[g].end());
      std::ranges::sort(nodes);
      groups_[g].clear();
    }
    // Empty groups are none.
    groups_.erase(std::remove_if(groups_.begin(), groups_.end(), [](const Nodes& n) { return n.empty(); }),
                  groups_.end());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t i : groups_[g]) group_of_[i] = static_cast<int64_t>(g);
    }
  }

  // The group that a group can become part of.
  std::optional<size_t> OnlyReaderOf(const Nodes& nodes) const {
    if (!IsChain(nodes)) return std::nullopt;
    const size_t last = nodes.back();
    if (uses_.IsOutput(last) || uses_.ReadersOf(last).empty()) return std::nullopt;
    const int64_t into = group_of_[uses_.ReadersOf(last)[0]];
    const auto& readers = uses_.ReadersOf(last);
    if (!std::ranges::all_of(readers, [&](size_t i) { return group_of_[i] == into; })) return std::nullopt;
    if (into < 0 || nodes.size() + groups_[into].size() > kMostStages || !IsChain(groups_[into]))
      return std::nullopt;
    if (!IsReadOnce(last)) return std::nullopt;
    // A reader of more elements computes what it reads as many times more.
    const int64_t made = StageAt(last)->output->num_elements();
    const int64_t read = StageAt(readers[0])->output->num_elements();
    const bool cheap = std::ranges::all_of(nodes, [&](size_t i) { return IsCheap(*StageAt(i)); });
    return read <= made || (read <= 2 * made && cheap) ? std::optional<size_t>(into) : std::nullopt;
  }

  // Whether the stages of a group are element-wise, and read what they make so that each element is computed
  // once. Only the last one is read outside.
  bool IsChain(const Nodes& nodes) const {
    return !nodes.empty() && std::ranges::all_of(nodes, [&](size_t i) {
      const Stage* stage = StageAt(i);
      if (stage == nullptr || KindOf(*stage) != StageKind::kInjective) return false;
      if (i == nodes.back()) return true;
      const bool is_inside =
          !uses_.IsOutput(i) && std::ranges::all_of(uses_.ReadersOf(i), [&](size_t reader) {
            return group_of_[reader] == group_of_[i];
          });
      return is_inside && IsReadOnce(i);
    });
  }

  // Whether all readers of a tensor are stages that read it at their own axes, or it is read in one place.
  bool IsReadOnce(size_t i) const {
    const Buffer& tensor = StageAt(i)->output;
    int loads = 0;
    bool elementwise = true;
    for (size_t reader : uses_.ReadersOf(i)) {
      const Stage* stage = StageAt(reader);
      if (stage == nullptr) return false;
      elementwise &= ReadsElementwise(*stage, tensor);
      Visit(stage->value, [&](const ExprNode& e) { loads += e.op == Op::kLoad && e.buffer == tensor; });
    }
    return elementwise || loads == 1;
  }

  // Whether a stage takes a few instructions for an element.
  static bool IsCheap(const Stage& stage) {
    bool cheap = true;
    Visit(stage.value, [&](const ExprNode& e) {
      cheap &= e.op == Op::kLoad || e.op == Op::kConst || e.op == Op::kVar || e.op == Op::kAdd ||
               e.op == Op::kSub || e.op == Op::kMul || e.op == Op::kNeg || e.op == Op::kSelect ||
               e.op == Op::kLt || e.op == Op::kLe;
    });
    return cheap;
  }

  // The groups that a node's value comes from, through reshapes.
  void AddSources(size_t i, std::vector<size_t>* sources) const {
    for (size_t source : uses_.SourcesOf(i)) {
      const int64_t group = group_of_[source];
      if (group >= 0) {
        sources->push_back(group);
      } else if (is_cut_[source]) {
        AddSources(source, sources);
      }
    }
  }

  // Groups behind those that they read; the earliest node first.
  std::vector<Nodes> InOrder() const {
    std::vector<std::vector<size_t>> readers(groups_.size());
    std::vector<size_t> missing(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<size_t> sources;
      for (size_t i : groups_[g]) AddSources(i, &sources);
      std::ranges::sort(sources);
      sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
      for (size_t source : sources) {
        if (source == g) continue;
        readers[source].push_back(g);
        ++missing[g];
      }
    }
    const auto later = [&](size_t a, size_t b) { return groups_[a].back() > groups_[b].back(); };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (missing[g] == 0) ready.push(g);
    }
    std::vector<Nodes> order;
    while (!ready.empty()) {
      const size_t g = ready.top();
      ready.pop();
      order.push_back(groups_[g]);
      for (size_t reader : readers[g]) {
        if (--missing[reader] == 0) ready.push(reader);
      }
    }
    return order;
  }

  const Graph& graph_;
  const GraphUses& uses_;
  std::vector<bool> is_cut_;       // whether the node is one of those to group
  std::vector<int64_t> group_of_;  // -1: none yet
  std::vector<Nodes> groups_;
  std::unordered_set<size_t> chain_starts_;  // the first nodes of chains
};

}  // namespace

std::vector<KernelGroup> PartitionGraph(const GraphUses& uses, const StreamTest& streams) {
  return Partitioner(uses).Run(streams);
}

std::vector<KernelGroup> PartitionGraph(const Graph& graph, const StreamTest& streams) {
  return PartitionGraph(GraphUses(graph), streams);
}

std::vector<KernelGroup> PartitionNodes(const GraphUses& uses, const std::vector<size_t>& nodes) {
  return Partitioner(uses).RunOn(nodes);
}

}  // namespace mycc
