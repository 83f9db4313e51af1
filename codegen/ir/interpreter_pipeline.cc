// Executes the interpreter's roles, barriers, groups and asynchronous copies.
//
// A copy moves its data immediately, but source and destination are stamped with the time at which it
// completes; so are a product's operands and sums. So an access without a wait is a race in every order of
// the roles, whatever the values.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/ir/interpreter_machine.h"

namespace mycc::interpreter {

Machine::State Machine::Synchronise(Agent& agent, const Instr& instr) {
  State state = State::kRunning;
  switch (instr.code) {
    case Code::kRoles: return RunRoles(agent, program_.groups[instr.a]);
    case Code::kArrive: state = Arrive(agent, instr); break;
    case Code::kWait: state = Wait(agent, instr); break;
    case Code::kCommitProducts: ++agent.committed_products; return state;
    case Code::kWaitProducts:
      WaitFor(agent, ProductChannel(agent), agent.committed_products, instr.imm);
      return state;
    case Code::kCommitGroup: ++agent.committed_groups; break;
    case Code::kWaitGroup: WaitFor(agent, GroupChannel(agent), agent.committed_groups, instr.imm); break;
    case Code::kBarrier: EndInterval(agent); return state;
    case Code::kLaunch:
      EndInterval(agent);
      agent.thread = 0;
      agent.replication = instr.imm;
      return state;
    case Code::kFence:
      if (program_.concurrent) agent.fences.push_back(agent.clock[agent.agent]);
      break;
    default: {
      const State groups = CheckGroupsWaitedFor(agent);
      return groups == State::kRunning ? State::kEnded : groups;
    }
  }
  // Roles take turns at random, at the points where the order of roles can matter.
  const bool yield = state == State::kRunning && agent.agent != 0 && random_.Below(2) == 0;
  return yield ? State::kYielded : state;
}

Machine::State Machine::RunRoles(Agent& parent, const RoleGroup& group) {
  Fork(parent, group);
  std::vector<Agent*> live;
  for (size_t i = 0; i < group.roles.size(); ++i) live.push_back(&agents_[i + 1]);
  std::vector<Agent*> ready;
  while (!live.empty()) {
    ready.clear();
    for (Agent* agent : live) {
      if (agent->barrier < 0 || barriers_[agent->barrier].phase() > agent->phase) ready.push_back(agent);
    }
    if (ready.empty()) return FailDeadlock(parent, group, live);
    Agent* agent = ready[random_.Below(static_cast<int64_t>(ready.size()))];
    const State state = Execute(*agent);
    if (state == State::kFailed) return state;
    if (state == State::kEnded) std::erase(live, agent);
  }
  return JoinRoles(parent, group);
}

// The parent's earlier accesses come before those of each role; its later ones do not.
void Machine::Fork(Agent& parent, const RoleGroup& group) {
  for (size_t i = 0; i < group.roles.size(); ++i) {
    Agent& role = agents_[i + 1];
    const uint32_t time = role.clock[role.agent];
    role.clock = parent.clock;
    role.clock[role.agent] = time + 1;
    role.name = group.roles[i].name;
    role.pc = group.roles[i].entry;
    role.iteration = parent.iteration;
    role.first_iteration = parent.first_iteration;
    role.barrier = -1;
    role.thread = 0;
    role.replication = group.roles[i].threads;
    role.interval = 0;
    if (parent.interval != 0) EndInterval(role);
  }
  ++parent.clock[parent.agent];
  for (size_t b = 0; b < group.barrier_counts.size(); ++b) {
    BarrierState& barrier = barriers_[group.first_barrier + b];
    barrier.count = group.barrier_counts[b];
    barrier.arrived = 0;
    barrier.bytes = 0;
    barrier.first = barrier.completed;
    barrier.open = barrier.known = barrier.before = VectorClock(parent.clock.size());
  }
}

Machine::State Machine::JoinRoles(Agent& parent, const RoleGroup& group) {
  for (size_t i = 0; i < group.roles.size(); ++i) Join(&parent.clock, agents_[i + 1].clock);
  for (size_t b = 0; b < group.barrier_counts.size(); ++b) {
    const BarrierState& barrier = barriers_[group.first_barrier + b];
    if (barrier.last_copy > parent.clock[BarrierChannel(barrier)]) {
      return Fail(parent, absl::StrCat("the roles end while an asynchronous copy that signals barrier ", b,
                                       " is open: nothing waited for it"));
    }
  }
  return State::kRunning;
}

Machine::State Machine::FailDeadlock(const Agent& parent, const RoleGroup& group,
                                     const std::vector<Agent*>& live) {
  const std::string roles = absl::StrJoin(live, "; ", [&](std::string* out, const Agent* agent) {
    const BarrierState& barrier = barriers_[agent->barrier];
    absl::StrAppend(out, "role ", agent->name, " waits for phase ", agent->phase, " of barrier ",
                    agent->barrier - group.first_barrier, " (", barrier.phase(), " phases complete, ",
                    barrier.arrived, " of ", barrier.count, " arrivals of the next",
                    barrier.bytes != 0 ? absl::StrCat(", ", barrier.bytes, " bytes expected") : "", ") in ",
                    DescribeSite(program_, agent->pc, registers_));
  });
  return Fail(parent, absl::StrCat("deadlock: ", roles));
}

Machine::BarrierState* Machine::BarrierAt(int reg, int64_t group) {
  const RoleGroup& roles = program_.groups[group];
  const int64_t index = registers_[reg].i;
  if (index < 0 || index >= static_cast<int64_t>(roles.barrier_counts.size())) return nullptr;
  return &barriers_[roles.first_barrier + index];
}

Machine::State Machine::Arrive(Agent& agent, const Instr& instr) {
  BarrierState* barrier = BarrierAt(instr.a, instr.imm);
  if (barrier == nullptr) return Fail(agent, absl::StrCat("there is no barrier ", registers_[instr.a].i));
  // Without this order the arrival could count for the previous phase.
  if (!Covers(agent.clock, barrier->known)) {
    return Fail(agent,
                absl::StrCat("arrives at barrier ", registers_[instr.a].i, " for phase ", barrier->phase(),
                             " without having waited for the end of phase ", barrier->phase() - 1));
  }
  barrier->bytes += instr.c;
  for (int i = 0; i < instr.b; ++i) {
    Join(&barrier->open, agent.clock);
    ++barrier->arrived;
    EndPhaseIfComplete(barrier);
  }
  ++agent.clock[agent.agent];
  return State::kRunning;
}

void Machine::EndPhaseIfComplete(BarrierState* barrier) {
  if (barrier->arrived < barrier->count || barrier->bytes != 0) return;
  barrier->arrived = 0;
  ++barrier->completed;
  barrier->before = barrier->known;
  Join(&barrier->known, barrier->open);
  std::ranges::fill(barrier->open, 0);
}

Machine::State Machine::Wait(Agent& agent, const Instr& instr) {
  BarrierState* barrier = BarrierAt(instr.a, instr.imm);
  if (barrier == nullptr) return Fail(agent, absl::StrCat("there is no barrier ", registers_[instr.a].i));
  const int64_t phase = registers_[instr.b].i;
  if (barrier->phase() > phase + 1) {
    return Fail(agent, absl::StrCat("waits for phase ", phase, " of barrier ", registers_[instr.a].i,
                                    ", which has already completed phase ", barrier->phase() - 1));
  }
  // In another order of the roles the phase before could still be open, even if it is complete here.
  if (barrier->phase() < phase ||
      !Covers(agent.clock, barrier->phase() > phase ? barrier->before : barrier->known)) {
    return Fail(agent,
                absl::StrCat("waits for phase ", phase, " of barrier ", registers_[instr.a].i, " when phase ",
                             phase - 1, " may be open: one bit does not tell it from phase ", phase - 2));
  }
  if (barrier->phase() <= phase) {
    agent.barrier = static_cast<int>(barrier - barriers_.data());
    agent.phase = phase;
    return State::kBlocked;
  }
  agent.barrier = -1;
  Join(&agent.clock, barrier->known);
  return State::kRunning;
}

Machine::State Machine::Signal(Agent& agent, const CopySignal& copy, Completion* completion,
                               BarrierState** signalled) {
  *signalled = nullptr;
  const Threads threads = copy.by_threads ? Threads::kSome : Threads::kFirst;
  *completion = {GroupChannel(agent), agent.committed_groups + 1, threads, &accessors_};
  if (copy.barrier < 0) {
    agent.last_copy_group = completion->time;
    return State::kRunning;
  }
  BarrierState* barrier = BarrierAt(copy.barrier, copy.group);
  if (barrier == nullptr)
    return Fail(agent, absl::StrCat("there is no barrier ", registers_[copy.barrier].i));
  if (!Covers(agent.clock, barrier->known)) {
    return Fail(agent,
                absl::StrCat("signals phase ", barrier->phase(), " of barrier ", registers_[copy.barrier].i,
                             " without having waited for the end of phase ", barrier->phase() - 1));
  }
  *completion = {BarrierChannel(*barrier), barrier->completed + 1, threads, &accessors_};
  Join(&barrier->open, agent.clock);
  barrier->open[completion->channel] = barrier->last_copy = completion->time;
  *signalled = barrier;
  return State::kRunning;
}

// Copies one element: executes its load (kCopyLoad) or its store (kCopyStore).
Machine::State Machine::CopyEnd(Agent& agent, const Instr& instr) {
  Completion completion;
  BarrierState* barrier = nullptr;
  if (Signal(agent, program_.copies[instr.imm], &completion, &barrier) == State::kFailed)
    return State::kFailed;
  const bool load = instr.code == Code::kCopyLoad;
  const State state = Access(agent, instr.a, instr.b, /*combine=*/0, [&](Memory& memory, int64_t flat) {
    return load ? memory.AsyncRead(flat, agent, completion, &registers_[instr.dst])
                : memory.AsyncWrite(flat, agent, completion, registers_[instr.c]);
  });
  if (state == State::kFailed || load || barrier == nullptr) return state;
  barrier->bytes -= DTypeBytes(memories_[instr.a].buffer().dtype);
  EndPhaseIfComplete(barrier);
  return State::kRunning;
}

void Machine::WaitFor(Agent& agent, int channel, uint32_t committed, int64_t pending) {
  if (!program_.concurrent || pending >= committed) return;
  uint32_t& known = agent.clock[channel];
  known = std::max(known, committed - static_cast<uint32_t>(pending));
}

Machine::State Machine::CheckGroupsWaitedFor(const Agent& agent) {
  if (!program_.concurrent) return State::kRunning;
  if (agent.last_copy_group > agent.clock[GroupChannel(agent)])
    return Fail(agent, "ends before it has waited for the group of an asynchronous copy");
  if (agent.last_product > agent.clock[ProductChannel(agent)])
    return Fail(agent, "ends before it has waited for the group of an asynchronous product");
  return State::kRunning;
}

}  // namespace mycc::interpreter
