#include "codegen/graph/builder.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/workload/check.h"

namespace mycc {
namespace {

// Stages of more points stay: the compiler computes them when it packs the weights.
constexpr int64_t kMostFoldedPoints = int64_t{1} << 22;
// Foldings of no more elements are done in any case: shapes and indices are computed with them.
constexpr int64_t kSmallFolding = int64_t{1} << 12;

std::vector<Var> AxesOf(const std::vector<int64_t>& shape, const char* prefix) {
  std::vector<Var> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back(MakeVar(absl::StrCat(prefix, i), shape[i]));
  return axes;
}

Axes Refs(const std::vector<Var>& vars) {
  Axes refs;
  for (const Var& var : vars) refs.push_back(VarRef(var));
  return refs;
}

// Whether the stage copies a tensor of its own shape.
bool IsCopy(const Stage& stage) {
  if (stage.reduce != ReduceOp::kNone || stage.value->op != Op::kLoad) return false;
  if (stage.value->buffer->shape != stage.output->shape) return false;
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    const Expr& index = stage.value->args[i];
    const bool same = index->op == Op::kVar && index->var == stage.axes[i];
    if (!same && !(stage.axes[i]->extent == 1 && IsConstInt(index, int64_t{0}))) return false;
  }
  return true;
}

}  // namespace

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

GraphBuilder GraphBuilder::Rewriting(const Graph& graph) {
  GraphBuilder builder(graph.name);
  builder.graph_.inputs = graph.inputs;
  // Names of the new tensors begin behind those that are there.
  for (const Node& node : graph.nodes) builder.next_name_ += static_cast<int64_t>(node.outputs.size()) + 1;
  builder.next_name_ += static_cast<int64_t>(graph.inputs.size());
  const auto beyond = [&](const Buffer& tensor) {
    if (tensor->name.size() < 2 || tensor->name[0] != 'v') return;
    builder.next_name_ = std::max<int64_t>(builder.next_name_, std::atoll(tensor->name.c_str() + 1) + 1);
  };
  for (const NamedTensor& input : graph.inputs) beyond(input.tensor);
  for (const Node& node : graph.nodes) std::ranges::for_each(node.outputs, beyond);
  return builder;
}

Buffer GraphBuilder::AddInput(const std::string& name, DType dtype, std::vector<int64_t> shape,
                              bool is_text) {
  graph_.inputs.push_back({name, MakeBuffer(FreshName(), dtype, std::move(shape)), is_text});
  return graph_.inputs.back().tensor;
}

Buffer GraphBuilder::AddConstant(Constant value) {
  const Buffer tensor = MakeBuffer(FreshName(), value->dtype, value->shape);
  constants_[tensor.get()] = value;
  graph_.nodes.push_back({{tensor}, std::move(value), origins_});
  return tensor;
}

Buffer GraphBuilder::Number(DType dtype, double value) {
  NDArray array = NDArray::Zeros(dtype, {});
  array.Set(0, Scalar{value, IsFloat(dtype) ? 0 : static_cast<int64_t>(value)});
  return AddConstant(std::move(array));
}

Buffer GraphBuilder::Ints(const std::vector<int64_t>& values) {
  NDArray array = NDArray::Zeros(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.Set(static_cast<int64_t>(i), Scalar{0, values[i]});
  return AddConstant(std::move(array));
}

const NDArray* GraphBuilder::ValueOf(const Buffer& tensor) const {
  const auto at = constants_.find(tensor.get());
  return at == constants_.end() ? nullptr : at->second.get();
}

std::vector<std::string> GraphBuilder::InputsOf(const Buffer& tensor) const {
  BufferSet needed = {tensor.get()};
  // Nodes stand behind those that they read.
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const Node& node = graph_.nodes[i];
    const bool is_needed =
        std::ranges::any_of(node.outputs, [&](const Buffer& b) { return needed.count(b.get()) > 0; });
    if (!is_needed) continue;
    for (const Buffer& read : ReadsOf(node)) needed.insert(read.get());
  }
  std::vector<std::string> names;
  for (const NamedTensor& input : graph_.inputs) {
    if (needed.count(input.tensor.get()) == 0) continue;
    if (input.is_text) return {};
    names.push_back(input.name);
  }
  return names;
}

// Whether elements may still be computed or read by foldings, which they are counted for.
bool GraphBuilder::MayFold(int64_t elements) {
  if (elements <= kSmallFolding) return true;
  if (elements > foldable_) return false;
  foldable_ -= elements;
  return true;
}

// Computes the stage now where it reads constants alone and is small; a tensor without elements has no other
// value than its shape.
bool GraphBuilder::Fold(const Stage& stage, Buffer* folded) {
  if (stage.output->num_elements() == 0) {
    *folded = AddConstant(NDArray::Zeros(stage.output->dtype, stage.output->shape));
    return true;
  }
  int64_t points = stage.output->num_elements();
  for (const Var& axis : stage.reduce_axes) points *= axis->extent;
  if (points > kMostFoldedPoints) return false;
  Workload workload{"folded", {}, {stage.output}, {stage}};
  int64_t elements = points;
  for (const Buffer& load : TensorsIn(stage.value)) {
    const NDArray* value = ValueOf(load);
    if (value == nullptr || value->num_elements() > 4 * kMostFoldedPoints) return false;
    elements += value->num_elements();
    workload.inputs.push_back({load, false});
  }
  if (!MayFold(elements)) return false;
  std::vector<NDArray> inputs;
  for (const Argument& input : workload.inputs) inputs.push_back(*ValueOf(input.tensor));
  auto outputs = RunReference(workload, inputs);
  if (!outputs.ok()) {
    Fail(outputs.status());
    return false;
  }
  *folded = AddConstant(std::move((*outputs)[0]));
  return true;
}

// The same for a library call: `outputs` become constants.
bool GraphBuilder::FoldCall(const LibraryCall& call, std::vector<Buffer>* outputs) {
  int64_t elements = 0;
  for (const Buffer& output : *outputs) elements += output->num_elements();
  std::vector<NDArray> results;
  if (elements == 0) {
    for (const Buffer& output : *outputs) results.push_back(NDArray::Zeros(output->dtype, output->shape));
  } else {
    if (MakesTexts(call.function)) return false;
    std::vector<const NDArray*> inputs;
    for (const Buffer& input : call.inputs) {
      inputs.push_back(ValueOf(input));
      if (inputs.back() == nullptr) return false;
      elements += input->num_elements();
    }
    if (elements > kMostFoldedPoints || !MayFold(elements)) return false;
    auto run = RunLibraryCall(call, *outputs, inputs);
    if (!run.ok()) {
      Fail(run.status());
      return false;
    }
    results = std::move(*run);
  }
  for (size_t i = 0; i < results.size(); ++i) (*outputs)[i] = AddConstant(std::move(results[i]));
  return true;
}

Buffer GraphBuilder::AddStage(Stage stage) {
  if (IsCopy(stage)) return stage.value->buffer;
  if (!status_.ok()) return stage.output;
  BufferSet readable;
  for (const Buffer& load : TensorsIn(stage.value)) readable.insert(load.get());
  if (const auto problem = CheckStage(stage, readable)) {
    Fail(absl::InternalError(absl::StrCat("its stage is not sound: ", problem->message)));
    return stage.output;
  }
  Buffer folded;
  if (Fold(stage, &folded)) return folded;
  Buffer output = stage.output;
  graph_.nodes.push_back({{output}, std::move(stage), origins_});
  return output;
}

Buffer GraphBuilder::Map(const std::vector<int64_t>& shape, const std::function<Expr(const Axes&)>& value) {
  Stage stage;
  stage.axes = AxesOf(shape, "a");
  stage.value = value(Refs(stage.axes));
  stage.output = MakeBuffer(FreshName(), stage.value->dtype, shape);
  return AddStage(std::move(stage));
}

Buffer GraphBuilder::Reduce(ReduceOp op, const std::vector<int64_t>& shape,
                            const std::vector<int64_t>& reduced,
                            const std::function<Expr(const Axes&, const Axes&)>& value) {
  Stage stage;
  stage.reduce = op;
  stage.axes = AxesOf(shape, "a");
  const bool is_arg = op == ReduceOp::kArgMax || op == ReduceOp::kArgMin;
  // A reduction over one value is none along that axis.
  Axes reduce_refs;
  for (const Var& axis : AxesOf(reduced, "r")) {
    const bool is_kept = is_arg || axis->extent != 1;
    if (is_kept) stage.reduce_axes.push_back(axis);
    reduce_refs.push_back(is_kept ? VarRef(axis) : IntConst(0));
  }
  if (stage.reduce_axes.empty()) stage.reduce = ReduceOp::kNone;
  stage.value = value(Refs(stage.axes), reduce_refs);
  stage.output = MakeBuffer(FreshName(), is_arg ? DType::kI32 : stage.value->dtype, shape);
  return AddStage(std::move(stage));
}

Buffer GraphBuilder::AddReshape(const Buffer& source, std::vector<int64_t> shape) {
  MYCC_CHECK(ElementsOf(shape) == source->num_elements()) << source->name;
  const auto first = reshaped_.find(source.get());
  const Buffer from = first == reshaped_.end() ? source : first->second;
  if (from->shape == shape) return from;
  if (const NDArray* value = ValueOf(from)) {
    NDArray reshaped = *value;
    reshaped.shape = std::move(shape);
    return AddConstant(std::move(reshaped));
  }
  const Buffer tensor = MakeBuffer(FreshName(), from->dtype, std::move(shape));
  reshaped_[tensor.get()] = from;
  graph_.nodes.push_back({{tensor}, Reshape{from}, origins_});
  return tensor;
}

Buffer GraphBuilder::Cast(const Buffer& source, DType dtype) {
  if (source->dtype == dtype) return source;
  return Map(source->shape, [&](const Axes& axes) { return MakeCast(dtype, Load(source, axes)); });
}

std::vector<Buffer> GraphBuilder::Call(const std::string& function, std::vector<int64_t> attributes,
                                       std::vector<Buffer> inputs,
                                       const std::vector<std::pair<DType, std::vector<int64_t>>>& outputs) {
  Node node;
  for (const auto& [dtype, shape] : outputs) node.outputs.push_back(MakeBuffer(FreshName(), dtype, shape));
  LibraryCall call{function, std::move(attributes), std::move(inputs)};
  if (FoldCall(call, &node.outputs)) return node.outputs;
  node.made_by = std::move(call);
  node.origins = origins_;
  graph_.nodes.push_back(node);
  return node.outputs;
}

Buffer GraphBuilder::AddTexts(const std::vector<std::string>& texts, std::vector<int64_t> shape) {
  NDArray bytes{DType::kU8, {}, {}};
  for (const std::string& text : texts) {
    bytes.bytes.insert(bytes.bytes.end(), text.begin(), text.end());
    bytes.bytes.push_back(0);
  }
  bytes.shape = {static_cast<int64_t>(bytes.bytes.size())};
  return Call("texts", {}, {AddConstant(std::move(bytes))}, {{DType::kU64, std::move(shape)}})[0];
}

void GraphBuilder::AddNode(Node node) {
  if (const Constant* constant = std::get_if<Constant>(&node.made_by))
    constants_[node.outputs[0].get()] = *constant;
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by))
    reshaped_[node.outputs[0].get()] = reshape->source;
  graph_.nodes.push_back(std::move(node));
}

Graph GraphBuilder::Finish() {
  RemoveDeadNodes(&graph_);
  return std::move(graph_);
}

Expr BroadcastLoad(const Buffer& tensor, const Axes& axes) {
  MYCC_CHECK(tensor->shape.size() <= axes.size()) << tensor->name;
  const size_t skipped = axes.size() - tensor->shape.size();
  Axes indices;
  for (size_t i = 0; i < tensor->shape.size(); ++i)
    indices.push_back(tensor->shape[i] == 1 ? IntConst(0) : axes[skipped + i]);
  return Load(tensor, std::move(indices));
}

void RemoveDeadNodes(Graph* graph) {
  BufferSet needed;
  for (const NamedTensor& output : graph->outputs) needed.insert(output.tensor.get());
  std::vector<Node> kept;
  for (size_t i = graph->nodes.size(); i-- > 0;) {
    Node& node = graph->nodes[i];
    const bool is_needed =
        std::ranges::any_of(node.outputs, [&](const Buffer& b) { return needed.count(b.get()) > 0; });
    if (!is_needed) continue;
    for (const Buffer& read : ReadsOf(node)) needed.insert(read.get());
    kept.push_back(std::move(node));
  }
  std::ranges::reverse(kept);
  graph->nodes = std::move(kept);
}

}  // namespace mycc
