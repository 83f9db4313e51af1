#include "codegen/workload/shape_distance.h"

#include <algorithm>
#include <cmath>

namespace mycc {

std::vector<int64_t> ExtentsOf(const Workload& workload) {
  std::vector<int64_t> extents;
  for (const Argument& input : workload.inputs)
    extents.insert(extents.end(), input.tensor->shape.begin(), input.tensor->shape.end());
  for (const Stage& stage : workload.stages) {
    for (const Var& axis : stage.axes) extents.push_back(axis->extent);
    for (const Var& axis : stage.reduce_axes) extents.push_back(axis->extent);
  }
  return extents;
}

std::optional<double> ShapeDistance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return std::nullopt;
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i)
    distance += std::abs(std::log(std::max<double>(a[i], 1) / std::max<double>(b[i], 1)));
  return distance;
}

}  // namespace mycc
