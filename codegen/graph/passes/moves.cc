// Stages that only move elements: transposes, slices, broadcasts. Readers read their source instead; a
// transpose in front of a reshape is pushed into the stage that makes its source; what moves nothing is
// removed.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/graph/passes/passes.h"
#include "codegen/graph/permute.h"
#include "codegen/graph/stage_reads.h"
#include "codegen/workload/check.h"

namespace mycc {
namespace {

// A plain index: an axis, a number, or a sum of such.
bool IsPlain(const Expr& index) {
  bool plain = true;
  Visit(index, [&](const ExprNode& e) {
    plain &=
        e.op == Op::kVar || e.op == Op::kConst || e.op == Op::kAdd || e.op == Op::kSub || e.op == Op::kMul;
  });
  return plain;
}

bool ReadsData(const ExprNode& load) {
  bool reads = false;
  for (const Expr& index : load.args) Visit(index, [&](const ExprNode& e) { reads |= e.op == Op::kLoad; });
  return reads;
}

bool IsMoveStage(const Stage& stage) {
  return stage.reduce == ReduceOp::kNone && stage.value->op == Op::kLoad && !ReadsData(*stage.value);
}

// Whether a read keeps far within the language's limits. Moves of moves would otherwise make indices whose
// size doubles with each.
bool IsSmallRead(const ExprNode& load) {
  constexpr int kMostNodes = 64, kMostDivisions = 4;
  int nodes = 0, divisions = 0;
  for (const Expr& index : load.args) {
    Visit(index, [&](const ExprNode& e) {
      ++nodes;
      divisions += e.op == Op::kFloorDiv || e.op == Op::kMod ? 1 : 0;
    });
  }
  return nodes <= kMostNodes && divisions <= kMostDivisions;
}

bool IsSound(const Stage& stage) {
  BufferSet readable;
  for (const Buffer& read : TensorsIn(stage.value)) readable.insert(read.get());
  return !CheckStage(stage, readable).has_value();
}

// The only tensor that an element-wise stage reads in its own shape; null for other stages.
const Buffer* OnlyElementwise(const Stage& stage) {
  if (stage.reduce != ReduceOp::kNone) return nullptr;
  const Buffer* only = nullptr;
  Visit(stage.value, [&](const ExprNode& e) {
    if (e.op == Op::kLoad && e.buffer->shape == stage.output->shape && ReadsElementwise(stage, e.buffer))
      only = &e.buffer;
  });
  return only;
}

Expr ReadThrough(const Stage& move, const ExprNode& load) {
  VarMap indices;
  for (size_t i = 0; i < move.axes.size(); ++i) indices[move.axes[i].get()] = load.args[i];
  return Substitute(move.value, indices);
}

}  // namespace

Graph RemoveCopies(Graph graph, const Target&) {
  std::unordered_map<const BufferNode*, Buffer> same;
  const auto current = [&](const Buffer& tensor) {
    const auto at = same.find(tensor.get());
    return at == same.end() ? tensor : at->second;
  };
  for (Node& node : graph.nodes) {
    if (Stage* stage = std::get_if<Stage>(&node.made_by)) {
      stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad || !same.count(e->buffer.get())) return nullptr;
        return Load(current(e->buffer), e->args);
      });
      const bool is_copy = IsMoveStage(*stage) && stage->value->buffer->shape == stage->output->shape &&
                           ReadsElementwise(*stage, stage->value->buffer);
      if (is_copy) same[stage->output.get()] = stage->value->buffer;
    }
    if (Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      reshape->source = current(reshape->source);
      if (reshape->source->shape == node.outputs[0]->shape) same[node.outputs[0].get()] = reshape->source;
    }
    if (LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
      for (Buffer& input : call->inputs) input = current(input);
    }
  }
  for (NamedTensor& output : graph.outputs) output.tensor = current(output.tensor);
  return graph;
}

Graph InlineMoves(Graph graph, const Target&) {
  std::unordered_map<const BufferNode*, const Stage*> moves;
  for (Node& node : graph.nodes) {
    Stage* stage = std::get_if<Stage>(&node.made_by);
    if (stage == nullptr) continue;
    const bool is_heavy = KindOf(*stage) == StageKind::kHeavy;
    const Expr before = stage->value;
    stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      const auto move = moves.find(e->buffer.get());
      if (move == moves.end()) return nullptr;
      Expr read = ReadThrough(*move->second, *e);
      const bool plain = std::ranges::all_of(read->args, IsPlain);
      // A contraction reads along its axes, so its indices stay simple.
      return (is_heavy && !plain) || !IsSmallRead(*read) ? nullptr : read;
    });
    if (stage->value != before && !IsSound(*stage)) stage->value = before;
    if (IsMoveStage(*stage)) moves[stage->output.get()] = stage;
  }
  return graph;
}

Graph PushTransposes(Graph graph, const Target&) {
  const auto maker = Definitions(graph);
  BufferSet pinned;
  std::unordered_map<const BufferNode*, int> readers;
  for (const NamedTensor& output : graph.outputs) pinned.insert(output.tensor.get());
  for (const Node& node : graph.nodes) {
    for (const Buffer& read : ReadsOf(node)) {
      ++readers[read.get()];
      if (!std::holds_alternative<Stage>(node.made_by)) pinned.insert(read.get());
    }
  }
  Permutations permutations;
  for (const Node& node : graph.nodes) {
    const Stage* stage = std::get_if<Stage>(&node.made_by);
    if (stage == nullptr) continue;
    const std::vector<int> permutation = PermutationOf(*stage);
    if (permutation.empty()) continue;
    const Buffer& source = stage->value->buffer;
    const auto at = maker.find(source.get());
    if (at == maker.end() || pinned.count(source.get())) continue;
    const Stage* source_stage = std::get_if<Stage>(&graph.nodes[at->second].made_by);
    // A stage that shares its rows with others is left alone: they are one kernel.
    if (source_stage == nullptr || readers[source.get()] != 1) continue;
    permutations.emplace(source.get(), permutation);
    // A tensor that the stage reads element by element is one kernel with it, so it takes the same order.
    for (const Buffer* read = OnlyElementwise(*source_stage); read != nullptr;) {
      const auto made = maker.find(read->get());
      const Stage* before =
          made == maker.end() ? nullptr : std::get_if<Stage>(&graph.nodes[made->second].made_by);
      if (before == nullptr || pinned.count(read->get()) || readers[read->get()] != 1) break;
      permutations.emplace(read->get(), permutation);
      read = OnlyElementwise(*before);
    }
  }
  return PermuteTensors(std::move(graph), permutations);
}

}  // namespace mycc
