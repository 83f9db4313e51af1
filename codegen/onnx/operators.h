// The table of the operators that the importer knows: one line each, by families. Internal to this folder.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

inline constexpr unsigned kTextFirst = 1, kTextPair = 3, kTextAnywhere = ~0U;  // Operator::text_inputs

struct Operator {
  const char* name;
  absl::Status (*import)(NodeImport& n);
  int64_t first_opset = 1;  // of the operator's domain
  const char* domain = "";  // ONNX's own
  bool takes_sequences = false;
  unsigned text_inputs = 0;      // a bit for each input that may be a tensor of strings
  bool takes_data_size = false;  // tensors with a DataSize
};

// The families, one file each: NAME_operators.cc.
std::span<const Operator> ActivationOperators();
std::span<const Operator> ArithmeticOperators();
std::span<const Operator> AttentionOperators();
std::span<const Operator> CastOperators();
std::span<const Operator> ComparisonOperators();
std::span<const Operator> ConstantOperators();
std::span<const Operator> ControlOperators();
std::span<const Operator> ConvOperators();
std::span<const Operator> EinsumOperators();
std::span<const Operator> GatherOperators();
std::span<const Operator> ImageOperators();
std::span<const Operator> LabelOperators();
std::span<const Operator> LossOperators();
std::span<const Operator> MathOperators();
std::span<const Operator> MatrixOperators();
std::span<const Operator> NormalizationOperators();
std::span<const Operator> OptimizerOperators();
std::span<const Operator> PadOperators();
std::span<const Operator> PoolingOperators();
std::span<const Operator> PowerOperators();
std::span<const Operator> QuantizationOperators();
std::span<const Operator> QuantizedConvOperators();
std::span<const Operator> QuantizedMatrixOperators();
std::span<const Operator> RecurrentOperators();
std::span<const Operator> ReductionOperators();
std::span<const Operator> ResizeOperators();
std::span<const Operator> ScanOperators();
std::span<const Operator> ScatterOperators();
std::span<const Operator> SelectionOperators();
std::span<const Operator> SequenceOperators();
std::span<const Operator> ShapeOperators();
std::span<const Operator> SignalOperators();
std::span<const Operator> SliceOperators();
std::span<const Operator> SoftmaxOperators();
std::span<const Operator> TextOperators();

// The domain of Gradient and of the steps of training.
inline constexpr char kTrainingDomain[] = "ai.onnx.preview.training";

// The operator of a node; null without one.
const Operator* FindOperator(const std::string& domain, const std::string& name);

// The opsets of ONNX's own domain that are read.
inline constexpr int64_t kFirstOpset = 1, kLastOpset = 25;

}  // namespace mycc::onnx
