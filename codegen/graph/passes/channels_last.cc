// Chooses the layout of images: channels last, so that the vectors of a kernel run over channels. It spreads
// from the convolutions through every stage that keeps channels apart, so that no transpose is needed in
// between.
#include <algorithm>
#include <unordered_set>

#include "codegen/graph/optimize.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/permute.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

constexpr size_t kChannels = 1;  // the dimension of ONNX's images
// A vector of so few channels would be mostly empty: it runs along rows of at least kLongRow instead.
constexpr int64_t kFewChannels = 4, kLongRow = 16;

std::vector<int> ChannelsLastOf(size_t rank) {
  std::vector<int> permutation = {0};
  for (size_t dim = 2; dim < rank; ++dim) permutation.push_back(static_cast<int>(dim));
  permutation.push_back(kChannels);
  return permutation;
}

bool IsAxis(const Expr& index, const Var& axis) {
  return axis->extent == 1 || (index->op == Op::kVar && index->var == axis);
}

// Whether a read keeps batch and channel of the stage's element.
bool KeepsChannels(const Stage& stage, const ExprNode& load) {
  if (load.args.size() != stage.axes.size() || load.args.size() < 3) return false;
  const bool same_channel = IsAxis(load.args[kChannels], stage.axes[kChannels]);
  return IsAxis(load.args[0], stage.axes[0]) && same_channel;
}

class ChannelsLastChooser {
 public:
  ChannelsLastChooser(const Graph& graph, const Target& target) : graph_(graph), maker_(Definitions(graph)) {
    if (target.kind == TargetKind::kCpu) PinFewChannels();
    for (const NamedTensor& output : graph.outputs) pinned_.insert(output.tensor.get());
    for (const Node& node : graph.nodes) {
      if (const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
        for (const Buffer& input : call->inputs) pinned_.insert(input.get());
      }
      if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
        const std::vector<int64_t>& shape = reshape->source->shape;
        const bool is_free = KeepsImages(*reshape, node.outputs[0]) ||
                             (shape.size() >= 3 && KeepsOrder(shape, ChannelsLastOf(shape.size())));
        if (!is_free) pinned_.insert(reshape->source.get());
      }
    }
  }

  Permutations Run() {
    for (const Node& node : graph_.nodes) {
      const Stage* stage = std::get_if<Stage>(&node.made_by);
      if (stage != nullptr && IsConvolution(*stage)) {
        Choose(stage->output);
        for (const Buffer& read : TensorsIn(stage->value)) {
          if (read->shape.size() == stage->axes.size() && !IsConstant(read)) Choose(read);
        }
      }
    }
    // In both directions, or each round would reach one node of a long chain in front of a convolution.
    for (bool changed = true; changed;) {
      const size_t before = chosen_.size();
      for (const Node& node : graph_.nodes) Spread(node);
      for (size_t i = graph_.nodes.size(); i-- > 0;) Spread(graph_.nodes[i]);
      changed = chosen_.size() != before;
    }
    return std::move(chosen_);
  }

 private:
  // Convolutions to few channels, as at the end of models that make images, write planes. They read planes
  // too, those of a padded image that no other stage reads.
  void PinFewChannels() {
    std::unordered_map<const BufferNode*, int> readers;
    for (const Node& node : graph_.nodes) {
      const Stage* stage = std::get_if<Stage>(&node.made_by);
      if (stage == nullptr) continue;
      for (const Buffer& read : TensorsIn(stage->value)) ++readers[read.get()];
    }
    for (const Node& node : graph_.nodes) {
      const Stage* stage = std::get_if<Stage>(&node.made_by);
      if (stage == nullptr || !IsConvolution(*stage)) continue;
      const std::vector<int64_t>& shape = stage->output->shape;
      if (shape[kChannels] > kFewChannels || shape.back() < kLongRow) continue;
      for (const Buffer& read : TensorsIn(stage->value)) {
        if (readers[read.get()] != 1 || !IsPaddedFor(*read, shape)) continue;
        pinned_.insert(read.get());
        pinned_.insert(stage->output.get());
      }
    }
  }

  // Whether the tensor is a larger image with more channels, from an element-wise stage, for windows that
  // move by one element.
  bool IsPaddedFor(const BufferNode& tensor, const std::vector<int64_t>& result) const {
    const auto at = maker_.find(&tensor);
    if (at == maker_.end() || tensor.shape.size() != result.size()) return false;
    const Stage* stage = std::get_if<Stage>(&graph_.nodes[at->second].made_by);
    if (stage == nullptr || KindOf(*stage) != StageKind::kInjective) return false;
    return tensor.shape[kChannels] > result[kChannels] && tensor.shape.back() > result.back() &&
           tensor.shape.back() < 2 * result.back();
  }

  // A reshape between spatial dimensions alone.
  static bool KeepsImages(const Reshape& reshape, const Buffer& output) {
    const std::vector<int64_t>&from = reshape.source->shape, &to = output->shape;
    return from.size() >= 3 && to.size() >= 3 && from[0] == to[0] && from[1] == to[1];
  }

  bool IsConstant(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    return at != maker_.end() && std::holds_alternative<Constant>(graph_.nodes[at->second].made_by);
  }

  // A sum of products with a constant whose first dimension gives the channels of the result.
  bool IsConvolution(const Stage& stage) const {
    if (stage.axes.size() < 3 || KindOf(stage) != StageKind::kHeavy) return false;
    bool is_convolution = false;
    Visit(stage.value, [&](const ExprNode& e) {
      if (e.op != Op::kLoad || !IsConstant(e.buffer) || e.args.size() < 3) return;
      is_convolution |= e.args[0]->op == Op::kVar && e.args[0]->var == stage.axes[kChannels];
      // A transposed convolution has them second.
      is_convolution |= e.args[1]->op == Op::kVar && e.args[1]->var == stage.axes[kChannels];
    });
    return is_convolution;
  }

  void Choose(const Buffer& tensor) {
    const auto at = maker_.find(tensor.get());
    if (at == maker_.end() || pinned_.count(tensor.get()) || tensor->shape.size() < 3) return;
    const Node& node = graph_.nodes[at->second];
    if (std::holds_alternative<LibraryCall>(node.made_by)) return;
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      if (!KeepsImages(*reshape, tensor) || !chosen_.count(reshape->source.get())) return;
    }
    chosen_.emplace(tensor.get(), ChannelsLastOf(tensor->shape.size()));
  }

  void Spread(const Node& node) {
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      if (KeepsImages(*reshape, node.outputs[0])) Choose(node.outputs[0]);
      return;
    }
    const Stage* stage = std::get_if<Stage>(&node.made_by);
    if (stage == nullptr) return;
    std::vector<Buffer> kept;
    Visit(stage->value, [&](const ExprNode& e) {
      if (e.op == Op::kLoad && KeepsChannels(*stage, e)) kept.push_back(e.buffer);
    });
    const bool any = chosen_.count(stage->output.get()) > 0 ||
                     std::ranges::any_of(
                         kept, [&](const Buffer& b) { return !IsConstant(b) && chosen_.count(b.get()) > 0; });
    if (!any) return;
    Choose(stage->output);
    if (!chosen_.count(stage->output.get())) return;
    for (const Buffer& tensor : kept) Choose(tensor);
  }

  const Graph& graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  BufferSet pinned_;
  Permutations chosen_;
};

}  // namespace

bool HasImages(const Graph& prepared, const Target& target) {
  return !ChannelsLastChooser(prepared, target).Run().empty();
}

Graph ChooseChannelsLast(Graph graph, const Target& target) {
  const Permutations chosen = ChannelsLastChooser(graph, target).Run();
  return PermuteTensors(std::move(graph), chosen);
}

}  // namespace mycc
