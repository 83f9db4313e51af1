// Reshapes that only add or drop dimensions of one element. Exporters write them between a product and what
// follows it; a kernel that ends at such a reshape would lose its epilogue. Readers read the source; an
// element-wise stage takes the source's shape, and the reshape moves behind it.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

std::vector<size_t> LongDimensions(const std::vector<int64_t>& shape) {
  std::vector<size_t> dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) dims.push_back(i);
  }
  return dims;
}

bool DiffersInUnits(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const std::vector<size_t> from = LongDimensions(a), to = LongDimensions(b);
  return std::equal(from.begin(), from.end(), to.begin(), to.end(),
                    [&](size_t i, size_t k) { return a[i] == b[k]; });
}

// Values of the long dimensions of `from`, at those of `to`; `unit` elsewhere.
template <typename T>
std::vector<T> AtLongDimensions(const std::vector<T>& values, const std::vector<int64_t>& from,
                                const std::vector<int64_t>& to, const T& unit) {
  std::vector<T> moved(to.size(), unit);
  const std::vector<size_t> source = LongDimensions(from), target = LongDimensions(to);
  for (size_t i = 0; i < source.size(); ++i) moved[target[i]] = values[source[i]];
  return moved;
}

class UnitReshapes {
 public:
  explicit UnitReshapes(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (std::holds_alternative<Stage>(node.made_by)) stages_.insert(node.outputs[0].get());
    }
  }

  Graph Run(Graph graph) {
    for (Node& node : graph.nodes) {
      if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by))
        Note(node.outputs[0], reshape->source);
      if (Stage* stage = std::get_if<Stage>(&node.made_by)) {
        ReadSources(stage);
        const Buffer shaped = ShapeOf(*stage);
        if (shaped != nullptr) {
          const Buffer old = stage->output;
          TakeShape(stage, shaped->shape);
          node.outputs[0] = stage->output;
          stages_.insert(stage->output.get());
          Note(old, stage->output);
          Node reshape{{old}, Reshape{stage->output}, node.origins};
          nodes_.push_back(std::move(node));
          nodes_.push_back(std::move(reshape));
          continue;
        }
      }
      nodes_.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes_);
    return graph;
  }

 private:
  void Note(const Buffer& tensor, const Buffer& source) {
    if (!DiffersInUnits(tensor->shape, source->shape)) return;
    const auto further = sources_.find(source.get());
    sources_[tensor.get()] = further == sources_.end() ? source : further->second;
  }

  void ReadSources(Stage* stage) const {
    stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      const auto source = sources_.find(e->buffer.get());
      if (source == sources_.end()) return nullptr;
      return Load(source->second,
                  AtLongDimensions(e->args, e->buffer->shape, source->second->shape, IntConst(0)));
    });
  }

  // A tensor made by a stage, of another rank, that an element-wise stage reads at its own axes.
  Buffer ShapeOf(const Stage& stage) const {
    Buffer found;
    if (stage.reduce != ReduceOp::kNone) return found;
    Visit(stage.value, [&](const ExprNode& e) {
      if (e.op != Op::kLoad || found != nullptr || !stages_.count(e.buffer.get())) return;
      if (e.buffer->shape == stage.output->shape || !DiffersInUnits(e.buffer->shape, stage.output->shape))
        return;
      const std::vector<size_t> axes = LongDimensions(stage.output->shape),
                                dims = LongDimensions(e.buffer->shape);
      for (size_t i = 0; i < axes.size(); ++i) {
        const Expr& index = e.args[dims[i]];
        if (index->op != Op::kVar || index->var != stage.axes[axes[i]]) return;
      }
      found = e.buffer;
    });
    return found;
  }

  static void TakeShape(Stage* stage, const std::vector<int64_t>& shape) {
    std::vector<Var> axes;
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(MakeVar(absl::StrCat("a", i), shape[i]));
    std::vector<Expr> refs;
    for (const Var& axis : axes) refs.push_back(VarRef(axis));
    const std::vector<Expr> old_values = AtLongDimensions(refs, shape, stage->output->shape, IntConst(0));
    VarMap values;
    for (size_t i = 0; i < stage->axes.size(); ++i) values[stage->axes[i].get()] = old_values[i];
    stage->value = Substitute(stage->value, values);
    stage->axes = std::move(axes);
    stage->output = MakeBuffer(stage->output->name + "_u", stage->output->dtype, shape);
  }

  std::unordered_map<const BufferNode*, Buffer> sources_;  // of reshapes in units alone
  BufferSet stages_;                                       // tensors that stages make
  std::vector<Node> nodes_;
};

}  // namespace

Graph MoveUnitReshapes(Graph graph, const Target&) {
  UnitReshapes units(graph);
  return units.Run(std::move(graph));
}

}  // namespace mycc
