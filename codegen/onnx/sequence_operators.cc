// Sequences whose lengths are known when the model is compiled, as lists of tensors, and optionals. They
// exist in the importer alone: the graph has their elements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// An element that is not there has a shape that is not known: its place counts alone.
using Elements = std::vector<TypedTensor>;

constexpr int64_t kMostElementsOfSequence = 4096;

absl::StatusOr<const Elements*> SequenceIn(const NodeImport& n, size_t i) {
  const bool is_there = i < n.num_inputs() && n.Typed(i).IsThere();
  if (is_there && n.Typed(i).elements != nullptr && !IsEmptyOptional(n.Typed(i)))
    return n.Typed(i).elements.get();
  return n.Refuse(absl::StrCat("input ", i, " is ", is_there ? TypeText(n.Typed(i)) : "left out",
                               "; expected a sequence"));
}

absl::Status ExpectKnownShapes(const NodeImport& n, const Elements& elements) {
  for (const TypedTensor& element : elements) {
    if (!element.IsThere())
      return absl::UnimplementedError(
          absl::StrCat("an element of a sequence whose shape is not known when the model is compiled",
                       n.HowToKnow(element.shaped_by)));
  }
  return absl::OkStatus();
}

absl::Status ExpectTensorIn(const NodeImport& n, size_t i) {
  if (n.Has(i)) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", i < n.num_inputs() ? TypeText(n.Typed(i)) : "left out",
                               "; expected a tensor"));
}

absl::Status SetSequence(NodeImport& n, size_t i, Elements elements, int type) {
  if (static_cast<int64_t>(elements.size()) > kMostElementsOfSequence) {
    return n.NotSupported(absl::StrCat("a sequence of ", elements.size(), " elements, more than ",
                                       kMostElementsOfSequence, ","));
  }
  n.Set(i, TypedTensor{nullptr, type, std::make_shared<const Elements>(std::move(elements))});
  return absl::OkStatus();
}

// A place in a sequence, counted from the end when it is negative; `otherwise` without the input.
absl::StatusOr<int64_t> PositionIn(const NodeImport& n, size_t i, int64_t otherwise) {
  if (i >= n.num_inputs() || !n.Typed(i).IsThere()) return otherwise;
  MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, i));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> position, n.ConstantInts(i));
  if (position.size() != 1)
    return n.Refuse(absl::StrCat("the position is ", TypeText(n.In(i)), "; expected one integer"));
  return position[0];
}

absl::StatusOr<int64_t> ElementPosition(const NodeImport& n, size_t i, int64_t count) {
  MYCC_ASSIGN_OR_RETURN(const int64_t position, PositionIn(n, i, -1));
  if (count == 0) return n.Refuse("names an element of an empty sequence");
  if (position < -count || position >= count)
    return n.Refuse(absl::StrCat("position ", position, " of a sequence of ", count, "; expected -", count,
                                 " to ", count - 1));
  return position < 0 ? position + count : position;
}

absl::Status SequenceEmpty(NodeImport& n) {
  const int64_t type = n.Int("dtype", kFloat);
  if (type <= kUndefined || type > kInt2) return n.Refuse("dtype is no type of ONNX; expected one");
  return SetSequence(n, 0, {}, static_cast<int>(type));
}

absl::Status SequenceConstruct(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, 0));
  Elements elements;
  for (size_t i = 0; i < n.num_inputs(); ++i) {
    MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, i));
    if (n.Typed(i).type != n.Typed(0).type)
      return n.Refuse(
          absl::StrCat("holds ", TypeText(n.In(0)), " and ", TypeText(n.In(i)), "; expected one type"));
    elements.push_back(n.Typed(i));
  }
  return SetSequence(n, 0, std::move(elements), n.Typed(0).type);
}

absl::Status SequenceInsert(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, 1));
  if (n.Typed(1).type != n.Typed(0).type) {
    return n.Refuse(absl::StrCat("inserts ", TypeText(n.In(1)), " into a sequence of ",
                                 ElementTypeName(n.Typed(0).type), "; expected one type"));
  }
  const auto count = static_cast<int64_t>(sequence->size());
  MYCC_ASSIGN_OR_RETURN(const int64_t position, PositionIn(n, 2, count));
  if (position < -count || position > count)
    return n.Refuse(absl::StrCat("position ", position, " of a sequence of ", count, "; expected -", count,
                                 " to ", count));
  Elements elements = *sequence;
  elements.insert(elements.begin() + (position < 0 ? position + count : position), n.Typed(1));
  return SetSequence(n, 0, std::move(elements), n.Typed(0).type);
}

absl::Status SequenceErase(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  MYCC_ASSIGN_OR_RETURN(const int64_t position,
                        ElementPosition(n, 1, static_cast<int64_t>(sequence->size())));
  Elements elements = *sequence;
  elements.erase(elements.begin() + position);
  return SetSequence(n, 0, std::move(elements), n.Typed(0).type);
}

absl::Status SequenceAt(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, 1));
  MYCC_ASSIGN_OR_RETURN(const int64_t position,
                        ElementPosition(n, 1, static_cast<int64_t>(sequence->size())));
  MYCC_RETURN_IF_ERROR(ExpectKnownShapes(n, {(*sequence)[position]}));
  n.Set(0, (*sequence)[position]);
  return absl::OkStatus();
}

absl::Status SequenceLength(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  n.Set(0, n.g().AddReshape(n.g().Ints({static_cast<int64_t>(sequence->size())}), {}));
  return absl::OkStatus();
}

// The extents of the parts: 1 each, those given, or one number for all but the last, which may be smaller.
absl::StatusOr<std::vector<int64_t>> PartsOf(const NodeImport& n, int64_t extent) {
  std::vector<int64_t> parts = {1};
  if (n.Has(1)) {
    MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 0, 1));
    MYCC_ASSIGN_OR_RETURN(parts, n.ConstantInts(1));
  }
  if (!n.Has(1) || n.Rank(1) == 0) {
    const int64_t part = parts[0];
    if (part < 1) return n.Refuse(absl::StrCat("splits into parts of ", part, "; expected 1 or more"));
    if (extent / part >= kMostElementsOfSequence)
      return n.NotSupported(absl::StrCat("a sequence of ", extent / part, " elements"));
    parts.assign(static_cast<size_t>(extent / part), part);
    if (extent % part != 0) parts.push_back(extent % part);
  }
  if (static_cast<int64_t>(parts.size()) > kMostElementsOfSequence)
    return n.NotSupported(absl::StrCat("a sequence of ", parts.size(), " elements"));
  int64_t end = 0;
  for (const int64_t part : parts) end = part < 0 || part > extent - end ? extent + 1 : end + part;
  if (end == extent) return parts;
  return n.Refuse(absl::StrCat("splits ", extent, " elements into ", ShapeText(parts),
                               "; expected parts that make up the whole"));
}

absl::Status SplitToSequence(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTensorIn(n, 0));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  if (n.Has(1) && n.Value(1) == nullptr && n.Rank(1) == 1) {
    const int64_t count = std::min(n.Shape(1)[0], kMostElementsOfSequence + 1);
    const TypedTensor unknown = {nullptr, n.Typed(0).type, nullptr, n.In(1)};
    return SetSequence(n, 0, Elements(count, unknown), n.Typed(0).type);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> parts, PartsOf(n, n.Shape(0)[axis]));
  const bool drops_axis = n.Int("keepdims", 1) == 0 && !n.Has(1);
  Elements elements;
  int64_t first = 0;
  for (const int64_t part : parts) {
    const Buffer element = Sliced(n.g(), n.In(0), axis, first, 1, part);
    elements.push_back({drops_axis ? WithoutAxis(n.g(), element, axis) : element, n.Typed(0).type});
    first += part;
  }
  return SetSequence(n, 0, std::move(elements), n.Typed(0).type);
}

// Elements joined along an axis, or along a new one.
absl::Status ConcatFromSequence(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  if (sequence->empty()) return n.Refuse("joins a sequence of no elements; expected some");
  if (!n.HasAttribute("axis")) return n.Refuse("has no axis; expected one");
  MYCC_RETURN_IF_ERROR(ExpectKnownShapes(n, *sequence));
  const bool is_new = n.Int("new_axis", 0) != 0;
  const std::vector<int64_t>& first = (*sequence)[0].tensor->shape;
  MYCC_ASSIGN_OR_RETURN(const int64_t axis,
                        n.Axis(n.Int("axis", 0), static_cast<int64_t>(first.size()) + (is_new ? 1 : 0)));
  std::vector<int64_t> shape = first;
  if (is_new) shape.insert(shape.begin() + axis, 1);
  shape[axis] = 0;
  std::vector<Buffer> parts;
  for (const TypedTensor& element : *sequence) {
    std::vector<int64_t> other = element.tensor->shape;
    const bool fits = other.size() == first.size() && (is_new ? other == first : true);
    if (!is_new && fits) other[axis] = first[axis];
    if (!fits || other != first) {
      return n.Refuse(absl::StrCat("joins ", TypeText((*sequence)[0]), " and ", TypeText(element),
                                   " along axis ", axis, "; expected shapes that differ there alone"));
    }
    shape[axis] += is_new ? 1 : element.tensor->shape[axis];
    parts.push_back(element.tensor);
  }
  MYCC_RETURN_IF_ERROR(ExpectSoundShape(n, "gives", shape));
  n.Set(0, is_new ? Stacked(n.g(), parts, axis) : Joined(n.g(), parts, axis), n.Typed(0).type);
  return absl::OkStatus();
}

// Repeats a body for the elements of a sequence; the other inputs are sequences of that length, or tensors
// that each repetition gets.
absl::Status SequenceMap(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Elements* sequence, SequenceIn(n, 0));
  const OnnxAttribute* body = n.Attribute("body");
  if (body == nullptr || body->graph == nullptr) return n.Refuse("has no graph body; expected one");
  if (body->graph->inputs.size() != n.num_inputs() || body->graph->outputs.size() != n.num_outputs())
    return n.Refuse(absl::StrCat("its body has ", body->graph->inputs.size(), " inputs and ",
                                 body->graph->outputs.size(), " outputs; expected ", n.num_inputs(), " and ",
                                 n.num_outputs()));
  for (size_t i = 1; i < n.num_inputs(); ++i) {
    if (!n.Typed(i).IsThere()) return n.Refuse(absl::StrCat("has no input ", i, "; expected one"));
    if (n.Typed(i).elements != nullptr && n.Typed(i).elements->size() != sequence->size())
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.Typed(i)), "; expected a sequence of ",
                                   sequence->size()));
  }
  std::vector<Elements> results(n.num_outputs());
  for (size_t step = 0; step < sequence->size(); ++step) {
    Elements arguments;
    for (size_t i = 0; i < n.num_inputs(); ++i)
      arguments.push_back(n.Typed(i).elements == nullptr ? n.Typed(i) : (*n.Typed(i).elements)[step]);
    MYCC_RETURN_IF_ERROR(ExpectKnownShapes(n, arguments));
    MYCC_ASSIGN_OR_RETURN(const Elements outputs, n.Import(*body->graph, std::move(arguments)));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].tensor == nullptr)
        return n.Refuse(
            absl::StrCat("output ", i, " of its body is ", TypeText(outputs[i]), "; expected a tensor"));
      results[i].push_back(outputs[i]);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const int type = results[i].empty() ? body->graph->outputs[i].type : results[i][0].type;
    MYCC_RETURN_IF_ERROR(SetSequence(n, i, std::move(results[i]), type));
  }
  return absl::OkStatus();
}

bool HasValue(const NodeImport& n) {
  return n.num_inputs() > 0 && n.Typed(0).IsThere() && !IsEmptyOptional(n.Typed(0));
}

absl::Status ImportOptional(NodeImport& n) {
  n.Set(0, HasValue(n) ? n.Typed(0) : EmptyOptional());
  return absl::OkStatus();
}

absl::Status OptionalHasElement(NodeImport& n) {
  n.Set(0, n.g().Number(DType::kBool, HasValue(n) ? 1 : 0));
  return absl::OkStatus();
}

absl::Status OptionalGetElement(NodeImport& n) {
  if (!HasValue(n)) return n.Refuse("takes the value of an optional without one");
  n.Set(0, n.Typed(0));
  return absl::OkStatus();
}

constexpr Operator kSequenceTable[] = {
    {"ConcatFromSequence", ConcatFromSequence, 11, "", true},
    {"Optional", ImportOptional, 15, "", true},
    {"OptionalGetElement", OptionalGetElement, 15, "", true},
    {"OptionalHasElement", OptionalHasElement, 15, "", true},
    {"SequenceAt", SequenceAt, 11, "", true},
    {"SequenceConstruct", SequenceConstruct, 11, "", true},
    {"SequenceEmpty", SequenceEmpty, 11, "", true},
    {"SequenceErase", SequenceErase, 11, "", true},
    {"SequenceInsert", SequenceInsert, 11, "", true},
    {"SequenceLength", SequenceLength, 11, "", true},
    {"SequenceMap", SequenceMap, 17, "", true},
    {"SplitToSequence", SplitToSequence, 11, "", true},
};

}  // namespace

std::span<const Operator> SequenceOperators() { return kSequenceTable; }

}  // namespace mycc::onnx
