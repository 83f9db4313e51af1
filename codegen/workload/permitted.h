// Computes, for given inputs, the values that the language permits each output element to hold, special
// values included. It judges kernels on inputs with infinities, NaN and numbers that overflow, where one
// expected value with a tolerance is not enough. docs/language.md, "Accuracy", has the rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/workload/reference.h"
#include "codegen/workload/value_set.h"

namespace mycc {

// Computes producers on demand, and keeps them. Thread rule: one owner.
class PermittedReference {
 public:
  PermittedReference(const Workload& workload, const std::vector<NDArray>& inputs);
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

// At most `count` places of output number `output`, and at least one, as far as `seconds` suffice.
PermittedValues PermitOutput(const Workload& workload, PermittedReference* reference, int output,
                             int64_t count, double seconds, uint64_t seed);

// The first of `got`'s elements, a whole tensor in storage form, that is not permitted, in words; empty where
// there is none.
std::string FirstForbidden(const PermittedValues& permitted, const uint8_t* got);
// The same of the elements at the places alone, one after the other.
std::string FirstForbiddenOf(const PermittedValues& permitted, const uint8_t* elements);

}  // namespace mycc
