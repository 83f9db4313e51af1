// Computes single elements of a workload's outputs by the reference semantics, recursively, with memoized
// stages.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "codegen/workload/accumulator.h"
#include "codegen/workload/lanes.h"
#include "codegen/workload/reference.h"

namespace mycc {

// Elements are computed when they are first read, and kept.
struct SampledReference::Impl {
  struct StageElements {
    const Stage* stage = nullptr;
    std::optional<LaneProgram> program;  // once an element was computed
    std::unordered_map<int64_t, Scalar> known;
  };

  Impl(const Workload& w, InputElements elements_of) : workload(w), inputs(std::move(elements_of)) {
    for (size_t k = 0; k < workload.inputs.size(); ++k) numbers[workload.inputs[k].tensor.get()] = k;
    for (const Stage& stage : workload.stages) stages[stage.output.get()].stage = &stage;
  }

  bool Read(const LaneReads& reads) {
    if (const auto input = numbers.find(&reads.tensor); input != numbers.end())
      return reads.Fill([&](int64_t position) { return inputs(input->second, position); });
    StageElements& elements = stages.at(&reads.tensor);
    return reads.Fill([&](int64_t position) { return Element(&elements, position); });
  }

  Scalar Element(StageElements* elements, int64_t flat) {
    if (const auto known = elements->known.find(flat); known != elements->known.end()) return known->second;
    const Scalar value = Compute(elements, flat);
    elements->known.emplace(flat, value);
    return value;
  }

  Scalar Compute(StageElements* elements, int64_t flat) {
    const Stage& stage = *elements->stage;
    const int64_t points = PointsOf(stage.reduce_axes);
    if (!elements->program) elements->program.emplace(stage);
    LaneProgram& program = *elements->program;
    const auto run = [&](int64_t first, int count) {
      MYCC_CHECK(program.Run(first, count, [this](const LaneReads& reads) { return Read(reads); }))
          << "stage " << stage.output->name << " reads outside a tensor";
    };
    if (stage.reduce == ReduceOp::kNone) {
      run(flat, 1);
      return program.value(0);
    }
    Accumulator accumulator(stage.reduce, stage.value->dtype);
    for (int64_t done = 0; done < points; done += kLanes) {
      const int count = static_cast<int>(std::min<int64_t>(kLanes, points - done));
      run(flat * points + done, count);
      for (int lane = 0; lane < count; ++lane) accumulator.Add(program.value(lane));
    }
    return accumulator.Result();
  }

  const Workload workload;
  const InputElements inputs;
  std::unordered_map<const BufferNode*, size_t> numbers;  // of the inputs
  std::unordered_map<const BufferNode*, StageElements> stages;
};

InputElements StoredElements(const std::vector<NDArray>& inputs) {
  return [&inputs](size_t input, int64_t flat) { return inputs.at(input).Get(flat); };
}

SampledReference::SampledReference(const Workload& workload, InputElements inputs)
    : impl_(std::make_unique<Impl>(workload, std::move(inputs))) {}
SampledReference::~SampledReference() = default;

Scalar SampledReference::Output(int output, int64_t flat) {
  return impl_->Element(&impl_->stages.at(impl_->workload.outputs[output].get()), flat);
}

}  // namespace mycc
