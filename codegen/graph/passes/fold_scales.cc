// Factors and shifts of channels behind a product with constant weights, such as a batch normalization behind
// a convolution: the factors go into the weights, and all shifts become one.
//
//   y = sum(x * w[k]);  z = (y + b[k]) * s[k] + t[k]   ->   y = sum(x * (w[k] * s[k]));  z = y + (b[k] * s[k]
//   + t[k])
//
// Numbers are computed in f64 and rounded once.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/expr/product.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// Constant numbers, one for each index of a dimension of a stage's output, or one for all (dim -1).
struct ChannelNumbers {
  int dim = -1;
  std::vector<double> values;
};

// source * scale + shift, for each index of a dimension, or for all (dim -1).
struct Affine {
  Buffer source;
  int dim = -1;
  std::vector<double> scale = {1}, shift = {0};

  // Makes the numbers those of a dimension. False where they are of another one.
  bool SpreadOver(int over, size_t count) {
    if (over < 0 || over == dim) return true;
    if (dim >= 0) return false;
    dim = over;
    scale.assign(count, scale[0]);
    shift.assign(count, shift[0]);
    return true;
  }
};

// The number of the factor of each element of the weights.
class ChannelOf {
 public:
  ChannelOf(const NDArray& weights, const Affine& affine, int weight_dim)
      : count_(affine.dim < 0 ? 1 : weights.shape[weight_dim]) {
    for (size_t d = weight_dim + 1; d < weights.shape.size(); ++d) inner_ *= weights.shape[d];
  }
  size_t operator()(int64_t i) const { return static_cast<size_t>(i / inner_ % count_); }

 private:
  const int64_t count_;
  int64_t inner_ = 1;
};

Expr WithoutCast(const Expr& e) { return e->op == Op::kCast ? e->args[0] : e; }

class ScaleFolder {
 public:
  explicit ScaleFolder(Graph graph) : graph_(std::move(graph)), maker_(Definitions(graph_)) {
    for (const NamedTensor& output : graph_.outputs) ++uses_[output.tensor.get()];
    for (const Node& node : graph_.nodes) {
      for (const Buffer& read : ReadsOf(node)) ++uses_[read.get()];
    }
  }

  Graph Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Stage* stage = std::get_if<Stage>(&graph_.nodes[i].made_by);
      if (stage != nullptr) Plan(i, *stage);
    }
    Graph folded = graph_;
    folded.nodes.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto product = products_.find(i); product != products_.end()) {
        Scale(graph_.nodes[i], product->second, &folded.nodes);
      } else if (const auto last = lasts_.find(i); last != lasts_.end()) {
        Shift(graph_.nodes[i], last->second, &folded.nodes);
      } else {
        folded.nodes.push_back(graph_.nodes[i]);
      }
    }
    RemoveDeadNodes(&folded);
    return folded;
  }

 private:
  const Stage* StageOf(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    return at == maker_.end() ? nullptr : std::get_if<Stage>(&graph_.nodes[at->second].made_by);
  }

  const NDArray* ConstantOf(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    if (at == maker_.end()) return nullptr;
    const Constant* constant = std::get_if<Constant>(&graph_.nodes[at->second].made_by);
    return constant == nullptr ? nullptr : constant->get();
  }

  std::optional<ChannelNumbers> NumbersOf(const Stage& stage, const Expr& e) const {
    const Expr& read = WithoutCast(e);
    if (read->op == Op::kConst && IsFloat(read->dtype)) return ChannelNumbers{-1, {read->value.f}};
    const NDArray* constant = read->op == Op::kLoad ? ConstantOf(read->buffer) : nullptr;
    if (constant == nullptr || !IsFloat(constant->dtype)) return std::nullopt;
    ChannelNumbers numbers;
    for (const Expr& index : read->args) {
      if (IsConstInt(index, int64_t{0})) continue;
      const auto axis = index->op == Op::kVar ? std::ranges::find(stage.axes, index->var) : stage.axes.end();
      if (axis == stage.axes.end() || numbers.dim >= 0) return std::nullopt;
      numbers.dim = static_cast<int>(axis - stage.axes.begin());
    }
    const int64_t count = numbers.dim < 0 ? 1 : stage.axes[numbers.dim]->extent;
    if (constant->num_elements() != count) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) numbers.values.push_back(constant->Get(i).f);
    return numbers;
  }

  // An expression as an affine function of one tensor that the stage reads at its own axes; nullopt for
  // others.
  std::optional<Affine> AffineOf(const Stage& stage, const Expr& cast) const {
    const Expr& e = WithoutCast(cast);
    if (!IsFloat(cast->dtype) || !IsFloat(e->dtype)) return std::nullopt;
    if (e->op == Op::kLoad) {
      const bool is_chain = ConstantOf(e->buffer) == nullptr && ReadsElementwise(stage, e->buffer);
      return is_chain ? std::optional(Affine{e->buffer}) : std::nullopt;
    }
    if (e->op != Op::kAdd && e->op != Op::kSub && e->op != Op::kMul) return std::nullopt;
    std::optional<Affine> affine = AffineOf(stage, e->args[0]);
    const Expr& other = e->args[affine ? 1 : 0];
    if (!affine && e->op != Op::kSub) affine = AffineOf(stage, e->args[1]);
    const std::optional<ChannelNumbers> numbers = affine ? NumbersOf(stage, other) : std::nullopt;
    if (!numbers || !affine->SpreadOver(numbers->dim, numbers->values.size())) return std::nullopt;
    for (size_t i = 0; i < affine->scale.size(); ++i) {
      const double number = numbers->values[numbers->dim < 0 ? 0 : i];
      if (e->op != Op::kMul) {
        affine->shift[i] += e->op == Op::kAdd ? number : -number;
        continue;
      }
      affine->scale[i] *= number;
      affine->shift[i] *= number;
    }
    return affine;
  }

  // A stage as an affine function of a reduction, through stages that nothing else reads. Takes what is known
  // of its source from `chains_`, so that a long chain is walked once.
  std::optional<Affine> ChainOf(const Stage& stage) {
    if (stage.reduce != ReduceOp::kNone) return std::nullopt;
    std::optional<Affine> affine = AffineOf(stage, stage.value);
    if (!affine) return std::nullopt;
    const Stage* source = StageOf(affine->source);
    if (source == nullptr || uses_.at(affine->source.get()) != 1) return std::nullopt;
    if (source->reduce != ReduceOp::kNone) return affine;
    auto known = chains_.extract(affine->source.get());
    if (known.empty()) return std::nullopt;
    Affine inner = std::move(known.mapped());
    if (!inner.SpreadOver(affine->dim, affine->scale.size()) ||
        !affine->SpreadOver(inner.dim, inner.scale.size()))
      return std::nullopt;
    for (size_t i = 0; i < affine->scale.size(); ++i) {
      affine->shift[i] += affine->scale[i] * inner.shift[i];
      affine->scale[i] *= inner.scale[i];
    }
    affine->source = inner.source;
    return affine;
  }

  // The read of the weights in a sum of products, whose dimension `weight_dim` is the product's dimension
  // `dim`.
  const ExprNode* WeightsOf(const Stage& product, int dim, int* weight_dim) const {
    if (!SumsProducts(product)) return nullptr;
    const auto is_constant = [&](const Expr& operand) {
      const Expr& read = WithoutCast(operand);
      return read->op == Op::kLoad && ConstantOf(read->buffer) != nullptr;
    };
    if (is_constant(product.value->args[0]) && is_constant(product.value->args[1])) return nullptr;
    for (const Expr& operand : product.value->args) {
      const Expr& read = WithoutCast(operand);
      if (!is_constant(operand)) continue;
      if (!IsFloat(read->dtype)) return nullptr;
      for (size_t i = 0; i < read->args.size(); ++i) {
        *weight_dim = static_cast<int>(i);
        if (dim < 0) return read.get();
        const bool is_channel = read->args[i]->op == Op::kVar && read->args[i]->var == product.axes[dim];
        if (is_channel && read->buffer->shape[i] == product.axes[dim]->extent) return read.get();
      }
    }
    return nullptr;
  }

  // Whether the type of the weights holds them with their factors, and that of the product the shifts: none
  // becomes infinite, and the largest of a channel does not become subnormal.
  static bool Holds(const NDArray& weights, const Affine& affine, int weight_dim) {
    const auto is_held = [&](double number) {
      return std::isfinite(RoundFloat(affine.source->dtype, number));
    };
    if (!std::ranges::all_of(affine.shift, is_held)) return false;
    if (!std::ranges::all_of(affine.scale, [](double s) { return std::isfinite(s); })) return false;
    std::vector<double> largest(affine.scale.size()), largest_scaled(affine.scale.size());
    const ChannelOf channel(weights, affine, weight_dim);
    for (int64_t i = 0; i < weights.num_elements(); ++i) {
      const size_t k = channel(i);
      const double weight = weights.Get(i).f, scaled = RoundFloat(weights.dtype, weight * affine.scale[k]);
      if (std::isfinite(weight) && !std::isfinite(scaled)) return false;
      largest[k] = std::max(largest[k], std::abs(weight));
      largest_scaled[k] = std::max(largest_scaled[k], std::abs(scaled));
    }
    const double least = SmallestNormal(weights.dtype);
    for (size_t k = 0; k < largest.size(); ++k) {
      if (affine.scale[k] != 0 && largest[k] >= least && largest_scaled[k] < least) return false;
    }
    return true;
  }

  // Notes that the chain which ends at a stage is folded. A chain that ends later takes the place of one that
  // it contains.
  void Plan(size_t i, const Stage& stage) {
    const std::optional<Affine> affine = ChainOf(stage);
    if (!affine) return;
    chains_[stage.output.get()] = *affine;
    // A wider type may hold what the type of the product, in which its result is stored, does not.
    if (DTypeBytes(stage.output->dtype) > DTypeBytes(affine->source->dtype)) return;
    const bool scales = std::ranges::any_of(affine->scale, [](double s) { return s != 1; });
    int weight_dim = 0;
    const ExprNode* weights =
        scales ? WeightsOf(*StageOf(affine->source), affine->dim, &weight_dim) : nullptr;
    if (weights == nullptr || !Holds(*ConstantOf(weights->buffer), *affine, weight_dim)) return;
    const size_t product = maker_.at(affine->source.get());
    if (const auto before = products_.find(product); before != products_.end())
      lasts_.erase(before->second.last);
    products_[product] = {*affine, i};
    lasts_[i] = *affine;
  }

  struct Planned {
    Affine affine;
    size_t last;  // the node of the chain's end
  };

  void Scale(const Node& node, const Planned& planned, std::vector<Node>* nodes) const {
    Stage stage = std::get<Stage>(node.made_by);
    int weight_dim = 0;
    const ExprNode* weights = WeightsOf(stage, planned.affine.dim, &weight_dim);
    const NDArray& old = *ConstantOf(weights->buffer);
    NDArray scaled = old;
    const ChannelOf channel(old, planned.affine, weight_dim);
    for (int64_t i = 0; i < old.num_elements(); ++i)
      scaled.Set(i, Scalar{RoundFloat(old.dtype, old.Get(i).f * planned.affine.scale[channel(i)])});
    const Buffer tensor = MakeBuffer(weights->buffer->name + "_s", old.dtype, old.shape);
    nodes->push_back({{tensor}, std::make_shared<const NDArray>(std::move(scaled)), node.origins});
    stage.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
      return e.get() == weights ? Load(tensor, e->args) : nullptr;
    });
    nodes->push_back({node.outputs, std::move(stage), node.origins});
  }

  void Shift(const Node& node, const Affine& affine, std::vector<Node>* nodes) const {
    Stage stage = std::get<Stage>(node.made_by);
    const DType dtype = affine.source->dtype;
    std::vector<Expr> refs;
    for (const Var& axis : stage.axes) refs.push_back(VarRef(axis));
    Expr value = Load(affine.source, refs);
    const bool shifts = std::ranges::any_of(affine.shift, [](double t) { return t != 0; });
    if (shifts && affine.dim < 0) value = value + FloatConst(affine.shift[0], dtype);
    if (shifts && affine.dim >= 0) {
      NDArray numbers = NDArray::Zeros(dtype, {static_cast<int64_t>(affine.shift.size())});
      for (size_t i = 0; i < affine.shift.size(); ++i)
        numbers.Set(static_cast<int64_t>(i), Scalar{RoundFloat(dtype, affine.shift[i])});
      const Buffer tensor = MakeBuffer(node.outputs[0]->name + "_t", dtype, numbers.shape);
      nodes->push_back({{tensor}, std::make_shared<const NDArray>(std::move(numbers)), node.origins});
      value = value + Load(tensor, {refs[affine.dim]});
    }
    stage.value = MakeCast(stage.output->dtype, value);
    Node last{node.outputs, std::move(stage), graph_.nodes[maker_.at(affine.source.get())].origins};
    for (const std::string& origin : node.origins) {
      if (std::ranges::find(last.origins, origin) == last.origins.end()) last.origins.push_back(origin);
    }
    nodes->push_back(std::move(last));
  }

  const Graph graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::unordered_map<const BufferNode*, int> uses_;       // readers, and outputs of the model
  std::unordered_map<size_t, Planned> products_;          // by their nodes
  std::unordered_map<size_t, Affine> lasts_;              // by the nodes at the chains' ends
  std::unordered_map<const BufferNode*, Affine> chains_;  // by the tensors at their ends so far
};

}  // namespace

Graph FoldScales(Graph graph, const Target&) { return ScaleFolder(std::move(graph)).Run(); }

}  // namespace mycc
