// Element-wise stages behind a reshape of a product take the product's shape, and the reshape moves behind
// them, for GPUs: exporters multiply [4096,768], and add the bias to [32,128,768]. A kernel of the product
// then ends with what follows it, and its result is not stored before that.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// The load is of a tensor of the stage's shape, at the stage's own place.
bool IsOwnElement(const Expr& load, const Stage& stage) {
  if (load->op != Op::kLoad || load->buffer->shape != stage.output->shape) return false;
  for (size_t d = 0; d < load->args.size(); ++d) {
    const Expr& index = load->args[d];
    const bool is_axis = index->op == Op::kVar && index->var == stage.axes[d];
    if (!is_axis && !(stage.axes[d]->extent == 1 && IsConstInt(index, int64_t{0}))) return false;
  }
  return true;
}

class ReshapeFollower {
 public:
  Graph Run(Graph graph) {
    for (Node& node : graph.nodes) {
      if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by))
        sources_[node.outputs[0].get()] = SourceOf(reshape->source);
      Stage* stage = std::get_if<Stage>(&node.made_by);
      std::optional<Stage> moved;
      if (stage != nullptr && stage->reduce == ReduceOp::kNone) moved = Moved(*stage);
      if (moved) {
        const Buffer old = stage->output;
        *stage = *std::move(moved);
        node.outputs[0] = stage->output;
        sources_[old.get()] = stage->output;
        NoteTail(*stage);
        Node reshape{{old}, Reshape{stage->output}, node.origins};
        nodes_.push_back(std::move(node));
        nodes_.push_back(std::move(reshape));
        continue;
      }
      if (stage != nullptr) NoteTail(*stage);
      nodes_.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes_);
    return graph;
  }

 private:
  Buffer SourceOf(const Buffer& tensor) const {
    const auto at = sources_.find(tensor.get());
    return at == sources_.end() ? tensor : at->second;
  }

  void NoteTail(const Stage& stage) {
    bool is_tail = KindOf(stage) == StageKind::kHeavy;
    if (stage.reduce == ReduceOp::kNone) {
      for (const Buffer& read : TensorsIn(stage.value))
        is_tail |= tails_.count(read.get()) > 0 && ReadsElementwise(stage, read);
    }
    if (is_tail) tails_.insert(stage.output.get());
  }

  // The tensor in whose shape the stage can follow a product.
  Buffer TailOf(const Stage& stage) const {
    Buffer found;
    for (const Buffer& read : TensorsIn(stage.value)) {
      const Buffer source = SourceOf(read);
      if (found == nullptr && tails_.count(source.get()) && source->shape != stage.output->shape &&
          ReadsElementwise(stage, read))
        found = source;
    }
    return found;
  }

  // The stage in the shape of the product that it follows; nullopt where there is none, or where the stage
  // reads something along an axis that the shape lacks.
  std::optional<Stage> Moved(const Stage& stage) {
    const Buffer tail = TailOf(stage);
    if (tail == nullptr) return std::nullopt;
    const std::vector<int64_t>&from = stage.output->shape, &to = tail->shape;
    Stage moved = stage;
    moved.axes.clear();
    for (size_t i = 0; i < to.size(); ++i) moved.axes.push_back(MakeVar(absl::StrCat("a", i), to[i]));
    std::vector<Expr> refs;
    for (const Var& axis : moved.axes) refs.push_back(VarRef(axis));
    VarMap common;  // axes that both shapes end with
    for (size_t k = 1; k <= std::min(from.size(), to.size()) && from[from.size() - k] == to[to.size() - k];
         ++k)
      common[stage.axes[from.size() - k].get()] = refs[to.size() - k];
    std::vector<Node> reshapes;
    std::unordered_map<const BufferNode*, Buffer> shaped;
    moved.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
      if (!IsOwnElement(e, stage)) return nullptr;
      Buffer& other = shaped[e->buffer.get()];
      if (other == nullptr) other = SourceOf(e->buffer);
      if (other->shape != to) {
        const Buffer source = other;
        other = MakeBuffer(absl::StrCat(e->buffer->name, "_f", count_++), source->dtype, to);
        reshapes.push_back({{other}, Reshape{source}, {}});
      }
      return Load(other, refs);
    });
    bool is_free = true;
    Visit(moved.value, [&](const ExprNode& e) {
      const bool is_own = e.op == Op::kVar && std::count(stage.axes.begin(), stage.axes.end(), e.var) > 0;
      is_free &= !is_own || common.count(e.var.get()) > 0;
    });
    if (!is_free) return std::nullopt;
    moved.value = Substitute(moved.value, common);
    moved.output = MakeBuffer(absl::StrCat(stage.output->name, "_f"), stage.output->dtype, to);
    for (Node& reshape : reshapes) {
      sources_[reshape.outputs[0].get()] = std::get<Reshape>(reshape.made_by).source;
      nodes_.push_back(std::move(reshape));
    }
    return moved;
  }

  std::unordered_map<const BufferNode*, Buffer> sources_;  // of reshapes, through others
  std::unordered_set<const BufferNode*> tails_;            // products, and what follows them
  std::vector<Node> nodes_;
  int64_t count_ = 0;
};

}  // namespace

Graph FollowReshapes(Graph graph, const Target& target) {
  return target.kind == TargetKind::kCuda ? ReshapeFollower().Run(std::move(graph)) : graph;
}

}  // namespace mycc
