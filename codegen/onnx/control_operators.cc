// If, Loop and Scan: branches that are known, and loops that are unrolled, since their counts are. Where a
// condition is not known, both ways are computed and one is taken.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kMostUnrolled = 1024;  // repetitions of a body

absl::StatusOr<const OnnxGraph*> BodyOf(const NodeImport& n, const std::string& name) {
  const OnnxAttribute* attribute = n.Attribute(name);
  if (attribute != nullptr && attribute->graph != nullptr) return attribute->graph.get();
  return n.Refuse(absl::StrCat("has no graph ", name, "; expected one"));
}

absl::Status ExpectCondition(const NodeImport& n, const TypedTensor& condition) {
  if (condition.type == kBool && condition.tensor != nullptr && condition.tensor->num_elements() == 1)
    return absl::OkStatus();
  return n.Refuse(absl::StrCat("its condition is ", TypeText(condition), "; expected one bool"));
}

// The value of a condition, where it is known.
std::optional<bool> KnownCondition(NodeImport& n, const Buffer& condition) {
  const NDArray* value = n.g().ValueOf(condition);
  if (value == nullptr) return std::nullopt;
  return value->Get(0).i != 0;
}

// Whether both are sequences of one length, and neither an optional without a value.
bool SequencesFit(const TypedTensor& a, const TypedTensor& b) {
  return a.elements != nullptr && b.elements != nullptr && !IsEmptyOptional(a) && !IsEmptyOptional(b) &&
         a.type == b.type && a.elements->size() == b.elements->size();
}

// Refuses a sequence among a body's outputs from `first` on, which are gathered in tensors.
absl::Status ExpectTensors(const NodeImport& n, const std::vector<TypedTensor>& outputs, size_t first) {
  for (size_t i = first; i < outputs.size(); ++i) {
    if (outputs[i].tensor == nullptr) {
      return n.Refuse(
          absl::StrCat("output ", i, " of its body is ", TypeText(outputs[i]), "; expected a tensor"));
    }
  }
  return absl::OkStatus();
}

// One of two tensors or sequences, element by element.
absl::StatusOr<TypedTensor> Chosen(NodeImport& n, const Buffer& condition, const TypedTensor& then,
                                   const TypedTensor& otherwise) {
  if (then.tensor == otherwise.tensor && then.elements == otherwise.elements) return then;
  const bool are_tensors = then.tensor != nullptr && otherwise.tensor != nullptr;
  if (!are_tensors && SequencesFit(then, otherwise)) {
    std::vector<TypedTensor> elements;
    for (size_t i = 0; i < then.elements->size(); ++i) {
      MYCC_ASSIGN_OR_RETURN(const TypedTensor element,
                            Chosen(n, condition, (*then.elements)[i], (*otherwise.elements)[i]));
      elements.push_back(element);
    }
    return TypedTensor{nullptr, then.type, std::make_shared<const std::vector<TypedTensor>>(elements)};
  }
  if (!are_tensors || then.type != otherwise.type || then.tensor->shape != otherwise.tensor->shape) {
    return absl::UnimplementedError(
        absl::StrCat("a result of ", TypeText(then), " or ", TypeText(otherwise),
                     " by a condition that is not known when the model is compiled", n.HowToKnow(condition)));
  }
  const Buffer chosen = n.g().Map(then.tensor->shape, [&](const Axes& axes) {
    return MakeSelect(OnlyElement(n.g(), condition), Load(then.tensor, axes), Load(otherwise.tensor, axes));
  });
  return TypedTensor{chosen, then.type};
}

absl::Status ImportIf(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_RETURN_IF_ERROR(ExpectCondition(n, n.Typed(0)));
  MYCC_ASSIGN_OR_RETURN(const OnnxGraph* then_branch, BodyOf(n, "then_branch"));
  MYCC_ASSIGN_OR_RETURN(const OnnxGraph* else_branch, BodyOf(n, "else_branch"));
  const std::optional<bool> known = KnownCondition(n, n.In(0));
  const bool is_then = known.value_or(true);
  MYCC_ASSIGN_OR_RETURN(const auto results, n.Import(is_then ? *then_branch : *else_branch, {}));
  std::vector<TypedTensor> others = results;
  if (!known) {
    MYCC_ASSIGN_OR_RETURN(others, n.Import(*else_branch, {}));
  }
  if (results.size() != n.num_outputs() || others.size() != n.num_outputs())
    return n.Refuse(absl::StrCat("a branch has other outputs; expected ", n.num_outputs()));
  for (size_t i = 0; i < results.size(); ++i) {
    MYCC_ASSIGN_OR_RETURN(const TypedTensor result, Chosen(n, n.In(0), results[i], others[i]));
    n.Set(i, result);
  }
  return absl::OkStatus();
}

// A number under the shape that a body declares for its input: none, or one element.
Buffer ForBody(GraphBuilder& g, const Buffer& number, const DeclaredValue& input) {
  const bool is_vector = input.has_shape && input.shape.size() == 1;
  return g.AddReshape(number, is_vector ? std::vector<int64_t>{1} : std::vector<int64_t>());
}

// The results that repetitions give, by output, in their order.
struct Collected {
  std::vector<std::vector<Buffer>> elements;
  std::vector<int> types;

  explicit Collected(size_t count) : elements(count), types(count, kUndefined) {}
  void Add(size_t i, const TypedTensor& element) {
    elements[i].push_back(element.tensor);
    types[i] = element.type;
  }
};

// The elements along a new axis; without any, as the body's output declares them.
absl::StatusOr<TypedTensor> StackedResult(NodeImport& n, const std::vector<Buffer>& elements, int type,
                                          int64_t axis, const DeclaredValue& declared) {
  const bool is_empty = elements.empty();
  std::vector<int64_t> shape;
  if (is_empty) {
    bool is_known = declared.has_shape && StorageOf(declared.type).has_value();
    for (const Dimension& dimension : declared.shape) {
      is_known &= dimension.extent >= 0;
      shape.push_back(dimension.extent);
    }
    if (!is_known) {
      return n.NotSupported(
          absl::StrCat("no repetition of a body whose output `", declared.name, "` has no declared shape"));
    }
    type = declared.type;
  } else {
    shape = elements[0]->shape;
  }
  for (const Buffer& element : elements) {
    if (element->shape != shape || element->dtype != elements[0]->dtype) {
      return n.Refuse(absl::StrCat("gathers ", TypeText(elements[0]), " and ", TypeText(element),
                                   " of its repetitions; expected one shape"));
    }
  }
  const int64_t rank = static_cast<int64_t>(shape.size()) + 1;
  MYCC_ASSIGN_OR_RETURN(axis, n.Axis(axis, rank));
  std::vector<int64_t> stacked = shape;
  stacked.insert(stacked.begin() + axis, static_cast<int64_t>(elements.size()));
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", stacked));
  if (is_empty) return TypedTensor{n.g().AddConstant(NDArray::Zeros(*StorageOf(type), stacked)), type};
  return TypedTensor{Stacked(n.g(), elements, axis), type};
}

// A loop while it is unrolled.
struct LoopState {
  const OnnxGraph* body = nullptr;
  TypedTensor condition;    // of the next repetition
  Buffer active;            // whether all conditions so far held; null: they are known to
  bool is_counted = false;  // the conditions say nothing more than the trip count
  std::vector<TypedTensor> carried;
  Collected collected{0};
};

absl::Status RepeatLoop(NodeImport& n, int64_t iteration, LoopState* loop) {
  GraphBuilder& g = n.g();
  const OnnxGraph& body = *loop->body;
  std::vector<TypedTensor> inputs = {{ForBody(g, g.Ints({iteration}), body.inputs[0]), kInt64},
                                     {ForBody(g, loop->condition.tensor, body.inputs[1]), kBool}};
  inputs.insert(inputs.end(), loop->carried.begin(), loop->carried.end());
  MYCC_ASSIGN_OR_RETURN(const std::vector<TypedTensor> outputs, n.Import(body, inputs));
  const size_t count = loop->carried.size();
  for (size_t i = 0; i < count; ++i) {
    const TypedTensor& next = outputs[i + 1];
    if (loop->active == nullptr) {
      loop->carried[i] = next;
    } else {
      MYCC_ASSIGN_OR_RETURN(loop->carried[i], Chosen(n, loop->active, next, loop->carried[i]));
    }
  }
  MYCC_RETURN_IF_ERROR(ExpectTensors(n, outputs, count + 1));
  for (size_t i = count + 1; i < outputs.size(); ++i) loop->collected.Add(i - count - 1, outputs[i]);
  loop->condition = outputs[0];
  return ExpectCondition(n, loop->condition);
}

// Whether the condition ends the loop here. One that is not known turns what follows into a choice.
absl::StatusOr<bool> EndsHere(NodeImport& n, int64_t most, LoopState* loop) {
  if (loop->is_counted) return false;
  const std::optional<bool> known = KnownCondition(n, loop->condition.tensor);
  if (known) return !*known;
  if (!loop->collected.elements.empty() || most > kMostUnrolled) {
    return absl::UnimplementedError(
        absl::StrCat("outputs that are gathered, or no trip count of at most 1024, with a condition that is "
                     "not known when "
                     "the model is compiled",
                     n.HowToKnow(loop->condition.tensor)));
  }
  const Buffer condition = n.g().AddReshape(loop->condition.tensor, {});
  const Buffer before = loop->active;
  loop->active = before == nullptr ? condition : n.g().Map({}, [&](const Axes& axes) {
    return MakeBinary(Op::kAnd, Load(before, axes), Load(condition, axes));
  });
  return false;
}

// How often the body is repeated at most; exactly so often where an output that gathers one element each time
// is declared, which counts where an input does not tell.
absl::StatusOr<int64_t> TripCount(const NodeImport& n, LoopState* loop) {
  const bool is_open = (n.Has(0) && n.Value(0) == nullptr) || (n.Has(1) && n.Value(1) == nullptr);
  for (size_t i = loop->carried.size(); is_open && i < n.num_outputs(); ++i) {
    const std::vector<int64_t>* declared = n.DeclaredShape(i);
    if (declared == nullptr || declared->empty()) continue;
    loop->is_counted = true;
    return (*declared)[0];
  }
  if (!n.Has(0)) return std::numeric_limits<int64_t>::max();
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> trips, n.ConstantInts(0));
  if (trips.size() == 1) return trips[0];
  return n.Refuse(absl::StrCat("its trip count is ", TypeText(n.In(0)), "; expected one number"));
}

// Inputs: the trip count, the condition of the first repetition, and what the body carries on.
absl::Status ImportLoop(NodeImport& n) {
  LoopState loop;
  MYCC_ASSIGN_OR_RETURN(loop.body, BodyOf(n, "body"));
  for (size_t i = 2; i < n.num_inputs(); ++i) {
    if (!n.Typed(i).IsThere()) return n.Refuse(absl::StrCat("has no input ", i, "; expected one"));
    loop.carried.push_back(n.Typed(i));
  }
  const size_t count = loop.carried.size();
  if (loop.body->inputs.size() != count + 2 || loop.body->outputs.size() < count + 1 ||
      n.num_outputs() > loop.body->outputs.size() - 1) {
    return n.Refuse(absl::StrCat("its body has ", loop.body->inputs.size(), " inputs and ",
                                 loop.body->outputs.size(), " outputs; expected ", count + 2,
                                 ", and at least ", std::max(count, n.num_outputs()) + 1));
  }
  MYCC_ASSIGN_OR_RETURN(const int64_t most, TripCount(n, &loop));
  loop.condition = n.Has(1) ? n.Typed(1) : TypedTensor{n.g().Number(DType::kBool, 1), kBool};
  MYCC_RETURN_IF_ERROR(ExpectCondition(n, loop.condition));
  loop.collected = Collected(loop.body->outputs.size() - 1 - count);
  for (int64_t i = 0; i < most; ++i) {
    MYCC_ASSIGN_OR_RETURN(const bool ends, EndsHere(n, most, &loop));
    if (ends) break;
    if (i == kMostUnrolled)
      return n.NotSupported(absl::StrCat("a loop of more than ", kMostUnrolled, " repetitions"));
    MYCC_RETURN_IF_ERROR(RepeatLoop(n, i, &loop));
  }
  for (size_t i = 0; i < count; ++i) n.Set(i, loop.carried[i]);
  for (size_t i = 0; i < loop.collected.elements.size(); ++i) {
    if (!n.Wants(count + i)) continue;
    MYCC_ASSIGN_OR_RETURN(const TypedTensor result,
                          StackedResult(n, loop.collected.elements[i], loop.collected.types[i], 0,
                                        loop.body->outputs[count + 1 + i]));
    n.Set(count + i, result);
  }
  return absl::OkStatus();
}

// The attributes of a Scan, one number for each of its scanned inputs and outputs.
struct ScanForm {
  const OnnxGraph* body = nullptr;
  size_t states = 0, inputs = 0, outputs = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

// One number for each of `count` inputs or outputs, 0 without the attribute.
absl::StatusOr<std::vector<int64_t>> ScanNumbers(const NodeImport& n, const std::string& name, size_t count,
                                                 bool is_direction) {
  const std::vector<int64_t> numbers = n.Ints(name, std::vector<int64_t>(count, 0));
  bool fits = numbers.size() == count;
  for (const int64_t number : numbers) fits &= !is_direction || number == 0 || number == 1;
  if (fits) return numbers;
  return n.Refuse(absl::StrCat(name, " is ", ShapeText(numbers), "; expected ", count, " numbers",
                               is_direction ? ", each 0 or 1" : ""));
}

absl::StatusOr<ScanForm> ScanFormOf(const NodeImport& n, size_t arguments) {
  ScanForm form;
  MYCC_ASSIGN_OR_RETURN(form.body, BodyOf(n, "body"));
  const int64_t scanned = n.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(arguments))
    return n.Refuse(absl::StrCat("num_scan_inputs is ", scanned, "; expected 1 to ", arguments));
  form.inputs = static_cast<size_t>(scanned);
  form.states = arguments - form.inputs;
  if (form.body->inputs.size() != arguments || form.body->outputs.size() < form.states ||
      n.num_outputs() > form.body->outputs.size()) {
    return n.Refuse(absl::StrCat("its body has ", form.body->inputs.size(), " inputs and ",
                                 form.body->outputs.size(), " outputs; expected ", arguments,
                                 ", and at least ", std::max(form.states, n.num_outputs())));
  }
  form.outputs = form.body->outputs.size() - form.states;
  const char* directions = n.opset() < 9 ? "directions" : "scan_input_directions";
  MYCC_ASSIGN_OR_RETURN(form.input_axes, ScanNumbers(n, "scan_input_axes", form.inputs, false));
  MYCC_ASSIGN_OR_RETURN(form.input_directions, ScanNumbers(n, directions, form.inputs, true));
  MYCC_ASSIGN_OR_RETURN(form.output_axes, ScanNumbers(n, "scan_output_axes", form.outputs, false));
  MYCC_ASSIGN_OR_RETURN(form.output_directions, ScanNumbers(n, "scan_output_directions", form.outputs, true));
  return form;
}

// Makes the axes of the scanned tensors count from their start, and tells the number of repetitions.
absl::StatusOr<int64_t> ScanLength(const NodeImport& n, const std::vector<TypedTensor>& arguments,
                                   ScanForm* form) {
  int64_t length = -1;
  for (size_t i = 0; i < form->inputs; ++i) {
    const Buffer& scanned = arguments[form->states + i].tensor;
    MYCC_ASSIGN_OR_RETURN(form->input_axes[i],
                          n.Axis(form->input_axes[i], static_cast<int64_t>(scanned->shape.size())));
    const int64_t extent = scanned->shape[form->input_axes[i]];
    if (length >= 0 && extent != length)
      return n.Refuse(
          absl::StrCat("scans axes of ", length, " and ", extent, " elements; expected one extent"));
    length = extent;
  }
  if (length > kMostUnrolled)
    return n.NotSupported(absl::StrCat("a scan of ", length, " elements, more than ", kMostUnrolled, ","));
  return length;
}

// The states at the end, and the results that were gathered.
absl::StatusOr<std::vector<TypedTensor>> Scanned(NodeImport& n, ScanForm form,
                                                 const std::vector<TypedTensor>& arguments) {
  MYCC_ASSIGN_OR_RETURN(const int64_t length, ScanLength(n, arguments, &form));
  std::vector<TypedTensor> results(arguments.begin(), arguments.begin() + static_cast<int64_t>(form.states));
  Collected collected(form.outputs);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<TypedTensor> inputs = results;
    for (size_t i = 0; i < form.inputs; ++i) {
      const TypedTensor& from = arguments[form.states + i];
      const int64_t place = form.input_directions[i] == 0 ? step : length - 1 - step;
      const Buffer slice = Sliced(n.g(), from.tensor, form.input_axes[i], place, 1, 1);
      inputs.push_back({WithoutAxis(n.g(), slice, form.input_axes[i]), from.type});
    }
    MYCC_ASSIGN_OR_RETURN(const std::vector<TypedTensor> outputs, n.Import(*form.body, inputs));
    MYCC_RETURN_IF_ERROR(ExpectTensors(n, outputs, 0));
    std::copy_n(outputs.begin(), form.states, results.begin());
    for (size_t i = 0; i < form.outputs; ++i) collected.Add(i, outputs[form.states + i]);
  }
  for (size_t i = 0; i < form.outputs; ++i) {
    if (form.output_directions[i] == 1) std::ranges::reverse(collected.elements[i]);
    MYCC_ASSIGN_OR_RETURN(const TypedTensor result,
                          StackedResult(n, collected.elements[i], collected.types[i], form.output_axes[i],
                                        form.body->outputs[form.states + i]));
    results.push_back(result);
  }
  return results;
}

// In opset 8 every input has a batch axis in front; its elements are scanned one by one.
absl::StatusOr<std::vector<TypedTensor>> ScannedBatch(NodeImport& n, const ScanForm& form,
                                                      const std::vector<TypedTensor>& arguments) {
  const int64_t batch = arguments[0].tensor->shape.empty() ? 0 : arguments[0].tensor->shape[0];
  if (batch < 1 || batch > kMostUnrolled) return n.NotSupported(absl::StrCat("a scan of a batch of ", batch));
  std::vector<std::vector<Buffer>> parts(form.states + form.outputs);
  std::vector<TypedTensor> results;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<TypedTensor> own;
    for (const TypedTensor& from : arguments) {
      if (from.tensor->shape.empty() || from.tensor->shape[0] != batch)
        return n.Refuse(absl::StrCat("scans ", TypeText(from), " in a batch of ", batch));
      own.push_back({WithoutAxis(n.g(), Sliced(n.g(), from.tensor, 0, b, 1, 1), 0), from.type});
    }
    MYCC_ASSIGN_OR_RETURN(results, Scanned(n, form, own));
    for (size_t i = 0; i < results.size(); ++i) parts[i].push_back(results[i].tensor);
  }
  for (size_t i = 0; i < results.size(); ++i) results[i].tensor = Stacked(n.g(), parts[i], 0);
  return results;
}

absl::Status ImportScan(NodeImport& n) {
  const bool has_batch = n.opset() < 9;
  if (has_batch && n.Has(0)) return n.NotSupported("a scan of sequences of given lengths");
  std::vector<TypedTensor> arguments;
  for (size_t i = has_batch ? 1 : 0; i < n.num_inputs(); ++i) {
    if (!n.Has(i)) return n.Refuse(absl::StrCat("has no input ", i, "; expected one"));
    arguments.push_back(n.Typed(i));
  }
  MYCC_ASSIGN_OR_RETURN(const ScanForm form, ScanFormOf(n, arguments.size()));
  MYCC_ASSIGN_OR_RETURN(const std::vector<TypedTensor> results,
                        has_batch ? ScannedBatch(n, form, arguments) : Scanned(n, form, arguments));
  for (size_t i = 0; i < results.size(); ++i) n.Set(i, results[i]);
  return absl::OkStatus();
}

constexpr Operator kControlTable[] = {
    {"If", ImportIf, 1, "", true},
    {"Loop", ImportLoop, 1, "", true},
    {"Scan", ImportScan, 8},
};

}  // namespace

std::span<const Operator> ControlOperators() { return kControlTable; }

}  // namespace mycc::onnx
