// Dimensions of one element between the kernels of a GPU: [1,197,768] becomes [197,768], and the [1,197,1] of
// a mean [197]. Exporters write a batch of one and the dimensions that reductions keep. Without them every
// stage of a row has the row's axes alone, so that one rule takes all of them, and products keep what
// follows.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

bool HasUnits(const std::vector<int64_t>& shape) {
  const auto is_unit = [](int64_t extent) { return extent == 1; };
  return std::any_of(shape.begin(), shape.end(), is_unit) &&
         !std::all_of(shape.begin(), shape.end(), is_unit);
}

// The values that stand at a dimension of more than one element.
template <typename T>
std::vector<T> WithoutUnits(const std::vector<T>& values, const std::vector<int64_t>& shape) {
  std::vector<T> kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) kept.push_back(values[d]);
  }
  return kept;
}

class UnitDropper {
 public:
  explicit UnitDropper(const Graph& graph) {
    for (const NamedTensor& output : graph.outputs) outputs_.insert(output.tensor.get());
    for (const Node& node : graph.nodes) {
      const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by);
      if (call == nullptr) continue;
      for (const Buffer& input : call->inputs) pinned_.insert(input.get());
    }
  }

  Graph Run(Graph graph) {
    for (Node& node : graph.nodes) {
      if (Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
        reshape->source = Current(reshape->source);
        const Buffer& old = node.outputs[0];
        if (MayDrop(old) && !outputs_.count(old.get())) node.outputs[0] = Dropped(old);
      }
      Constant* constant = std::get_if<Constant>(&node.made_by);
      const Buffer& made = node.outputs[0];
      if (constant != nullptr && MayDrop(made) && !outputs_.count(made.get())) {
        NDArray value = **constant;
        value.shape = WithoutUnits(value.shape, value.shape);
        node.outputs[0] = Dropped(made);
        node.made_by = std::make_shared<const NDArray>(std::move(value));
      }
      Stage* stage = std::get_if<Stage>(&node.made_by);
      if (stage != nullptr) ReadCurrent(stage);
      if (stage == nullptr || !MayDrop(stage->output)) {
        nodes_.push_back(std::move(node));
        continue;
      }
      const Buffer old = stage->output;
      DropAxes(stage);
      node.outputs[0] = stage->output;
      Node reshape{{old}, Reshape{stage->output}, node.origins};
      nodes_.push_back(std::move(node));
      if (outputs_.count(old.get())) nodes_.push_back(std::move(reshape));
    }
    graph.nodes = std::move(nodes_);
    return graph;
  }

 private:
  bool MayDrop(const Buffer& tensor) const { return HasUnits(tensor->shape) && !pinned_.count(tensor.get()); }

  Buffer Current(const Buffer& tensor) const {
    const auto at = dropped_.find(tensor.get());
    return at == dropped_.end() ? tensor : at->second;
  }

  Buffer Dropped(const Buffer& old) {
    const Buffer tensor = MakeBuffer(old->name + "_d", old->dtype, WithoutUnits(old->shape, old->shape));
    dropped_[old.get()] = tensor;
    return tensor;
  }

  void ReadCurrent(Stage* stage) const {
    stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || !dropped_.count(e->buffer.get())) return nullptr;
      return Load(dropped_.at(e->buffer.get()), WithoutUnits(e->args, e->buffer->shape));
    });
  }

  void DropAxes(Stage* stage) {
    VarMap zeros;
    for (const Var& axis : stage->axes) {
      if (axis->extent == 1) zeros[axis.get()] = IntConst(0);
    }
    stage->value = Substitute(stage->value, zeros);
    stage->axes = WithoutUnits(stage->axes, stage->output->shape);
    stage->output = Dropped(stage->output);
  }

  std::unordered_set<const BufferNode*> outputs_, pinned_;  // of the model; that library calls read
  std::unordered_map<const BufferNode*, Buffer> dropped_;   // what stands for a tensor
  std::vector<Node> nodes_;
};

}  // namespace

Graph DropUnitAxes(Graph graph, const Target& target) {
  if (target.kind != TargetKind::kCuda) return graph;
  graph = RemoveCopies(UnitDropper(graph).Run(std::move(graph)), target);
  RemoveDeadNodes(&graph);
  return graph;
}

}  // namespace mycc
