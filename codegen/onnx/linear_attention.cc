// Operators of sequence models that carry a state from one call to the next: LinearAttention, whose steps are
// stages of their own, and CausalConvWithState.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/attention.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

enum LinearAttentionInput : size_t {
  kLinearQuery,
  kLinearKey,
  kLinearValue,
  kLinearState,
  kLinearDecay,
  kLinearBeta
};
constexpr int64_t kMostSteps = 256;  // of a sequence

struct LinearRule {
  HeadVectors q, k, v;
  HeadVectors decay, beta;  // null tensors where the rule has none
  double scale = 1;
};

// Decay and update rate, by the rule's name.
absl::Status SetGates(NodeImport& n, int64_t heads, LinearRule* rule) {
  const std::string name = n.String("update_rule", "gated_delta");
  const bool is_gated = name == "gated" || name == "gated_delta";
  const bool is_delta = name == "delta" || name == "gated_delta";
  if (!is_gated && !is_delta && name != "linear") {
    return n.Refuse(
        absl::StrCat("update_rule is `", name, "`; expected linear, gated, delta or gated_delta"));
  }
  if (is_gated != n.Has(kLinearDecay) || is_delta != n.Has(kLinearBeta)) {
    return n.Refuse(absl::StrCat("the rule ", name, " with", n.Has(kLinearDecay) ? "" : "out",
                                 " decay and with", n.Has(kLinearBeta) ? "" : "out",
                                 " beta; expected what the rule needs"));
  }
  const auto fits = [&](const HeadVectors& gate, int64_t most) {
    return gate.batch() == rule->q.batch() && gate.positions() == rule->q.positions() &&
           (gate.size() == 1 || gate.size() == most);
  };
  if (is_gated) {
    MYCC_ASSIGN_OR_RETURN(rule->decay, HeadVectorsOf(n, n.g(), kLinearDecay, heads));
    if (!fits(rule->decay, rule->k.size()))
      return n.Refuse(absl::StrCat("the decay is ", TypeText(n.In(kLinearDecay)),
                                   "; expected one number for each head, or for each element of the keys"));
  }
  if (is_delta) {
    MYCC_RETURN_IF_ERROR(n.ExpectRank(kLinearBeta, 3, 3));
    MYCC_ASSIGN_OR_RETURN(rule->beta,
                          HeadVectorsOf(n, n.g(), kLinearBeta, n.Shape(kLinearBeta)[2] == 1 ? 1 : heads));
    if (!fits(rule->beta, 1))
      return n.Refuse(
          absl::StrCat("beta is ", TypeText(n.In(kLinearBeta)), "; expected one number for each head"));
  }
  return absl::OkStatus();
}

absl::StatusOr<LinearRule> LinearRuleOf(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  for (size_t i : {kLinearQuery, kLinearKey, kLinearValue}) MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 3, 3));
  const int64_t heads = n.Int("kv_num_heads", 0);
  LinearRule rule;
  MYCC_ASSIGN_OR_RETURN(rule.q, HeadVectorsOf(n, n.g(), kLinearQuery, n.Int("q_num_heads", 0)));
  MYCC_ASSIGN_OR_RETURN(rule.k, HeadVectorsOf(n, n.g(), kLinearKey, heads));
  MYCC_ASSIGN_OR_RETURN(rule.v, HeadVectorsOf(n, n.g(), kLinearValue, heads));
  MYCC_RETURN_IF_ERROR(CheckHeads(n, rule.q, rule.k, rule.v));
  if (rule.q.positions() != rule.k.positions()) {
    return n.Refuse(
        absl::StrCat(rule.q.positions(), " queries and ", rule.k.positions(), " keys; expected as many"));
  }
  if (rule.q.positions() < 1 || rule.q.positions() > kMostSteps)
    return n.NotSupported(absl::StrCat("a sequence of ", rule.q.positions(), " positions"));
  MYCC_RETURN_IF_ERROR(SetGates(n, heads, &rule));
  rule.scale = n.Float("scale", 0);
  if (rule.scale == 0) rule.scale = 1 / std::sqrt(static_cast<double>(rule.q.size()));
  return rule;
}

Expr InF32(const Expr& x) { return MakeCast(DType::kF32, x); }

// An element of a gate, which may be one for all heads or all elements.
Expr GateAt(const HeadVectors& gate, const Expr& b, const Expr& head, int64_t step, const Expr& element) {
  return InF32(gate.At(b, gate.heads() == 1 ? IntConst(0) : head, IntConst(step),
                       gate.size() == 1 ? IntConst(0) : element));
}

// The state [batch, head, key element, value element] after a step.
Buffer NextState(GraphBuilder& g, const LinearRule& rule, const Buffer& before, int64_t step) {
  const Expr t = IntConst(step);
  Buffer state = before;
  if (rule.decay.tensor != nullptr) {
    state = g.Map(before->shape, [&](const Axes& a) {
      return Load(before, a) * ExpOf(GateAt(rule.decay, a[0], a[1], step, a[2]));
    });
  }
  const auto key = [&](const Expr& b, const Expr& head, const Expr& d) {
    return InF32(rule.k.At(b, head, t, d));
  };
  const std::vector<int64_t>& shape = state->shape;
  Buffer update = g.Map({shape[0], shape[1], shape[3]},
                        [&](const Axes& a) { return InF32(rule.v.At(a[0], a[1], t, a[2])); });
  if (rule.beta.tensor != nullptr) {
    const Buffer known =
        g.Reduce(ReduceOp::kSum, update->shape, {shape[2]}, [&](const Axes& a, const Axes& r) {
          return Load(state, {a[0], a[1], r[0], a[2]}) * key(a[0], a[1], r[0]);
        });
    const Buffer value = update;
    update = g.Map(value->shape, [&](const Axes& a) {
      return GateAt(rule.beta, a[0], a[1], step, IntConst(0)) * (Load(value, a) - Load(known, a));
    });
  }
  return g.Map(shape, [&](const Axes& a) {
    return Load(state, a) + key(a[0], a[1], a[2]) * Load(update, {a[0], a[1], a[3]});
  });
}

// The result of a step: [batch, head of the queries, value element].
Buffer StepResult(GraphBuilder& g, const LinearRule& rule, const Buffer& state, int64_t step) {
  const int64_t group = rule.q.heads() / rule.k.heads();
  return g.Reduce(ReduceOp::kSum, {rule.q.batch(), rule.q.heads(), rule.v.size()}, {rule.q.size()},
                  [&](const Axes& a, const Axes& r) {
                    return InF32(rule.q.At(a[0], a[1], IntConst(step), r[0])) *
                           Load(state, {a[0], FloorDiv(a[1], group), r[0], a[2]});
                  });
}

// One of the parts `first` to `end`, by the number that an axis has.
Expr Choose(const std::vector<Buffer>& parts, size_t first, size_t end, const Expr& number, const Axes& at) {
  if (end - first == 1) return Load(parts[first], at);
  const size_t middle = (first + end) / 2;
  return MakeSelect(LessThan(number, IntConst(static_cast<int64_t>(middle))),
                    Choose(parts, first, middle, number, at), Choose(parts, middle, end, number, at));
}

}  // namespace

absl::Status LinearAttention(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const LinearRule rule, LinearRuleOf(n));
  GraphBuilder& g = n.g();
  const std::vector<int64_t> shape = {rule.k.batch(), rule.k.heads(), rule.k.size(), rule.v.size()};
  Buffer state;
  DType state_type = rule.q.tensor->dtype;
  if (n.Has(kLinearState)) {
    MYCC_RETURN_IF_ERROR(ExpectTypes(n, kLinearState, kTakesFloats));
    if (n.Shape(kLinearState) != shape) {
      return n.Refuse(
          absl::StrCat("the past state is ", TypeText(n.In(kLinearState)), "; expected ", ShapeText(shape)));
    }
    state_type = n.Type(kLinearState);
    state = g.Cast(n.In(kLinearState), DType::kF32);
  } else {
    state = g.Map(shape, [](const Axes&) { return FloatConst(0, DType::kF32); });
  }
  std::vector<Buffer> results;
  for (int64_t step = 0; step < rule.q.positions(); ++step) {
    state = NextState(g, rule, state, step);
    results.push_back(StepResult(g, rule, state, step));
  }
  const std::vector<int64_t> all = {rule.q.batch(), rule.q.positions(), rule.q.heads(), rule.v.size()};
  const Buffer output = g.Map(all, [&](const Axes& a) {
    const Expr sum = Choose(results, 0, results.size(), a[1], {a[0], a[2], a[3]});
    return MakeCast(rule.q.tensor->dtype, sum * NumberLike(sum, rule.scale));
  });
  n.Set(0, g.AddReshape(output, {all[0], all[1], all[2] * all[3]}));
  if (n.Wants(1)) n.Set(1, g.Cast(state, state_type));
  return absl::OkStatus();
}

// A convolution of each channel by itself that sees the present and the `reach` positions before it.
absl::Status CausalConvWithState(NodeImport& n) {
  enum : size_t { kX, kWeight, kBias, kPast };
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, kX, kWeight, kTakesFloats));
  for (size_t i : {kX, kWeight}) MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 3, 3));
  const Buffer x = n.In(kX), weight = n.In(kWeight);
  const int64_t batch = x->shape[0], channels = x->shape[1], length = x->shape[2], taps = weight->shape[2];
  const int64_t reach = taps - 1;
  const auto differs = [&](size_t i, const std::vector<int64_t>& shape) {
    return n.Has(i) && (n.Shape(i) != shape || n.Type(i) != x->dtype);
  };
  if (taps < 1 || differs(kWeight, {channels, 1, taps}) || differs(kBias, {channels}) ||
      differs(kPast, {batch, channels, reach})) {
    return n.Refuse(absl::StrCat("convolves ", TypeText(x), " with ", TypeText(weight),
                                 "; expected a kernel, a bias and a past state for its channels"));
  }
  const std::string activation = n.String("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.Refuse(absl::StrCat("activation is `", activation, "`; expected none, silu or swish"));
  GraphBuilder& g = n.g();
  const Buffer padded = g.Map({batch, channels, reach + length}, [&](const Axes& a) {
    const Expr past = n.Has(kPast) && reach > 0 ? Load(n.In(kPast), a) : FloatConst(0, x->dtype);
    return MakeSelect(LessThan(a[2], IntConst(reach)), past, Load(x, {a[0], a[1], a[2] - reach}));
  });
  const Buffer sums = g.Reduce(ReduceOp::kSum, x->shape, {taps}, [&](const Axes& a, const Axes& r) {
    return Wide(Load(padded, {a[0], a[1], a[2] + r[0]})) * Wide(Load(weight, {a[1], IntConst(0), r[0]}));
  });
  n.Set(0, g.Map(x->shape, [&](const Axes& a) {
    Expr value = Load(sums, a);
    if (n.Has(kBias)) value = value + Wide(Load(n.In(kBias), {a[1]}));
    if (activation != "none") value = Quotient(value, NumberLike(value, 1) + ExpOf(Negative(value)));
    return MakeCast(x->dtype, value);
  }));
  if (n.Wants(1)) {
    n.Set(1, g.Map({batch, channels, reach}, [&](const Axes& a) {
      return Load(padded, {a[0], a[1], a[2] + length});
    }));
  }
  return absl::OkStatus();
}

}  // namespace mycc::onnx
