#include "codegen/onnx/operators.h"

#include <map>
#include <utility>

namespace mycc::onnx {

const Operator* FindOperator(const std::string& domain, const std::string& name) {
  static const auto* const operators = [] {
    auto* table = new std::map<std::pair<std::string, std::string>, const Operator*>;
    for (const auto& family : {ActivationOperators(),
                               ArithmeticOperators(),
                               AttentionOperators(),
                               CastOperators(),
                               ComparisonOperators(),
                               ConstantOperators(),
                               ControlOperators(),
                               ConvOperators(),
                               EinsumOperators(),
                               GatherOperators(),
                               ImageOperators(),
                               LabelOperators(),
                               LossOperators(),
                               MathOperators(),
                               MatrixOperators(),
                               NormalizationOperators(),
                               OptimizerOperators(),
                               PadOperators(),
                               PoolingOperators(),
                               PowerOperators(),
                               QuantizationOperators(),
                               QuantizedConvOperators(),
                               QuantizedMatrixOperators(),
                               RecurrentOperators(),
                               ReductionOperators(),
                               ResizeOperators(),
                               ScanOperators(),
                               ScatterOperators(),
                               SelectionOperators(),
                               SequenceOperators(),
                               ShapeOperators(),
                               SignalOperators(),
                               SliceOperators(),
                               SoftmaxOperators(),
                               TextOperators()}) {
      for (const Operator& op : family) table->emplace(std::pair(op.domain, op.name), &op);
    }
    return table;
  }();
  const auto at = operators->find({domain, name});
  return at == operators->end() ? nullptr : at->second;
}

}  // namespace mycc::onnx
