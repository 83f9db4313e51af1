// Makes the canonical form of a workload, and its two hashes. Pure functions.
//
// Names are replaced by numbers: inputs and stages are t0, t1, ... (inputs first, in argument order, then
// stages in a deterministic topological order), axes of a stage a0, a1, ..., its reduction axes r0, r1, ...,
// the function `w`. Dead stages are removed, equal stages merged, commutative operands ordered. There is no
// algebraic simplification. Two workloads that differ only in names or in the order of stages have the same
// canonical text. Schedules, traces and the tuning log use only the canonical workload.
#pragma once

#include <string>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

Workload Canonicalize(const Workload& workload);
// The tensors of `workload` in the order t0, t1, ... of the canonical form.
std::vector<Buffer> OriginalTensors(const Workload& workload);
// "v1 workload w(...) -> (...) {...}": the text that is hashed, stored and sent.
std::string CanonicalText(const Workload& workload);
// SHA-256 of CanonicalText.
std::string WorkloadHash(const Workload& workload);
// The canonical text without extents and the constants bound to them: the same text for a computation at
// every shape. It cannot be parsed.
std::string ShapeErasedText(const Workload& workload);
// SHA-256 of ShapeErasedText.
std::string ShapeErasedHash(const Workload& workload);

}  // namespace mycc
