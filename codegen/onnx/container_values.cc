#include "codegen/onnx/container_values.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/onnx/check_model.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kMostElementsOfInput = 4096;

std::string ElementName(const std::string& sequence, int64_t i) {
  return absl::StrCat(sequence, "[", i, "]");
}

bool IsSequence(const DeclaredValue& input) {
  return input.kind == "sequence" || input.kind == "optional sequence";
}
bool IsOptional(const DeclaredValue& input) {
  return input.kind == "optional" || input.kind == "optional sequence";
}

DeclaredValue TensorOf(const DeclaredValue& container, std::string name) {
  DeclaredValue tensor = container;
  tensor.name = std::move(name);
  tensor.kind = "tensor";
  return tensor;
}

bool IsGiven(const OnnxOptions& options, const std::string& name) {
  return options.shapes.count(name) > 0 || options.values.count(name) > 0;
}

// The number behind the sequence's name in "x[12]"; -1 for another name.
int64_t ElementOf(const std::string& sequence, const std::string& name) {
  int64_t i = -1;
  const bool has_form = name.size() > sequence.size() + 2 && absl::StartsWith(name, sequence + "[");
  if (!has_form || !absl::SimpleAtoi(name.substr(sequence.size() + 1, name.size() - sequence.size() - 2), &i))
    return -1;
  return i >= 0 && name == ElementName(sequence, i) ? i : -1;
}

// How many elements of a sequence have a shape or a value.
absl::StatusOr<int64_t> NumElements(const std::string& sequence, const OnnxOptions& options) {
  int64_t last = -1;
  for (const auto& [name, shape] : options.shapes) last = std::max(last, ElementOf(sequence, name));
  for (const auto& [name, value] : options.values) last = std::max(last, ElementOf(sequence, name));
  if (last >= kMostElementsOfInput) {
    return absl::InvalidArgumentError(absl::StrCat("--shape ", ElementName(sequence, last),
                                                   ": the sequence has more than ", kMostElementsOfInput,
                                                   " elements; expected at most that many"));
  }
  const int64_t count = last + 1;
  for (int64_t i = 0; i < count; ++i) {
    if (IsGiven(options, ElementName(sequence, i))) continue;
    return absl::InvalidArgumentError(absl::StrCat("--shape ", ElementName(sequence, count - 1),
                                                   ": nothing is said of ", ElementName(sequence, i),
                                                   "; expected a --shape or a --value of each element"));
  }
  return count;
}

// Refuses options that name the input, and do not fit what it is.
absl::Status CheckOptions(const DeclaredValue& input, int64_t num_elements, const OnnxOptions& options) {
  const auto form = options.forms.find(input.name);
  const bool has_form = form != options.forms.end();
  const auto bad = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shape ", input.name, "=", form->second == OnnxForm::kEmpty ? "empty" : "absent", ": ", why));
  };
  if (has_form && form->second == OnnxForm::kEmpty && !IsSequence(input))
    return bad(absl::StrCat("the input is of type ", input.kind, "; expected a sequence"));
  if (has_form && form->second == OnnxForm::kAbsent && !IsOptional(input))
    return bad(absl::StrCat("the input is of type ", input.kind, "; expected an optional"));
  if (has_form && (num_elements > 0 || IsGiven(options, input.name)))
    return bad("other options give the input's tensors; expected one of the two");
  if (!IsSequence(input) || !IsGiven(options, input.name)) return absl::OkStatus();
  const char* option = options.shapes.count(input.name) ? "--shape " : "--value ";
  return absl::InvalidArgumentError(absl::StrCat(option, input.name, ": the input is of type ", input.kind,
                                                 "; expected ", option, ElementName(input.name, 0),
                                                 "=..., one for each element"));
}

absl::Status SaysNothing(const std::vector<std::string>& sequences) {
  const size_t count = sequences.size();
  return absl::InvalidArgumentError(
      absl::StrCat(count, count == 1 ? " input is a sequence" : " inputs are sequences",
                   " of an unknown number of tensors; expected --shape NAME[0]=2x3 --shape NAME[1]=4 and so "
                   "on, or --shape NAME=empty, for each\n  ",
                   absl::StrJoin(sequences, "\n  ")));
}

}  // namespace

absl::StatusOr<InputTensors> InputTensors::Of(const std::vector<const DeclaredValue*>& inputs,
                                              const OnnxOptions& options) {
  for (const auto& [name, form] : options.forms) MYCC_RETURN_IF_ERROR(CheckIsInput(inputs, "--shape", name));
  InputTensors result;
  std::vector<std::string> unknown;
  for (const DeclaredValue* input : inputs) {
    const bool is_sequence = IsSequence(*input);
    int64_t count = 0;
    if (is_sequence) {
      MYCC_ASSIGN_OR_RETURN(count, NumElements(input->name, options));
    }
    MYCC_RETURN_IF_ERROR(CheckOptions(*input, count, options));
    const auto form = options.forms.find(input->name);
    const bool has_form = form != options.forms.end();
    Input one{input, is_sequence, has_form && form->second == OnnxForm::kAbsent, {}};
    for (int64_t i = 0; i < count; ++i) one.tensors.push_back(TensorOf(*input, ElementName(input->name, i)));
    // Other types are refused with all inputs.
    if (!is_sequence && !one.is_absent)
      one.tensors.push_back(IsOptional(*input) ? TensorOf(*input, input->name) : *input);
    if (is_sequence && count == 0 && !has_form) {
      const std::string text = absl::StrCat("`", input->name, "`: ");
      unknown.push_back(IsOptional(*input) ? absl::StrCat(text, "an optional sequence, which --shape ",
                                                          input->name, "=absent leaves out")
                                           : text + "a sequence");
    }
    result.inputs_.push_back(std::move(one));
  }
  if (!unknown.empty()) return SaysNothing(unknown);
  return result;
}

std::vector<const DeclaredValue*> InputTensors::tensors() const {
  std::vector<const DeclaredValue*> tensors;
  for (const Input& input : inputs_) {
    for (const DeclaredValue& tensor : input.tensors) tensors.push_back(&tensor);
  }
  return tensors;
}

void InputTensors::Join(std::vector<DeclaredValue>* declared, std::vector<TypedTensor>* values) const {
  std::vector<DeclaredValue> joined_declared;
  std::vector<TypedTensor> joined;
  auto next = values->begin();
  for (const Input& input : inputs_) {
    const auto end = next + static_cast<int64_t>(input.tensors.size());
    if (input.is_absent) {
      joined.push_back(EmptyOptional());
    } else if (input.is_sequence) {
      joined.push_back(
          {nullptr, input.declared->type, std::make_shared<const std::vector<TypedTensor>>(next, end)});
    } else {
      joined.push_back(*next);
    }
    joined_declared.push_back(*input.declared);
    next = end;
  }
  *declared = std::move(joined_declared);
  *values = std::move(joined);
}

absl::Status TakeApartOutputs(const GraphBuilder& builder, std::vector<DeclaredValue>* declared,
                              std::vector<TypedTensor>* values) {
  std::vector<DeclaredValue> tensors_declared;
  std::vector<TypedTensor> tensors;
  for (size_t i = 0; i < values->size(); ++i) {
    const DeclaredValue& output = (*declared)[i];
    const TypedTensor& value = (*values)[i];
    if (value.elements == nullptr) {
      tensors_declared.push_back(IsOptional(output) ? TensorOf(output, output.name) : output);
      tensors.push_back(value);
      continue;
    }
    if (output.kind == "tensor") {
      return absl::InvalidArgumentError(absl::StrCat("output `", output.name, "` is ", TypeText(value),
                                                     "; expected a tensor, as it is declared"));
    }
    for (size_t k = 0; k < value.elements->size(); ++k) {
      const std::string name = ElementName(output.name, static_cast<int64_t>(k));
      const TypedTensor& element = (*value.elements)[k];
      if (element.shaped_by != nullptr) {
        return absl::UnimplementedError(absl::StrCat("output `", name,
                                                     "`: its shape is not known when the model is compiled",
                                                     HowToKnow(builder, element.shaped_by)));
      }
      tensors_declared.push_back(TensorOf(output, name));
      tensors.push_back(element);
    }
  }
  if (tensors.empty() && !values->empty()) {
    return absl::UnimplementedError(
        absl::StrCat("output `", (*declared)[0].name, "` is ", TypeText((*values)[0]),
                     ", and a model without any tensor as an output is not supported"));
  }
  *declared = std::move(tensors_declared);
  *values = std::move(tensors);
  return absl::OkStatus();
}

}  // namespace mycc::onnx
