// The operator Gradient: the nodes between the tensors `xs` and `y` are differentiated from the last one to
// the first, by the rules of gradient_rules.cc. A gradient is made of further nodes in the same graph, so
// that another Gradient can be of it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/check_model.h"
#include "codegen/onnx/gradient_rules.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

constexpr int64_t kFirstDifferentiatedOpset = 7;  // operators broadcast in other ways before

std::string NodeText(const OnnxNode& node) {
  return absl::StrCat("node `", node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name,
                      "` (", node.op, ")");
}

bool IsDifferentiable(const TypedTensor* value) {
  return value != nullptr && value->tensor != nullptr &&
         (value->type == kFloat || value->type == kDouble || value->type == kFloat16 ||
          value->type == kBfloat16);
}

bool HasDifferentiableElement(const TypedTensor* value) {
  if (value == nullptr || value->elements == nullptr) return false;
  return std::ranges::any_of(*value->elements,
                             [](const TypedTensor& element) { return IsDifferentiable(&element); });
}

// Which function is differentiated, and where: the attributes, with the input of Gradient for each variable.
struct Differentiated {
  std::vector<std::string> xs, zs;
  std::string y;
  std::map<std::string, std::string> inputs;  // by the names in xs and zs

  // Whether the inputs are the variables themselves.
  bool IsInPlace() const {
    return std::ranges::all_of(inputs, [](const auto& input) { return input.first == input.second; });
  }
};

absl::StatusOr<Differentiated> DifferentiatedBy(const NodeImport& n, const OnnxNode& node) {
  Differentiated by{n.Strings("xs"), n.Strings("zs"), n.String("y", ""), {}};
  if (by.xs.empty() || by.y.empty()) return n.Refuse("has no xs or no y; expected both");
  std::vector<std::string> all = by.xs;
  all.insert(all.end(), by.zs.begin(), by.zs.end());
  if (n.num_inputs() != all.size() || n.num_outputs() > by.xs.size()) {
    return n.Refuse(absl::StrCat("has ", n.num_inputs(), " inputs and ", n.num_outputs(),
                                 " outputs for its xs and zs; expected ", all.size(), " and at most ",
                                 by.xs.size()));
  }
  MYCC_RETURN_IF_ERROR(n.Expect(all.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!by.inputs.emplace(all[i], node.inputs[i]).second)
      return n.Refuse(absl::StrCat("xs and zs name `", all[i], "` twice; expected it once"));
    if (i < by.xs.size() && !IsDifferentiable(&n.Typed(i))) {
      return n.Refuse(absl::StrCat("xs names `", all[i], "`, and input ", i, " for it is ", TypeText(n.In(i)),
                                   "; expected floats"));
    }
  }
  return by;
}

// The nodes that y is computed by from the variables, in the order of their import.
absl::StatusOr<std::vector<ImportedNode>> NodesBetween(const NodeImport& n, const Differentiated& by) {
  const std::vector<ImportedNode>& nodes = n.around()->nodes();
  std::set<size_t> places;  // of nodes between; a model may have many a Gradient of few nodes
  std::vector<std::string> open = {by.y};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (by.inputs.count(name)) continue;
    const std::optional<size_t> maker = n.around()->MakerOf(name);
    if (!maker) {
      const TypedTensor* value = n.around()->Find(name);
      if (value == nullptr) return n.Refuse(absl::StrCat("nothing in front of it defines `", name, "`"));
      if (value->tensor == nullptr || n.ValueOf(value->tensor) != nullptr) continue;
      if (name == by.y)
        return n.Refuse(absl::StrCat("y is `", name, "`; expected a tensor that the graph computes"));
      return n.Refuse(absl::StrCat("`", by.y, "` depends on `", name,
                                   "`, which neither xs nor zs names; expected all variables there"));
    }
    if (!places.insert(*maker).second) continue;
    for (std::string& read : ReadNames(*nodes[*maker].node)) open.push_back(std::move(read));
  }
  std::vector<ImportedNode> between;
  for (const size_t place : places) between.push_back(nodes[place]);
  return between;
}

// Computes y once more, from the inputs of Gradient in place of the variables. The names become those of the
// copies.
absl::Status CopyNodes(const NodeImport& n, Differentiated* by, std::vector<ImportedNode>* between,
                       NodeWriter* writer) {
  // One tensor may be the input for several variables, which stay apart.
  std::map<std::string, std::string> renamed;
  for (const auto& [variable, input] : by->inputs)
    renamed[variable] = UnaryTerm("Identity", writer->Named(input)).name;
  MYCC_RETURN_IF_ERROR(writer->status());
  for (ImportedNode& one : *between) {
    OnnxNode node = *one.node;
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.graph != nullptr)
        return n.NotSupported(absl::StrCat("the gradient at other values than the variables' through ",
                                           NodeText(node), ", which has a graph in it,"));
    }
    for (std::string& input : node.inputs) {
      if (const auto at = renamed.find(input); at != renamed.end()) input = at->second;
    }
    for (std::string& output : node.outputs) {
      if (!output.empty()) output = renamed.emplace(output, writer->FreshName()).first->second;
    }
    writer->AddNode(std::move(node), *one.opsets);
    MYCC_RETURN_IF_ERROR(writer->status());
    one = n.around()->nodes().back();
  }
  for (std::string& x : by->xs) x = renamed.at(x);
  if (const auto at = renamed.find(by->y); at != renamed.end()) by->y = at->second;
  return absl::OkStatus();
}

// The tensors that depend on one of the xs and have a gradient, and the sequences with such elements: no rule
// is for what reads those.
std::unordered_set<std::string> DependentOn(const std::vector<std::string>& xs,
                                            const std::vector<ImportedNode>& between,
                                            const NodeWriter& writer) {
  std::unordered_set<std::string> dependent(xs.begin(), xs.end());
  for (const ImportedNode& one : between) {
    const std::vector<std::string> reads = ReadNames(*one.node);
    if (std::ranges::none_of(reads, [&](const std::string& name) { return dependent.count(name) > 0; }))
      continue;
    for (const std::string& output : one.node->outputs) {
      const TypedTensor* value = output.empty() ? nullptr : writer.Find(output);
      if (IsDifferentiable(value) || HasDifferentiableElement(value)) dependent.insert(output);
    }
  }
  return dependent;
}

// Applies the rule of one node.
absl::Status Differentiate(NodeImport& n, const ImportedNode& one, NodeWriter* writer,
                           const std::unordered_set<std::string>& dependent,
                           std::unordered_map<std::string, Term>* gradients) {
  const OnnxNode& node = *one.node;
  const GradientRule rule = node.domain.empty() ? FindGradientRule(node.op) : nullptr;
  if (rule == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "differentiates ", NodeText(node), "; Gradient has no rule for the operator ",
        node.domain.empty() ? "" : absl::StrCat(node.domain, "."), node.op, ", so that it is not supported"));
  }
  const auto opset = one.opsets->find("");
  const int64_t version = opset == one.opsets->end() ? 1 : opset->second;
  if (version < kFirstDifferentiatedOpset)
    return n.NotSupported(absl::StrCat("the gradient of nodes of opset ", version));
  std::vector<TypedTensor> inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? TypedTensor{} : *writer->Find(name));
  const NodeImport import(node, version, std::move(inputs), &n.g(), nullptr);
  GradientNode differentiated(node, import, writer, dependent, gradients);
  absl::Status status = rule(differentiated);
  if (status.ok()) status = writer->status();
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("differentiates ", NodeText(node), ": ", std::string(status.message())));
}

}  // namespace

Term GradientNode::Gradient(size_t i) {
  const auto at = gradients_->find(node_.outputs[i]);
  return at != gradients_->end() ? at->second : writer_->Filled(0, Out(i).shape(), Out(i));
}

void GradientNode::Give(size_t i, const Term& gradient) {
  if (!Needs(i)) return;
  const Term own = SummedTo(gradient, In(i).shape());
  if (!own.IsThere()) return;
  const auto [at, is_first] = gradients_->emplace(node_.inputs[i], own);
  if (!is_first) at->second = at->second + own;
}

absl::Status ImportGradient(NodeImport& n) {
  if (n.around() == nullptr) return n.NotSupported("a Gradient outside of a graph");
  MYCC_ASSIGN_OR_RETURN(Differentiated by, DifferentiatedBy(n, n.node()));
  MYCC_ASSIGN_OR_RETURN(std::vector<ImportedNode> between, NodesBetween(n, by));
  // A name of its own for each Gradient, lest it looks through the names of others for one that is free.
  const std::string& name = n.node().outputs.empty() ? by.y : n.node().outputs[0];
  NodeWriter writer(n.around(), absl::StrCat("gradient of ", name, "/"));
  if (!by.IsInPlace()) MYCC_RETURN_IF_ERROR(CopyNodes(n, &by, &between, &writer));
  const TypedTensor* value = writer.Find(by.y);
  if (!IsDifferentiable(value)) {
    return n.Refuse(absl::StrCat("y is ", value == nullptr ? "left out" : TypeText(*value),
                                 "; expected a tensor of floats"));
  }
  const std::unordered_set<std::string> dependent = DependentOn(by.xs, between, writer);
  const Term y = writer.Named(by.y);
  std::unordered_map<std::string, Term> gradients = {{by.y, writer.Filled(1, y.shape(), y)}};
  for (auto one = between.rbegin(); one != between.rend(); ++one) {
    const std::vector<std::string>& outputs = one->node->outputs;
    if (std::ranges::any_of(outputs,
                            [&](const std::string& o) { return dependent.count(o) && gradients.count(o); }))
      MYCC_RETURN_IF_ERROR(Differentiate(n, *one, &writer, dependent, &gradients));
  }
  for (size_t i = 0; i < n.num_outputs(); ++i) {
    if (!n.Wants(i)) continue;
    const Term x = writer.Named(by.xs[i]);
    const auto found = gradients.find(by.xs[i]);
    const Term gradient = found == gradients.end() ? writer.Filled(0, x.shape(), x) : found->second;
    MYCC_RETURN_IF_ERROR(writer.status());
    n.Set(i, *writer.Find(gradient.name));
    OnnxNode result;
    result.op = "Identity";
    result.inputs = {gradient.name};
    result.outputs = {n.node().outputs[i]};
    n.around()->Record(std::move(result), NodeWriter::OwnOpsets());
  }
  return writer.status();
}

}  // namespace mycc::onnx
