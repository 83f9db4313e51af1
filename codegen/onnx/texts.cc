#include "codegen/onnx/texts.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc::onnx {
namespace {

// Larger results are computed when the model runs.
constexpr int64_t kMostKnownElements = int64_t{1} << 22, kMostKnownBytes = int64_t{1} << 26;

DType TypeInGraph(int type) { return type == kString ? DType::kU64 : *StorageOf(type); }

// A known tensor as a kernel takes it, or nothing. Handles are good as long as the texts are.
std::optional<NDArray> KnownValue(const GraphBuilder& g, const TypedTensor& tensor) {
  if (!tensor.IsText()) {
    const NDArray* value = g.ValueOf(tensor.tensor);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  if (tensor.texts == nullptr) return std::nullopt;
  NDArray handles = NDArray::Zeros(DType::kU64, tensor.tensor->shape);
  for (size_t i = 0; i < tensor.texts->elements.size(); ++i) {
    const char* text = tensor.texts->elements[i].c_str();
    std::memcpy(handles.bytes.data() + 8 * i, &text, 8);
  }
  return handles;
}

Texts TextsAt(const NDArray& handles) {
  Texts texts{handles.shape, {}};
  for (int64_t i = 0; i < handles.num_elements(); ++i) {
    const char* text = nullptr;
    std::memcpy(&text, handles.bytes.data() + 8 * i, 8);
    texts.elements.emplace_back(text == nullptr ? "" : text);
  }
  return texts;
}

}  // namespace

TypedTensor ConstantTexts(GraphBuilder& g, Texts texts) {
  const Buffer tensor = g.AddTexts(texts.elements, texts.shape);
  return {tensor, kString, nullptr, nullptr, std::make_shared<const Texts>(std::move(texts))};
}

absl::StatusOr<TypedTensor> TextsOf(NodeImport& n, std::vector<std::string> elements,
                                    std::vector<int64_t> shape) {
  for (const std::string& element : elements) {
    if (element.find('\0') != std::string::npos) return n.NotSupported("a string with a NUL");
  }
  return ConstantTexts(n.g(), {std::move(shape), std::move(elements)});
}

absl::StatusOr<std::vector<TypedTensor>> CallOnTexts(
    GraphBuilder& g, const std::string& function, std::vector<int64_t> attributes,
    const std::vector<TypedTensor>& inputs, const std::vector<std::pair<int, std::vector<int64_t>>>& outputs,
    int64_t bytes) {
  LibraryCall call{function, std::move(attributes), {}};
  std::vector<NDArray> known;
  for (const TypedTensor& input : inputs) {
    call.inputs.push_back(input.tensor);
    if (std::optional<NDArray> value = KnownValue(g, input)) known.push_back(*std::move(value));
  }
  std::vector<std::pair<DType, std::vector<int64_t>>> types;
  for (const auto& [type, shape] : outputs) types.emplace_back(TypeInGraph(type), shape);
  int64_t elements = 0;
  for (const auto& [type, shape] : outputs) elements += ElementsOf(shape);
  std::vector<TypedTensor> results;
  if (known.size() < inputs.size() || elements > kMostKnownElements || bytes > kMostKnownBytes) {
    const std::vector<Buffer> tensors = g.Call(function, call.attributes, call.inputs, types);
    for (size_t i = 0; i < outputs.size(); ++i) results.push_back({tensors[i], outputs[i].first});
    return results;
  }
  std::vector<const NDArray*> values;
  for (const NDArray& value : known) values.push_back(&value);
  std::vector<Buffer> tensors;
  for (const auto& [dtype, shape] : types) tensors.push_back(MakeBuffer("known", dtype, shape));
  MYCC_ASSIGN_OR_RETURN(std::vector<NDArray> arrays, RunLibraryCall(call, tensors, values));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].first == kString) {
      results.push_back(ConstantTexts(g, TextsAt(arrays[i])));
    } else {
      results.push_back({g.AddConstant(std::move(arrays[i])), outputs[i].first});
    }
  }
  MyccForgetTexts();
  return results;
}

absl::Status ExpectTexts(const NodeImport& n, size_t i) {
  if (!n.Has(i)) return n.Refuse(absl::StrCat("has no input ", i, "; expected one"));
  if (n.Typed(i).IsText()) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.Typed(i)), "; expected strings"));
}

TypedTensor FirstTexts(GraphBuilder& g, const TypedTensor& texts, int axis, const Buffer& extent) {
  const NDArray* count = g.ValueOf(extent);
  MYCC_CHECK(count != nullptr && texts.texts != nullptr);
  Texts first{texts.texts->shape, texts.texts->elements};
  // The elements are compact in the smaller shape.
  first.shape[axis] = count->Get(0).i;
  first.elements.resize(ElementsOf(first.shape));
  return ConstantTexts(g, std::move(first));
}

}  // namespace mycc::onnx
