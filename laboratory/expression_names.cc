#include "laboratory/expression_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/status.h"

namespace mycc {
namespace {

class NameResolver {
 public:
  NameResolver(std::vector<ExpressionNode>* nodes, const std::vector<std::string>& parameters)
      : nodes_(*nodes), parameters_(parameters), num_slots_(static_cast<int>(parameters.size())) {}

  absl::Status Resolve(int id) {
    ExpressionNode& node = nodes_[id];
    if (node.kind == ExpressionNode::Kind::kName) return ResolveName(&node);
    const size_t outer = locals_.size();
    for (ExpressionNode::Clause& clause : node.clauses) {
      MYCC_RETURN_IF_ERROR(ResolveChild(&node, clause.iterable));
      clause.slot = num_slots_++;
      locals_.emplace_back(clause.name, clause.slot);
      for (const int condition : clause.conditions) MYCC_RETURN_IF_ERROR(ResolveChild(&node, condition));
    }
    for (const int child : node.children) MYCC_RETURN_IF_ERROR(ResolveChild(&node, child));
    locals_.resize(outer);
    std::ranges::sort(node.used);
    node.used.erase(std::unique(node.used.begin(), node.used.end()), node.used.end());
    return absl::OkStatus();
  }

  int num_slots() const { return num_slots_; }

 private:
  absl::Status ResolveChild(ExpressionNode* node, int child) {
    MYCC_RETURN_IF_ERROR(Resolve(child));
    const std::vector<int>& used = nodes_[child].used;
    node->used.insert(node->used.end(), used.begin(), used.end());
    return absl::OkStatus();
  }

  absl::Status ResolveName(ExpressionNode* node) {
    for (size_t i = locals_.size(); i-- > 0;) {
      if (locals_[i].first != node->name) continue;
      node->slot = locals_[i].second;
      return absl::OkStatus();
    }
    const auto parameter = std::ranges::find(parameters_, node->name);
    if (parameter == parameters_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", node->column, ": unknown name `", node->name, "`; expected ",
                       parameters_.empty() ? "no parameter"
                                           : absl::StrCat("a parameter: ", absl::StrJoin(parameters_, ", ")),
                       DidYouMean(node->name, parameters_)));
    }
    node->slot = static_cast<int>(parameter - parameters_.begin());
    node->used = {node->slot};
    return absl::OkStatus();
  }

  std::vector<ExpressionNode>& nodes_;
  const std::vector<std::string>& parameters_;
  std::vector<std::pair<std::string, int>> locals_;
  int num_slots_;
};

}  // namespace

absl::StatusOr<int> ResolveNames(int root, const std::vector<std::string>& parameters,
                                 std::vector<ExpressionNode>* nodes) {
  NameResolver resolver(nodes, parameters);
  MYCC_RETURN_IF_ERROR(resolver.Resolve(root));
  return resolver.num_slots();
}

}  // namespace mycc
