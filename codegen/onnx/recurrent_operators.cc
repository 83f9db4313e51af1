// RNN, GRU and LSTM. The products of all inputs are one stage; the recurrence is a library kernel.
#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kActivationsOfADirection = 3;

// An activation of ONNX, and its defaults; NaN where it has no such parameter.
struct Activation {
  const char* name;
  int64_t function;
  double alpha, beta;
};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr Activation kActivations[] = {
    {"relu", kMyccRelu, kNone, kNone},
    {"tanh", kMyccTanh, kNone, kNone},
    {"sigmoid", kMyccSigmoid, kNone, kNone},
    {"affine", kMyccAffine, 1, 0},
    {"leakyrelu", kMyccLeakyRelu, 0.01, kNone},
    {"thresholdedrelu", kMyccThresholdedRelu, 1, kNone},
    {"scaledtanh", kMyccScaledTanh, 1, 1},
    {"hardsigmoid", kMyccHardSigmoid, 0.2, 0.5},
    {"elu", kMyccElu, 1, kNone},
    {"softsign", kMyccSoftsign, kNone, kNone},
    {"softplus", kMyccSoftplus, kNone, kNone},
};

// The differences between the three operators.
struct Cell {
  int64_t kind, gates;
  std::vector<std::string> activations;  // the defaults of a direction
  bool has_cell_state;
};

// The sizes and the form of a node.
struct Shape {
  int64_t steps, batch, inputs, hidden, directions;
  bool is_batch_first, is_reversed;
};

absl::Status ExpectGateShape(const NodeImport& n, size_t i, const std::vector<int64_t>& shape) {
  if (!n.Has(i) || n.Shape(i) == shape) return absl::OkStatus();
  return n.Refuse(
      absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected the shape ", ShapeText(shape)));
}

absl::StatusOr<Shape> ShapeOf(const NodeImport& n, const Cell& cell) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 2, kTakesFloats));
  for (size_t i = 0; i < 3; ++i) MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 3, 3));
  const std::string direction = n.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.Refuse(
        absl::StrCat("the direction is `", direction, "`; expected forward, reverse or bidirectional"));
  Shape s;
  s.is_batch_first = n.Int("layout", 0) != 0;
  s.is_reversed = direction == "reverse";
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.steps = n.Shape(0)[s.is_batch_first ? 1 : 0];
  s.batch = n.Shape(0)[s.is_batch_first ? 0 : 1];
  s.inputs = n.Shape(0)[2];
  s.hidden = n.Shape(2)[2];
  const int64_t d = s.directions, rows = cell.gates * s.hidden;
  MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 1, {d, rows, s.inputs}));
  MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 2, {d, rows, s.hidden}));
  MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 3, {d, 2 * rows}));
  MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 4, {s.batch}));
  const std::vector<int64_t> state = s.is_batch_first ? std::vector<int64_t>{s.batch, d, s.hidden}
                                                      : std::vector<int64_t>{d, s.batch, s.hidden};
  MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 5, state));
  if (cell.has_cell_state) {
    MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 6, state));
    MYCC_RETURN_IF_ERROR(ExpectGateShape(n, 7, {d, 3 * s.hidden}));
  }
  if (n.Has(4) && n.Type(4) != DType::kI32)
    return n.Refuse(absl::StrCat("sequence lengths are ", TypeText(n.In(4)), "; expected i32"));
  for (size_t i : {3, 5, 6, 7}) {
    if (n.Has(i) && n.Typed(i).type != n.Typed(0).type)
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected the type of input 0"));
  }
  return s;
}

// The activations of all directions as attributes of the kernel. Each parameter that a function has is taken
// from the next number of its attribute.
absl::Status AddActivations(const NodeImport& n, const Cell& cell, int64_t directions,
                            std::vector<int64_t>* attributes) {
  const size_t count = cell.activations.size();
  std::vector<std::string> names = n.Strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), cell.activations.begin(), cell.activations.end());
  }
  if (names.size() != count * static_cast<size_t>(directions))
    return n.Refuse(absl::StrCat(names.size(), " activations; expected ", count, " for each direction"));
  const std::vector<double> alphas = n.Floats("activation_alpha"), betas = n.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  const auto parameter = [](const std::vector<double>& given, size_t* next, double otherwise) {
    const bool has = otherwise == otherwise;
    const double value = !has ? 0 : *next < given.size() ? given[(*next)++] : otherwise;
    return std::bit_cast<int64_t>(value);
  };
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto* at = std::find_if(std::begin(kActivations), std::end(kActivations),
                                  [&](const Activation& a) { return name == a.name; });
    if (at == std::end(kActivations))
      return n.Refuse(
          absl::StrCat("the activation `", names[i], "`; expected one that ONNX names for the operator"));
    attributes->push_back(at->function);
    attributes->push_back(parameter(alphas, &next_alpha, at->alpha));
    attributes->push_back(parameter(betas, &next_beta, at->beta));
    // Cells with fewer functions leave the places of the others empty.
    if ((i + 1) % count == 0) attributes->resize(attributes->size() + 3 * (kActivationsOfADirection - count));
  }
  return absl::OkStatus();
}

// x[d0, d1, ...] with its first two axes exchanged.
Buffer Exchanged(GraphBuilder& g, const Buffer& x) {
  std::vector<int64_t> shape = x->shape;
  std::swap(shape[0], shape[1]);
  return g.Map(shape, [&](const Axes& axes) {
    Axes from = axes;
    std::swap(from[0], from[1]);
    return Load(x, from);
  });
}

// The products of the inputs with the weights, with their biases: [steps, batch, directions, gates, hidden].
Buffer InputProducts(NodeImport& n, const Cell& cell, const Shape& s, DType dtype, bool is_linear_first) {
  GraphBuilder& g = n.g();
  const int64_t rows = s.directions * cell.gates * s.hidden;
  Buffer x = g.Cast(n.In(0), dtype);
  if (s.is_batch_first) x = Exchanged(g, x);
  x = g.AddReshape(x, {s.steps * s.batch, s.inputs});
  const Buffer w = g.AddReshape(g.Cast(n.In(1), dtype), {rows, s.inputs});
  Buffer product =
      g.Reduce(ReduceOp::kSum, {s.steps * s.batch, rows}, {s.inputs}, [&](const Axes& a, const Axes& r) {
        return Load(x, {a[0], r[0]}) * Load(w, {a[1], r[0]});
      });
  if (n.Has(3)) {
    // The recurrent bias of a GRU's hidden gate stays away where the reset gate multiplies it.
    const Buffer b = g.AddReshape(g.Cast(n.In(3), dtype), {s.directions, 2, cell.gates, s.hidden});
    const Buffer sum = g.Map({s.directions, cell.gates, s.hidden}, [&](const Axes& a) {
      const Expr input = Load(b, {a[0], IntConst(0), a[1], a[2]}),
                 both = input + Load(b, {a[0], IntConst(1), a[1], a[2]});
      return is_linear_first ? MakeSelect(LessThan(a[1], IntConst(2)), both, input) : both;
    });
    const Buffer bias = g.AddReshape(sum, {rows});
    product = g.Map(product->shape, [&](const Axes& a) { return Load(product, a) + Load(bias, {a[1]}); });
  }
  return g.AddReshape(product, {s.steps, s.batch, s.directions, cell.gates, s.hidden});
}

// The recurrent weights in panels: [directions, gates, panels, hidden, kMyccPanel].
Buffer WeightPanels(NodeImport& n, const Cell& cell, const Shape& s, DType dtype) {
  const int64_t panels = (s.hidden + kMyccPanel - 1) / kMyccPanel;
  const Buffer w =
      n.g().AddReshape(n.g().Cast(n.In(2), dtype), {s.directions, cell.gates, s.hidden, s.hidden});
  return n.g().Map({s.directions, cell.gates, panels, s.hidden, kMyccPanel}, [&](const Axes& a) {
    const Expr output = a[2] * kMyccPanel + a[4];
    return MakeSelect(LessThan(output, IntConst(s.hidden)), Load(w, {a[0], a[1], output, a[3]}),
                      FloatConst(0, dtype));
  });
}

// The kernel's inputs after the weights, and their flags.
int64_t AddOptionalInputs(NodeImport& n, const Cell& cell, const Shape& s, DType dtype, bool is_linear_first,
                          std::vector<Buffer>* inputs) {
  GraphBuilder& g = n.g();
  int64_t flags = 0;
  if (n.Has(4)) {
    flags |= kMyccHasLengths;
    inputs->push_back(n.In(4));
  }
  for (size_t i = 5; i < (cell.has_cell_state ? 7 : 6); ++i) {
    if (!n.Has(i)) continue;
    flags |= i == 5 ? kMyccHasH : kMyccHasC;
    const Buffer state = g.Cast(n.In(i), dtype);
    inputs->push_back(s.is_batch_first ? Exchanged(g, state) : state);
  }
  if (cell.has_cell_state && n.Has(7)) {
    flags |= kMyccHasPeepholes;
    inputs->push_back(g.Cast(n.In(7), dtype));
  }
  if (is_linear_first) {
    flags |= kMyccHasBias;
    inputs->push_back(g.Map({s.directions, s.hidden}, [&](const Axes& a) {
      return n.Has(3) ? MakeCast(dtype, Load(n.In(3), {a[0], a[1] + 5 * s.hidden})) : FloatConst(0, dtype);
    }));
  }
  return flags;
}

absl::Status Recurrent(NodeImport& n, const Cell& cell) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_ASSIGN_OR_RETURN(const Shape s, ShapeOf(n, cell));
  if (n.HasAttribute("hidden_size") && n.Int("hidden_size", 0) != s.hidden) {
    return n.Refuse(absl::StrCat("hidden_size is ", n.Int("hidden_size", 0),
                                 " and the recurrent weights are ", TypeText(n.In(2))));
  }
  GraphBuilder& g = n.g();
  const DType dtype = n.Type(0) == DType::kF64 ? DType::kF64 : DType::kF32;
  const bool is_linear_first = cell.kind == kMyccGru && n.Int("linear_before_reset", 0) != 0;
  std::vector<Buffer> inputs = {InputProducts(n, cell, s, dtype, is_linear_first),
                                WeightPanels(n, cell, s, dtype)};
  int64_t flags = AddOptionalInputs(n, cell, s, dtype, is_linear_first, &inputs);
  if (s.is_reversed) flags |= kMyccFirstReversed;
  if (cell.kind == kMyccLstm && n.Int("input_forget", 0) != 0) flags |= kMyccInputForget;
  std::vector<int64_t> attributes = {cell.kind, flags, std::bit_cast<int64_t>(n.Float("clip", 0))};
  MYCC_RETURN_IF_ERROR(AddActivations(n, cell, s.directions, &attributes));
  const std::vector<int64_t> state = {s.directions, s.batch, s.hidden};
  std::vector<std::pair<DType, std::vector<int64_t>>> outputs = {
      {dtype, {s.steps, s.directions, s.batch, s.hidden}}, {dtype, state}};
  if (cell.has_cell_state) outputs.emplace_back(dtype, state);
  std::vector<Buffer> results = g.Call("recurrent", attributes, inputs, outputs);
  for (size_t i = 0; i < results.size(); ++i) {
    if (s.is_batch_first && i > 0) results[i] = Exchanged(g, results[i]);
    if (s.is_batch_first && i == 0) {
      results[0] = g.Map({s.batch, s.steps, s.directions, s.hidden}, [&, y = results[0]](const Axes& a) {
        return Load(y, {a[1], a[2], a[0], a[3]});
      });
    }
    n.Set(i, g.Cast(results[i], n.Type(0)), n.Typed(0).type);
  }
  return absl::OkStatus();
}

absl::Status Rnn(NodeImport& n) { return Recurrent(n, {kMyccRnn, 1, {"tanh"}, false}); }
absl::Status Gru(NodeImport& n) { return Recurrent(n, {kMyccGru, 3, {"sigmoid", "tanh"}, false}); }
absl::Status Lstm(NodeImport& n) { return Recurrent(n, {kMyccLstm, 4, {"sigmoid", "tanh", "tanh"}, true}); }

constexpr Operator kRecurrentTable[] = {
    {"GRU", Gru},
    {"LSTM", Lstm},
    {"RNN", Rnn},
};

}  // namespace

std::span<const Operator> RecurrentOperators() { return kRecurrentTable; }

}  // namespace mycc::onnx
