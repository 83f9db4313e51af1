// Reshapes of rows: a product of a batch of matrices with one matrix is a product of all their rows, which
// exporters and the importer reshape to the batch's shape. Element-wise stages behind such a reshape work on
// the rows instead, and the reshape moves behind them, so that the product keeps its epilogue. A stage that
// only reductions over rows read stays with them: the squares of a norm are no epilogue.
//
//   t = reshape(s: [6304,768]) to [32,197,768];  y[b,i,j] = t[b,i,j] + bias[j]
//   ->  r[i,j] = s[i,j] + bias[j];  y = reshape(r) to [32,197,768]
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// How many leading dimensions of `shape` are the first one of `rows`; 0 where that is not what tells them
// apart.
size_t LeadingDims(const std::vector<int64_t>& shape, const std::vector<int64_t>& rows) {
  if (rows.empty() || shape.size() <= rows.size()) return 0;
  const auto leading = static_cast<int64_t>(shape.size() - rows.size() + 1);
  if (!std::equal(rows.begin() + 1, rows.end(), shape.begin() + leading)) return 0;
  return ElementsOf({shape.begin(), shape.begin() + leading}) == rows[0] ? static_cast<size_t>(leading) : 0;
}

class RowReshapes {
 public:
  explicit RowReshapes(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const Stage* stage = std::get_if<Stage>(&node.made_by);
      if (stage != nullptr) stages_.insert(node.outputs[0].get());
      if (stage != nullptr && KindOf(*stage) == StageKind::kRows) continue;
      for (const Buffer& read : ReadsOf(node)) read_by_others_.insert(read.get());
    }
    for (const NamedTensor& output : graph.outputs) read_by_others_.insert(output.tensor.get());
  }

  Graph Run(Graph graph) {
    for (Node& node : graph.nodes) {
      if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
        if (stages_.count(reshape->source.get())) rows_[node.outputs[0].get()] = reshape->source;
      }
      Stage* stage = std::get_if<Stage>(&node.made_by);
      const Buffer rows = stage == nullptr ? nullptr : RowsFor(*stage);
      if (rows == nullptr) {
        nodes_.push_back(std::move(node));
        continue;
      }
      const Buffer old = stage->output;
      TakeRows(stage, rows->shape, node.origins);
      node.outputs[0] = stage->output;
      stages_.insert(stage->output.get());
      rows_[old.get()] = stage->output;
      Node reshape{{old}, Reshape{stage->output}, node.origins};
      nodes_.push_back(std::move(node));
      nodes_.push_back(std::move(reshape));
    }
    graph.nodes = std::move(nodes_);
    return graph;
  }

 private:
  // The rows that an element-wise stage can work on in place of what it reads; null for other stages.
  Buffer RowsFor(const Stage& stage) const {
    if (stage.reduce != ReduceOp::kNone || !read_by_others_.count(stage.output.get())) return nullptr;
    for (const Buffer& read : TensorsIn(stage.value)) {
      const auto rows = rows_.find(read.get());
      if (rows == rows_.end() || read->shape != stage.output->shape) continue;
      const size_t leading = LeadingDims(read->shape, rows->second->shape);
      if (leading > 0 && WorksOnRows(stage, leading)) return rows->second;
    }
    return nullptr;
  }

  // Whether the leading axes are used for nothing but reads of tensors of the stage's shape at its own axes.
  static bool WorksOnRows(const Stage& stage, size_t leading) {
    VarSet row_axes;
    for (size_t i = 0; i < leading; ++i) row_axes.insert(stage.axes[i].get());
    bool reads_others = false;
    const Expr rest = Rewrite(stage.value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || e->buffer->shape != stage.output->shape) return nullptr;
      reads_others |= !ReadsElementwise(stage, e->buffer);
      return IsFloat(e->dtype) ? FloatConst(0, e->dtype) : IntConst(0, e->dtype);
    });
    return !reads_others &&
           std::ranges::none_of(row_axes, [&](const VarNode* axis) { return UsesVar(rest, axis); });
  }

  void TakeRows(Stage* stage, const std::vector<int64_t>& shape, const std::vector<std::string>& origins) {
    const auto leading = static_cast<int64_t>(LeadingDims(stage->output->shape, shape));
    std::vector<Var> axes = {MakeVar("rows", shape[0])};
    axes.insert(axes.end(), stage->axes.begin() + leading, stage->axes.end());
    std::vector<Expr> refs;
    refs.reserve(axes.size());
    for (const Var& axis : axes) refs.push_back(VarRef(axis));
    stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || !ReadsElementwise(*stage, e->buffer)) return nullptr;
      return Load(InRows(e->buffer, shape, origins), refs);
    });
    stage->axes = std::move(axes);
    stage->output = MakeBuffer(stage->output->name + "_r", stage->output->dtype, shape);
  }

  // The tensor in the shape of the rows: what it is a reshape of, or a reshape of it.
  Buffer InRows(const Buffer& tensor, const std::vector<int64_t>& shape,
                const std::vector<std::string>& origins) {
    Buffer& rows = rows_[tensor.get()];
    if (rows != nullptr && rows->shape == shape) return rows;
    rows = MakeBuffer(tensor->name + "_rows", tensor->dtype, shape);
    nodes_.push_back({{rows}, Reshape{tensor}, origins});
    return rows;
  }

  std::unordered_map<const BufferNode*, Buffer>
      rows_;                  // of reshapes of what stages make, and of their readers
  BufferSet stages_;          // tensors that stages make
  BufferSet read_by_others_;  // not only reductions over rows read these
  std::vector<Node> nodes_;
};

}  // namespace

Graph MoveRowReshapes(Graph graph, const Target&) {
  RowReshapes rows(graph);
  return rows.Run(std::move(graph));
}

}  // namespace mycc
