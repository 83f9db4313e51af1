#include "codegen/workload/reference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/accumulator.h"
#include "codegen/workload/lanes.h"

namespace mycc {
namespace {

// All tensors must fit in memory, widened to eight bytes an element; for larger ones use SampledReference.
constexpr int64_t kMaxReferenceElements = int64_t{1} << 29;

absl::Status CheckInputs(const Workload& workload, const std::vector<NDArray>& inputs) {
  if (inputs.size() != workload.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(workload.name, " got ", inputs.size(), " inputs; expected ", workload.inputs.size()));
  }
  int64_t elements = 0;
  for (const Stage& stage : workload.stages) elements += stage.output->num_elements();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BufferNode& tensor = *workload.inputs[i].tensor;
    elements += tensor.num_elements();
    if (inputs[i].dtype == tensor.dtype && inputs[i].shape == tensor.shape &&
        static_cast<int64_t>(inputs[i].bytes.size()) == tensor.bytes()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("input `", tensor.name, "` of ", workload.name, " is ",
                                                   TypeText(inputs[i].dtype, inputs[i].shape), "; expected ",
                                                   TypeText(tensor.dtype, tensor.shape)));
  }
  if (elements <= kMaxReferenceElements) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(workload.name, " has ", elements, " elements in all; expected at most ",
                   kMaxReferenceElements, " (sample single outputs of larger ones)"));
}

WideTensor Widen(const NDArray& array) {
  WideTensor wide;
  const int64_t count = array.num_elements();
  IsFloat(array.dtype) ? wide.f.reserve(count) : wide.i.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(array.dtype)) {
      wide.f.push_back(array.Get(i).f);
    } else {
      wide.i.push_back(array.Get(i).i);
    }
  }
  return wide;
}

NDArray Narrow(const BufferNode& tensor, const WideTensor& wide) {
  NDArray array = NDArray::Zeros(tensor.dtype, tensor.shape);
  const int64_t count = array.num_elements();
  for (int64_t i = 0; i < count; ++i)
    array.Set(i, IsFloat(tensor.dtype) ? Scalar{wide.f[i], 0} : Scalar{0, wide.i[i]});
  return array;
}

absl::Status OutOfBounds(const Stage& stage) {
  return absl::InternalError(
      absl::StrCat("stage ", stage.output->name, " reads outside a tensor; expected a validated workload"));
}

// Appends the stage's elements to `out` in order.
absl::Status RunStage(const Stage& stage, const WideTensors& tensors, WideTensor* out) {
  const bool result_is_float = IsFloat(stage.output->dtype);
  const auto append = [&](Scalar value) {
    result_is_float ? out->f.push_back(value.f) : out->i.push_back(value.i);
  };
  const int64_t elements = stage.output->num_elements();
  const int64_t per_element = PointsOf(stage.reduce_axes);
  if (per_element == 0) {
    for (int64_t i = 0; i < elements; ++i) append(ReduceIdentity(stage.reduce, stage.value->dtype)->value);
    return absl::OkStatus();
  }
  LaneProgram program(stage);
  const LaneReader read = [&](const LaneReads& reads) {
    const WideTensor& tensor = tensors.at(&reads.tensor);
    return IsFloat(reads.tensor.dtype) ? reads.Fill([&](int64_t at) {
      return Scalar{tensor.f[at], 0};
    })
                                       : reads.Fill([&](int64_t at) {
                                           return Scalar{0, tensor.i[at]};
                                         });
  };
  const bool reduces = stage.reduce != ReduceOp::kNone;
  Accumulator accumulator(reduces ? stage.reduce : ReduceOp::kSum,
                          reduces ? stage.value->dtype : DType::kF32);
  int64_t done = 0;  // points of the current element that are done
  const int64_t points = elements * per_element;
  for (int64_t first = 0; first < points; first += kLanes) {
    const int count = static_cast<int>(std::min<int64_t>(kLanes, points - first));
    if (!program.Run(first, count, read)) return OutOfBounds(stage);
    for (int lane = 0; lane < count; ++lane) {
      const Scalar value = program.value(lane);
      if (!reduces) {
        append(value);
        continue;
      }
      accumulator.Add(value);
      if (++done < per_element) continue;
      append(accumulator.Result());
      accumulator.Restart();
      done = 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace

NDArray NDArray::Zeros(DType dtype, std::vector<int64_t> shape) {
  NDArray array{dtype, std::move(shape), {}};
  array.bytes.resize(array.num_elements() * DTypeBytes(dtype));
  return array;
}

int64_t NDArray::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

absl::StatusOr<std::vector<NDArray>> RunReference(const Workload& workload,
                                                  const std::vector<NDArray>& inputs) {
  MYCC_RETURN_IF_ERROR(CheckInputs(workload, inputs));
  WideTensors tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.emplace(workload.inputs[i].tensor.get(), Widen(inputs[i]));
  for (const Stage& stage : workload.stages) {
    WideTensor result;
    MYCC_RETURN_IF_ERROR(RunStage(stage, tensors, &result));
    tensors.emplace(stage.output.get(), std::move(result));
  }
  std::vector<NDArray> outputs;
  for (const Buffer& output : workload.outputs) outputs.push_back(Narrow(*output, tensors.at(output.get())));
  return outputs;
}

}  // namespace mycc
