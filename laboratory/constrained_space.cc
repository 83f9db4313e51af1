#include "laboratory/constrained_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace mycc {
namespace {

// Binds parameters from the first to the last.
class ConfigurationWalk {
 public:
  ConfigurationWalk(const ConstrainedSpace& space,
                    const std::function<absl::Status(const std::vector<int>&)>& visit)
      : space_(space),
        visit_(visit),
        due_(space.parameters().size() + 1),
        choices_(space.parameters().size()) {
    for (size_t c = 0; c < space.conditions().size(); ++c) {
      const std::vector<int>& used = space.UsedBy(space.conditions()[c]);
      due_[used.empty() ? 0 : used.back() + 1].push_back(static_cast<int>(c));
    }
    environment_.resize(space.num_slots());
  }

  absl::Status Run() { return CheckDue(0) ? From(0) : absl::OkStatus(); }

 private:
  absl::Status From(size_t parameter) {
    if (parameter == choices_.size()) {
      if (doubts_.empty()) return visit_(choices_);
      return ConditionError(space_, space_.conditions()[doubts_[0].first], choices_, doubts_[0].second);
    }
    const std::vector<PythonValue>& values = space_.parameters()[parameter].values;
    const size_t doubts = doubts_.size();
    for (size_t i = 0; i < values.size(); ++i) {
      choices_[parameter] = static_cast<int>(i);
      environment_[parameter] = values[i];
      if (CheckDue(parameter + 1)) MYCC_RETURN_IF_ERROR(From(parameter + 1));
      doubts_.resize(doubts);
    }
    return absl::OkStatus();
  }

  // False when a constraint that is due excludes the configuration. One that cannot be evaluated is doubted:
  // another one may still exclude it.
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
  const std::function<absl::Status(const std::vector<int>&)>& visit_;
  std::vector<std::vector<int>> due_;  // by the number of parameters that are bound
  std::vector<int> choices_;
  ExpressionEnvironment environment_;
  std::vector<std::pair<int, absl::Status>> doubts_;
};

}  // namespace

absl::StatusOr<ConstrainedSpace> ConstrainedSpace::Create(std::vector<ConstrainedParameter> parameters,
                                                          const std::vector<std::string>& constraints) {
  ConstrainedSpace space;
  std::vector<std::string> names;
  for (const ConstrainedParameter& parameter : parameters) {
    if (parameter.values.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("parameter `", parameter.name, "` has no values; expected one"));
    if (std::ranges::find(names, parameter.name) != names.end())
      return absl::InvalidArgumentError(absl::StrCat("two parameters `", parameter.name, "`; expected one"));
    names.push_back(parameter.name);
  }
  for (size_t i = 0; i < constraints.size(); ++i) {
    auto constraint = Expression::Parse(constraints[i], names);
    if (!constraint.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("constraint ", i + 1, ", \"", constraints[i], "\": ", constraint.status().message()));
    }
    space.AddConditions(*constraint, static_cast<int>(i), constraint->root());
    space.constraints_.push_back(*std::move(constraint));
  }
  space.parameters_ = std::move(parameters);
  return space;
}

void ConstrainedSpace::AddConditions(const Expression& expression, int constraint, int node) {
  if (expression.nodes()[node].kind != ExpressionNode::Kind::kAnd) {
    conditions_.push_back({constraint, node});
    return;
  }
  for (const int operand : expression.nodes()[node].children) AddConditions(expression, constraint, operand);
}

double ConstrainedSpace::raw_size() const {
  double size = 1;
  for (const ConstrainedParameter& parameter : parameters_)
    size *= static_cast<double>(parameter.values.size());
  return size;
}

size_t ConstrainedSpace::num_slots() const {
  size_t slots = parameters_.size();
  for (const Expression& constraint : constraints_)
    slots = std::max<size_t>(slots, static_cast<size_t>(constraint.num_slots()));
  return slots;
}

absl::StatusOr<bool> ConstrainedSpace::Satisfies(const std::vector<int>& choices) const {
  MYCC_CHECK(choices.size() == parameters_.size()) << choices.size() << " choices";
  ExpressionEnvironment environment;
  for (size_t i = 0; i < choices.size(); ++i) environment.push_back(parameters_[i].values[choices[i]]);
  absl::Status doubt;
  environment.resize(num_slots());
  for (const Condition& condition : conditions_) {
    const auto value = Evaluate(condition, &environment);
    if (value.ok() && !IsTrue(*value)) return false;
    if (!value.ok() && doubt.ok()) doubt = ConditionError(*this, condition, choices, value.status());
  }
  if (!doubt.ok()) return doubt;
  return true;
}

absl::Status ConstrainedSpace::ForEach(
    const std::function<absl::Status(const std::vector<int>&)>& visit) const {
  return ConfigurationWalk(*this, visit).Run();
}

absl::Status ConditionError(const ConstrainedSpace& space, const ConstrainedSpace::Condition& condition,
                            const std::vector<int>& choices, const absl::Status& why) {
  std::string message = absl::StrCat("constraint ", condition.constraint + 1, ", \"",
                                     space.constraints()[condition.constraint].text(), "\": ", why.message());
  const std::vector<int>& used = space.UsedBy(condition);
  for (const int p : used) {
    const ConstrainedParameter& parameter = space.parameters()[p];
    absl::StrAppend(&message, p == used[0] ? " at " : ", ", parameter.name, " = ",
                    ValueText(parameter.values[choices[p]]));
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace mycc
