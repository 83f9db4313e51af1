// Activations. Those with functions of several steps are computed in f32 where their type is narrower.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/float_functions.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

Expr Maximum(const Expr& a, const Expr& b) { return MakeBinary(Op::kMax, a, b); }
Expr Minimum(const Expr& a, const Expr& b) { return MakeBinary(Op::kMin, a, b); }

absl::Status Relu(NodeImport& n) {
  return MapUnary(n, kTakesFloats | kTakesSigned, [](const Expr& x) { return Maximum(x, NumberLike(x, 0)); });
}

absl::Status LeakyRelu(NodeImport& n) {
  const double alpha = n.Float("alpha", 0.01);
  return MapUnary(n, kTakesFloats, [&](const Expr& x) {
    return MakeSelect(LessThan(x, NumberLike(x, 0)), x * NumberLike(x, alpha), x);
  });
}

// The slope is broadcast to x, and x to nothing.
absl::Status PRelu(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesNumbers));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
  if (shape != n.Shape(0)) {
    return n.Refuse(absl::StrCat("the slope is ", TypeText(n.In(1)),
                                 "; expected a shape that is broadcast to ", ShapeText(n.Shape(0))));
  }
  return MapBinary(n, kTakesNumbers, [](const Expr& x, const Expr& slope) {
    return MakeSelect(LessThan(x, NumberLike(x, 0)), x * slope, x);
  });
}

absl::Status Elu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  return MapUnaryWide(n, [&](const Expr& x) {
    const Expr below = NumberLike(x, alpha) * (ExpOf(x) - NumberLike(x, 1));
    return MakeSelect(LessThan(x, NumberLike(x, 0)), below, x);
  });
}

absl::Status Selu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1.67326319217681884765625);
  const double gamma = n.Float("gamma", 1.05070102214813232421875);
  return MapUnaryWide(n, [&](const Expr& x) {
    const Expr below = NumberLike(x, alpha) * (ExpOf(x) - NumberLike(x, 1));
    return NumberLike(x, gamma) * MakeSelect(LessThan(NumberLike(x, 0), x), x, below);
  });
}

absl::Status Celu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  return MapUnaryWide(n, [&](const Expr& x) {
    const Expr zero = NumberLike(x, 0);
    const Expr below = NumberLike(x, alpha) * (ExpOf(Quotient(x, NumberLike(x, alpha))) - NumberLike(x, 1));
    return Maximum(x, zero) + Minimum(below, zero);
  });
}

Expr SigmoidOf(const Expr& x) { return Quotient(NumberLike(x, 1), NumberLike(x, 1) + ExpOf(Negative(x))); }

absl::Status Sigmoid(NodeImport& n) { return MapUnaryWide(n, SigmoidOf); }

absl::Status Swish(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  return MapUnaryWide(
      n, [&](const Expr& x) { return x * SigmoidOf(alpha == 1 ? x : x * NumberLike(x, alpha)); });
}

Expr GeluOf(const Expr& x) {
  const Expr root_half = NumberLike(x, M_SQRT1_2);
  return NumberLike(x, 0.5) * x * (NumberLike(x, 1) + MakeUnary(Op::kErf, x * root_half));
}

Expr GeluTanhOf(const Expr& x) {
  const Expr inner = NumberLike(x, std::sqrt(M_2_PI)) * (x + NumberLike(x, 0.044715) * x * x * x);
  return NumberLike(x, 0.5) * x * (NumberLike(x, 1) + MakeUnary(Op::kTanh, inner));
}

absl::Status Gelu(NodeImport& n) {
  const std::string form = n.String("approximate", "none");
  if (form != "none" && form != "tanh")
    return n.Refuse(absl::StrCat("approximate is `", form, "`; expected none or tanh"));
  return MapUnaryWide(n, form == "none" ? GeluOf : GeluTanhOf);
}

Expr HardSigmoidOf(const Expr& x, double alpha, double beta) {
  return ClampTo(x * NumberLike(x, alpha) + NumberLike(x, beta), NumberLike(x, 0), NumberLike(x, 1));
}

absl::Status HardSigmoid(NodeImport& n) {
  const double alpha = n.Float("alpha", 0.2), beta = n.Float("beta", 0.5);
  return MapUnary(n, kTakesFloats, [&](const Expr& x) { return HardSigmoidOf(x, alpha, beta); });
}

absl::Status HardSwish(NodeImport& n) {
  return MapUnary(n, kTakesFloats, [](const Expr& x) { return x * HardSigmoidOf(x, 1.0 / 6, 0.5); });
}

// x tanh(log(1 + e)) with e = exp(x) is x e (e + 2) / (e (e + 2) + 2). From 20 on the factor is 1 in f32; in
// f64 a larger limit is, and its square does not overflow either.
absl::Status Mish(NodeImport& n) {
  return MapUnaryWide(n, [](const Expr& x) {
    const Expr e = ExpOf(Minimum(x, NumberLike(x, 20))), two = NumberLike(x, 2);
    const Expr product = e * (e + two);
    return x * Quotient(product, product + two);
  });
}

absl::Status Softplus(NodeImport& n) {
  return MapUnaryWide(n, [](const Expr& x) {
    return Maximum(x, NumberLike(x, 0)) + LogOfOnePlus(ExpOf(Negative(Magnitude(x))));
  });
}

absl::Status Softsign(NodeImport& n) {
  return MapUnary(n, kTakesFloats,
                  [](const Expr& x) { return Quotient(x, NumberLike(x, 1) + Magnitude(x)); });
}

absl::Status ThresholdedRelu(NodeImport& n) {
  const double alpha = n.Float("alpha", 1);
  return MapUnary(n, kTakesFloats, [&](const Expr& x) {
    return MakeSelect(LessThan(NumberLike(x, alpha), x), x, NumberLike(x, 0));
  });
}

// Integers are compared with, and moved by, the attributes as floats.
absl::Status Shrink(NodeImport& n) {
  const double bias = n.Float("bias", 0), lambd = n.Float("lambd", 0.5);
  return MapUnary(n, kTakesNumbers, [&](const Expr& element) {
    const Expr x = IsFloat(element->dtype) ? element : MakeCast(DType::kF64, element);
    const Expr by = NumberLike(x, bias);
    const Expr above = MakeSelect(LessThan(NumberLike(x, lambd), x), x - by, NumberLike(x, 0));
    return MakeCast(element->dtype, MakeSelect(LessThan(x, NumberLike(x, -lambd)), x + by, above));
  });
}

constexpr Operator kActivationTable[] = {
    {"Celu", Celu, 12},
    {"Elu", Elu},
    {"Gelu", Gelu, 20},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", HardSwish, 14},
    {"LeakyRelu", LeakyRelu},
    {"Mish", Mish, 18},
    {"PRelu", PRelu},
    {"Relu", Relu},
    {"Selu", Selu},
    {"Shrink", Shrink, 9},
    {"Sigmoid", Sigmoid},
    {"Softplus", Softplus},
    {"Softsign", Softsign},
    {"Swish", Swish, 24},
    {"ThresholdedRelu", ThresholdedRelu, 10},
};

}  // namespace

std::span<const Operator> ActivationOperators() { return kActivationTable; }

}  // namespace mycc::onnx
