// A tuning space as its author describes it: parameters with their values, and constraints that a
// configuration has to satisfy. Thread rule: immutable once made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "laboratory/expression.h"

namespace mycc {

struct ConstrainedParameter {
  std::string name;
  std::vector<PythonValue> values;  // at least one, no two equal
};

class ConstrainedSpace {
 public:
  // InvalidArgument "constraint 2, "a % c == 0": column 5: unknown name `c`; expected ...".
  static absl::StatusOr<ConstrainedSpace> Create(std::vector<ConstrainedParameter> parameters,
                                                 const std::vector<std::string>& constraints);

  const std::vector<ConstrainedParameter>& parameters() const { return parameters_; }
  const std::vector<Expression>& constraints() const { return constraints_; }
  // The operands of every constraint's outermost `and`, or the constraint itself: each has to hold.
  struct Condition {
    int constraint = 0;
    int node = 0;
  };
  const std::vector<Condition>& conditions() const { return conditions_; }
  // The parameters that a condition depends on, ascending.
  const std::vector<int>& UsedBy(const Condition& condition) const {
    return constraints_[condition.constraint].nodes()[condition.node].used;
  }
  absl::StatusOr<PythonValue> Evaluate(const Condition& condition, ExpressionEnvironment* environment) const {
    return constraints_[condition.constraint].Evaluate(condition.node, environment);
  }
  // The size of an environment for all constraints.
  size_t num_slots() const;
  // Configurations before the constraints.
  double raw_size() const;

  // Whether a configuration, an index of a value for each parameter, satisfies every constraint.
  // InvalidArgument, with the constraint and the configuration, when a condition cannot be evaluated and no
  // other one excludes the configuration.
  absl::StatusOr<bool> Satisfies(const std::vector<int>& choices) const;

  // Calls `visit` for each configuration that satisfies the constraints, in ascending order of choices. A
  // constraint is evaluated as soon as its parameters are bound. Stops at an error. Errors as above.
  absl::Status ForEach(const std::function<absl::Status(const std::vector<int>&)>& visit) const;

 private:
  void AddConditions(const Expression& expression, int constraint, int node);

  std::vector<ConstrainedParameter> parameters_;
  std::vector<Expression> constraints_;
  std::vector<Condition> conditions_;
};

// The number of configurations that satisfy the constraints, exactly, without visiting each: parameters that
// no constraint connects multiply, and partial configurations that leave the constraints the same values to
// work on are counted once. Memory is bounded; what does not fit is counted again. InvalidArgument as above,
// OutOfRange for 2^63 and more.
absl::StatusOr<int64_t> CountConfigurations(const ConstrainedSpace& space);

// The error of a condition that cannot be evaluated for a configuration: only its parameters count.
absl::Status ConditionError(const ConstrainedSpace& space, const ConstrainedSpace::Condition& condition,
                            const std::vector<int>& choices, const absl::Status& why);

}  // namespace mycc
