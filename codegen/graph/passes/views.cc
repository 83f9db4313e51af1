// Reshapes of moved elements: a slice, a transpose or both, and then a reshape, are often one view of the
// tensor in front of them, whose dimensions are apart by so many elements each. Such a reshape becomes a
// stage that reads that tensor in a shape which has the view's dimensions. Products read through it, where a
// reshape would need the moved elements in memory: exporters of attention write the heads of queries so.
//
//   t[b,i] = p[b,i+96];  y = reshape(t: [64,96]) to [64,4,24]
//   ->  r = reshape(p: [64,288]) to [64,12,24];  y[b,h,d] = r[b,h+4,d]
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/permute.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// Elements of `root`: the first one's number, and how far apart those of each dimension are.
struct View {
  Buffer root;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
  bool moves = false;  // whether there is more between than reshapes
};

View WholeOf(const Buffer& tensor) {
  View view{tensor, tensor->shape, std::vector<int64_t>(tensor->rank(), 1)};
  for (int64_t d = tensor->rank() - 2; d >= 0; --d) view.strides[d] = view.strides[d + 1] * view.shape[d + 1];
  return view;
}

// The view in another shape; nullopt where a dimension of it would have elements at uneven distances.
std::optional<View> Reshaped(View view, const std::vector<int64_t>& shape) {
  struct Run {
    int64_t extent, stride;
  };
  std::vector<Run> runs;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    if (!runs.empty() && runs.back().stride == view.strides[d] * view.shape[d]) {
      runs.back() = {runs.back().extent * view.shape[d], view.strides[d]};
    } else {
      runs.push_back({view.shape[d], view.strides[d]});
    }
  }
  view.shape = shape;
  view.strides.assign(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (runs.empty() || runs.back().extent % shape[d] != 0) return std::nullopt;
    view.strides[d] = runs.back().stride;
    runs.back() = {runs.back().extent / shape[d], runs.back().stride * shape[d]};
    if (runs.back().extent == 1) runs.pop_back();
  }
  return view;
}

// The view that a stage has of the tensor that it reads; nullopt where it does more than move elements.
std::optional<View> Moved(const View& view, const Stage& stage) {
  View moved{view.root, stage.output->shape, std::vector<int64_t>(stage.axes.size(), 0), view.offset, true};
  for (size_t d = 0; d < stage.value->args.size(); ++d) {
    Expr index = stage.value->args[d];
    if (index->op == Op::kAdd && index->args[1]->op == Op::kConst) {
      moved.offset += index->args[1]->value.i * view.strides[d];
      index = index->args[0];
    }
    if (index->op == Op::kConst) {
      moved.offset += index->value.i * view.strides[d];
      continue;
    }
    const auto axis = index->op == Op::kVar ? std::find(stage.axes.begin(), stage.axes.end(), index->var)
                                            : stage.axes.end();
    if (axis == stage.axes.end()) return std::nullopt;
    moved.strides[axis - stage.axes.begin()] += view.strides[d];
  }
  return moved;
}

// A shape of the root in which each dimension of the view is one, and the indices of the view's elements in
// it.
struct Split {
  std::vector<int64_t> shape;
  std::vector<Var> axes;
  std::vector<Expr> indices;
};

std::optional<Split> SplitRoot(const View& view) {
  std::vector<size_t> order;  // the dimensions that are apart in the root, those furthest apart first
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] > 1 && view.strides[d] > 0) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return view.strides[a] > view.strides[b]; });
  Split split;
  for (size_t d = 0; d < view.shape.size(); ++d)
    split.axes.push_back(MakeVar(absl::StrCat("a", d), view.shape[d]));
  int64_t outer = view.root->num_elements(), offset = view.offset;
  for (size_t d : order) {
    const int64_t stride = view.strides[d];
    if (outer % stride != 0) return std::nullopt;
    const int64_t extent = outer / stride, begin = offset / stride;
    if (begin + view.shape[d] > extent) return std::nullopt;
    split.shape.push_back(extent);
    const Expr axis = VarRef(split.axes[d]);
    split.indices.push_back(begin == 0 ? axis : axis + begin);
    offset %= stride;
    outer = stride;
  }
  if (outer > 1) {
    split.shape.push_back(outer);
    split.indices.push_back(IntConst(offset));
  }
  return split;
}

class ViewFinder {
 public:
  explicit ViewFinder(const Graph& graph) : graph_(graph), maker_(Definitions(graph)) {}

  Graph Run() {
    Graph after = graph_;
    after.nodes.clear();
    for (const Node& node : graph_.nodes) {
      Note(node);
      const bool is_reshape = std::holds_alternative<Reshape>(node.made_by);
      const auto view = is_reshape ? views_.find(node.outputs[0].get()) : views_.end();
      std::optional<Split> split;
      if (view != views_.end() && view->second.moves) split = SplitRoot(view->second);
      if (!split) {
        after.nodes.push_back(node);
        continue;
      }
      Buffer root = view->second.root;
      if (root->shape != split->shape) {
        const Buffer source = root;
        root = MakeBuffer(absl::StrCat(node.outputs[0]->name, "_split"), root->dtype, split->shape);
        after.nodes.push_back({{root}, Reshape{source}, node.origins});
      }
      Stage stage;
      stage.output = node.outputs[0];
      stage.axes = std::move(split->axes);
      stage.value = Load(root, std::move(split->indices));
      after.nodes.push_back({node.outputs, std::move(stage), node.origins});
    }
    return after;
  }

 private:
  View ViewOf(const Buffer& tensor) const {
    const auto view = views_.find(tensor.get());
    return view == views_.end() ? WholeOf(tensor) : view->second;
  }

  bool IsMadeByStage(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    return at != maker_.end() && std::holds_alternative<Stage>(graph_.nodes[at->second].made_by);
  }

  // Notes the view that the tensor is which a node makes.
  void Note(const Node& node) {
    std::optional<View> view;
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      if (reshape->offset == 0) view = Reshaped(ViewOf(reshape->source), node.outputs[0]->shape);
    } else if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
      if (stage->reduce != ReduceOp::kNone || stage->value->op != Op::kLoad) return;
      const Buffer& source = stage->value->buffer;
      // A stage can store its result transposed itself: images are stored so.
      if (!PermutationOf(*stage).empty() && IsMadeByStage(source) && !views_.count(source.get())) return;
      view = Moved(ViewOf(source), *stage);
    }
    if (view) views_.emplace(node.outputs[0].get(), *std::move(view));
  }

  const Graph& graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::unordered_map<const BufferNode*, View> views_;
};

}  // namespace

Graph FindViews(Graph graph, const Target&) { return ViewFinder(graph).Run(); }

}  // namespace mycc
