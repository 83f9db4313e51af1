// The timing protocols (warm or cold caches) that count for a target. Pure functions.
#pragma once

#include <vector>

#include "codegen/target/target.h"
#include "proto/records.pb.h"

namespace mycc {

// The protocol that was asked for, or the usual one of the target: cold caches on a GPU, where a kernel's
// data seldom fit into them, warm ones on a CPU.
v1::TimingProtocol ProtocolFor(const Target& target, v1::TimingProtocol asked);

// The protocols under which a schedule is looked for, the best first: the one that was asked for alone, or
// the usual one and then the other, so that a log that was tuned with the other alone still serves.
std::vector<v1::TimingProtocol> ProtocolsOf(const Target& target, v1::TimingProtocol asked);

}  // namespace mycc
