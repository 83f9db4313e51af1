// One ONNX node while it is turned into stages: its inputs, its attributes, and what it defines. The families
// of operators (*_operators.cc) are written over it. Internal to this folder. Thread rule: thread-compatible.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/graph/builder.h"
#include "codegen/onnx/model.h"

namespace mycc::onnx {

// A size that data decide: the axes that are bounded (NamedTensor), and their extents.
struct DataSize {
  std::vector<std::pair<int, Buffer>> extents;
  std::string maker;  // "node `nz` (NonZero)"
  std::string why;    // "input 0 (`x`) is not known when the model is compiled"
};

// A tensor of the graph and its ONNX element type, which tells types of one storage apart. Or a sequence,
// which lives here alone: its length is known, and the graph has its elements.
struct TypedTensor {
  Buffer tensor;  // null: left out, or no tensor
  int type = kUndefined;
  std::shared_ptr<const std::vector<TypedTensor>> elements = nullptr;  // of a sequence
  Buffer shaped_by = nullptr;  // of an element that is not there: its shape depends on this tensor's value
  std::shared_ptr<const Texts> texts = nullptr;    // of strings that are known
  std::shared_ptr<const DataSize> size = nullptr;  // null: the tensor's shape

  bool IsThere() const { return tensor != nullptr || elements != nullptr; }
  // Strings: the tensor holds their handles (library_kernels.h) as u64.
  bool IsText() const { return tensor != nullptr && type == kString; }
};
// An optional without a value. One with a value is this value.
const TypedTensor& EmptyOptional();
bool IsEmptyOptional(const TypedTensor& value);
// "f32[1,64]", "a sequence of 3", for errors.
std::string TypeText(const TypedTensor& value);

class NodesAround;

class NodeImport {
 public:
  // Imports a graph that is an attribute, with values for its inputs; returns those of its outputs.
  using ImportSubgraph =
      std::function<absl::StatusOr<std::vector<TypedTensor>>(const OnnxGraph&, std::vector<TypedTensor>)>;

  NodeImport(const OnnxNode& node, int64_t opset, std::vector<TypedTensor> inputs, GraphBuilder* builder,
             ImportSubgraph import_subgraph);

  const OnnxNode& node() const { return node_; }
  const std::string& op() const { return node_.op; }
  int64_t opset() const { return opset_; }
  GraphBuilder& g() { return *builder_; }

  // Inputs. Those left out at the end, or by an empty name, are not there; sequences and strings come to the
  // operators alone that take them, which look at Typed().
  size_t num_inputs() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i].tensor != nullptr; }
  const Buffer& In(size_t i) const { return inputs_[i].tensor; }  // REQUIRES: Has(i)
  const TypedTensor& Typed(size_t i) const { return inputs_[i]; }
  const std::vector<int64_t>& Shape(size_t i) const { return In(i)->shape; }
  int64_t Rank(size_t i) const { return static_cast<int64_t>(Shape(i).size()); }
  DType Type(size_t i) const { return In(i)->dtype; }
  // The value of an input that must be a constant: a shape, axes, a scale. Integers of any type; the error
  // says that the input is no constant.
  absl::StatusOr<std::vector<int64_t>> ConstantInts(size_t i) const;
  absl::StatusOr<std::vector<double>> ConstantFloats(size_t i) const;
  const NDArray* Value(size_t i) const { return Has(i) ? ValueOf(In(i)) : nullptr; }
  const NDArray* ValueOf(const Buffer& tensor) const { return builder_->ValueOf(tensor); }

  // Attributes, or the operator's default. One of another type makes the builder fail.
  bool HasAttribute(const std::string& name) const { return node_.attributes.count(name) > 0; }
  int64_t Int(const std::string& name, int64_t otherwise) const;
  double Float(const std::string& name, double otherwise) const;
  std::string String(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> Ints(const std::string& name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> Floats(const std::string& name) const;
  std::vector<std::string> Strings(const std::string& name) const;
  const OnnxAttribute* Attribute(const std::string& name) const;
  // An attribute, or from a later opset on the constant input `i`; `otherwise` without either.
  absl::StatusOr<std::vector<int64_t>> IntsOrInput(const std::string& name, size_t i,
                                                   std::vector<int64_t> otherwise = {}) const;

  // Outputs.
  size_t num_outputs() const { return node_.outputs.size(); }
  bool Wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void Set(size_t i, const Buffer& tensor) { Set(i, tensor, TypeNumber(tensor->dtype)); }
  void Set(size_t i, const Buffer& tensor, int type) { Set(i, TypedTensor{tensor, type}); }
  void Set(size_t i, const TypedTensor& value);
  // An output with extents that input `deciding` decides, which is not known.
  void SetSized(size_t i, const Buffer& tensor, int type, std::vector<std::pair<int, Buffer>> extents,
                size_t deciding);
  const std::vector<TypedTensor>& outputs() const { return outputs_; }
  // The fixed shape of an output where it follows from the shapes that the model declares for its outputs.
  const std::vector<int64_t>* DeclaredShape(size_t i) const {
    return i < declared_.size() && declared_[i] ? &*declared_[i] : nullptr;
  }
  void Declare(std::vector<std::optional<std::vector<int64_t>>> shapes) { declared_ = std::move(shapes); }

  // An axis attribute, or another axis of a rank, counted from the end when it is negative.
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank) const;
  // The same for several, sorted; an axis that occurs twice is refused.
  absl::StatusOr<std::vector<int64_t>> AxesOf(std::vector<int64_t> axes, int64_t rank) const;

  // InvalidArgument, Unimplemented; the caller adds the node's name.
  absl::Status Refuse(const std::string& what) const { return absl::InvalidArgumentError(what); }
  absl::Status NotSupported(const std::string& what) const {
    return absl::UnimplementedError(what + " is not supported");
  }
  // Refuses the node because the value of input `i` is not known, and says how it could be.
  absl::Status NotKnown(size_t i) const;
  std::string HowToKnow(const Buffer& tensor) const;
  // Refuses a node with fewer inputs than `least`, or with one of the first `least` left out.
  absl::Status Expect(size_t least) const;
  absl::Status ExpectRank(size_t i, int64_t least, int64_t most) const;
  absl::Status ExpectFloat(size_t i) const;

  absl::StatusOr<std::vector<TypedTensor>> Import(const OnnxGraph& graph, std::vector<TypedTensor> inputs) {
    return import_subgraph_(graph, std::move(inputs));
  }

  // The graph that the node stands in; null where nothing tells it.
  NodesAround* around() const { return around_; }
  void StandIn(NodesAround* around) { around_ = around; }

  // ONNX's number of a type of the language.
  static int TypeNumber(DType dtype);

 private:
  // An attribute, if it is there; one of another type than ONNX's number `type` makes the builder fail.
  const OnnxAttribute* OfType(const std::string& name, int type, const char* expected) const;

  const OnnxNode& node_;
  const int64_t opset_;
  std::vector<TypedTensor> inputs_, outputs_;
  std::vector<std::optional<std::vector<int64_t>>> declared_;
  GraphBuilder* const builder_;
  const ImportSubgraph import_subgraph_;
  NodesAround* around_ = nullptr;
};

// "; --value axes=... would fix it", with the model's inputs that the tensor depends on; empty for none.
std::string HowToKnow(const GraphBuilder& builder, const Buffer& tensor);
// The shape that shapes are broadcast to. InvalidArgument when they do not fit.
absl::StatusOr<std::vector<int64_t>> BroadcastShape(const std::vector<std::vector<int64_t>>& shapes);
// "[1,64]", for errors.
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace mycc::onnx
