// The canonical form of a workload and its two hashes.
//
// Names are replaced by numbers: inputs and stages are t0, t1, ... (inputs first, in argument order, then
// stages in a deterministic topological order), axes of a stage a0, a1, ..., its reduction axes r0, r1, ...,
// the function is `w`. Dead stages are removed, stages that compute the same become one, commutative operands
// are ordered; nothing algebraic is done. Two workloads that differ in names or order of stages alone have
// one canonical text. Schedules, traces and the tuning log speak of the canonical workload alone.
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
