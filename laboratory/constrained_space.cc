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
    size_t slots = space.parameters().size();
    for (size_t c = 0; c < space.constraints().size(); ++c) {
      const Expression& constraint = space.constraints()[c];
      due_[constraint.used().empty() ? 0 : constraint.used().back() + 1].push_back(static_cast<int>(c));
      slots = std::max<size_t>(slots, constraint.num_slots());
    }
    environment_.resize(slots);
  }

  absl::Status Run() { return CheckDue(0) ? From(0) : absl::OkStatus(); }

 private:
  absl::Status From(size_t parameter) {
    if (parameter == choices_.size()) {
      if (doubts_.empty()) return visit_(choices_);
      return ConstraintError(space_, doubts_[0].first, choices_, doubts_[0].second);
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
    if (std::find(names.begin(), names.end(), parameter.name) != names.end())
      return absl::InvalidArgumentError(absl::StrCat("two parameters `", parameter.name, "`; expected one"));
    names.push_back(parameter.name);
  }
  for (size_t i = 0; i < constraints.size(); ++i) {
    auto constraint = Expression::Parse(constraints[i], names);
    if (!constraint.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("constraint ", i + 1, ", \"", constraints[i], "\": ", constraint.status().message()));
    }
    space.constraints_.push_back(*std::move(constraint));
  }
  space.parameters_ = std::move(parameters);
  return space;
}

double ConstrainedSpace::raw_size() const {
  double size = 1;
  for (const ConstrainedParameter& parameter : parameters_)
    size *= static_cast<double>(parameter.values.size());
  return size;
}

absl::StatusOr<bool> ConstrainedSpace::Satisfies(const std::vector<int>& choices) const {
  MYCC_CHECK(choices.size() == parameters_.size()) << choices.size() << " choices";
  ExpressionEnvironment environment;
  for (size_t i = 0; i < choices.size(); ++i) environment.push_back(parameters_[i].values[choices[i]]);
  absl::Status doubt;
  for (size_t c = 0; c < constraints_.size(); ++c) {
    environment.resize(std::max<size_t>(environment.size(), constraints_[c].num_slots()));
    const auto value = constraints_[c].Evaluate(&environment);
    if (value.ok() && !IsTrue(*value)) return false;
    if (!value.ok() && doubt.ok())
      doubt = ConstraintError(*this, static_cast<int>(c), choices, value.status());
  }
  if (!doubt.ok()) return doubt;
  return true;
}

absl::Status ConstrainedSpace::ForEach(
    const std::function<absl::Status(const std::vector<int>&)>& visit) const {
  return ConfigurationWalk(*this, visit).Run();
}

absl::Status ConstraintError(const ConstrainedSpace& space, int constraint, const std::vector<int>& choices,
                             const absl::Status& why) {
  const Expression& expression = space.constraints()[constraint];
  std::string message =
      absl::StrCat("constraint ", constraint + 1, ", \"", expression.text(), "\": ", why.message());
  for (const int p : expression.used()) {
    const ConstrainedParameter& parameter = space.parameters()[p];
    absl::StrAppend(&message, p == expression.used()[0] ? " at " : ", ", parameter.name, " = ",
                    ValueText(parameter.values[choices[p]]));
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace mycc
