// Mixed precision: products take their operands in a narrow type and accumulate in f32; tensors between
// kernels are stored narrow where rounding them is safe (narrow_tensors.h decides it). All other arithmetic
// stays in f32, between loads that widen and stores that narrow. Inputs and outputs of the model keep their
// types.
//
//   before                                          after
//   y[i,j]: f32 = sum[k](x[i,k] * w[k,j])           y[i,j]: f32 = sum[k](f32(x_bf16[i,k]) * f32(w_bf16[k,j]))
//   z[i,j]: f32 = max(y[i,j], 0.0)                  z_bf16[i,j]: bf16 = bf16(max(y[i,j], 0.0))
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/graph/builder.h"
#include "codegen/graph/passes/narrow_tensors.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

class PrecisionMixer {
 public:
  PrecisionMixer(Graph graph, DType narrow)
      : graph_(std::move(graph)), narrow_(narrow), choice_(graph_, narrow), maker_(Definitions(graph_)) {}

  Graph Run() {
    for (const Node& node : graph_.nodes) {
      if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
        AddStage(node, *stage);
      } else if (std::holds_alternative<Reshape>(node.made_by) && choice_.IsStored(node.outputs[0])) {
        Narrowed(node.outputs[0]);
      } else {
        nodes_.push_back(node);
      }
    }
    Graph result{graph_.name, graph_.inputs, graph_.outputs, std::move(nodes_)};
    RemoveDeadNodes(&result);
    return result;
  }

 private:
  void AddStage(const Node& node, const Stage& stage) {
    if (!choice_.IsStored(stage.output)) {
      nodes_.push_back({node.outputs, WithValue(stage, stage.output, Widened(stage)), node.origins});
      return;
    }
    if (IsMoveOfStored(stage)) {
      AddNarrow(stage.output, node.origins, Moved(stage.value), stage);
    } else if (stage.reduce == ReduceOp::kNone) {
      AddNarrow(stage.output, node.origins, MakeCast(narrow_, Widened(stage)), stage);
    } else {
      // A reduction's result has the type of its sum.
      nodes_.push_back({node.outputs, WithValue(stage, stage.output, Widened(stage)), node.origins});
      AddCast(stage.output, node.origins);
    }
  }

  static Stage WithValue(Stage stage, const Buffer& output, Expr value) {
    stage.output = output;
    stage.value = std::move(value);
    return stage;
  }

  bool IsMoveOfStored(const Stage& stage) const {
    if (!IsMoveOfElements(stage)) return false;
    bool all = true;
    for (const ExprNode* load : MovedLoads(stage.value)) all &= choice_.IsStored(load->buffer);
    return all;
  }

  // The stage's value in f32.
  Expr Widened(const Stage& stage) {
    if (!choice_.IsNarrowProduct(stage)) return Widened(stage.value);
    const auto factor = [&](const Expr& load) {
      std::vector<Expr> indices;
      for (const Expr& index : load->args) indices.push_back(Widened(index));
      return MakeCast(DType::kF32, Load(Narrowed(load->buffer), std::move(indices)));
    };
    // The order of the two in the graph does not depend on the compiler.
    const Expr a = factor(stage.value->args[0]);
    const Expr b = factor(stage.value->args[1]);
    return a * b;
  }

  Expr Widened(const Expr& value) {
    return Rewrite(value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || !choice_.IsStored(e->buffer)) return nullptr;
      return MakeCast(DType::kF32, Load(Narrowed(e->buffer), e->args));
    });
  }

  // The value of a move, of narrow elements. Elements in f32 are rounded on the way.
  Expr Moved(const Expr& value) {
    if (value->op == Op::kSelect) {
      const Expr then = Moved(value->args[1]);
      return MakeSelect(Widened(value->args[0]), then, Moved(value->args[2]));
    }
    if (value->op == Op::kConst) return FloatConst(RoundFloat(narrow_, value->value.f), narrow_);
    if (!IsNarrowAnyway(value->buffer)) return MakeCast(narrow_, Load(value->buffer, value->args));
    return Load(Narrowed(value->buffer), value->args);
  }

  // Whether the tensor is there in the narrow type, or becomes so at compile time.
  bool IsNarrowAnyway(const Buffer& tensor) const {
    const auto maker = maker_.find(tensor.get());
    const bool is_constant =
        maker != maker_.end() && std::holds_alternative<Constant>(graph_.nodes[maker->second].made_by);
    return is_constant || choice_.IsStored(tensor) || narrowed_.count(tensor.get()) > 0;
  }

  // The tensor in the narrow type: as it is stored, or a copy for those products that read it.
  Buffer Narrowed(const Buffer& tensor) {
    const auto known = narrowed_.find(tensor.get());
    if (known != narrowed_.end()) return known->second;
    const auto maker = maker_.find(tensor.get());
    if (maker == maker_.end())
      return AddCast(tensor, {absl::StrCat("Cast ", InputName(tensor), " to ", DTypeName(narrow_))});
    const Node& node = graph_.nodes[maker->second];
    if (const Constant* constant = std::get_if<Constant>(&node.made_by)) {
      const Buffer narrow = NewNarrow(tensor);
      nodes_.push_back({{narrow}, Rounded(**constant), node.origins});
      return narrow;
    }
    if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
      const Buffer source = Narrowed(reshape->source);
      const Buffer narrow = NewNarrow(tensor);
      nodes_.push_back({{narrow}, Reshape{source}, node.origins});
      return narrow;
    }
    const Stage* stage = std::get_if<Stage>(&node.made_by);
    // Padding within the product's kernel moves narrow elements, or makes them so.
    if (stage != nullptr && IsMoveOfElements(*stage) && !choice_.IsBetweenKernels(tensor)) {
      const Stage copy = WithNewAxes(*stage);
      return AddNarrow(tensor, node.origins, Moved(copy.value), copy);
    }
    return AddCast(tensor, node.origins);
  }

  std::string InputName(const Buffer& tensor) const {
    for (const NamedTensor& input : graph_.inputs) {
      if (input.tensor == tensor) return input.name;
    }
    return tensor->name;
  }

  Constant Rounded(const NDArray& values) const {
    NDArray rounded = NDArray::Zeros(narrow_, values.shape);
    for (int64_t i = 0, count = values.num_elements(); i < count; ++i) rounded.Set(i, values.Get(i));
    return std::make_shared<const NDArray>(std::move(rounded));
  }

  Buffer AddCast(const Buffer& tensor, const std::vector<std::string>& origins) {
    Stage cast;
    std::vector<Expr> indices;
    for (int64_t extent : tensor->shape) {
      cast.axes.push_back(MakeVar(absl::StrCat("a", indices.size()), extent));
      indices.push_back(VarRef(cast.axes.back()));
    }
    return AddNarrow(tensor, origins, MakeCast(narrow_, Load(tensor, std::move(indices))), cast);
  }

  // The stage that stores `value` as the narrow form of a tensor, with the axes of `stage`.
  Buffer AddNarrow(const Buffer& tensor, const std::vector<std::string>& origins, Expr value,
                   const Stage& stage) {
    const Buffer narrow = NewNarrow(tensor);
    nodes_.push_back({{narrow}, WithValue(stage, narrow, std::move(value)), origins});
    return narrow;
  }

  // A second stage of the same kernel has axes of its own.
  static Stage WithNewAxes(Stage stage) {
    VarMap axes;
    for (Var& axis : stage.axes) {
      const Var old = std::exchange(axis, MakeVar(axis->name, axis->extent));
      axes[old.get()] = VarRef(axis);
    }
    stage.value = Substitute(stage.value, axes);
    return stage;
  }

  Buffer NewNarrow(const Buffer& tensor) {
    const std::string name = absl::StrCat(tensor->name, "_", DTypeName(narrow_));
    return narrowed_[tensor.get()] = MakeBuffer(name, narrow_, tensor->shape);
  }

  const Graph graph_;
  const DType narrow_;
  const NarrowTensors choice_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  std::unordered_map<const BufferNode*, Buffer> narrowed_;
  std::vector<Node> nodes_;
};

}  // namespace

Graph MixPrecision(Graph graph, DType narrow) { return PrecisionMixer(std::move(graph), narrow).Run(); }

}  // namespace mycc
