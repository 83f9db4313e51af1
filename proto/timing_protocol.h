// The timing protocols (warm or cold caches, or those of a model) that count for a target. Pure functions.
#pragma once

#include <vector>

#include "codegen/target/target.h"
#include "proto/records.pb.h"

namespace mycc {

// A kernel is called by itself, or is one of the kernels of a model.
enum class KernelUse { kAlone, kInModel };

// The protocol that was asked for, or the usual one of the target: cold caches on a GPU, where a kernel's
// data seldom fit into them; on a CPU warm ones for a kernel alone, and those of a model in a model.
v1::TimingProtocol ProtocolFor(const Target& target, v1::TimingProtocol asked, KernelUse use);

// The protocols under which a schedule is looked for, the best first: the one that was asked for alone, or
// the usual one and then the others, so that a log that was tuned with those alone still serves.
std::vector<v1::TimingProtocol> ProtocolsOf(const Target& target, v1::TimingProtocol asked, KernelUse use);

}  // namespace mycc
