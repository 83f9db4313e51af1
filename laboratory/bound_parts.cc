#include "laboratory/bound_parts.h"

#include <algorithm>

namespace mycc {
namespace {

using Kind = ExpressionNode::Kind;

bool Contains(const std::vector<int>& sorted, int number) {
  return std::ranges::binary_search(sorted, number);
}

}  // namespace

BoundParts::BoundParts(const ConstrainedSpace& space, const std::vector<int>& open,
                       const std::vector<int>& place, int bound)
    : space_(space) {
  for (const int c : open) {
    const ConstrainedSpace::Condition& condition = space.conditions()[c];
    Collect(condition.constraint, condition.node, place, bound);
  }
  // A part that follows from parameters that are needed anyway says nothing more.
  std::erase_if(parts_, [&](const Part& part) {
    const std::vector<int>& used = NodeOf(part).used;
    return std::ranges::all_of(used, [&](int p) { return Contains(parameters_, p); });
  });
}

// The largest parts of a node that depend on bound parameters alone. The element and the conditions of a
// comprehension have no value by themselves: its bound parameters stand for it.
void BoundParts::Collect(int constraint, int node_id, const std::vector<int>& place, int bound) {
  const ExpressionNode& node = space_.constraints()[constraint].nodes()[node_id];
  const auto is_bound = [&](int p) { return place[p] < bound; };
  if (std::ranges::none_of(node.used, is_bound)) return;
  const bool is_whole = std::ranges::all_of(node.used, is_bound);
  if (is_whole && node.kind != Kind::kName) {
    AddPart({constraint, node_id});
  } else if (is_whole || node.kind == Kind::kComprehension) {
    for (const int p : node.used) {
      if (is_bound(p)) AddParameter(p);
    }
  } else {
    for (const int child : node.children) Collect(constraint, child, place, bound);
  }
}

void BoundParts::AddParameter(int parameter) {
  const auto at = std::ranges::lower_bound(parameters_, parameter);
  if (at == parameters_.end() || *at != parameter) parameters_.insert(at, parameter);
}

void BoundParts::AddPart(const Part& part) {
  const bool is_known = std::ranges::any_of(parts_, [&](const Part& other) { return AreSame(part, other); });
  if (!is_known) parts_.push_back(part);
}

// Whether two parts are written alike. Comprehensions name values of their own; they count as different.
bool BoundParts::AreSame(const Part& a, const Part& b) const {
  const ExpressionNode &x = NodeOf(a), &y = NodeOf(b);
  if (x.kind != y.kind || x.op != y.op || x.function != y.function || x.slot != y.slot ||
      x.comparisons != y.comparisons || x.children.size() != y.children.size() || !x.clauses.empty() ||
      !y.clauses.empty() || x.constant.value.index() != y.constant.value.index() ||
      EqualityKey(x.constant) != EqualityKey(y.constant))
    return false;
  for (size_t i = 0; i < x.children.size(); ++i) {
    if (!AreSame({a.constraint, x.children[i]}, {b.constraint, y.children[i]})) return false;
  }
  return true;
}

void BoundParts::AppendTo(const std::vector<int>& choices, ExpressionEnvironment* environment,
                          std::string* bytes) const {
  for (const int p : parameters_) {
    // Each parameter has a fixed number of bytes: the choice, in as many as its values need.
    size_t values = space_.parameters()[p].values.size() - 1;
    for (int choice = choices[p]; values > 0; values >>= 8, choice >>= 8)
      bytes->push_back(static_cast<char>(choice & 0xff));
  }
  for (const Part& part : parts_) {
    const auto value = space_.constraints()[part.constraint].Evaluate(part.node, environment);
    if (value.ok()) {
      AppendExact(*value, bytes);
    } else {
      bytes->push_back(static_cast<char>(0xff));  // any error; the condition may not come to evaluate it
    }
  }
}

}  // namespace mycc
