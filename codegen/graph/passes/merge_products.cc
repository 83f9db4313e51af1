// Products of one tensor with constant matrices of one shape, such as query, key and value of an attention:
// one product with all the matrices, and what follows each of them element by element. The results are parts
// of the merged one, which lie behind one another in memory.
//
//   a[i,j] = sum[k](x[i,k] * u[k,j]);  b[i,j] = sum[k](x[i,k] * v[k,j])
//   ->  m[p,i,j] = sum[k](x[i,k] * uv[p,k,j]);  a = m[0], b = m[1]
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/passes.h"
#include "codegen/graph/stage_reads.h"
#include "codegen/workload/limits.h"

namespace mycc {
namespace {

constexpr int64_t kPartAlignment = 64;  // bytes; kernels read their arguments in vectors

// A product with a constant, and the stages behind it that nothing else reads: numbers of nodes.
using ProductChain = std::vector<size_t>;

class ProductMerger {
 public:
  explicit ProductMerger(Graph graph) : graph_(std::move(graph)), maker_(Definitions(graph_)) {
    for (const NamedTensor& output : graph_.outputs) {
      for (Buffer tensor = output.tensor; tensor != nullptr; tensor = ReshapedBy(tensor))
        outputs_.insert(tensor.get());
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const Buffer& read : ReadsOf(graph_.nodes[i])) readers_[read.get()].push_back(i);
    }
  }

  Graph Run() {
    std::map<std::string, std::vector<ProductChain>> alike;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Stage* stage = std::get_if<Stage>(&graph_.nodes[i].made_by);
      if (stage == nullptr || !IsProduct(*stage)) continue;
      const ProductChain chain = ChainOf(i);
      const Buffer& result = graph_.nodes[chain.back()].outputs[0];
      const bool fits = result->bytes() % kPartAlignment == 0 && result->rank() < kMaxRank;
      if (!outputs_.count(result.get()) && fits) alike[TextOf(chain)].push_back(chain);
    }
    std::unordered_map<size_t, const std::vector<ProductChain>*> merged_at;
    std::unordered_set<size_t> replaced;
    for (const auto& [text, chains] : alike) {
      if (chains.size() < 2) continue;
      merged_at[chains[0][0]] = &chains;
      for (const ProductChain& chain : chains) replaced.insert(chain.begin(), chain.end());
    }
    Graph merged = graph_;
    merged.nodes.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto at = merged_at.find(i); at != merged_at.end()) AddMerged(*at->second, &merged.nodes);
      if (!replaced.count(i)) merged.nodes.push_back(graph_.nodes[i]);
    }
    RemoveDeadNodes(&merged);
    return merged;
  }

 private:
  const Stage& StageAt(size_t i) const { return std::get<Stage>(graph_.nodes[i].made_by); }

  const Constant* ConstantOf(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    return at == maker_.end() ? nullptr : std::get_if<Constant>(&graph_.nodes[at->second].made_by);
  }

  // The source of a reshape; null for other tensors.
  Buffer ReshapedBy(const Buffer& tensor) const {
    const auto at = maker_.find(tensor.get());
    const Reshape* reshape =
        at == maker_.end() ? nullptr : std::get_if<Reshape>(&graph_.nodes[at->second].made_by);
    return reshape == nullptr ? nullptr : reshape->source;
  }

  // A sum of products of a tensor and a matrix of constants.
  bool IsProduct(const Stage& stage) const {
    if (!SumsProducts(stage) || stage.reduce_axes.size() != 1) return false;
    int constants = 0, matrices = 0;
    for (const Buffer& read : TensorsIn(stage.value)) {
      const bool is_constant = ConstantOf(read) != nullptr;
      constants += is_constant;
      matrices += is_constant && read->rank() == 2 && read->shape[0] > 1 && read->shape[1] > 1;
    }
    return constants == 1 && matrices == 1 && TensorsIn(stage.value).size() == 2;
  }

  // Whether a stage behind a chain belongs to it: element by element, with nothing but constants beside.
  bool Continues(const Stage& stage, const Buffer& before) const {
    if (stage.reduce != ReduceOp::kNone || !ReadsElementwise(stage, before)) return false;
    for (const Buffer& read : TensorsIn(stage.value)) {
      if (read != before && ConstantOf(read) == nullptr) return false;
    }
    return true;
  }

  ProductChain ChainOf(size_t product) const {
    ProductChain chain = {product};
    while (true) {
      const Buffer& result = graph_.nodes[chain.back()].outputs[0];
      const auto readers = readers_.find(result.get());
      if (readers == readers_.end() || readers->second.size() != 1 || outputs_.count(result.get()))
        return chain;
      const Stage* next = std::get_if<Stage>(&graph_.nodes[readers->second[0]].made_by);
      if (next == nullptr || !Continues(*next, result)) return chain;
      chain.push_back(readers->second[0]);
    }
  }

  // Equal for chains that can be merged: all but which constants they read.
  std::string TextOf(const ProductChain& chain) const {
    std::string text;
    std::unordered_map<const BufferNode*, size_t> numbers;
    for (size_t i : chain) {
      const Stage& stage = StageAt(i);
      const BufferNode& output = *stage.output;
      std::unordered_map<const VarNode*, std::string> names;
      for (const Var& axis : stage.axes) names[axis.get()] = absl::StrCat("a", names.size());
      for (const Var& axis : stage.reduce_axes)
        names[axis.get()] = absl::StrCat("r", names.size(), ":", axis->extent);
      const std::vector<Buffer> reads = TensorsIn(stage.value);
      const Expr alike = Rewrite(stage.value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad) return nullptr;
        const auto own = numbers.find(e->buffer.get());
        if (own == numbers.end() && ConstantOf(e->buffer) == nullptr) return nullptr;
        const auto place = std::ranges::find(reads, e->buffer) - reads.begin();
        const std::string name = own == numbers.end()
                                     ? absl::StrCat("constant", place, "_", DTypeName(e->dtype), "_",
                                                    absl::StrJoin(e->buffer->shape, "_"))
                                     : absl::StrCat("stage_", own->second);
        return Load(MakeBuffer(name, e->dtype, e->buffer->shape), e->args);
      });
      PrintNames print;
      print.var = [&](const VarNode& var) { return names.at(&var); };
      absl::StrAppend(&text, TypeText(output.dtype, output.shape), " ",
                      std::string(ReduceOpName(stage.reduce)), " ", PrintExpr(alike, print), "\n");
      numbers[&output] = numbers.size();
    }
    return text;
  }

  void AddMerged(const std::vector<ProductChain>& chains, std::vector<Node>* nodes) const {
    const auto count = static_cast<int64_t>(chains.size());
    std::vector<std::string> origins;
    for (const ProductChain& chain : chains) {
      for (size_t i : chain)
        origins.insert(origins.end(), graph_.nodes[i].origins.begin(), graph_.nodes[i].origins.end());
    }
    std::unordered_map<const BufferNode*, Buffer> merged;  // of the first chain's tensors
    for (size_t k = 0; k < chains[0].size(); ++k) {
      Stage stage = StageAt(chains[0][k]);
      const Var part = MakeVar("p", count);
      std::vector<std::vector<Buffer>> reads;  // of each chain, in one order
      reads.reserve(chains.size());
      for (const ProductChain& chain : chains) reads.push_back(TensorsIn(StageAt(chain[k]).value));
      for (size_t r = 0; r < reads[0].size(); ++r) {
        if (ConstantOf(reads[0][r]) == nullptr) continue;
        std::vector<Constant> parts;
        parts.reserve(reads.size());
        for (const auto& of_chain : reads) parts.push_back(*ConstantOf(of_chain[r]));
        merged[reads[0][r].get()] = AddStacked(reads[0][r], parts, nodes);
      }
      stage.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad || !merged.count(e->buffer.get())) return nullptr;
        std::vector<Expr> indices = {VarRef(part)};
        indices.insert(indices.end(), e->args.begin(), e->args.end());
        return Load(merged.at(e->buffer.get()), std::move(indices));
      });
      stage.axes.insert(stage.axes.begin(), part);
      const Buffer old = stage.output;
      std::vector<int64_t> shape = old->shape;
      shape.insert(shape.begin(), count);
      stage.output = MakeBuffer(old->name + "_m", old->dtype, std::move(shape));
      merged[old.get()] = stage.output;
      nodes->push_back({{stage.output}, std::move(stage), origins});
    }
    for (int64_t i = 0; i < count; ++i) {
      const Node& last = graph_.nodes[chains[i].back()];
      nodes->push_back({last.outputs,
                        Reshape{merged.at(graph_.nodes[chains[0].back()].outputs[0].get()),
                                i * last.outputs[0]->num_elements()},
                        last.origins});
    }
  }

  static Buffer AddStacked(const Buffer& first, const std::vector<Constant>& parts,
                           std::vector<Node>* nodes) {
    NDArray stacked{first->dtype, first->shape, {}};
    stacked.shape.insert(stacked.shape.begin(), static_cast<int64_t>(parts.size()));
    for (const Constant& part : parts)
      stacked.bytes.insert(stacked.bytes.end(), part->bytes.begin(), part->bytes.end());
    const Buffer tensor = MakeBuffer(first->name + "_m", first->dtype, stacked.shape);
    nodes->push_back({{tensor}, std::make_shared<const NDArray>(std::move(stacked)), {}});
    return tensor;
  }

  const Graph graph_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::unordered_map<const BufferNode*, std::vector<size_t>> readers_;
  BufferSet outputs_;  // of the model, and the tensors that they are reshapes of
};

}  // namespace

Graph MergeProducts(Graph graph, const Target&) { return ProductMerger(std::move(graph)).Run(); }

}  // namespace mycc
