// Checks tensors in registers that the threads of a nest write: each thread has its own copy, or the tensor
// is distributed over the threads.
#include <cmath>

#include "codegen/ir/interpreter_machine.h"

namespace mycc::interpreter {
namespace {

constexpr const char* kDisagree = "is left with other values by other threads, in registers of their own";

bool IsSame(DType dtype, const Scalar& a, const Scalar& b) {
  return IsFloat(dtype) ? a.f == b.f || (std::isnan(a.f) && std::isnan(b.f)) : a.i == b.i;
}

}  // namespace

// Called before a write: memory still holds the value that the previous thread wrote.
const char* Machine::NoteSpread(Agent& agent, int slot, int64_t flat) {
  const Memory& memory = memories_[slot];
  Spread& spread = spread_[slot][flat];
  if (spread.nest != agent.nest) {
    spread = {agent.nest, agent.thread};
    written_in_nest_.emplace_back(slot, flat);
  }
  if (spread.thread == agent.thread) return nullptr;
  if (spread.is_left && !IsSame(memory.buffer().dtype, spread.left, memory.Value(flat))) return kDisagree;
  spread = {agent.nest, agent.thread, true, memory.Value(flat)};
  return nullptr;
}

Machine::State Machine::EndNest(Agent& agent) {
  for (const auto& [slot, flat] : written_in_nest_) {
    const Memory& memory = memories_[slot];
    const Spread& spread = spread_[slot][flat];
    if (spread.is_left && !IsSame(memory.buffer().dtype, spread.left, memory.Value(flat)))
      return FailAccess(agent, memory, flat, kDisagree);
  }
  written_in_nest_.clear();
  agent.nest = 0;
  return State::kRunning;
}

}  // namespace mycc::interpreter
