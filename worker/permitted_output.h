// Encodes the values that the language permits in outputs on special inputs, as a message from the process
// that computes them to those that check candidates. Thread rule: pure functions.
#pragma once

#include <vector>

#include "codegen/workload/permitted.h"
#include "codegen/workload/workload.h"
#include "proto/measure.pb.h"

namespace mycc {

using PermittedOutputs = google::protobuf::RepeatedPtrField<v1::PermittedOutput>;

// The places of each output at most, and the time that they may take.
inline constexpr int64_t kPermittedPlaces = 256;
inline constexpr double kPermitSeconds = 0.5;
// The permitted values at these places; or a share of them, in the same share of the time.
PermittedOutputs PermitOutputs(const Workload& workload, InputElements special, uint64_t seed,
                               PlaceShare share = {});
// Adds the places of another share.
void AddShare(const PermittedOutputs& share, PermittedOutputs* outputs);

// For each output; none where the message is another workload's.
std::vector<PermittedValues> PermittedOf(const Workload& workload, const PermittedOutputs& outputs);

}  // namespace mycc
