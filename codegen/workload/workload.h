// A workload: a small tensor computation, the unit that is tuned and compiled. parse.h and print.h convert it
// from and to text, canonical.h has the canonical form and the hashes, reference.h the reference semantics.
//
// Invariants (established by the parser and by Validate): stages are in topological order; every read is
// provably inside its tensor or under a select; types agree; outputs are written by exactly one stage each;
// reductions stand at the top of a stage. Thread rule: a value, immutable once built.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/expr/expr.h"

namespace mycc {

struct Argument {
  Buffer tensor;
  bool is_const = false;  // known ahead (a weight): its layout may be changed ahead of time
};

// output[axes...] = value, or the reduction of value over reduce_axes. For argmax/argmin there is one reduce
// axis, `value` is the operand and the output is i32. The reduction accumulates in value's type, which is the
// output's type for all others.
struct Stage {
  Buffer output;
  std::vector<Var> axes;  // one for each dimension of output, extents equal to its shape
  ReduceOp reduce = ReduceOp::kNone;
  std::vector<Var> reduce_axes;
  Expr value;
};

struct Workload {
  std::string name;
  std::vector<Argument> inputs;
  std::vector<Buffer> outputs;
  std::vector<Stage> stages;
  int64_t count = 1;  // occurrences in the model it came from; not part of the canonical form
};

// Checks the invariants above; the error names stage and expression.
absl::Status Validate(const Workload& workload);

// Each evaluated arithmetic node counts one, so a multiply-add counts two; index arithmetic and selects count
// nothing.
double CountFlops(const Workload& workload);
// Bytes of all arguments and outputs, each once.
double CountBytes(const Workload& workload);

}  // namespace mycc
