// Draws inputs with special values: infinities, NaN, zeros, subnormal and the largest numbers. Some rows are
// all zero, or so small that their squares are subnormal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "codegen/expr/accuracy.h"
#include "codegen/expr/affine.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/winograd.h"

namespace mycc {
namespace {

// On average, one of this many outputs depends on a special value of a given input.
constexpr int64_t kOutputsPerSpecial = 4;
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

// The part of each tensor that one element of an output depends on: the extents of its bounding box.
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

// The first eight values lead to no infinity.
std::vector<double> SpecialFloats(DType dtype, bool tame) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double normal = SmallestNormal(dtype), unit = UnitInLastPlace(dtype, 0);
  std::vector<double> values = {0, -0.0, unit, unit - normal, normal, -std::sqrt(normal), 1, -1};
  if (tame) return values;
  const double most = LargestNumber(dtype);
  values.insert(values.end(), {kInf, -kInf, std::nan(""), most, -most, 1 / std::sqrt(normal)});
  return values;
}

uint64_t StoredBits(DType dtype, Scalar value) {
  uint64_t bits = 0;
  StoreScalar(dtype, &bits, value);
  return bits;
}

// The values that replace elements of the type; `tame` ones lead to no infinity.
std::vector<uint64_t> SpecialValues(DType dtype, bool tame) {
  std::vector<uint64_t> values;
  if (IsFloat(dtype)) {
    for (const double value : SpecialFloats(dtype, tame))
      values.push_back(StoredBits(dtype, {RoundFloat(dtype, value), 0}));
  } else if (dtype != DType::kBool) {
    for (const int64_t value :
         {ReduceIdentity(ReduceOp::kMax, dtype)->value.i, ReduceIdentity(ReduceOp::kMin, dtype)->value.i,
          int64_t{0}, WrapInt(dtype, -1)})
      values.push_back(StoredBits(dtype, {0, value}));
  }
  return values;
}

// The value that takes the place of element `i`; nullopt where the drawn one, which `drawn` returns, stays.
template <typename DrawnFn>
std::optional<Scalar> Sprinkled(const SpecialDraw& draw, int64_t i, const DrawnFn& drawn) {
  if (draw.values.empty()) return std::nullopt;
  const uint64_t kind = draw.row > 0
                            ? Mixed(~draw.seed ^ static_cast<uint64_t>(i / draw.row)) % SpecialDraw::kRowKinds
                            : SpecialDraw::kRowKinds;
  if (kind == 0) return Scalar{0, 0};
  if (kind == 1) return Scalar{RoundFloat(draw.dtype, drawn().f * draw.small), 0};
  const uint64_t number = Mixed(draw.seed ^ static_cast<uint64_t>(i));
  if (number % draw.one_in != 0) return std::nullopt;
  return LoadScalar(draw.dtype, &draw.values[(number >> 40) % draw.values.size()]);
}

}  // namespace

bool MayBeWinograd(const Stage& stage) { return WinogradShapeOf(stage).ok(); }

std::vector<SpecialDraw> SpecialDrawsOf(const Workload& workload, uint64_t seed) {
  const std::map<const BufferNode*, Box> boxes = BoxesOf(workload);
  const bool tame = std::ranges::any_of(workload.stages, MayBeWinograd);
  std::vector<SpecialDraw> draws;
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    const BufferNode& tensor = *workload.inputs[i].tensor;
    SpecialDraw draw{tensor.dtype, tensor.num_elements(), Mixed(seed + i), kOutputsPerSpecial, 0, 1, {}};
    const auto found = boxes.find(&tensor);
    if (found != boxes.end()) draw.values = SpecialValues(tensor.dtype, tame);  // an output depends on it
    if (found != boxes.end() && IsFloat(tensor.dtype)) {
      const Box& box = found->second;
      int64_t row = 1;
      for (const int64_t extent : box) draw.one_in *= static_cast<uint64_t>(extent);
      for (size_t d = box.size(); d-- > 0 && box[d] == tensor.shape[d];) row *= box[d];
      if (row >= kShortestRow && draw.count / row > 1) draw.row = row;
      draw.small = std::ldexp(1.0, std::ilogb(SmallestNormal(tensor.dtype)) * 5 / 9);
    }
    draws.push_back(std::move(draw));
  }
  return draws;
}

InputElements SpecialElements(const Workload& workload, uint64_t seed) {
  return [drawn = RandomElements(workload, seed), draws = SpecialDrawsOf(workload, seed)](size_t input,
                                                                                          int64_t flat) {
    const auto drawn_here = [&] { return drawn(input, flat); };
    const std::optional<Scalar> special = Sprinkled(draws.at(input), flat, drawn_here);
    return special ? *special : drawn_here();
  };
}

std::vector<NDArray> SpecialInputs(const Workload& workload, uint64_t seed) {
  std::vector<NDArray> inputs = RandomInputs(workload, seed);
  const std::vector<SpecialDraw> draws = SpecialDrawsOf(workload, seed);
  for (size_t k = 0; k < inputs.size(); ++k) {
    NDArray& input = inputs[k];
    for (int64_t i = 0; i < draws[k].count; ++i) {
      if (const auto special = Sprinkled(draws[k], i, [&] { return input.Get(i); })) input.Set(i, *special);
    }
  }
  return inputs;
}

}  // namespace mycc
