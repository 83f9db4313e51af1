#include "codegen/graph/passes/narrow_tensors.h"

#include <algorithm>
#include <cmath>

#include "codegen/expr/product.h"
#include "codegen/program/partition.h"

namespace mycc {
namespace {

// A sum of so few terms is as safe as element-wise arithmetic: an average over a small window.
constexpr int64_t kFewTerms = 32;
// Smaller tensors that no product reads stay as they are: their memory is no matter.
constexpr int64_t kFewElements = 4096;

bool IsPlainF32Load(const Expr& expr) { return expr->op == Op::kLoad && expr->dtype == DType::kF32; }

// A sum of products of two tensors. A sum of squares is none: it belongs to a norm or a variance.
bool IsSumOfProducts(const Stage& stage) {
  if (!SumsProducts(stage)) return false;
  const Expr &a = stage.value->args[0], &b = stage.value->args[1];
  return IsPlainF32Load(a) && IsPlainF32Load(b) && !StructurallyEqual(a, b);
}

// Whether a small change of an argument may change the result much, or makes it another choice.
bool IsSensitiveOperation(const ExprNode& e) {
  switch (e.op) {
    case Op::kExp:
    case Op::kLog:
    case Op::kPow:
    case Op::kSin:
    case Op::kCos:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kFloorDiv:
    case Op::kMod:
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe: return true;
    case Op::kCast: return !IsFloat(e.dtype);
    default: return false;
  }
}

// A comparison with a number, as activation functions have it: both sides meet there, or the sign decides.
bool IsThreshold(const Expr& condition) {
  const bool compares = condition->op == Op::kLt || condition->op == Op::kLe;
  return compares &&
         std::ranges::any_of(condition->args, [](const Expr& arg) { return arg->op == Op::kConst; });
}

// Whether the literal keeps a value in a range, and is none itself: min(x, 3e38).
bool IsLimit(const ExprNode& parent, double literal) {
  return (parent.op == Op::kMin && literal > 0) || (parent.op == Op::kMax && literal < 0);
}

double LargestOf(DType dtype) { return dtype == DType::kF16 ? 65504 : 0x1.fep127; }

bool AllFit(const NDArray& values, double largest) {
  if (values.dtype != DType::kF32) return true;
  for (int64_t i = 0, count = values.num_elements(); i < count; ++i) {
    if (!(std::abs(values.Get(i).f) <= largest)) return false;
  }
  return true;
}

}  // namespace

std::vector<const ExprNode*> MovedLoads(const Expr& value) {
  if (value->op == Op::kLoad) return {value.get()};
  if (value->op != Op::kSelect) return {};
  std::vector<const ExprNode*> loads = MovedLoads(value->args[1]);
  const std::vector<const ExprNode*> others = MovedLoads(value->args[2]);
  loads.insert(loads.end(), others.begin(), others.end());
  return loads;
}

bool IsMoveOfElements(const Stage& stage) {
  const std::function<bool(const Expr&)> is_moved = [&](const Expr& e) {
    if (e->op == Op::kSelect) return is_moved(e->args[1]) && is_moved(e->args[2]);
    return e->op == Op::kLoad || e->op == Op::kConst;
  };
  return stage.reduce == ReduceOp::kNone && is_moved(stage.value) && !MovedLoads(stage.value).empty();
}

NarrowTensors::NarrowTensors(const Graph& graph, DType narrow)
    : graph_(graph), narrow_(narrow), maker_(Definitions(graph)) {
  FindTensorsBetweenKernels();
  FindProducts();
  for (const NamedTensor& output : graph.outputs) pinned_.insert(output.tensor.get());
  for (size_t i = graph.nodes.size(); i-- > 0;) LookAtReaders(graph.nodes[i]);
  for (const Node& node : graph.nodes) {
    const Buffer& output = node.outputs[0];
    const Stage* stage = std::get_if<Stage>(&node.made_by);
    const Reshape* reshape = std::get_if<Reshape>(&node.made_by);
    if (stage != nullptr ? IsChosen(*stage) : reshape != nullptr && IsStored(reshape->source))
      stored_.insert(output.get());
  }
}

bool NarrowTensors::IsExact(double literal) const { return RoundFloat(narrow_, literal) == literal; }

void NarrowTensors::FindTensorsBetweenKernels() {
  for (const KernelGroup& group : PartitionGraph(graph_)) {
    for (const Buffer& output : group.outputs) between_.insert(output.get());
  }
}

void NarrowTensors::FindProducts() {
  Tensors known;  // at compile time: rounding would gain nothing
  for (const Node& node : graph_.nodes) {
    const std::vector<Buffer> reads = ReadsOf(node);
    if (std::ranges::all_of(reads, [&](const Buffer& b) { return known.count(b.get()) > 0; }))
      known.insert(node.outputs[0].get());
    const Stage* stage = std::get_if<Stage>(&node.made_by);
    if (stage == nullptr || !IsSumOfProducts(*stage) || known.count(stage->output.get())) continue;
    if (!Fits(stage->value->args[0]->buffer) || !Fits(stage->value->args[1]->buffer)) continue;
    products_.insert(stage->output.get());
    for (const Expr& factor : stage->value->args) factors_.insert(factor->buffer.get());
  }
}

// Whether no value beyond the narrow type's range is in sight: among constants, or as a literal.
bool NarrowTensors::Fits(const Buffer& tensor) {
  const auto maker = maker_.find(tensor.get());
  if (maker == maker_.end()) return true;
  const auto known = fits_.find(tensor.get());
  if (known != fits_.end()) return known->second;
  return fits_[tensor.get()] = ComputeFits(graph_.nodes[maker->second]);
}

bool NarrowTensors::ComputeFits(const Node& node) {
  if (const Constant* constant = std::get_if<Constant>(&node.made_by))
    return AllFit(**constant, LargestOf(narrow_));
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) return Fits(reshape->source);
  const Stage* stage = std::get_if<Stage>(&node.made_by);
  if (stage == nullptr) return true;
  if (!IsMoveOfElements(*stage)) return LiteralsFit(stage->value);
  const std::vector<const ExprNode*> loads = MovedLoads(stage->value);
  return std::ranges::all_of(loads, [&](const ExprNode* load) { return Fits(load->buffer); }) &&
         LiteralsFit(stage->value);
}

bool NarrowTensors::LiteralsFit(const Expr& expr) const {
  bool fit = true;
  Visit(expr, [&](const ExprNode& e) {
    for (const Expr& arg : e.args) {
      const bool is_literal = arg->op == Op::kConst && IsFloat(arg->dtype);
      if (is_literal && !IsLimit(e, arg->value.f) && !IsExact(arg->value.f))
        fit &= std::abs(arg->value.f) <= LargestOf(narrow_);
    }
  });
  return fit;
}

// Marks the tensors that a node reads. The node's own readers have marked its outputs before.
void NarrowTensors::LookAtReaders(const Node& node) {
  if (const Stage* stage = std::get_if<Stage>(&node.made_by)) return LookAtStage(*stage);
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
    for (Tensors* marks : {&pinned_, &sensitive_, &factors_}) {
      if (marks->count(node.outputs[0].get())) marks->insert(reshape->source.get());
    }
  }
  if (std::holds_alternative<LibraryCall>(node.made_by)) {
    for (const Buffer& read : ReadsOf(node)) pinned_.insert(read.get());
  }
}

void NarrowTensors::LookAtStage(const Stage& stage) {
  const BufferNode* output = stage.output.get();
  const bool is_move = IsMoveOfElements(stage);
  if (is_move) {
    for (const ExprNode* load : MovedLoads(stage.value)) {
      if (pinned_.count(output)) pinned_.insert(load->buffer.get());
      if (factors_.count(output)) factors_.insert(load->buffer.get());
    }
  }
  const int64_t terms = PointsOf(stage.reduce_axes);
  // A value that is computed on within the kernel passes its readers' demands on.
  const bool passes_on = is_move || !between_.count(output);
  bool is_sensitive = passes_on && sensitive_.count(output) > 0;
  switch (stage.reduce) {
    case ReduceOp::kNone:
    case ReduceOp::kMax:
    case ReduceOp::kMin: break;
    case ReduceOp::kSum:
      is_sensitive = products_.count(output) == 0 && (is_sensitive || terms > kFewTerms);
      break;
    default: is_sensitive = true;
  }
  MarkSensitive(stage.value, is_sensitive);
}

void NarrowTensors::MarkSensitive(const Expr& expr, bool is_sensitive) {
  if (expr->op == Op::kLoad) {
    if (is_sensitive) sensitive_.insert(expr->buffer.get());
    for (const Expr& index : expr->args) MarkSensitive(index, true);
    return;
  }
  if (expr->op == Op::kSelect && IsThreshold(expr->args[0])) {
    for (const Expr& side : expr->args[0]->args) MarkSensitive(side, is_sensitive);
    MarkSensitive(expr->args[1], is_sensitive);
    MarkSensitive(expr->args[2], is_sensitive);
    return;
  }
  for (const Expr& arg : expr->args) MarkSensitive(arg, is_sensitive || IsSensitiveOperation(*expr));
}

bool NarrowTensors::IsChosen(const Stage& stage) {
  const BufferNode* output = stage.output.get();
  if (output->dtype != DType::kF32 || pinned_.count(output)) return false;
  if (IsMoveOfElements(stage)) {
    const std::vector<const ExprNode*> loads = MovedLoads(stage.value);
    const bool is_narrow =
        std::ranges::all_of(loads, [&](const ExprNode* load) { return IsStored(load->buffer); });
    // Its source was rounded already.
    if (is_narrow && LiteralsFit(stage.value)) return true;
  }
  const bool pays = factors_.count(output) > 0 || output->num_elements() >= kFewElements;
  return pays && between_.count(output) > 0 && sensitive_.count(output) == 0 && Fits(stage.output);
}

}  // namespace mycc
