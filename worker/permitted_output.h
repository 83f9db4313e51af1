// What the language permits a workload's outputs to be on the inputs with special values, as a message
// between the process that finds it out and those that hold candidates to it. Thread rule: pure functions.
#pragma once

#include <vector>

#include "codegen/workload/permitted.h"
#include "codegen/workload/workload.h"
#include "proto/measure.pb.h"

namespace mycc {

using PermittedOutputs = google::protobuf::RepeatedPtrField<v1::PermittedOutput>;

// Of each output, at some hundred places of it, or as many as half a second suffices for.
PermittedOutputs PermitOutputs(const Workload& workload, const std::vector<NDArray>& special, uint64_t seed);

// For each output; none where the message is another workload's.
std::vector<PermittedValues> PermittedOf(const Workload& workload, const PermittedOutputs& outputs);

}  // namespace mycc
