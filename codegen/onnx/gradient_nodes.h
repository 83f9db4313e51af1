// The nodes that a gradient is made of, and a notation for them: with terms `dy` and `x`, `dy * ExpOf(x)` is
// two nodes more. Each node is imported when it is written, so that its shape is known at once. After the
// first error nothing more is written, and every term is empty. Internal to this folder. Thread rule:
// thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/onnx/node_import.h"
#include "codegen/onnx/nodes_around.h"

namespace mycc::onnx {

class NodeWriter;

// A tensor of the graph, by its name. Copying it writes nothing.
struct Term {
  NodeWriter* writer = nullptr;
  std::string name;  // "" after an error, and for no tensor

  bool IsThere() const { return !name.empty(); }
  const std::vector<int64_t>& shape() const;
  int type() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
};

class NodeWriter {
 public:
  // Names of nodes and tensors begin with the prefix.
  NodeWriter(NodesAround* around, std::string prefix) : around_(around), prefix_(std::move(prefix)) {}

  const absl::Status& status() const { return status_; }
  Term Named(const std::string& name) { return Term{this, status_.ok() ? name : ""}; }
  const TypedTensor* Find(const std::string& name) const { return around_->Find(name); }

  Term Add(const std::string& op, const std::vector<Term>& inputs, OnnxAttributes attributes = {});
  // The same for a node of several outputs.
  std::vector<Term> AddMany(const std::string& op, const std::vector<Term>& inputs, size_t outputs,
                            OnnxAttributes attributes = {});
  // A node of the model under a name of its own.
  void AddNode(OnnxNode node, const Opsets& opsets);
  Term Ints(const std::vector<int64_t>& values);
  // A number of the type of another tensor.
  Term Number(double value, const Term& like);
  // The tensor of this shape and of the type of `like` whose elements are one number.
  Term Filled(double value, const std::vector<int64_t>& shape, const Term& like);
  std::string FreshName();

  // The opset of the nodes that are written here.
  static const Opsets& OwnOpsets();

 private:
  Term Constant(TypedConstant value);

  NodesAround* const around_;
  const std::string prefix_;
  int64_t next_name_ = 0;
  absl::Status status_;
};

OnnxAttribute IntAttribute(int64_t value);
OnnxAttribute IntsAttribute(std::vector<int64_t> values);

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator-(const Term& a);
Term operator*(double a, const Term& b);
Term operator+(double a, const Term& b);
Term operator-(double a, const Term& b);

Term UnaryTerm(const std::string& op, const Term& x);
inline Term ExpOf(const Term& x) { return UnaryTerm("Exp", x); }
inline Term LogOf(const Term& x) { return UnaryTerm("Log", x); }
inline Term SignOf(const Term& x) { return UnaryTerm("Sign", x); }
Term Power(const Term& x, const Term& exponent);
Term IsGreater(const Term& a, const Term& b);
Term IsEqual(const Term& a, const Term& b);
Term ConvertedTo(const Term& x, int type);
Term ChoiceOf(const Term& condition, const Term& then, const Term& otherwise);
Term ProductOf(const Term& a, const Term& b);
Term ReshapedTo(const Term& x, const std::vector<int64_t>& shape);
Term Expanded(const Term& x, const std::vector<int64_t>& shape);
Term Permuted(const Term& x, const std::vector<int64_t>& permutation);
// The last two axes exchanged.
Term TransposedMatrix(const Term& x);
// Summed over axes, which stay with extent 1.
Term SummedOver(const Term& x, const std::vector<int64_t>& axes);
// Undoes broadcasting: the sums over all axes along which a tensor of `shape` is repeated to give x's.
Term SummedTo(const Term& x, const std::vector<int64_t>& shape);

}  // namespace mycc::onnx
