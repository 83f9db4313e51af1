#include "codegen/onnx/elementwise.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

unsigned SetOf(int type) {
  switch (type) {
    case kFloat:
    case kDouble:
    case kFloat16:
    case kBfloat16: return kTakesFloats;
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64: return kTakesSigned;
    case kUint8:
    case kUint16:
    case kUint32:
    case kUint64: return kTakesUnsigned;
    case kBool: return kTakesBools;
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ: return kTakesFloat8s;
    default: return 0;
  }
}

std::string TextOf(unsigned takes) {
  std::vector<const char*> names;
  if (takes & kTakesFloats) names.push_back("floats");
  if (takes & kTakesFloat8s) names.push_back("8-bit floats");
  if ((takes & kTakesIntegers) == kTakesIntegers) {
    names.push_back("integers");
  } else if (takes & kTakesIntegers) {
    names.push_back(takes & kTakesSigned ? "signed integers" : "unsigned integers");
  }
  if (takes & kTakesBools) names.push_back("bools");
  return absl::StrJoin(names, " or ");
}

}  // namespace

absl::Status ExpectTypes(const NodeImport& n, size_t i, unsigned takes) {
  if (!n.Has(i)) return n.Refuse(absl::StrCat("has no input ", i, "; expected one"));
  const int type = n.Typed(i).type;
  if (SetOf(type) & takes) return absl::OkStatus();
  return n.Refuse(
      absl::StrCat("input ", i, " is of type ", ElementTypeName(type), "; expected ", TextOf(takes)));
}

absl::Status ExpectOneType(const NodeImport& n, size_t first, size_t last, unsigned takes) {
  for (size_t i = first; i <= last; ++i) {
    MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, takes));
    if (n.Typed(i).type != n.Typed(first).type) {
      return n.Refuse(absl::StrCat("inputs of types ", ElementTypeName(n.Typed(first).type), " and ",
                                   ElementTypeName(n.Typed(i).type), "; expected one type"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> BroadcastOfInputs(const NodeImport& n, size_t first, size_t last) {
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = first; i <= last; ++i) shapes.push_back(n.Shape(i));
  MYCC_ASSIGN_OR_RETURN(auto shape, BroadcastShape(shapes));
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("its inputs are broadcast to ", problem));
  return shape;
}

absl::Status MapUnary(NodeImport& n, unsigned takes, const UnaryFunction& function) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, takes));
  const Buffer x = n.In(0);
  n.Set(0, n.g().Map(x->shape, [&](const Axes& axes) { return function(Load(x, axes)); }));
  return absl::OkStatus();
}

absl::Status MapUnaryWide(NodeImport& n, const UnaryFunction& function) {
  return MapUnary(n, kTakesFloats, [&](const Expr& x) {
    return IsNarrowFloat(x->dtype) ? MakeCast(x->dtype, function(MakeCast(DType::kF32, x))) : function(x);
  });
}

absl::Status MapBinary(NodeImport& n, unsigned takes, const BinaryFunction& function) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, takes));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) {
    return function(BroadcastLoad(n.In(0), axes), BroadcastLoad(n.In(1), axes));
  }));
  return absl::OkStatus();
}

Expr NumberLike(const Expr& like, double value) {
  return IsFloat(like->dtype) ? FloatConst(value, like->dtype)
                              : IntConst(static_cast<int64_t>(value), like->dtype);
}

Expr OnlyElement(const GraphBuilder& g, const Buffer& tensor) {
  if (const NDArray* value = g.ValueOf(tensor)) {
    const Scalar number = value->Get(0);
    return IsFloat(tensor->dtype) ? FloatConst(number.f, tensor->dtype) : IntConst(number.i, tensor->dtype);
  }
  return Load(tensor, Axes(tensor->shape.size(), IntConst(0)));
}

}  // namespace mycc::onnx
