#include "codegen/onnx/rows.h"

#include <numeric>

namespace mycc::onnx {

DType WideTypeOf(DType dtype) { return IsNarrowFloat(dtype) ? DType::kF32 : dtype; }

Expr Wide(const Expr& x) { return MakeCast(WideTypeOf(x->dtype), x); }

std::vector<int64_t> KeptShape(std::vector<int64_t> shape, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) shape[axis] = 1;
  return shape;
}

int64_t CountOver(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= shape[axis];
  return count;
}

std::vector<int64_t> AxesFrom(int64_t first, size_t rank) {
  std::vector<int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Buffer ReduceOver(GraphBuilder& g, ReduceOp op, const std::vector<int64_t>& shape,
                  const std::vector<int64_t>& axes, bool keeps_axes,
                  const std::function<Expr(const Axes&)>& value) {
  std::vector<bool> is_reduced(shape.size());
  for (const int64_t axis : axes) is_reduced[axis] = true;
  std::vector<int64_t> result, reduced;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (is_reduced[i]) reduced.push_back(shape[i]);
    if (!is_reduced[i] || keeps_axes) result.push_back(is_reduced[i] ? 1 : shape[i]);
  }
  return g.Reduce(op, result, reduced, [&](const Axes& a, const Axes& r) {
    Axes at;
    size_t next_kept = 0, next_reduced = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (is_reduced[i]) {
        at.push_back(r[next_reduced++]);
        if (keeps_axes) ++next_kept;
      } else {
        at.push_back(a[next_kept++]);
      }
    }
    return value(at);
  });
}

}  // namespace mycc::onnx
