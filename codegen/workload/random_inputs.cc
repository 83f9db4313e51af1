// Draws random inputs of a workload. Each element depends only on the seed and its place, so that a GPU can
// draw it too.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codegen/expr/affine.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

// Number `place` of SplitMix64's sequence of `seed`. Unlike the standard library's distributions it gives the
// same numbers on every machine, and any number without those before it.
uint64_t NumberOf(uint64_t seed, uint64_t place) {
  uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Scalar Drawn(const InputDraw& draw, uint64_t seed, int64_t i) {
  const uint64_t number = NumberOf(seed, draw.first + static_cast<uint64_t>(i));
  if (IsFloat(draw.dtype)) {
    const double symmetric = static_cast<double>(number >> 11) * 0x1p-52 - 1.0;  // [-1, 1)
    return {RoundFloat(draw.dtype, symmetric), 0};
  }
  return {0, draw.low + static_cast<int64_t>(number % static_cast<uint64_t>(draw.high - draw.low + 1))};
}

struct Range {
  int64_t low;
  int64_t high;
};

Range SmallIntegers(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  return IsUnsigned(dtype) ? Range{0, 15} : Range{-8, 7};
}

// The part of a range that numbers of the type can have.
Range OfType(DType dtype, Range range) {
  if (dtype == DType::kU64) return {std::max<int64_t>(range.low, 0), std::max<int64_t>(range.high, 0)};
  const int64_t least = ReduceIdentity(ReduceOp::kMax, dtype)->value.i,
                most = ReduceIdentity(ReduceOp::kMin, dtype)->value.i;
  return {std::clamp(range.low, least, most), std::clamp(range.high, least, most)};
}

// For each input that indices are read from: the smallest extent of the dimensions that it indexes.
std::unordered_map<const BufferNode*, int64_t> IndexedExtents(const Workload& workload) {
  std::unordered_map<const BufferNode*, int64_t> extents;
  const auto visit_index = [&](const Expr& index, int64_t extent) {
    Visit(index, [&](const ExprNode& node) {
      if (node.op != Op::kLoad) return;
      const auto [it, inserted] = extents.emplace(node.buffer.get(), extent);
      if (!inserted) it->second = std::min(it->second, extent);
    });
  };
  for (const Stage& stage : workload.stages) {
    Visit(stage.value, [&](const ExprNode& node) {
      if (node.op != Op::kLoad) return;
      for (size_t d = 0; d < node.args.size(); ++d) visit_index(node.args[d], node.buffer->shape[d]);
    });
  }
  return extents;
}

// The input whose number a comparison sets against axes, as a mask by lengths does (j < n[b]), and the range
// that the number has between the comparison's never and always being true.
std::optional<std::pair<const BufferNode*, Range>> BoundOf(const Expr& comparison) {
  const Expr margin = MarginOf(comparison);
  if (margin == nullptr) return std::nullopt;
  Linear rest = ToLinear(margin);
  const auto is_number = [](const auto& term) {
    const Expr& atom = term.first;
    return (atom->op == Op::kCast ? atom->args[0] : atom)->op == Op::kLoad;
  };
  const auto number = std::ranges::find_if(rest.terms, is_number);
  if (number == rest.terms.end() || std::abs(number->second) != 1) return std::nullopt;
  const Expr load = number->first->op == Op::kCast ? number->first->args[0] : number->first;
  const bool is_end = number->second == 1;
  rest.terms.erase(number);
  const std::optional<Interval> others = RangeOf(FromLinear(rest));
  if (rest.terms.empty() || !others) return std::nullopt;
  const Range range = is_end ? Range{-others->max - 1, -others->min} : Range{others->min, others->max + 1};
  return std::pair(load->buffer.get(), range);
}

// For each input of numbers that masks compare with axes: the widest range of BoundOf.
std::unordered_map<const BufferNode*, Range> BoundsOfMasks(const Workload& workload) {
  std::unordered_map<const BufferNode*, Range> bounds;
  for (const Stage& stage : workload.stages) {
    const std::function<void(const Expr&)> visit = [&](const Expr& e) {
      if (const auto bound = BoundOf(e)) {
        const auto [it, inserted] = bounds.insert(*bound);
        if (!inserted)
          it->second = {std::min(it->second.low, bound->second.low),
                        std::max(it->second.high, bound->second.high)};
      }
      for (const Expr& arg : e->args) visit(arg);
    };
    visit(stage.value);
  }
  return bounds;
}

}  // namespace

std::vector<InputDraw> DrawsOf(const Workload& workload) {
  const auto extents = IndexedExtents(workload);
  const auto bounds = BoundsOfMasks(workload);
  std::vector<InputDraw> draws;
  uint64_t first = 0;
  for (const Argument& input : workload.inputs) {
    const BufferNode& tensor = *input.tensor;
    Range range = SmallIntegers(tensor.dtype);
    if (const auto extent = extents.find(&tensor); extent != extents.end()) {
      range = OfType(tensor.dtype, {0, std::max<int64_t>(extent->second - 1, 0)});
    } else if (const auto bound = bounds.find(&tensor); bound != bounds.end()) {
      range = OfType(tensor.dtype, bound->second);
    }
    draws.push_back({tensor.dtype, tensor.num_elements(), first, range.low, range.high});
    first += static_cast<uint64_t>(tensor.num_elements());
  }
  return draws;
}

InputElements RandomElements(const Workload& workload, uint64_t seed) {
  return [draws = DrawsOf(workload), seed](size_t input, int64_t flat) {
    return Drawn(draws.at(input), seed, flat);
  };
}

std::vector<NDArray> RandomInputs(const Workload& workload, uint64_t seed) {
  std::vector<NDArray> inputs;
  for (const InputDraw& draw : DrawsOf(workload)) {
    NDArray array = NDArray::Zeros(draw.dtype, workload.inputs[inputs.size()].tensor->shape);
    for (int64_t i = 0; i < draw.count; ++i) array.Set(i, Drawn(draw, seed, i));
    inputs.push_back(std::move(array));
  }
  return inputs;
}

}  // namespace mycc
