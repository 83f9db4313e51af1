#include "codegen/graph/permute.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {
namespace {

template <typename T>
std::vector<T> Permuted(const std::vector<T>& values, const std::vector<int>& permutation) {
  std::vector<T> permuted;
  for (int dim : permutation) permuted.push_back(values[dim]);
  return permuted;
}

Constant PermutedConstant(const NDArray& value, const std::vector<int>& permutation) {
  auto permuted = std::make_shared<NDArray>(NDArray::Zeros(value.dtype, Permuted(value.shape, permutation)));
  const size_t rank = value.shape.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * value.shape[i];
  const std::vector<int64_t> steps = Permuted(strides, permutation);
  std::vector<int64_t> index(rank, 0);
  const int width = DTypeBytes(value.dtype);
  const int64_t count = value.num_elements();
  for (int64_t i = 0, from = 0; i < count; ++i) {
    std::memcpy(permuted->bytes.data() + i * width, value.bytes.data() + from * width, width);
    for (size_t dim = rank; dim-- > 0;) {
      from += steps[dim];
      if (++index[dim] < permuted->shape[dim]) break;
      from -= steps[dim] * permuted->shape[dim];
      index[dim] = 0;
    }
  }
  return permuted;
}

class Permuter {
 public:
  explicit Permuter(const Permutations& permutations) : permutations_(permutations) {}

  Graph Run(Graph graph) {
    for (Node& node : graph.nodes) {
      origins_ = node.origins;
      if (Stage* stage = std::get_if<Stage>(&node.made_by)) PermuteStage(stage, &node);
      if (Constant* constant = std::get_if<Constant>(&node.made_by)) {
        if (const std::vector<int>* permutation = Of(node.outputs[0])) {
          *constant = PermutedConstant(**constant, *permutation);
          node.outputs[0] = Stored(node.outputs[0]);
        }
      }
      if (Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
        const bool both = Of(node.outputs[0]) != nullptr;
        MYCC_CHECK(!both || Of(reshape->source) != nullptr) << node.outputs[0]->name;
        reshape->source = both ? Stored(reshape->source) : InOldOrder(reshape->source);
        node.outputs[0] = Stored(node.outputs[0]);
      }
      if (LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
        for (Buffer& input : call->inputs) input = InOldOrder(input);
      }
      nodes_.push_back(std::move(node));
    }
    for (NamedTensor& output : graph.outputs) output.tensor = InOldOrder(output.tensor);
    graph.nodes = std::move(nodes_);
    return graph;
  }

 private:
  const std::vector<int>* Of(const Buffer& tensor) const {
    const auto at = permutations_.find(tensor.get());
    return at == permutations_.end() ? nullptr : &at->second;
  }

  // The tensor as it is stored.
  Buffer Stored(const Buffer& tensor) {
    const std::vector<int>* permutation = Of(tensor);
    if (permutation == nullptr) return tensor;
    Buffer& stored = stored_[tensor.get()];
    if (stored == nullptr)
      stored = MakeBuffer(tensor->name + "_p", tensor->dtype, Permuted(tensor->shape, *permutation));
    return stored;
  }

  void PermuteStage(Stage* stage, Node* node) {
    stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      const std::vector<int>* permutation = Of(e->buffer);
      return permutation == nullptr ? nullptr : Load(Stored(e->buffer), Permuted(e->args, *permutation));
    });
    if (const std::vector<int>* permutation = Of(stage->output)) {
      stage->axes = Permuted(stage->axes, *permutation);
      stage->output = Stored(stage->output);
      node->outputs[0] = stage->output;
    }
  }

  // The tensor with its dimensions in the old order: a reshape where that suffices, else a copy.
  Buffer InOldOrder(const Buffer& tensor) {
    const std::vector<int>* permutation = Of(tensor);
    if (permutation == nullptr) return tensor;
    Buffer& old = old_[tensor.get()];
    if (old != nullptr) return old;
    old = MakeBuffer(tensor->name + "_o", tensor->dtype, tensor->shape);
    Node node{{old}, Reshape{Stored(tensor)}, origins_};
    if (!KeepsOrder(tensor->shape, *permutation)) {
      Stage stage;
      stage.output = old;
      for (size_t i = 0; i < tensor->shape.size(); ++i)
        stage.axes.push_back(MakeVar(absl::StrCat("a", i), tensor->shape[i]));
      std::vector<Expr> refs;
      for (const Var& axis : stage.axes) refs.push_back(VarRef(axis));
      stage.value = Load(Stored(tensor), Permuted(refs, *permutation));
      node.made_by = std::move(stage);
    }
    nodes_.push_back(std::move(node));
    return old;
  }

  const Permutations& permutations_;
  std::unordered_map<const BufferNode*, Buffer> stored_, old_;
  std::vector<Node> nodes_;
  std::vector<std::string> origins_;
};

}  // namespace

bool KeepsOrder(const std::vector<int64_t>& shape, const std::vector<int>& permutation) {
  int last = -1;
  for (int dim : permutation) {
    if (shape[dim] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

Graph PermuteTensors(Graph graph, const Permutations& permutations) {
  return Permuter(permutations).Run(std::move(graph));
}

}  // namespace mycc
