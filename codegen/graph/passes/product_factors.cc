// Numbers that multiply an operand of a product multiply its result instead. Exporters of attention scale
// queries and keys; what is left of these stages only moves elements, so that the product reads through them,
// and the factor is computed in the product's own kernel.
//
//   q[i,k] = 0.5 * x[i,k];  y[i,j] = sum[k](q[i,k] * z[k,j])
//   ->  q[i,k] = x[i,k];  p[i,j] = sum[k](q[i,k] * z[k,j]);  y[i,j] = p[i,j] * 0.5
#include <cmath>
#include <unordered_map>

#include "codegen/expr/product.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/stage_reads.h"

namespace mycc {
namespace {

// Factors beyond could make numbers overflow, or lose bits, that now do not.
constexpr double kLeast = 1e-3, kMost = 1e3;

// The other operand of a product with a literal, and the literal; null for other expressions.
Expr WithoutFactor(const Expr& e, double* factor) {
  if (e->op != Op::kMul || e->dtype != DType::kF32) return nullptr;
  for (int i = 0; i < 2; ++i) {
    const Expr &number = e->args[i], &other = e->args[1 - i];
    if (number->op != Op::kConst || other->op != Op::kLoad) continue;
    *factor = number->value.f;
    return std::abs(*factor) >= kLeast && std::abs(*factor) <= kMost ? other : nullptr;
  }
  return nullptr;
}

class FactorMover {
 public:
  explicit FactorMover(const Graph& graph) : maker_(Definitions(graph)) {
    for (const NamedTensor& output : graph.outputs) ++uses_[output.tensor.get()];
    for (const Node& node : graph.nodes) {
      for (const Buffer& read : ReadsOf(node)) ++uses_[read.get()];
    }
  }

  Graph Run(Graph graph) {
    std::vector<Node> nodes;
    for (Node& node : graph.nodes) nodes.push_back(node);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Stage* stage = std::get_if<Stage>(&nodes[i].made_by);
      if (stage == nullptr || !IsProduct(*stage)) continue;
      double factor = 1;
      for (const Buffer& read : TensorsIn(stage->value)) factor *= TakeFactor(read, &nodes);
      if (factor != 1) factors_[i] = factor;
    }
    graph.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto factor = factors_.find(i);
      if (factor == factors_.end()) {
        graph.nodes.push_back(std::move(nodes[i]));
      } else {
        AddScaled(std::move(nodes[i]), factor->second, &graph.nodes);
      }
    }
    return graph;
  }

 private:
  static bool IsProduct(const Stage& stage) {
    const Expr& value = stage.value;
    return SumsProducts(stage) && KindOf(stage) == StageKind::kHeavy && stage.output->dtype == DType::kF32 &&
           value->args[0]->op == Op::kLoad && value->args[1]->op == Op::kLoad &&
           value->args[0]->buffer != value->args[1]->buffer;
  }

  // Takes the factor out of the stage that makes a tensor which nothing else reads; 1 where there is none.
  double TakeFactor(Buffer tensor, std::vector<Node>* nodes) const {
    while (uses_.at(tensor.get()) == 1) {
      const auto at = maker_.find(tensor.get());
      if (at == maker_.end()) return 1;
      if (const Reshape* reshape = std::get_if<Reshape>(&(*nodes)[at->second].made_by)) {
        tensor = reshape->source;
        continue;
      }
      Stage* stage = std::get_if<Stage>(&(*nodes)[at->second].made_by);
      if (stage == nullptr || stage->reduce != ReduceOp::kNone) return 1;
      double factor = 1;
      const Expr rest = WithoutFactor(stage->value, &factor);
      if (rest != nullptr) stage->value = rest;
      return rest == nullptr ? 1 : factor;
    }
    return 1;
  }

  static void AddScaled(Node node, double factor, std::vector<Node>* nodes) {
    Stage product = std::get<Stage>(std::move(node.made_by)), scaled;
    scaled.output = product.output;
    std::vector<Expr> indices;
    for (const Var& axis : product.axes) {
      scaled.axes.push_back(MakeVar(axis->name, axis->extent));
      indices.push_back(VarRef(scaled.axes.back()));
    }
    product.output = MakeBuffer(scaled.output->name + "_f", scaled.output->dtype, scaled.output->shape);
    scaled.value = Load(product.output, std::move(indices)) * FloatConst(factor, DType::kF32);
    nodes->push_back({{product.output}, std::move(product), node.origins});
    nodes->push_back({node.outputs, std::move(scaled), node.origins});
  }

  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::unordered_map<const BufferNode*, int> uses_;  // readers, and outputs of the model
  std::unordered_map<size_t, double> factors_;       // of products, by their nodes
};

}  // namespace

Graph MoveProductFactors(Graph graph, const Target&) { return FactorMover(graph).Run(std::move(graph)); }

}  // namespace mycc
