// Counts a constrained space by dynamic programming.
//
// Parameters fall into components that no constraint connects; their counts multiply. Within a component
// parameters are bound one after another. How many completions a partial configuration has depends on little:
// for each constraint that is not decided yet, on the values of its largest parts that are bound already. In
// `x * y * z <= 1024` with x and y bound that is the product x * y. Partial configurations with the same
// values there are counted once.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/constrained_space.h"

namespace mycc {
namespace {

constexpr size_t kMostCounts = 4'000'000;  // that are remembered; further ones are computed again

absl::Status TooMany() {
  return absl::OutOfRangeError("2^63 configurations or more; expected a smaller space");
}

// A part of a constraint.
struct BoundPart {
  int constraint;
  int node;
};

class ComponentCounter {
 public:
  // `parameters` of a component, with the constraints over them; `choices` are scratch space.
  ComponentCounter(const ConstrainedSpace& space, std::vector<int> order, const std::vector<int>& constraints,
                   ExpressionEnvironment* environment)
      : space_(space),
        order_(std::move(order)),
        due_(order_.size() + 1),
        parts_(order_.size() + 1),
        counts_(order_.size() + 1),
        choices_(space.parameters().size()),
        environment_(*environment) {
    std::vector<int> place(space.parameters().size());
    for (size_t i = 0; i < order_.size(); ++i) place[order_[i]] = static_cast<int>(i);
    for (const int c : constraints) {
      int last = 0;
      for (const int p : space.constraints()[c].used()) last = std::max(last, place[p]);
      due_[last + 1].push_back(c);
      for (int bound = 1; bound <= last; ++bound) AddParts(c, space.constraints()[c].root(), place, bound);
    }
  }

  absl::StatusOr<int64_t> Count() { return From(0); }

 private:
  // The largest parts of a node that depend on bound parameters alone. The element and the conditions of a
  // comprehension have no value by themselves: its bound parameters stand for it.
  void AddParts(int constraint, int node_id, const std::vector<int>& place, int bound) {
    const ExpressionNode& node = space_.constraints()[constraint].nodes()[node_id];
    const auto is_bound = [&](int p) { return place[p] < bound; };
    if (std::none_of(node.used.begin(), node.used.end(), is_bound)) return;
    if (std::all_of(node.used.begin(), node.used.end(), is_bound)) {
      parts_[bound].push_back({constraint, node_id});
      return;
    }
    if (node.kind == ExpressionNode::Kind::kComprehension) {
      for (const int p : node.used) {
        if (is_bound(p)) whole_[bound].push_back(p);
      }
      return;
    }
    for (const int child : node.children) AddParts(constraint, child, place, bound);
  }

  std::string Key(size_t bound) {
    std::string key;
    for (const BoundPart& part : parts_[bound]) {
      const auto value = space_.constraints()[part.constraint].Evaluate(part.node, &environment_);
      if (value.ok()) {
        AppendExact(*value, &key);
      } else {
        key.push_back(static_cast<char>(0xff));  // any error; the constraint may not come to evaluate it
      }
    }
    if (const auto whole = whole_.find(bound); whole != whole_.end()) {
      for (const int p : whole->second) AppendExact(environment_[p], &key);
    }
    return key;
  }

  absl::StatusOr<int64_t> From(size_t bound) {
    if (bound == order_.size()) {
      if (doubts_.empty()) return 1;
      return ConstraintError(space_, doubts_[0].first, choices_, doubts_[0].second);
    }
    // A doubted constraint is no part of the key.
    const bool remembers = doubts_.empty() && bound > 0;
    std::string key;
    if (remembers) {
      key = Key(bound);
      if (const auto known = counts_[bound].find(key); known != counts_[bound].end()) return known->second;
    }
    const int parameter = order_[bound];
    const std::vector<PythonValue>& values = space_.parameters()[parameter].values;
    const size_t doubts = doubts_.size();
    int64_t count = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      choices_[parameter] = static_cast<int>(i);
      environment_[parameter] = values[i];
      if (CheckDue(bound + 1)) {
        MYCC_ASSIGN_OR_RETURN(const int64_t completions, From(bound + 1));
        if (__builtin_add_overflow(count, completions, &count)) return TooMany();
      }
      doubts_.resize(doubts);
    }
    if (remembers && num_counts_ < kMostCounts) {
      counts_[bound].emplace(std::move(key), count);
      ++num_counts_;
    }
    return count;
  }

  bool CheckDue(size_t bound) {
    for (const int c : due_[bound]) {
      const auto value = space_.constraints()[c].Evaluate(&environment_);
      if (!value.ok()) {
        doubts_.emplace_back(c, value.status());
      } else if (!IsTrue(*value)) {
        return false;
      }
    }
    return true;
  }

  const ConstrainedSpace& space_;
  const std::vector<int> order_;
  // By the number of bound parameters: constraints that are decided then; what the undecided ones work on;
  // counts.
  std::vector<std::vector<int>> due_;
  std::vector<std::vector<BoundPart>> parts_;
  absl::flat_hash_map<size_t, std::vector<int>> whole_;
  std::vector<absl::flat_hash_map<std::string, int64_t>> counts_;
  size_t num_counts_ = 0;
  std::vector<int> choices_;
  ExpressionEnvironment& environment_;
  std::vector<std::pair<int, absl::Status>> doubts_;
};

// Parameters and constraints that are connected.
struct Component {
  std::vector<int> parameters, constraints;
};

std::vector<Component> ComponentsOf(const ConstrainedSpace& space) {
  std::vector<int> leader(space.parameters().size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int p) {
    while (leader[p] != p) p = leader[p] = leader[leader[p]];
    return p;
  };
  for (const Expression& constraint : space.constraints()) {
    for (const int p : constraint.used()) leader[find(p)] = find(constraint.used()[0]);
  }
  std::vector<Component> by_leader(leader.size());
  for (size_t p = 0; p < leader.size(); ++p)
    by_leader[find(static_cast<int>(p))].parameters.push_back(static_cast<int>(p));
  for (size_t c = 0; c < space.constraints().size(); ++c) {
    const std::vector<int>& used = space.constraints()[c].used();
    if (!used.empty()) by_leader[find(used[0])].constraints.push_back(static_cast<int>(c));
  }
  std::vector<Component> components;
  for (Component& component : by_leader) {
    if (!component.parameters.empty()) components.push_back(std::move(component));
  }
  return components;
}

// The constraint that lacks the fewest parameters is bound next, so that it prunes early.
std::vector<int> BindingOrder(const ConstrainedSpace& space, const Component& component) {
  std::vector<int> order;
  std::vector<bool> bound(space.parameters().size());
  const auto bind = [&](int p) {
    if (!bound[p]) order.push_back(p);
    bound[p] = true;
  };
  for (const int p : component.parameters) {
    if (space.parameters()[p].values.size() == 1) bind(p);
  }
  std::vector<int> open = component.constraints;
  while (!open.empty()) {
    const auto missing = [&](int c) {
      const std::vector<int>& used = space.constraints()[c].used();
      return std::count_if(used.begin(), used.end(), [&](int p) { return !bound[p]; });
    };
    const auto next =
        std::min_element(open.begin(), open.end(), [&](int a, int b) { return missing(a) < missing(b); });
    for (const int p : space.constraints()[*next].used()) bind(p);
    open.erase(next);
  }
  for (const int p : component.parameters) bind(p);
  return order;
}

}  // namespace

absl::StatusOr<int64_t> CountConfigurations(const ConstrainedSpace& space) {
  size_t slots = space.parameters().size();
  for (const Expression& constraint : space.constraints())
    slots = std::max<size_t>(slots, constraint.num_slots());
  ExpressionEnvironment environment(slots);
  for (size_t c = 0; c < space.constraints().size(); ++c) {
    if (!space.constraints()[c].used().empty()) continue;
    const auto value = space.constraints()[c].Evaluate(&environment);
    if (!value.ok()) return ConstraintError(space, static_cast<int>(c), {}, value.status());
    if (!IsTrue(*value)) return 0;
  }
  int64_t product = 1;
  bool overflows = false;
  absl::Status error;
  for (const Component& component : ComponentsOf(space)) {
    ComponentCounter counter(space, BindingOrder(space, component), component.constraints, &environment);
    const auto count = counter.Count();
    if (!count.ok()) {
      error.Update(count.status());  // another component may have no configuration at all
      continue;
    }
    if (*count == 0) return 0;
    overflows |= __builtin_mul_overflow(product, *count, &product);
  }
  MYCC_RETURN_IF_ERROR(error);
  if (overflows) return TooMany();
  return product;
}

}  // namespace mycc
