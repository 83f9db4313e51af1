// Makes the canonical form of a workload, and its two hashes.
//
// Names are replaced by numbers: inputs and stages are t0, t1, ... (inputs first, in argument order, then
// stages in a deterministic topological order), axes of a stage a0, a1, ..., its reduction axes r0, r1, ...,
// the function `w`. Dead stages are removed, equal stages merged, commutative operands ordered. There is no
// algebraic simplification. Two workloads that differ only in names or in the order of stages have the same
// canonical text. Schedules, traces and the tuning log use the canonical workload alone.
#pragma once

#include <string>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

Workload Canonicalize(const Workload& workload);
// The tensors of `workload` that are t0, t1, ... in the canonical form.
std::vector<Buffer> OriginalTensors(const Workload& workload);
// "v1 workload w(...) -> (...) {...}": the text that is hashed, stored and sent.
std::string CanonicalText(const Workload& workload);
// SHA-256 of CanonicalText.
std::string WorkloadHash(const Workload& workload);
// The canonical text with extents, and the constants bound to them, erased: the same for one computation at
// any shape. Not parsed again.
std::string ShapeErasedText(const Workload& workload);
// SHA-256 of ShapeErasedText.
std::string ShapeErasedHash(const Workload& workload);

}  // namespace mycc
