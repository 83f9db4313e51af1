// Sequences and optionals among a model's inputs and outputs, as the tensors in them. A sequence `x` is the
// tensors `x[0]`, `x[1]` and so on, whose number is known when the model is compiled, and an optional is its
// value under its own name. Internal to this folder. Thread rule: values and functions without state.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/importer.h"
#include "codegen/onnx/model.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

class InputTensors {
 public:
  // `inputs` have to live as long. InvalidArgument with all sequences that the options say nothing of, for
  // elements that are not all there, and for options that do not fit an input.
  static absl::StatusOr<InputTensors> Of(const std::vector<const DeclaredValue*>& inputs,
                                         const OnnxOptions& options);

  // All tensors, in the order of the inputs.
  std::vector<const DeclaredValue*> tensors() const;
  // Puts the inputs together again: `declared` and `values` are those of the tensors, and become those of the
  // inputs.
  void Join(std::vector<DeclaredValue>* declared, std::vector<TypedTensor>* values) const;

 private:
  struct Input {
    const DeclaredValue* declared = nullptr;
    bool is_sequence = false, is_absent = false;
    std::vector<DeclaredValue> tensors;
  };
  std::vector<Input> inputs_;
};

// Puts the tensors in place of outputs that are sequences. An optional without a value is none, as a sequence
// without elements is. Unimplemented when nothing is left.
absl::Status TakeApartOutputs(const GraphBuilder& builder, std::vector<DeclaredValue>* declared,
                              std::vector<TypedTensor>* values);

}  // namespace mycc::onnx
