#include "codegen/onnx/check_model.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// On one line, whatever the name is.
std::string NodeName(const OnnxNode& node) {
  return absl::StrReplaceAll(node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name,
                             {{"\n", " "}});
}

// The names that a graph reads from the graphs around it.
void AddOuterReads(const OnnxGraph& graph, std::vector<std::string>* reads) {
  std::unordered_set<std::string> own;
  for (const DeclaredValue& input : graph.inputs) own.insert(input.name);
  for (const auto& [name, value] : graph.initializers) own.insert(name);
  for (const OnnxNode& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> all;
  for (const OnnxNode& node : graph.nodes) {
    all.insert(all.end(), node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.graph != nullptr) AddOuterReads(*attribute.graph, &all);
    }
  }
  for (const DeclaredValue& output : graph.outputs) all.push_back(output.name);
  for (std::string& name : all) {
    if (!name.empty() && !own.count(name)) reads->push_back(std::move(name));
  }
}

// Collects the nodes that are not supported, in all graphs.
class OperatorCheck {
 public:
  explicit OperatorCheck(const OnnxModel& model) : model_(model) {}

  void Nodes(const std::vector<OnnxNode>& nodes, const std::map<std::string, int64_t>& opsets) {
    for (const OnnxNode& node : nodes) {
      One(node, opsets);
      for (const auto& [name, attribute] : node.attributes) {
        if (attribute.graph != nullptr) Nodes(attribute.graph->nodes, opsets);
      }
    }
  }

  absl::Status Result() const {
    if (problems_.empty()) return absl::OkStatus();
    const size_t count = problems_.size();
    return absl::UnimplementedError(absl::StrCat(count, count == 1 ? " node is" : " nodes are",
                                                 " not supported\n  ", absl::StrJoin(problems_, "\n  ")));
  }

 private:
  void One(const OnnxNode& node, const std::map<std::string, int64_t>& opsets) {
    if (model_.functions.count(absl::StrCat(node.domain, ":", node.op))) return;
    const auto opset = opsets.find(node.domain);
    const int64_t version = opset == opsets.end() ? 1 : opset->second;
    const Operator* op = FindOperator(node.domain, node.op);
    const std::string domain = node.domain.empty() ? "" : absl::StrCat(" of domain ", node.domain);
    if (op == nullptr) {
      const std::string expected =
          node.domain.empty() ? ""
                              : "; expected one of ONNX's own domain, or a function that the model brings";
      problems_.push_back(absl::StrCat("node `", NodeName(node), "`: operator ", node.op, domain, ", opset ",
                                       version, expected));
    } else if (version < op->first_opset) {
      problems_.push_back(absl::StrCat("node `", NodeName(node), "`: operator ", node.op, domain, ", opset ",
                                       version, "; expected opset ", op->first_opset, " or later"));
    } else if (node.domain.empty() && version < kFirstOpset) {
      // The opset of a function.
      problems_.push_back(absl::StrCat("node `", NodeName(node), "`: operator ", node.op, ", opset ", version,
                                       "; expected opset ", kFirstOpset, " to ", kLastOpset));
    }
  }

  const OnnxModel& model_;
  std::vector<std::string> problems_;
};

std::string FreeName(const Dimension& dimension) { return dimension.name.empty() ? "?" : dimension.name; }

std::string Declaration(const DeclaredValue& input) {
  return absl::StrCat(
      "`", input.name, "`: ", input.has_shape ? "" : "any shape",
      !input.has_shape
          ? ""
          : absl::StrCat("[",
                         absl::StrJoin(input.shape, ",",
                                       [](std::string* out, const Dimension& d) {
                                         out->append(d.extent >= 0 ? absl::StrCat(d.extent) : FreeName(d));
                                       }),
                         "]"));
}

bool IsFree(const DeclaredValue& input) {
  return !input.has_shape ||
         std::ranges::any_of(input.shape, [](const Dimension& d) { return d.extent < 0; });
}

// A shape for a name that is a dimension's: the inputs that have the dimension are listed.
absl::Status CheckIsNoDimension(const std::vector<const DeclaredValue*>& inputs, const std::string& name) {
  std::vector<std::string> declarations;
  for (const DeclaredValue* input : inputs) {
    if (input->name == name) return absl::OkStatus();
    if (std::ranges::any_of(input->shape, [&](const Dimension& d) { return d.extent < 0 && d.name == name; }))
      declarations.push_back(Declaration(*input));
  }
  if (declarations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--shape ", name, ": `", name, "` is a dimension; expected the shape of each input that has it\n  ",
      absl::StrJoin(declarations, "\n  ")));
}

// A given shape fits where the ranks and the fixed extents are equal.
absl::Status CheckGiven(const DeclaredValue& input, const std::vector<int64_t>& given) {
  bool fits = !input.has_shape || given.size() == input.shape.size();
  for (size_t i = 0; fits && input.has_shape && i < given.size(); ++i)
    fits = input.shape[i].extent < 0 || input.shape[i].extent == given[i];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--shape ", input.name, "=",
                                                 given.empty() ? "scalar" : absl::StrJoin(given, "x"),
                                                 " does not fit ", Declaration(input)));
}

}  // namespace

std::vector<std::string> ReadNames(const OnnxNode& node) {
  std::vector<std::string> reads;
  for (const std::string& name : node.inputs) {
    if (!name.empty()) reads.push_back(name);
  }
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.graph != nullptr) AddOuterReads(*attribute.graph, &reads);
  }
  // Gradient names the tensor that it is of, which is no input.
  const auto y = node.attributes.find("y");
  if (node.op == "Gradient" && node.domain == kTrainingDomain && y != node.attributes.end() &&
      !y->second.s.empty())
    reads.push_back(y->second.s);
  return reads;
}

absl::StatusOr<std::vector<size_t>> ExecutionOrder(const std::vector<OnnxNode>& nodes,
                                                   const std::function<bool(const std::string&)>& is_known) {
  std::unordered_map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (!output.empty() && !makers.emplace(output, i).second)
        return absl::InvalidArgumentError(absl::StrCat("`", output, "` is defined twice"));
    }
  }
  enum State : char { kNew, kOpen, kDone };
  std::vector<State> states(nodes.size(), kNew);
  std::vector<size_t> order;
  // Depth first over a stack of our own: models may be thousands of nodes deep.
  struct Visit {
    size_t node;
    std::vector<std::string> reads;
    size_t next;
  };
  for (size_t root = 0; root < nodes.size(); ++root) {
    if (states[root] == kDone) continue;
    std::vector<Visit> stack = {{root, ReadNames(nodes[root]), 0}};
    states[root] = kOpen;
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.next == visit.reads.size()) {
        states[visit.node] = kDone;
        order.push_back(visit.node);
        stack.pop_back();
        continue;
      }
      const std::string& name = visit.reads[visit.next++];
      const auto maker = makers.find(name);
      if (maker == makers.end()) {
        if (is_known(name)) continue;
        return absl::InvalidArgumentError(absl::StrCat("node `", NodeName(nodes[visit.node]), "` (",
                                                       nodes[visit.node].op, "): reads `", name,
                                                       "`, which nothing defines"));
      }
      if (states[maker->second] == kDone) continue;
      if (states[maker->second] == kOpen) {
        return absl::InvalidArgumentError(absl::StrCat("the graph has a cycle through node `",
                                                       NodeName(nodes[maker->second]), "` (",
                                                       nodes[maker->second].op, ")"));
      }
      const size_t next = maker->second;
      states[next] = kOpen;
      stack.push_back({next, ReadNames(nodes[next]), 0});
    }
  }
  return order;
}

absl::Status CheckOperators(const OnnxModel& model) {
  const auto own = model.opsets.find("");
  if (own != model.opsets.end() && (own->second < kFirstOpset || own->second > kLastOpset)) {
    // Newer opsets differ in few operators, so the operators are looked at below all the same.
    if (own->second < kFirstOpset)
      return absl::UnimplementedError(absl::StrCat("opset ", own->second, " is not supported; expected ",
                                                   kFirstOpset, " to ", kLastOpset));
  }
  OperatorCheck check(model);
  check.Nodes(model.graph.nodes, model.opsets);
  for (const auto& [name, function] : model.functions) check.Nodes(function.nodes, function.opsets);
  return check.Result();
}

absl::Status CheckIsInput(const std::vector<const DeclaredValue*>& inputs, const std::string& option,
                          const std::string& name) {
  std::vector<std::string> all;
  for (const DeclaredValue* input : inputs) all.push_back(input->name);
  if (std::ranges::find(all, name) != all.end()) return absl::OkStatus();
  std::ranges::sort(all);
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", name, ": the model has no such input; expected ", absl::StrJoin(all, ", ")));
}

absl::StatusOr<std::vector<std::vector<int64_t>>> InputShapes(
    const std::vector<const DeclaredValue*>& inputs,
    const std::map<std::string, std::vector<int64_t>>& given) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> free;
  std::unordered_set<std::string> names;
  for (const DeclaredValue* input : inputs) {
    if (!names.insert(input->name).second)
      return absl::InvalidArgumentError(absl::StrCat("input `", input->name, "` is declared twice"));
    if (input->kind != "tensor") {
      return absl::UnimplementedError(absl::StrCat("input `", input->name, "` of type ", input->kind,
                                                   " is not supported; expected a tensor"));
    }
    if (!StorageOf(input->type) && input->type != kString) {
      return absl::UnimplementedError(absl::StrCat("input `", input->name, "`: elements of type ",
                                                   ElementTypeName(input->type), " are not supported"));
    }
    std::vector<int64_t> shape;
    if (const auto at = given.find(input->name); at != given.end()) {
      MYCC_RETURN_IF_ERROR(CheckGiven(*input, at->second));
      shape = at->second;
    } else if (IsFree(*input)) {
      free.push_back(Declaration(*input));
    } else {
      for (const Dimension& dimension : input->shape) shape.push_back(dimension.extent);
    }
    if (const std::string problem = ShapeProblem(shape); !problem.empty())
      return absl::InvalidArgumentError(absl::StrCat("input `", input->name, "`: ", problem));
    shapes.push_back(std::move(shape));
  }
  for (const auto& [name, shape] : given) {
    MYCC_RETURN_IF_ERROR(CheckIsNoDimension(inputs, name));
    MYCC_RETURN_IF_ERROR(CheckIsInput(inputs, "--shape", name));
  }
  if (!free.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        free.size(), free.size() == 1 ? " input has" : " inputs have",
        " free dimensions; expected --shape NAME=1x3x48x192 for each\n  ", absl::StrJoin(free, "\n  ")));
  }
  return shapes;
}

}  // namespace mycc::onnx
