// Running sums and products along an axis. After step k each element has the 2^k elements up to its own.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

struct Scan {
  double identity = 0;
  BinaryFunction combine;
  bool is_exclusive = false, is_reversed = false;
};

// The element of `x` that stands `distance` before that at the axes, or the identity.
Expr Before(const Buffer& x, Axes at, int64_t axis, int64_t distance, const Scan& scan) {
  const int64_t extent = x->shape[axis];
  const Expr index = at[axis], identity = IsFloat(x->dtype)
                                              ? FloatConst(scan.identity, x->dtype)
                                              : IntConst(static_cast<int64_t>(scan.identity), x->dtype);
  if (distance >= extent) return identity;
  const Expr is_inside =
      scan.is_reversed ? LessThan(index, IntConst(extent - distance)) : AtMost(IntConst(distance), index);
  at[axis] = scan.is_reversed ? index + distance : index - distance;
  return MakeSelect(is_inside, Load(x, at), identity);
}

Buffer ScanAlong(GraphBuilder& g, const Buffer& input, int64_t axis, const Scan& scan) {
  const DType wide = WideTypeOf(input->dtype);
  Buffer sums = g.Cast(input, wide);
  if (input->num_elements() == 0) return input;
  if (scan.is_exclusive) {
    const Buffer x = sums;
    sums = g.Map(x->shape, [&](const Axes& at) { return Before(x, at, axis, 1, scan); });
  }
  for (int64_t distance = 1; distance < input->shape[axis]; distance *= 2) {
    const Buffer x = sums;
    sums = g.Map(x->shape, [&](const Axes& at) {
      return scan.combine(Before(x, at, axis, distance, scan), Load(x, at));
    });
  }
  return g.Cast(sums, input->dtype);
}

// The axis is an input. One that is not known yet selects among the scans along all axes.
absl::Status ScanOperator(NodeImport& n, Scan scan) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  if (n.In(1)->num_elements() != 1 || !IsInt(n.Type(1)))
    return n.Refuse(absl::StrCat("the axis is ", TypeText(n.In(1)), "; expected one integer"));
  scan.is_exclusive = n.Int("exclusive", 0) != 0;
  scan.is_reversed = n.Int("reverse", 0) != 0;
  const int64_t rank = n.Rank(0);
  const int type = n.Typed(0).type;
  if (n.Value(1) != nullptr) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, n.ConstantInts(1));
    MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(axes[0], rank));
    n.Set(0, ScanAlong(n.g(), n.In(0), axis, scan), type);
    return absl::OkStatus();
  }
  Buffer result = ScanAlong(n.g(), n.In(0), rank - 1, scan);
  for (int64_t axis = rank - 1; axis-- > 0;) {
    const Buffer otherwise = result, candidate = ScanAlong(n.g(), n.In(0), axis, scan);
    result = n.g().Map(n.Shape(0), [&](const Axes& at) {
      const Expr named = MakeCast(DType::kI64, OnlyElement(n.g(), n.In(1)));
      const Expr is_this = MakeBinary(Op::kOr, MakeBinary(Op::kEq, named, IntConst(axis)),
                                      MakeBinary(Op::kEq, named, IntConst(axis - rank)));
      return MakeSelect(is_this, Load(candidate, at), Load(otherwise, at));
    });
  }
  n.Set(0, result, type);
  return absl::OkStatus();
}

absl::Status CumSum(NodeImport& n) {
  return ScanOperator(n, {0, [](const Expr& a, const Expr& b) { return a + b; }});
}
absl::Status CumProd(NodeImport& n) {
  return ScanOperator(n, {1, [](const Expr& a, const Expr& b) { return a * b; }});
}

constexpr Operator kScanTable[] = {
    {"CumProd", CumProd, 26},
    {"CumSum", CumSum, 11},
};

}  // namespace

std::span<const Operator> ScanOperators() { return kScanTable; }

}  // namespace mycc::onnx
