// Element-wise arithmetic with broadcasting.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// Inputs 0 and 1 combined element by element; ONNX wants them to be of one type.
absl::Status Binary(NodeImport& n, const std::function<Expr(const Expr&, const Expr&)>& combine) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const Buffer a = n.In(0), b = n.In(1);
  if (a->dtype != b->dtype)
    return n.Refuse(absl::StrCat("inputs of types ", DTypeName(a->dtype), " and ", DTypeName(b->dtype),
                                 "; expected one type"));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastShape({a->shape, b->shape}));
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) {
    return combine(BroadcastLoad(a, axes), BroadcastLoad(b, axes));
  }));
  return absl::OkStatus();
}

absl::Status Add(NodeImport& n) {
  return Binary(n, [](const Expr& a, const Expr& b) { return a + b; });
}
absl::Status Sub(NodeImport& n) {
  return Binary(n, [](const Expr& a, const Expr& b) { return a - b; });
}
absl::Status Mul(NodeImport& n) {
  return Binary(n, [](const Expr& a, const Expr& b) { return a * b; });
}
absl::Status Div(NodeImport& n) {
  return Binary(n, [](const Expr& a, const Expr& b) {
    return MakeBinary(IsFloat(a->dtype) ? Op::kDiv : Op::kFloorDiv, a, b);
  });
}

constexpr Operator kOperators[] = {
    {"Add", Add},
    {"Sub", Sub},
    {"Mul", Mul},
    {"Div", Div},
};

}  // namespace

std::span<const Operator> ArithmeticOperators() { return kOperators; }

}  // namespace mycc::onnx
