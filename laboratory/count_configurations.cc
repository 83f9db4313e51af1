// Counts a constrained space by dynamic programming.
//
// Parameters fall into components that no condition connects; their counts multiply. Within a component
// parameters are bound one after another. How many completions a partial configuration has depends on little:
// for each condition that is not decided yet, on the values of its largest parts that are bound already. In
// `x * y * z <= 1024` with x and y bound that is the product x * y. Partial configurations with the same
// values there are counted once.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/bound_parts.h"
#include "laboratory/constrained_space.h"

namespace mycc {
namespace {

// The memory of the counts that are remembered, all components and levels together; further ones are computed
// again.
constexpr size_t kMostCountBytes = size_t{1} << 28;

absl::Status TooMany() {
  return absl::OutOfRangeError("2^63 configurations or more; expected a smaller space");
}

class ComponentCounter {
 public:
  // `order`: the parameters of a component; `conditions`: those over them.
  ComponentCounter(const ConstrainedSpace& space, std::vector<int> order, const std::vector<int>& conditions,
                   ExpressionEnvironment* environment)
      : space_(space),
        order_(std::move(order)),
        due_(order_.size() + 1),
        counts_(order_.size() + 1),
        choices_(space.parameters().size()),
        environment_(*environment) {
    std::vector<int> place(space.parameters().size());
    for (size_t i = 0; i < order_.size(); ++i) place[order_[i]] = static_cast<int>(i);
    std::vector<std::vector<int>> open(order_.size() + 1);  // by the number of bound parameters
    for (const int c : conditions) {
      int last = 0;
      for (const int p : space.UsedBy(space.conditions()[c])) last = std::max(last, place[p]);
      due_[last + 1].push_back(c);
      for (int bound = 1; bound <= last; ++bound) open[bound].push_back(c);
    }
    for (size_t bound = 0; bound <= order_.size(); ++bound)
      parts_.emplace_back(space, open[bound], place, static_cast<int>(bound));
  }

  absl::StatusOr<int64_t> Count() { return From(0); }

 private:
  absl::StatusOr<int64_t> From(size_t bound) {
    if (bound == order_.size()) {
      if (doubts_.empty()) return 1;
      return ConditionError(space_, space_.conditions()[doubts_[0].first], choices_, doubts_[0].second);
    }
    // A doubted condition is no part of the key.
    const bool remembers = doubts_.empty() && bound > 0;
    std::string key;
    if (remembers) {
      parts_[bound].AppendTo(choices_, &environment_, &key);
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
    if (remembers) Remember(bound, std::move(key), count);
    return count;
  }

  void Remember(size_t bound, std::string key, int64_t count) {
    // A slot of the table, which is half empty at worst, and the text where it is a long one.
    constexpr size_t kSlotBytes = 2 * (sizeof(std::string) + sizeof(int64_t) + 1);
    constexpr size_t kShortText = 15;
    const size_t bytes = kSlotBytes + (key.size() > kShortText ? key.size() : 0);
    if (bytes_ + bytes > kMostCountBytes) return;
    bytes_ += bytes;
    counts_[bound].emplace(std::move(key), count);
  }

  bool CheckDue(size_t bound) {
    for (const int c : due_[bound]) {
      const auto value = space_.Evaluate(space_.conditions()[c], &environment_);
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
  // By the number of bound parameters: conditions that are decided then; what the undecided ones work on;
  // counts.
  std::vector<std::vector<int>> due_;
  std::vector<BoundParts> parts_;
  std::vector<absl::flat_hash_map<std::string, int64_t>> counts_;
  size_t bytes_ = 0;
  std::vector<int> choices_;
  ExpressionEnvironment& environment_;
  std::vector<std::pair<int, absl::Status>> doubts_;  // conditions that could not be evaluated
};

// Parameters and conditions that are connected.
struct Component {
  std::vector<int> parameters, conditions;
};

std::vector<Component> ComponentsOf(const ConstrainedSpace& space) {
  std::vector<int> leader(space.parameters().size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int p) {
    while (leader[p] != p) p = leader[p] = leader[leader[p]];
    return p;
  };
  for (const ConstrainedSpace::Condition& condition : space.conditions()) {
    const std::vector<int>& used = space.UsedBy(condition);
    for (const int p : used) leader[find(p)] = find(used[0]);
  }
  std::vector<Component> by_leader(leader.size());
  for (size_t p = 0; p < leader.size(); ++p)
    by_leader[find(static_cast<int>(p))].parameters.push_back(static_cast<int>(p));
  for (size_t c = 0; c < space.conditions().size(); ++c) {
    const std::vector<int>& used = space.UsedBy(space.conditions()[c]);
    if (!used.empty()) by_leader[find(used[0])].conditions.push_back(static_cast<int>(c));
  }
  std::vector<Component> components;
  for (Component& component : by_leader) {
    if (!component.parameters.empty()) components.push_back(std::move(component));
  }
  return components;
}

// The condition that lacks the fewest parameters is bound next, so that it prunes early.
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
  std::vector<int> open = component.conditions;
  while (!open.empty()) {
    const auto missing = [&](int c) {
      const std::vector<int>& used = space.UsedBy(space.conditions()[c]);
      return std::ranges::count_if(used, [&](int p) { return !bound[p]; });
    };
    const auto next = std::ranges::min_element(open, [&](int a, int b) { return missing(a) < missing(b); });
    for (const int p : space.UsedBy(space.conditions()[*next])) bind(p);
    open.erase(next);
  }
  for (const int p : component.parameters) bind(p);
  return order;
}

}  // namespace

absl::StatusOr<int64_t> CountConfigurations(const ConstrainedSpace& space) {
  ExpressionEnvironment environment(space.num_slots());
  absl::Status error;
  for (const ConstrainedSpace::Condition& condition : space.conditions()) {
    if (!space.UsedBy(condition).empty()) continue;
    const auto value = space.Evaluate(condition, &environment);
    if (value.ok() && !IsTrue(*value)) return 0;
    if (!value.ok()) error.Update(ConditionError(space, condition, {}, value.status()));
  }
  int64_t product = 1;
  bool overflows = false;
  for (const Component& component : ComponentsOf(space)) {
    ComponentCounter counter(space, BindingOrder(space, component), component.conditions, &environment);
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
