// Computes the set of values that the language permits for each output element on given inputs. It verifies
// kernels on inputs with infinities, NaN and numbers that overflow, where one expected value with a tolerance
// is not enough. docs/language.md, "Accuracy", has the rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/workload/reference.h"
#include "codegen/workload/sampled_values.h"
#include "codegen/workload/value_set.h"

namespace mycc {

// Computes producers on demand, and keeps them. Thread rule: one owner.
class PermittedReference {
 public:
  PermittedReference(const Workload& workload, InputElements inputs);
  ~PermittedReference();
  // The set of element `flat` (row-major) of output number `output`.
  ValueSet Output(int output, int64_t flat);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PermittedValues {
  DType dtype;
  std::vector<int64_t> places;  // distinct flat indices
  std::vector<ValueSet> sets;   // one for each place
};

// The sets of at most `count` places of output number `output`: at least one, then as many as `seconds`
// allow.
PermittedValues PermitOutput(const Workload& workload, PermittedReference* reference, int output,
                             int64_t count, double seconds, uint64_t seed, PlaceShare share = {});

// A message about the first element of `got` (a whole tensor in storage form) that is not permitted; "" when
// there is none.
std::string FirstForbidden(const PermittedValues& permitted, const uint8_t* got);
// The same for `elements` that are only those at the places, in order.
std::string FirstForbiddenOf(const PermittedValues& permitted, const uint8_t* elements);

}  // namespace mycc
