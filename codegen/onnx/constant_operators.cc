// Constants, and tensors that pass an operator as they are.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/moves_by_reads.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/small_types.h"
#include "codegen/onnx/texts.h"

namespace mycc::onnx {
namespace {

// Beyond every extent, and far from the limits of 64 bits.
constexpr int64_t kFarDiagonal = int64_t{1} << 41;

Buffer FloatsConstant(GraphBuilder& g, const std::vector<double>& values) {
  NDArray array = NDArray::Zeros(DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.Set(i, Scalar{values[i], 0});
  return g.AddConstant(std::move(array));
}

absl::Status ImportConstant(NodeImport& n) {
  if (const OnnxAttribute* value = n.Attribute("value")) {
    if (value->tensor.texts != nullptr) {
      n.Set(0, ConstantTexts(n.g(), *value->tensor.texts));
      return absl::OkStatus();
    }
    if (value->tensor.value == nullptr) return n.Refuse("the attribute value is no tensor; expected one");
    n.Set(0, n.g().AddConstant(value->tensor.value), value->tensor.type);
    return absl::OkStatus();
  }
  if (n.HasAttribute("value_float")) {
    n.Set(0, n.g().Number(DType::kF32, n.Float("value_float", 0)));
  } else if (n.HasAttribute("value_floats")) {
    n.Set(0, FloatsConstant(n.g(), n.Floats("value_floats")));
  } else if (n.HasAttribute("value_int")) {
    n.Set(0, n.g().AddReshape(n.g().Ints({n.Int("value_int", 0)}), {}));
  } else if (n.HasAttribute("value_ints")) {
    n.Set(0, n.g().Ints(n.Ints("value_ints")));
  } else if (n.HasAttribute("value_string")) {
    MYCC_ASSIGN_OR_RETURN(const TypedTensor text, TextsOf(n, {n.String("value_string", "")}, {}));
    n.Set(0, text);
  } else if (n.HasAttribute("value_strings")) {
    const std::vector<std::string> all = n.Strings("value_strings");
    MYCC_ASSIGN_OR_RETURN(const TypedTensor texts, TextsOf(n, all, {static_cast<int64_t>(all.size())}));
    n.Set(0, texts);
  } else {
    if (n.HasAttribute("sparse_value")) return n.NotSupported("the attribute sparse_value");
    return n.Refuse("has no value; expected one of value, value_float, value_int and the like");
  }
  return absl::OkStatus();
}

absl::Status ConstantOfShape(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  std::vector<int64_t> shape;
  if (const std::vector<int64_t>* declared = ShapeInsteadOf(n, 0)) {
    shape = *declared;
  } else {
    MYCC_ASSIGN_OR_RETURN(shape, n.ConstantInts(0));
  }
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  Expr element = FloatConst(0, DType::kF32);
  int type = kFloat;
  if (const OnnxAttribute* value = n.Attribute("value")) {
    const TypedConstant& tensor = value->tensor;
    if (tensor.value == nullptr || tensor.value->num_elements() != 1)
      return n.Refuse("the attribute value is no tensor of one element; expected one");
    element = LiteralOf(tensor.value->dtype, tensor.value->Get(0));
    type = tensor.type;
  }
  n.Set(0, n.g().Map(shape, [&](const Axes&) { return element; }), type);
  return absl::OkStatus();
}

absl::Status Identity(NodeImport& n) {
  if (n.num_inputs() < 1 || !n.Typed(0).IsThere()) return n.Expect(1);
  n.Set(0, n.Typed(0));
  return absl::OkStatus();
}

// Whether it drops elements: from opset 12 on an input says so.
absl::StatusOr<bool> IsTraining(const NodeImport& n) {
  if (!n.Has(2)) return false;
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> training, n.ConstantInts(2));
  if (training.size() != 1) return n.Refuse("training_mode is no single bool; expected one");
  if (training[0] == 0) return false;
  if (!n.Has(1)) return true;
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> ratio, n.ConstantFloats(1));
  return ratio.size() != 1 || ratio[0] != 0;
}

absl::Status Dropout(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_ASSIGN_OR_RETURN(const bool is_training, IsTraining(n));
  if (is_training) return n.NotSupported("dropping elements at random, in training mode,");
  n.Set(0, n.In(0), n.Typed(0).type);
  if (!n.Wants(1)) return absl::OkStatus();
  const bool mask_is_bool = n.opset() >= 10;
  const DType dtype = mask_is_bool ? DType::kBool : n.Type(0);
  const Expr one = LiteralOf(dtype, Scalar{1, 1});
  n.Set(1, n.g().Map(n.Shape(0), [&](const Axes&) { return one; }), mask_is_bool ? kBool : n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status EyeLike(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 2));
  const int64_t number = n.Int("dtype", n.Typed(0).type);
  const int type = number < kUndefined || number > kInt2 ? kUndefined : static_cast<int>(number);
  if (!StorageOf(type)) return n.NotSupported(absl::StrCat("a result of ", ElementTypeName(type)));
  const int64_t k = std::clamp(n.Int("k", 0), -kFarDiagonal, kFarDiagonal);
  const Buffer eye = n.g().Map(n.Shape(0), [&](const Axes& axes) {
    return MakeCast(DType::kF32, MakeBinary(Op::kEq, axes[0] + k, axes[1]));
  });
  n.Set(0, Encoded(n.g(), eye, type, {}), type);
  return absl::OkStatus();
}

constexpr Operator kConstantTable[] = {
    {"Constant", ImportConstant},
    {"ConstantOfShape", ConstantOfShape, 9},
    {"Dropout", Dropout},
    {"EyeLike", EyeLike, 9},
    {"Identity", Identity, 1, "", true, kTextFirst, true},
};

}  // namespace

std::span<const Operator> ConstantOperators() { return kConstantTable; }

}  // namespace mycc::onnx
