// Computes single elements of a workload's outputs by the reference semantics, recursively, with memoized
// stages.
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "codegen/expr/eval.h"
#include "codegen/workload/accumulator.h"
#include "codegen/workload/reference.h"

namespace mycc {

// Elements are computed when they are first read, and kept.
struct SampledReference::Impl {
  Impl(const Workload& w, InputElements elements_of) : workload(w), inputs(std::move(elements_of)) {
    for (size_t k = 0; k < workload.inputs.size(); ++k) numbers[workload.inputs[k].tensor.get()] = k;
    for (const Stage& stage : workload.stages) stages[stage.output.get()].stage = &stage;
  }

  Scalar Element(const BufferNode& tensor, int64_t flat) {
    if (const auto input = numbers.find(&tensor); input != numbers.end()) return inputs(input->second, flat);
    StageElements& elements = stages.at(&tensor);
    if (const auto known = elements.known.find(flat); known != elements.known.end()) return known->second;
    const Scalar value = Compute(*elements.stage, flat);
    elements.known.emplace(flat, value);
    return value;
  }

  Scalar Compute(const Stage& stage, int64_t flat);

  struct StageElements {
    const Stage* stage = nullptr;
    std::unordered_map<int64_t, Scalar> known;
  };

  const Workload workload;
  const InputElements inputs;
  std::unordered_map<const BufferNode*, size_t> numbers;  // of the inputs
  std::unordered_map<const BufferNode*, StageElements> stages;
};

namespace {

// One point of one stage.
class PointContext : public EvalContext {
 public:
  using Read = std::function<Scalar(const BufferNode&, int64_t)>;
  PointContext(const std::vector<Var>& axes, Read read)
      : axes_(axes), values_(axes.size()), read_(std::move(read)) {}

  void MoveTo(int64_t point) {
    for (size_t k = axes_.size(); k-- > 0;) {
      values_[k] = point % axes_[k]->extent;
      point /= axes_[k]->extent;
    }
  }

  int64_t VarValue(const VarNode& var) const override {
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (axes_[k].get() == &var) return values_[k];
    }
    MYCC_CHECK(false) << var.name << " is no axis of the stage";
    return 0;
  }

  Scalar LoadElement(const BufferNode& buffer, const std::vector<int64_t>& indices) const override {
    int64_t flat = 0;
    for (int d = 0; d < buffer.rank(); ++d) {
      MYCC_CHECK(indices[d] >= 0 && indices[d] < buffer.shape[d])
          << buffer.name << " read at " << indices[d] << " in dimension " << d;
      flat = flat * buffer.shape[d] + indices[d];
    }
    return read_(buffer, flat);
  }

 private:
  const std::vector<Var> axes_;
  std::vector<int64_t> values_;
  const Read read_;
};

}  // namespace

Scalar SampledReference::Impl::Compute(const Stage& stage, int64_t flat) {
  std::vector<Var> axes = stage.axes;
  axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  const int64_t points = PointsOf(stage.reduce_axes);
  PointContext context(
      axes, [this](const BufferNode& tensor, int64_t position) { return Element(tensor, position); });
  if (stage.reduce == ReduceOp::kNone) {
    context.MoveTo(flat);
    return Evaluate(stage.value, context);
  }
  Accumulator accumulator(stage.reduce, stage.value->dtype);
  for (int64_t point = 0; point < points; ++point) {
    context.MoveTo(flat * points + point);
    accumulator.Add(Evaluate(stage.value, context));
  }
  return accumulator.Result();
}

InputElements StoredElements(const std::vector<NDArray>& inputs) {
  return [&inputs](size_t input, int64_t flat) { return inputs.at(input).Get(flat); };
}

SampledReference::SampledReference(const Workload& workload, InputElements inputs)
    : impl_(std::make_unique<Impl>(workload, std::move(inputs))) {}
SampledReference::~SampledReference() = default;

Scalar SampledReference::Output(int output, int64_t flat) {
  return impl_->Element(*impl_->workload.outputs[output], flat);
}

}  // namespace mycc
