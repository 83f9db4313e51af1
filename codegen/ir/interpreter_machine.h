// Executes a compiled interpreter program: one instruction counter for the function and one for each role,
// over shared registers and memory. Thread rule: thread-compatible; one Machine runs once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/interpreter_memory.h"
#include "codegen/ir/interpreter_program.h"

namespace mycc::interpreter {

// A small random generator (SplitMix64). The orders of parallel loops and of roles must not depend on the
// standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // Uniform in [0, bound), near enough. REQUIRES: bound > 0.
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound)); }

 private:
  uint64_t state_;
};

class Machine {
 public:
  // REQUIRES: `program` outlives the machine.
  Machine(const Program& program, uint64_t seed);

  // Parameters are the first slots, in order; inputs are filled in before Run.
  Memory& memory(int slot) { return memories_[slot]; }
  absl::Status Run();

 private:
  enum class State { kRunning, kYielded, kBlocked, kEnded, kFailed };

  // The function (number 0) or a role.
  struct Agent : Accessor {
    std::string name;
    int64_t pc = 0;
    int barrier = -1;  // waited for, when blocked
    int64_t phase = 0;
    uint32_t committed_groups = 0;
    uint32_t last_copy_group = 0;  // the number of the group of its last asynchronous copy
    uint32_t committed_products = 0, last_product = 0;  // groups of products, likewise
    uint32_t nest = 0;                                  // the current nest of thread loops; 0: none
  };

  struct LoopState {
    int64_t position = 0;
    int64_t extent = 0;
    std::vector<int64_t> order;  // of a parallel loop
    bool outermost = false;      // no other parallel loop is around
    // For a thread loop: the first of the threads that execute it, their number, and the interval in which
    // the loop began.
    int64_t thread = 0, replication = 1;
    uint32_t interval = 0;
  };

  struct BarrierState {
    int count = 0;
    int arrived = 0;
    int64_t bytes = 0;       // that arrivals of the open phase expect, and no copy has signalled yet
    uint32_t completed = 0;  // phases, since the machine started
    uint32_t first = 0;      // `completed` when the current run of its roles began: their phase 0
    uint32_t last_copy = 0;  // `completed` after the phase of the last copy that signals it
    VectorClock open;        // joined from the arrivals and copies of the open phase
    VectorClock known;       // joined into the clock of an agent that waits for the last completed phase
    VectorClock before;      // `known` when that phase began
    int64_t phase() const { return static_cast<int64_t>(completed) - first; }
  };

  // Runs an agent until it ends, fails, blocks, or gives others a turn.
  State Execute(Agent& agent);
  State Fail(const Agent& agent, const std::string& what);
  State FailAccess(const Agent& agent, const Memory& memory, int64_t flat, const char* fault);
  State FailRange(const Agent& agent, const Memory& memory, int list);

  // Row-major position; -1 when an index is out of range.
  int64_t Flat(const Memory& memory, int list) const;
  // The position of element (p, q) of a view whose first element is at `base`; -1 when out of range.
  static int64_t InView(const Memory& memory, const View& view, int64_t base, int64_t p, int64_t q);

  // Accesses the element of a memory that a list of indices names: `access` returns the fault, or nullptr.
  template <typename AccessFn>
  State Access(Agent& agent, int slot, int list, int64_t combine, const AccessFn& access) {
    Memory& memory = memories_[slot];
    const int64_t flat = Flat(memory, list);
    if (flat < 0) return FailRange(agent, memory, list);
    const int64_t thread = std::exchange(agent.thread, AccessingThread(agent, combine));
    const char* fault = access(memory, flat);
    agent.thread = thread;
    return fault ? FailAccess(agent, memory, flat, fault) : State::kRunning;
  }
  // The thread that accesses an element: the agent's, or the first one of the groups of combine - 1.
  int64_t AccessingThread(const Agent& agent, int64_t combine) const;
  State Load(Agent& agent, const Instr& instr);
  State Store(Agent& agent, const Instr& instr);
  State MoveVector(Agent& agent, const Instr& instr);
  // Records a write to an element in registers that several threads of a nest each have a copy of.
  // Returns the fault, or nullptr.
  const char* NoteSpread(Agent& agent, int slot, int64_t flat);
  State EndNest(Agent& agent);
  // The agent's threads have synchronized. Does nothing except in lowered code with threads.
  void EndInterval(Agent& agent);
  State Reduce(Agent& agent, const Instr& instr);
  State Mma(Agent& agent, const Tile& tile);
  // `completion` is an asynchronous product's; otherwise nullptr.
  State ReadFactors(Agent& agent, const Tile& tile, int operand, int64_t base, DType dtype,
                    const Completion* completion, std::vector<Scalar>* factors);
  State AddProducts(Agent& agent, const Tile& tile, int64_t base, int64_t i, int64_t j,
                    const Completion* completion);
  State FailView(const Agent& agent, const Memory& memory, int64_t p, int64_t q);

  // These set the agent's instruction counter.
  State EnterLoop(Agent& agent, const Instr& instr);
  State NextIteration(Agent& agent, const Instr& instr);
  void BeginIteration(Agent& agent, const Loop& loop, LoopState& state);

  // Roles and what they synchronise with: interpreter_pipeline.cc.
  State Synchronise(Agent& agent, const Instr& instr);
  State RunRoles(Agent& parent, const RoleGroup& group);
  void Fork(Agent& parent, const RoleGroup& group);
  State JoinRoles(Agent& parent, const RoleGroup& group);
  State FailDeadlock(const Agent& parent, const RoleGroup& group, const std::vector<Agent*>& live);
  State Arrive(Agent& agent, const Instr& instr);
  static void EndPhaseIfComplete(BarrierState* barrier);
  State Wait(Agent& agent, const Instr& instr);
  // Computes when a copy that is issued now completes. `signalled`: the barrier; nullptr where it is a group.
  State Signal(Agent& agent, const CopySignal& copy, Completion* completion, BarrierState** signalled);
  State CopyEnd(Agent& agent, const Instr& instr);
  State CheckGroupsWaitedFor(const Agent& agent);
  // Until at most `pending` of the groups that the agent has committed are open on the channel.
  void WaitFor(Agent& agent, int channel, uint32_t committed, int64_t pending);
  // The barrier numbered by a register within a group; nullptr when there is none.
  BarrierState* BarrierAt(int reg, int64_t group);
  int GroupChannel(const Agent& agent) const { return program_.num_agents + agent.agent; }
  int ProductChannel(const Agent& agent) const { return 2 * program_.num_agents + agent.agent; }
  int BarrierChannel(const BarrierState& barrier) const {
    return 3 * program_.num_agents + static_cast<int>(&barrier - barriers_.data());
  }

  const Program& program_;
  Random random_;
  absl::Status status_;
  std::vector<Scalar> registers_;
  std::vector<Memory> memories_;
  std::vector<LoopState> loops_;
  std::vector<Agent> agents_;
  std::vector<Accessor*> accessors_;  // of agents_
  std::vector<BarrierState> barriers_;
  std::vector<Scalar> factors_[2];  // operands of the current tile product
  uint32_t last_iteration_ = 0, last_interval_ = 0, last_nest_ = 0;
  struct Spread {       // an element in registers
    uint32_t nest = 0;  // the last nest that wrote it
    int64_t thread = 0;
    bool is_left = false;  // another thread wrote `left` to it before
    Scalar left;
  };
  std::vector<std::vector<Spread>> spread_;               // by slot and element
  std::vector<std::pair<int, int64_t>> written_in_nest_;  // slots and elements
};

}  // namespace mycc::interpreter
