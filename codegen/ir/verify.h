// Verifies the IR's rules between passes and, in tests, after every primitive: variables and buffers are used
// inside their scope; loop and block names are unique; block bindings are over enclosing loops; buffers are
// indexed by rank and provably in bounds (with guards); accumulators and vector loops have constant extents;
// no two iterations of a parallel loop write one element of a shared buffer, where that can be decided;
// reductions are not parallel over their reduce variables. Pure.
#pragma once

#include "absl/status/status.h"
#include "codegen/ir/function.h"

namespace mycc {

// Internal error naming the statement when a rule is broken.
absl::Status VerifyFunction(const Function& function);

}  // namespace mycc
