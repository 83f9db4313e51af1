// Random inputs with what they lack: each element of an output may see an infinity, a NaN, a zero, a
// subnormal, the largest number; and rows that are all zero, or so small that their squares are subnormal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "codegen/expr/accuracy.h"
#include "codegen/expr/affine.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/winograd.h"

namespace mycc {
namespace {

// One output in this many sees a special value of an input that it is a sum over.
constexpr int64_t kOutputsPerSpecial = 4;
// One row in this many is zero, and one is small.
constexpr uint64_t kRowKinds = 16;
constexpr int64_t kShortestRow = 8;

uint64_t Mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

using Box = std::vector<int64_t>;

void Cover(const ExprNode& read, const VarMap& axes, std::map<const BufferNode*, Box>* boxes) {
  Box& box = (*boxes)[read.buffer.get()];
  box.resize(read.args.size(), 1);
  for (size_t d = 0; d < read.args.size(); ++d) {
    const auto range = RangeOf(Substitute(read.args[d], axes));
    const int64_t extent = read.buffer->shape[d];
    box[d] = std::max(box[d], range ? std::clamp<int64_t>(range->max - range->min + 1, 1, extent) : extent);
  }
}

// How much of each tensor one element of an output depends on: the extents of a box around it.
std::map<const BufferNode*, Box> BoxesOf(const Workload& workload) {
  std::map<const BufferNode*, Box> boxes;
  for (const Buffer& output : workload.outputs) boxes[output.get()] = Box(output->rank(), 1);
  for (auto stage = workload.stages.rbegin(); stage != workload.stages.rend(); ++stage) {
    const auto box = boxes.find(stage->output.get());
    if (box == boxes.end()) continue;
    VarMap axes;
    for (size_t d = 0; d < stage->axes.size(); ++d)
      axes[stage->axes[d].get()] = VarRef(MakeVar(stage->axes[d]->name, box->second[d]));
    Visit(stage->value, [&](const ExprNode& node) {
      if (node.op == Op::kLoad) Cover(node, axes, &boxes);
    });
  }
  return boxes;
}

// The first eight lead to no infinity.
std::vector<double> SpecialFloats(DType dtype, bool tame) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double normal = SmallestNormal(dtype), unit = UnitInLastPlace(dtype, 0);
  std::vector<double> values = {0, -0.0, unit, unit - normal, normal, -std::sqrt(normal), 1, -1};
  if (tame) return values;
  const double most = LargestNumber(dtype);
  values.insert(values.end(), {kInf, -kInf, std::nan(""), most, -most, 1 / std::sqrt(normal)});
  return values;
}

struct SpecialDraw {
  bool tame;
  int64_t one_in, row;
};

void Sprinkle(const SpecialDraw& draw, uint64_t seed, NDArray* array) {
  const DType dtype = array->dtype;
  const int64_t count = array->num_elements();
  if (!IsFloat(dtype)) {
    if (dtype == DType::kBool) return;
    const int64_t ends[] = {ReduceIdentity(ReduceOp::kMax, dtype)->value.i,
                            ReduceIdentity(ReduceOp::kMin, dtype)->value.i, 0, WrapInt(dtype, -1)};
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t drawn = Mixed(seed ^ static_cast<uint64_t>(i));
      if (drawn % kOutputsPerSpecial == 0) array->Set(i, {0, ends[drawn >> 32 & 3]});
    }
    return;
  }
  const std::vector<double> values = SpecialFloats(dtype, draw.tame);
  const double small = std::ldexp(1.0, std::ilogb(SmallestNormal(dtype)) * 5 / 9);
  const bool has_rows = draw.row >= kShortestRow && count / draw.row > 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t row =
        has_rows ? Mixed(~seed ^ static_cast<uint64_t>(i / draw.row)) % kRowKinds : kRowKinds;
    if (row <= 1) array->Set(i, {row == 0 ? 0 : RoundFloat(dtype, array->Get(i).f * small), 0});
    const uint64_t drawn = Mixed(seed ^ static_cast<uint64_t>(i));
    if (row > 1 && drawn % static_cast<uint64_t>(draw.one_in) == 0)
      array->Set(i, {RoundFloat(dtype, values[(drawn >> 40) % values.size()]), 0});
  }
}

}  // namespace

bool MayBeWinograd(const Stage& stage) { return WinogradShapeOf(stage).ok(); }

std::vector<NDArray> SpecialInputs(const Workload& workload, uint64_t seed) {
  std::vector<NDArray> inputs = RandomInputs(workload, seed);
  const std::map<const BufferNode*, Box> boxes = BoxesOf(workload);
  const bool tame = std::any_of(workload.stages.begin(), workload.stages.end(), MayBeWinograd);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BufferNode& tensor = *workload.inputs[i].tensor;
    const auto found = boxes.find(&tensor);
    if (found == boxes.end()) continue;  // no output depends on it
    const Box& box = found->second;
    SpecialDraw draw{tame, kOutputsPerSpecial, 1};
    for (const int64_t extent : box) draw.one_in *= extent;
    for (size_t d = box.size(); d-- > 0 && box[d] == tensor.shape[d];) draw.row *= box[d];
    Sprinkle(draw, Mixed(seed + i), &inputs[i]);
  }
  return inputs;
}

}  // namespace mycc
