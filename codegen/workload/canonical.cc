#include "codegen/workload/canonical.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "codegen/workload/order.h"
#include "codegen/workload/print.h"

namespace mycc {
namespace {

// Calls `visit` on the tensors that an expression reads, in textual order.
void VisitReads(const Expr& expr, const std::function<void(const BufferNode*)>& visit) {
  Visit(expr, [&](const ExprNode& node) {
    if (node.op == Op::kLoad) visit(node.buffer.get());
  });
}

// 1. Which stages are alive, each with its operands in order.
// 2. Stages that compute the same become one; outputs, which are tensors of their own, stay.
// 3. Stages in the order in which the outputs, first to last, come to need them.
// 4. New names.
class Canonicalizer {
 public:
  explicit Canonicalizer(const Workload& workload) : workload_(workload), order_(workload) {}

  Workload Run() {
    OrderOperands();
    ChooseRepresentatives();
    for (const Buffer& output : workload_.outputs) Place(output.get());
    return Rename();
  }

  // After Run: by number.
  std::vector<Buffer> TakeOriginals() { return std::move(originals_); }

 private:
  void OrderOperands() {
    BufferSet live;
    for (const Buffer& output : workload_.outputs) live.insert(output.get());
    for (auto stage = workload_.stages.rbegin(); stage != workload_.stages.rend(); ++stage) {
      if (live.count(stage->output.get()) == 0) continue;
      VisitReads(stage->value, [&](const BufferNode* tensor) { live.insert(tensor); });
    }
    for (const Stage& stage : workload_.stages) {
      if (live.count(stage.output.get()) == 0) continue;
      Stage ordered = stage;
      ordered.value = order_.AddStage(stage);
      stages_.emplace(stage.output.get(), std::move(ordered));
    }
  }

  // An output replaces all stages that compute the same.
  void ChooseRepresentatives() {
    for (const Buffer& output : workload_.outputs)
      representatives_.emplace(order_.Digest(output.get()), output.get());
    for (const Stage& stage : workload_.stages) {
      if (stages_.count(stage.output.get()) > 0)
        representatives_.emplace(order_.Digest(stage.output.get()), stage.output.get());
    }
  }

  const BufferNode* Resolve(const BufferNode* tensor) const {
    return stages_.count(tensor) == 0 ? tensor : representatives_.at(order_.Digest(tensor));
  }

  void Place(const BufferNode* tensor) {
    const auto stage = stages_.find(tensor);
    if (stage == stages_.end() || !placed_.insert(tensor).second) return;
    VisitReads(stage->second.value, [&](const BufferNode* read) { Place(Resolve(read)); });
    sequence_.push_back(&stage->second);
  }

  Workload Rename() {
    Workload result;
    result.name = "w";
    for (const Argument& input : workload_.inputs)
      result.inputs.push_back({NewTensor(input.tensor), input.is_const});
    for (const Stage* stage : sequence_) result.stages.push_back(RenameStage(*stage));
    for (const Buffer& output : workload_.outputs) result.outputs.push_back(tensors_.at(output.get()));
    return result;
  }

  Buffer NewTensor(const Buffer& tensor) {
    Buffer renamed =
        MakeBuffer(absl::StrCat("t", tensors_.size()), tensor->dtype, tensor->shape, tensor->scope);
    tensors_.emplace(tensor.get(), renamed);
    originals_.push_back(tensor);
    return renamed;
  }

  Stage RenameStage(const Stage& stage) {
    Stage renamed;
    renamed.output = NewTensor(stage.output);
    renamed.reduce = stage.reduce;
    VarMap axes;
    const auto rename = [&](const std::vector<Var>& from, const char* prefix, std::vector<Var>* to) {
      for (const Var& axis : from) {
        to->push_back(MakeVar(absl::StrCat(prefix, to->size()), axis->extent));
        axes.emplace(axis.get(), VarRef(to->back()));
      }
    };
    rename(stage.axes, "a", &renamed.axes);
    rename(stage.reduce_axes, "r", &renamed.reduce_axes);
    renamed.value = Rewrite(stage.value, [&](const Expr& expr) -> Expr {
      if (expr->op == Op::kVar) return axes.at(expr->var.get());
      if (expr->op == Op::kLoad) return Load(tensors_.at(Resolve(expr->buffer.get())), expr->args);
      return nullptr;
    });
    return renamed;
  }

  const Workload& workload_;
  StageOrder order_;
  std::unordered_map<const BufferNode*, Stage> stages_;  // the live ones
  std::unordered_map<std::string, const BufferNode*> representatives_;
  BufferSet placed_;
  std::vector<const Stage*> sequence_;
  std::unordered_map<const BufferNode*, Buffer> tensors_;
  std::vector<Buffer> originals_;
};

}  // namespace

Workload Canonicalize(const Workload& workload) { return Canonicalizer(workload).Run(); }

std::vector<Buffer> OriginalTensors(const Workload& workload) {
  Canonicalizer canonicalizer(workload);
  canonicalizer.Run();
  return canonicalizer.TakeOriginals();
}

std::string CanonicalText(const Workload& workload) {
  std::string text = absl::StrCat("v1 ", PrintWorkload(Canonicalize(workload)));
  while (text.back() == '\n') text.pop_back();
  return text;
}

std::string WorkloadHash(const Workload& workload) { return Sha256Hex(CanonicalText(workload)); }

std::string ShapeErasedHash(const Workload& workload) { return Sha256Hex(ShapeErasedText(workload)); }

}  // namespace mycc
