// Transposes within the matrices of a batch, whose leading dimensions exporters join for it and split again.
// They become one stage that only moves elements, which products read through.
//
//   r = reshape(x: [2,4,24,32]) to [8,24,32];  t[b,i,j] = r[b,j,i];  y = reshape(t) to [2,4,32,24]
//   ->  y[a,b,i,j] = x[a,b,j,i]
#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/permute.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// How many leading dimensions of `split` are the first one of `joined`, where all others are its others; 0
// where they are not.
size_t JoinedDims(const std::vector<int64_t>& split, const std::vector<int64_t>& joined) {
  if (joined.empty() || split.size() <= joined.size()) return 0;
  const size_t leading = split.size() - joined.size() + 1;
  if (!std::equal(joined.begin() + 1, joined.end(), split.begin() + leading)) return 0;
  return ElementsOf({split.begin(), split.begin() + leading}) == joined[0] ? leading : 0;
}

// The move from `source` to `target`, whose dimensions behind the leading ones are in the order of
// `permutation`, which has the joined ones as its first.
Stage MoveOf(const Buffer& source, const Buffer& target, const std::vector<int>& permutation,
             size_t leading) {
  Stage stage;
  stage.output = target;
  std::vector<Expr> indices(source->rank());
  for (size_t i = 0; i < target->shape.size(); ++i) {
    stage.axes.push_back(MakeVar(absl::StrCat("a", i), target->shape[i]));
    indices[i < leading ? i : permutation[i - leading + 1] + leading - 1] = VarRef(stage.axes.back());
  }
  stage.value = Load(source, std::move(indices));
  return stage;
}

}  // namespace

Graph SplitBatchTransposes(Graph graph, const Target&) {
  const std::unordered_map<const BufferNode*, size_t> maker = Definitions(graph);
  const auto made_by = [&](const Buffer& tensor) -> const Node* {
    const auto at = maker.find(tensor.get());
    return at == maker.end() ? nullptr : &graph.nodes[at->second];
  };
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    nodes.push_back(node);
    const Reshape* split = std::get_if<Reshape>(&node.made_by);
    const Node* transposed = split == nullptr || split->offset != 0 ? nullptr : made_by(split->source);
    const Stage* stage = transposed == nullptr ? nullptr : std::get_if<Stage>(&transposed->made_by);
    const std::vector<int> permutation = stage == nullptr ? std::vector<int>() : PermutationOf(*stage);
    if (permutation.empty() || permutation[0] != 0) continue;
    const Node* joined = made_by(stage->value->buffer);
    const Reshape* join = joined == nullptr ? nullptr : std::get_if<Reshape>(&joined->made_by);
    const Buffer& target = node.outputs[0];
    const size_t leading = JoinedDims(target->shape, stage->output->shape);
    if (join == nullptr || join->offset != 0 || leading == 0) continue;
    // The source in the shape that it has with the target's leading dimensions.
    std::vector<int64_t> shape(target->shape.begin(), target->shape.begin() + leading);
    shape.insert(shape.end(), joined->outputs[0]->shape.begin() + 1, joined->outputs[0]->shape.end());
    Buffer source = join->source;
    if (source->shape != shape) {
      source = MakeBuffer(source->name + "_split", source->dtype, std::move(shape));
      nodes.insert(nodes.end() - 1, Node{{source}, Reshape{join->source}, node.origins});
    }
    nodes.back().made_by = MoveOf(source, target, permutation, leading);
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace mycc
