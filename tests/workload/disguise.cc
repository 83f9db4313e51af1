// Rewrites a workload into another text with the same canonical form.
#include <algorithm>
#include <map>
#include <set>

#include "tests/workload/random_workload.h"

namespace mycc {
namespace {

class Disguiser {
 public:
  Disguiser(const Workload& workload, uint64_t seed) : dice_(seed), workload_(workload) {}

  Workload Run() {
    result_.name = "other";
    result_.count = workload_.count + 1;
    for (const Argument& input : workload_.inputs) {
      tensors_[input.tensor.get()] = {Renamed(input.tensor)};
      result_.inputs.push_back({tensors_[input.tensor.get()][0], input.is_const});
    }
    for (const Buffer& output : workload_.outputs) {
      const Buffer renamed = Renamed(output);
      outputs_[output.get()] = renamed;
      result_.outputs.push_back(renamed);
    }
    std::vector<const Stage*> waiting;
    for (const Stage& stage : workload_.stages) waiting.push_back(&stage);
    while (!waiting.empty()) {
      const size_t at = dice_.Below(static_cast<int64_t>(waiting.size()));
      if (!IsReady(*waiting[at])) continue;
      Emit(*waiting[at]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      if (dice_.Chance(20)) AddDeadStage();
    }
    return std::move(result_);
  }

 private:
  Buffer Renamed(const Buffer& tensor) {
    return MakeBuffer("n" + std::to_string(next_name_++ * 7919 % 1000003), tensor->dtype, tensor->shape);
  }

  bool IsReady(const Stage& stage) const {
    bool ready = true;
    Visit(stage.value, [&](const ExprNode& node) {
      ready &= node.op != Op::kLoad || tensors_.count(node.buffer.get()) > 0;
    });
    return ready;
  }

  // The stage, and perhaps a double of it; readers take either.
  void Emit(const Stage& stage) {
    const auto output = outputs_.find(stage.output.get());
    std::vector<Buffer> tensors = {output != outputs_.end() ? output->second : Renamed(stage.output)};
    if (dice_.Chance(25)) tensors.push_back(Renamed(stage.output));
    if (dice_.Chance(50)) std::ranges::reverse(tensors);
    for (const Buffer& tensor : tensors) result_.stages.push_back(Copy(stage, tensor));
    tensors_[stage.output.get()] = tensors;
  }

  Stage Copy(const Stage& stage, const Buffer& output) {
    Stage copy;
    copy.output = output;
    copy.reduce = stage.reduce;
    VarMap axes;
    const auto rename = [&](const std::vector<Var>& from, std::vector<Var>* to) {
      for (const Var& axis : from) {
        to->push_back(MakeVar("a" + std::to_string(next_name_++), axis->extent));
        axes.emplace(axis.get(), VarRef(to->back()));
      }
    };
    rename(stage.axes, &copy.axes);
    rename(stage.reduce_axes, &copy.reduce_axes);
    copy.value = Rewrite(stage.value, [&](const Expr& expr) -> Expr {
      if (expr->op == Op::kVar) return axes.at(expr->var.get());
      if (expr->op == Op::kLoad) return Load(dice_.Pick(tensors_.at(expr->buffer.get())), expr->args);
      if (IsCommutative(expr->op) && dice_.Chance(50))
        return MakeBinary(expr->op, expr->args[1], expr->args[0]);
      return nullptr;
    });
    return copy;
  }

  void AddDeadStage() {
    Stage stage;
    stage.output = MakeBuffer("dead" + std::to_string(next_name_++), DType::kF32, {2});
    stage.axes = {MakeVar("i", 2)};
    stage.value = FloatConst(static_cast<double>(dice_.Below(9)), DType::kF32);
    result_.stages.push_back(stage);
  }

  Dice dice_;
  const Workload& workload_;
  Workload result_;
  int64_t next_name_ = 1;
  std::map<const BufferNode*, std::vector<Buffer>> tensors_;
  std::map<const BufferNode*, Buffer> outputs_;
};

}  // namespace

Workload Disguise(const Workload& workload, uint64_t seed) { return Disguiser(workload, seed).Run(); }

}  // namespace mycc
