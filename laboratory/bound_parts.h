// The values on which undecided conditions of a space still depend when some parameters are bound: partial
// configurations with the same values have the same completions. Thread rule: immutable once made.
#pragma once

#include <string>
#include <vector>

#include "laboratory/constrained_space.h"

namespace mycc {

class BoundParts {
 public:
  // `open`: numbers of conditions; `place`: of each parameter, the order in which it is bound; `bound`: how
  // many are. `space` outlives this.
  BoundParts(const ConstrainedSpace& space, const std::vector<int>& open, const std::vector<int>& place,
             int bound);

  // Appends bytes that are equal for partial configurations whose values are. The environment has those of
  // the bound parameters, and so have the choices.
  void AppendTo(const std::vector<int>& choices, ExpressionEnvironment* environment,
                std::string* bytes) const;

 private:
  struct Part {
    int constraint;
    int node;
  };
  void Collect(int constraint, int node, const std::vector<int>& place, int bound);
  void AddParameter(int parameter);
  void AddPart(const Part& part);
  bool AreSame(const Part& a, const Part& b) const;
  const ExpressionNode& NodeOf(const Part& part) const {
    return space_.constraints()[part.constraint].nodes()[part.node];
  }

  const ConstrainedSpace& space_;
  std::vector<int> parameters_;  // needed by themselves
  std::vector<Part> parts_;      // others, each once
};

}  // namespace mycc
