// Two reductions of a row that can be one pass over it (reduce_together): the statistics of a softmax, the
// mean and variance of a norm. For the rules of rows. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/space/part.h"

namespace mycc {

struct JointRows {
  std::string first, second;         // the blocks that become one, under the second's name
  std::vector<std::string> blocks;   // of the function then, in order
  std::vector<std::string> inlined;  // rows that one other block alone reads, at its own places
};

// The first pair among the group's members; nullopt when there is none.
std::optional<JointRows> FindJointRows(const Anatomy& anatomy, const Group& group, const Target& target);

// The steps that join them.
void EmitJoint(const JointRows& joint, TraceBuilder* b);

// Whether the block is one of those.
bool IsAmong(const std::vector<std::string>& blocks, const std::string& block);

}  // namespace mycc
