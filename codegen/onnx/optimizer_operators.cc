// Operators of training. Steps give new values of tensors from their gradients: the inputs are the learning
// rate, the number of steps so far, and then in order all tensors, all gradients and all states.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/gradient_rules.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// A tensor that is trained.
struct Trained {
  Buffer value, gradient;
  std::vector<Buffer> states;
};

// All tensors that are trained, each with `num_states` states.
absl::StatusOr<std::vector<Trained>> TrainedTensors(const NodeImport& n, size_t num_states) {
  MYCC_RETURN_IF_ERROR(n.Expect(n.num_inputs()));
  const size_t each = 2 + num_states;
  if (n.num_inputs() < 2 + each || (n.num_inputs() - 2) % each != 0)
    return n.Refuse(absl::StrCat(n.num_inputs(), " inputs; expected two and ", each, " for each tensor"));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 1, kTakesIntegers));
  for (size_t i : {0, 1}) {
    if (n.In(i)->num_elements() != 1)
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected one number"));
  }
  const size_t count = (n.num_inputs() - 2) / each;
  std::vector<Trained> all;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < each; ++k) {
      const size_t input = 2 + k * count + i;
      MYCC_RETURN_IF_ERROR(ExpectTypes(n, input, kTakesFloats));
      if (n.Shape(input) != n.Shape(2 + i) || n.Type(input) != n.Type(2 + i)) {
        return n.Refuse(absl::StrCat("input ", input, " is ", TypeText(n.In(input)), "; expected ",
                                     TypeText(n.In(2 + i)), " as of its tensor"));
      }
    }
    Trained trained{n.In(2 + i), n.In(2 + count + i), {}};
    for (size_t k = 2; k < each; ++k) trained.states.push_back(n.In(2 + k * count + i));
    all.push_back(std::move(trained));
  }
  return all;
}

// A number made of the learning rate and the number of steps, in f64.
Buffer StepNumber(NodeImport& n, const BinaryFunction& function) {
  return n.g().Map({}, [&](const Axes&) {
    return function(MakeCast(DType::kF64, OnlyElement(n.g(), n.In(0))),
                    MakeCast(DType::kF64, OnlyElement(n.g(), n.In(1))));
  });
}

Expr NumberAs(const GraphBuilder& g, const Buffer& number, DType dtype) {
  return MakeCast(dtype, OnlyElement(g, number));
}

// The gradient with that of the regularization.
Expr GradientAt(const NodeImport& n, const Trained& trained, const Axes& at) {
  const Expr value = Load(trained.value, at);
  return NumberLike(value, n.Float("norm_coefficient", 0)) * value + Load(trained.gradient, at);
}

Expr RootPlusEpsilon(const NodeImport& n, const Expr& x) {
  return MakeUnary(Op::kSqrt, x) + NumberLike(x, n.Float("epsilon", 1e-6));
}

absl::Status Adagrad(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Trained> all, TrainedTensors(n, 1));
  GraphBuilder& g = n.g();
  const double decay = n.Float("decay_factor", 0);
  const Buffer rate = StepNumber(n, [&](const Expr& r, const Expr& t) {
    return Quotient(r, NumberLike(t, 1) + t * NumberLike(t, decay));
  });
  for (size_t i = 0; i < all.size(); ++i) {
    const Trained& trained = all[i];
    const Buffer squares = g.Map(trained.value->shape, [&](const Axes& at) {
      const Expr gradient = GradientAt(n, trained, at);
      return Load(trained.states[0], at) + gradient * gradient;
    });
    n.Set(i, g.Map(trained.value->shape, [&](const Axes& at) {
      const Expr value = Load(trained.value, at);
      const Expr change = NumberAs(g, rate, value->dtype) * GradientAt(n, trained, at);
      return value - Quotient(change, RootPlusEpsilon(n, Load(squares, at)));
    }));
    n.Set(all.size() + i, squares);
  }
  return absl::OkStatus();
}

// The rate of Adam's step: corrected for the bias of the first states.
Buffer AdamRate(NodeImport& n, double alpha, double beta) {
  return StepNumber(n, [&](const Expr& r, const Expr& t) {
    const Expr one = NumberLike(t, 1);
    const auto rest_of = [&](double factor) { return one - MakeBinary(Op::kPow, NumberLike(t, factor), t); };
    const Expr corrected = Quotient(r * MakeUnary(Op::kSqrt, rest_of(beta)), rest_of(alpha));
    return MakeSelect(LessThan(NumberLike(t, 0), t), corrected, r);
  });
}

absl::Status Adam(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Trained> all, TrainedTensors(n, 2));
  GraphBuilder& g = n.g();
  const double alpha = n.Float("alpha", 0.9), beta = n.Float("beta", 0.999);
  const double kept = 1 - n.Float("norm_coefficient_post", 0);
  const Buffer rate = AdamRate(n, alpha, beta);
  const auto mixed = [](const Expr& old, const Expr& fresh, double factor) {
    return NumberLike(old, factor) * old + NumberLike(old, 1 - factor) * fresh;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const Trained& trained = all[i];
    const std::vector<int64_t>& shape = trained.value->shape;
    const Buffer means = g.Map(shape, [&](const Axes& at) {
      return mixed(Load(trained.states[0], at), GradientAt(n, trained, at), alpha);
    });
    const Buffer squares = g.Map(shape, [&](const Axes& at) {
      const Expr gradient = GradientAt(n, trained, at);
      return mixed(Load(trained.states[1], at), gradient * gradient, beta);
    });
    n.Set(i, g.Map(shape, [&](const Axes& at) {
      const Expr value = Load(trained.value, at);
      const Expr direction = Quotient(Load(means, at), RootPlusEpsilon(n, Load(squares, at)));
      return NumberLike(value, kept) * (value - NumberAs(g, rate, value->dtype) * direction);
    }));
    n.Set(all.size() + i, means);
    n.Set(2 * all.size() + i, squares);
  }
  return absl::OkStatus();
}

absl::Status Momentum(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Trained> all, TrainedTensors(n, 1));
  const std::string mode = n.String("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected standard or nesterov"));
  for (const char* name : {"alpha", "beta", "norm_coefficient"}) {
    if (!n.HasAttribute(name)) return n.Refuse(absl::StrCat("has no attribute ", name, "; expected one"));
  }
  GraphBuilder& g = n.g();
  const double alpha = n.Float("alpha", 0), beta = n.Float("beta", 0);
  const Buffer rate = StepNumber(n, [](const Expr& r, const Expr&) { return r; });
  // The first gradient is taken whole.
  const Buffer share = StepNumber(n, [&](const Expr&, const Expr& t) {
    return MakeSelect(LessThan(NumberLike(t, 0), t), NumberLike(t, beta), NumberLike(t, 1));
  });
  for (size_t i = 0; i < all.size(); ++i) {
    const Trained& trained = all[i];
    const Buffer means = g.Map(trained.value->shape, [&](const Axes& at) {
      const Expr old = Load(trained.states[0], at);
      return NumberLike(old, alpha) * old + NumberAs(g, share, old->dtype) * GradientAt(n, trained, at);
    });
    n.Set(i, g.Map(trained.value->shape, [&](const Axes& at) {
      const Expr value = Load(trained.value, at), mean = Load(means, at);
      const Expr change =
          mode == "standard" ? mean : GradientAt(n, trained, at) + NumberLike(value, alpha) * mean;
      return value - NumberAs(g, rate, value->dtype) * change;
    }));
    n.Set(all.size() + i, means);
  }
  return absl::OkStatus();
}

constexpr Operator kOptimizerTable[] = {
    {"Adagrad", Adagrad, 1, kTrainingDomain},
    {"Adam", Adam, 1, kTrainingDomain},
    {"Gradient", ImportGradient, 1, kTrainingDomain},
    {"Momentum", Momentum, 1, kTrainingDomain},
};

}  // namespace

std::span<const Operator> OptimizerOperators() { return kOptimizerTable; }

}  // namespace mycc::onnx
