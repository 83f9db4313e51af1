// Softmax and its relatives. Before opset 13 the rows reach over all axes from `axis` on, for the tensor was
// flattened to two dimensions; later they are one axis.
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"
#include "codegen/onnx/softmax.h"

namespace mycc::onnx {
namespace {

absl::StatusOr<std::vector<int64_t>> RowAxes(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  const bool is_flattened = n.opset() < 13;
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", is_flattened ? 1 : -1), n.Rank(0)));
  return is_flattened ? AxesFrom(axis, n.Shape(0).size()) : std::vector<int64_t>{axis};
}

// The largest element of each row, in the type that is computed with.
Buffer LargestOf(GraphBuilder& g, const Buffer& x, const std::vector<int64_t>& axes) {
  return ReduceOver(g, ReduceOp::kMax, x->shape, axes, true,
                    [&](const Axes& at) { return Wide(Load(x, at)); });
}

absl::Status Softmax(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, RowAxes(n));
  n.Set(0, n.g().Cast(SoftmaxOver(n.g(), n.In(0), axes), n.Type(0)));
  return absl::OkStatus();
}

absl::Status LogSoftmax(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, RowAxes(n));
  n.Set(0, n.g().Cast(LogSoftmaxOver(n.g(), n.In(0), axes), n.Type(0)));
  return absl::OkStatus();
}

// 1 at the first of the largest elements of a row, else 0. Rows of several axes are flattened, for an argmax
// is over one axis.
absl::Status Hardmax(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, RowAxes(n));
  GraphBuilder& g = n.g();
  const std::vector<int64_t> shape = n.Shape(0);
  if (ElementsOf(shape) == 0) {
    n.Set(0, n.In(0));
    return absl::OkStatus();
  }
  Buffer x = n.In(0);
  int64_t axis = axes[0];
  if (axes.size() > 1) {
    std::vector<int64_t> flat(shape.begin(), shape.begin() + axis);
    flat.push_back(CountOver(shape, axes));
    x = g.AddReshape(x, flat);
  }
  const Buffer index =
      ReduceOver(g, ReduceOp::kArgMax, x->shape, {axis}, true, [&](const Axes& at) { return Load(x, at); });
  const Buffer result = g.Map(x->shape, [&](const Axes& at) {
    const Expr largest = MakeCast(DType::kI64, BroadcastLoad(index, at));
    return MakeCast(x->dtype, MakeBinary(Op::kEq, at[axis], largest));
  });
  n.Set(0, g.AddReshape(result, shape));
  return absl::OkStatus();
}

constexpr Operator kSoftmaxTable[] = {
    {"Hardmax", Hardmax},
    {"LogSoftmax", LogSoftmax},
    {"Softmax", Softmax},
};

}  // namespace

Buffer SoftmaxOver(GraphBuilder& g, const Buffer& x, const std::vector<int64_t>& axes) {
  const Buffer largest = LargestOf(g, x, axes);
  const Buffer powers =
      g.Map(x->shape, [&](const Axes& at) { return ExpOf(Wide(Load(x, at)) - BroadcastLoad(largest, at)); });
  const Buffer sums =
      ReduceOver(g, ReduceOp::kSum, x->shape, axes, true, [&](const Axes& at) { return Load(powers, at); });
  return g.Map(x->shape, [&](const Axes& at) { return Quotient(Load(powers, at), BroadcastLoad(sums, at)); });
}

Buffer LogSoftmaxOver(GraphBuilder& g, const Buffer& x, const std::vector<int64_t>& axes) {
  const Buffer largest = LargestOf(g, x, axes);
  const auto shifted = [&](const Axes& at) { return Wide(Load(x, at)) - BroadcastLoad(largest, at); };
  const Buffer sums =
      ReduceOver(g, ReduceOp::kSum, x->shape, axes, true, [&](const Axes& at) { return ExpOf(shifted(at)); });
  return g.Map(x->shape,
               [&](const Axes& at) { return shifted(at) - MakeUnary(Op::kLog, BroadcastLoad(sums, at)); });
}

std::span<const Operator> SoftmaxOperators() { return kSoftmaxTable; }

}  // namespace mycc::onnx
