// Reshapes of moved elements: a slice, a transpose or both, and then a reshape, are often one view of the
// tensor in front of them: each dimension has a fixed distance between its elements. Such a reshape becomes a
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

// Elements that are equally far apart.
struct ElementRun {
  int64_t extent, stride;
};

// Elements of `root`: the first one's number, and how far apart those of each dimension are. A dimension that
// joins others has a run of each, the outermost first; one of one element has none.
struct View {
  Buffer root;
  std::vector<std::vector<ElementRun>> dims;
  int64_t offset = 0;
  bool moves = false;  // whether there is more between than reshapes
};

void AddRun(std::vector<ElementRun>* runs, const ElementRun& run) {
  if (!runs->empty() && runs->back().stride == run.stride * run.extent) {
    runs->back() = {runs->back().extent * run.extent, run.stride};
  } else {
    runs->push_back(run);
  }
}

View WholeOf(const Buffer& tensor) {
  View view{tensor, std::vector<std::vector<ElementRun>>(tensor->rank())};
  int64_t stride = 1;
  for (size_t d = tensor->shape.size(); d-- > 0;) {
    if (tensor->shape[d] > 1) view.dims[d] = {{tensor->shape[d], stride}};
    stride *= tensor->shape[d];
  }
  return view;
}

// The view in another shape; nullopt where a dimension of it begins or ends inside of a run.
std::optional<View> Reshaped(View view, const std::vector<int64_t>& shape) {
  std::vector<ElementRun> runs;
  for (const std::vector<ElementRun>& dim : view.dims) {
    for (const ElementRun& run : dim) AddRun(&runs, run);
  }
  view.dims.assign(shape.size(), {});
  for (size_t d = shape.size(); d-- > 0;) {
    std::vector<ElementRun> taken;
    for (int64_t rest = shape[d]; rest > 1;) {
      if (runs.empty()) return std::nullopt;
      ElementRun& last = runs.back();
      const int64_t extent = std::min(rest, last.extent);
      if (rest % extent != 0 || last.extent % extent != 0) return std::nullopt;
      taken.push_back({extent, last.stride});
      last = {last.extent / extent, last.stride * extent};
      if (last.extent == 1) runs.pop_back();
      rest /= extent;
    }
    for (size_t i = taken.size(); i-- > 0;) AddRun(&view.dims[d], taken[i]);
  }
  return view;
}

// The view that a stage has of the tensor that it reads; nullopt where it does more than move elements.
std::optional<View> Moved(const View& view, const Stage& stage) {
  View moved{view.root, std::vector<std::vector<ElementRun>>(stage.axes.size()), view.offset, true};
  for (size_t d = 0; d < stage.value->args.size(); ++d) {
    Expr index = stage.value->args[d];
    int64_t begin = 0;
    if (index->op == Op::kAdd && index->args[1]->op == Op::kConst) {
      begin = index->args[1]->value.i;
      index = index->args[0];
    }
    if (index->op == Op::kConst) begin += index->value.i;
    const bool is_axis = index->op == Op::kVar;
    if ((!is_axis && index->op != Op::kConst) || (begin != 0 && view.dims[d].size() != 1))
      return std::nullopt;
    if (begin != 0) moved.offset += begin * view.dims[d][0].stride;
    if (!is_axis || index->var->extent == 1) continue;
    const size_t axis = std::ranges::find(stage.axes, index->var) - stage.axes.begin();
    const bool is_whole = index->var->extent == stage.value->buffer->shape[d];
    if (!moved.dims[axis].empty() || (!is_whole && view.dims[d].size() != 1)) return std::nullopt;
    moved.dims[axis] = view.dims[d];
    if (!is_whole) moved.dims[axis][0].extent = index->var->extent;
  }
  // An axis that reads nothing repeats elements.
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    if (moved.dims[i].empty() && stage.axes[i]->extent > 1) moved.dims[i] = {{stage.axes[i]->extent, 0}};
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

// nullopt where a dimension joins several of the root's.
std::optional<Split> SplitRoot(const View& view, const std::vector<int64_t>& shape) {
  std::vector<size_t> order;  // the dimensions that are apart in the root, those furthest apart first
  Split split;
  for (size_t d = 0; d < shape.size(); ++d) {
    split.axes.push_back(MakeVar(absl::StrCat("a", d), shape[d]));
    if (view.dims[d].size() > 1) return std::nullopt;
    if (!view.dims[d].empty() && view.dims[d][0].stride > 0) order.push_back(d);
  }
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return view.dims[a][0].stride > view.dims[b][0].stride; });
  int64_t outer = view.root->num_elements(), offset = view.offset;
  for (size_t d : order) {
    const int64_t stride = view.dims[d][0].stride;
    if (outer % stride != 0) return std::nullopt;
    const int64_t extent = outer / stride, begin = offset / stride;
    if (begin + shape[d] > extent) return std::nullopt;
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
      const View* view = nullptr;
      std::optional<Split> split;
      for (Views* views : {&far_, &near_}) {
        Note(node, views);
        const auto at = views->find(node.outputs[0].get());
        if (split || !std::holds_alternative<Reshape>(node.made_by) || at == views->end()) continue;
        view = &at->second;
        if (view->moves) split = SplitRoot(*view, node.outputs[0]->shape);
      }
      if (!split) {
        after.nodes.push_back(node);
        continue;
      }
      Buffer root = view->root;
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
  using Views = std::unordered_map<const BufferNode*, View>;

  static View ViewOf(const Buffer& tensor, const Views& views) {
    const auto view = views.find(tensor.get());
    return view == views.end() ? WholeOf(tensor) : view->second;
  }

  // Whether a stage makes the tensor, or an image whose points a reshape joins: such a stage can store its
  // result transposed itself, as images with channels last are.
  bool StoresAnyOrder(Buffer tensor) const {
    const auto at = maker_.find(tensor.get());
    if (at == maker_.end()) return false;
    const Node& node = graph_.nodes[at->second];
    const Reshape* reshape = std::get_if<Reshape>(&node.made_by);
    if (reshape == nullptr) return std::holds_alternative<Stage>(node.made_by);
    const std::vector<int64_t>&from = reshape->source->shape, &to = tensor->shape;
    const bool joins = !from.empty() && !to.empty() && from.back() > 1 && to.back() > from.back();
    return joins && StoresAnyOrder(reshape->source);
  }

  // Notes the view that the tensor is which a node makes.
  void Note(const Node& node, Views* views) const {
    std::optional<View> view;
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      if (reshape->offset == 0) view = Reshaped(ViewOf(reshape->source, *views), node.outputs[0]->shape);
      const auto joins = [](const std::vector<ElementRun>& dim) { return dim.size() > 1; };
      if (view && views == &near_ && std::ranges::any_of(view->dims, joins)) return;
    } else if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
      if (stage->reduce != ReduceOp::kNone || stage->value->op != Op::kLoad) return;
      const Buffer& source = stage->value->buffer;
      if (!PermutationOf(*stage).empty() && StoresAnyOrder(source)) return;
      view = Moved(ViewOf(source, *views), *stage);
    }
    if (view) views->emplace(node.outputs[0].get(), *std::move(view));
  }

  const Graph& graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  // Through all moves, and from the last reshape that joins dimensions which are no more one behind another:
  // what it gives is in memory.
  Views far_, near_;
};

}  // namespace

Graph FindViews(Graph graph, const Target&) { return ViewFinder(graph).Run(); }

}  // namespace mycc
