// The execution loop of the interpreter, one function for each kind of instruction.
#include "codegen/ir/interpreter_machine.h"

#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/expr/eval.h"
#include "codegen/expr/integers.h"

namespace mycc::interpreter {

uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Machine::Machine(const Program& program, uint64_t seed)
    : program_(program), random_(seed), registers_(program.registers), loops_(program.loops.size()) {
  const int components = program.concurrent ? 3 * program.num_agents + program.num_barriers : 0;
  memories_.reserve(program.memories.size());
  for (const MemorySlot& slot : program.memories)
    memories_.emplace_back(slot.buffer, components, program.has_threads && slot.is_shared);
  for (size_t i = 0; i < memories_.size(); ++i) {
    for (size_t j = 0; j < memories_.size(); ++j) {
      if (i != j && program.memories[i].Overlaps(program.memories[j])) memories_[i].LieOver(&memories_[j]);
    }
  }
  spread_.resize(memories_.size());
  for (size_t i = 0; program.has_threads && i < memories_.size(); ++i) {
    if (program.memories[i].is_spread) spread_[i].resize(memories_[i].size());
  }
  agents_.resize(program.num_agents);
  for (int i = 0; i < program.num_agents; ++i) {
    agents_[i].agent = i;
    agents_[i].clock.resize(components);
    if (components != 0) agents_[i].clock[i] = 1;
    accessors_.push_back(&agents_[i]);
  }
  barriers_.resize(program.num_barriers);
}

absl::Status Machine::Run() {
  Execute(agents_[0]);
  return status_;
}

Machine::State Machine::Fail(const Agent& agent, const std::string& what) {
  const std::string role = agent.name.empty() ? "" : absl::StrCat(" of role ", agent.name);
  status_ = Refusal("interpreter: ", what, "; in ", DescribeSite(program_, agent.pc, registers_), role);
  return State::kFailed;
}

Machine::State Machine::FailAccess(const Agent& agent, const Memory& memory, int64_t flat,
                                   const char* fault) {
  const std::vector<int64_t> indices = Layout::RowMajor(memory.buffer().shape).Coordinate(flat);
  return Fail(agent, absl::StrCat(memory.buffer().name, "[", absl::StrJoin(indices, ","), "] ", fault));
}

Machine::State Machine::FailRange(const Agent& agent, const Memory& memory, int list) {
  std::vector<int64_t> indices(memory.rank());
  for (int d = 0; d < memory.rank(); ++d) indices[d] = registers_[program_.operands[list + d]].i;
  return Fail(agent, absl::StrCat(memory.buffer().name, "[", absl::StrJoin(indices, ","),
                                  "] is out of range: the shape is [",
                                  absl::StrJoin(memory.buffer().shape, ","), "]"));
}

int64_t Machine::Flat(const Memory& memory, int list) const {
  int64_t flat = 0;
  const int rank = memory.rank();
  const int* operands = program_.operands.data() + list;
  for (int d = 0; d < rank; ++d) {
    const int64_t index = registers_[operands[d]].i, extent = memory.dim(d);
    if (index < 0 || index >= extent) return -1;
    flat = flat * extent + index;
  }
  return flat;
}

int64_t Machine::InView(const Memory& memory, const View& view, int64_t base, int64_t p, int64_t q) {
  const int64_t flat = base + view.tile.Row(p) + q * view.tile.col_stride;
  return flat >= 0 && flat < memory.size() ? flat : -1;
}

int64_t Machine::AccessingThread(const Agent& agent, int64_t combine) const {
  int64_t first = agent.thread;
  if (combine == 0) return first;
  for (const CombineGroup& group : program_.combines[combine - 1])
    first -= agent.thread / group.stride % group.extent * group.stride;
  return first;
}

Machine::State Machine::Load(Agent& agent, const Instr& instr) {
  return Access(agent, instr.a, instr.b, instr.imm, [&](Memory& memory, int64_t flat) {
    return memory.Read(flat, agent, static_cast<Threads>(instr.c), &registers_[instr.dst]);
  });
}

Machine::State Machine::Store(Agent& agent, const Instr& instr) {
  const Threads threads = static_cast<Threads>(instr.imm);
  const bool is_combined = threads == Threads::kTogether || instr.dst != 0;
  const bool is_spread = agent.nest != 0 && !spread_[instr.a].empty() && !is_combined;
  return Access(agent, instr.a, instr.b, instr.dst, [&](Memory& memory, int64_t flat) {
    const char* fault = is_spread ? NoteSpread(agent, instr.a, flat) : nullptr;
    return fault ? fault : memory.Write(flat, agent, threads, registers_[instr.c]);
  });
}

Machine::State Machine::MoveVector(Agent& agent, const Instr& instr) {
  Memory &tensor = memories_[instr.a], &lanes = memories_[instr.dst];
  const int64_t first = Flat(tensor, instr.b);
  if (first < 0) return FailRange(agent, tensor, instr.b);
  if (tensor.buffer().layout.Flat(first) % instr.c != 0 || first + lanes.size() > tensor.size()) {
    return Fail(agent, absl::StrCat("a vector of ", lanes.size(), " elements, ", instr.c,
                                    " at a time, begins at element ", first, " of the ", tensor.size(),
                                    " of ", tensor.buffer().name));
  }
  const bool is_load = instr.code == Code::kVectorLoad;
  Memory &from = is_load ? tensor : lanes, &to = is_load ? lanes : tensor;
  for (int64_t lane = 0; lane < lanes.size(); ++lane) {
    Scalar value = {};
    const int64_t read = is_load ? first + lane : lane, written = is_load ? lane : first + lane;
    if (const char* fault = from.Read(read, agent, static_cast<Threads>(instr.imm), &value))
      return FailAccess(agent, from, read, fault);
    if (const char* fault = to.Write(written, agent, Threads::kFirst, value))
      return FailAccess(agent, to, written, fault);
  }
  return State::kRunning;
}

Machine::State Machine::Reduce(Agent& agent, const Instr& instr) {
  const Threads threads = instr.dst != 0 ? Threads::kFirst : Threads::kTogether;
  return Access(agent, instr.a, instr.b, instr.dst, [&](Memory& memory, int64_t flat) {
    Scalar accumulator;
    if (const char* fault = memory.Read(flat, agent, threads, &accumulator)) return fault;
    const ReduceOp op = static_cast<ReduceOp>(instr.imm);
    if (op == ReduceOp::kSum && instr.dtype == DType::kF32) {
      accumulator.f = static_cast<float>(accumulator.f + registers_[instr.c].f);
    } else {
      accumulator = EvaluateReduce(op, instr.dtype, accumulator, registers_[instr.c]);
    }
    return memory.Write(flat, agent, threads, accumulator);
  });
}

Machine::State Machine::FailView(const Agent& agent, const Memory& memory, int64_t p, int64_t q) {
  return Fail(agent, absl::StrCat("element ", p, ",", q, " of the view of ", memory.buffer().name,
                                  " is out of range"));
}

// Reads an operand's elements, converted to the type of the sums: for each row of a or column of b, its
// elements along the depth.
Machine::State Machine::ReadFactors(Agent& agent, const Tile& tile, int operand, int64_t base, DType dtype,
                                    const Completion* completion, std::vector<Scalar>* factors) {
  const View& view = tile.views[operand];
  Memory& memory = memories_[view.memory];
  const bool by_rows = operand == 1;
  const int64_t lines = by_rows ? tile.m : tile.n;
  factors->clear();
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t k = 0; k < tile.k; ++k) {
      const int64_t group = k / tile.group, place = k % tile.group;
      const int64_t p = by_rows ? line : group, q = by_rows ? group : line;
      const int64_t flat = InView(memory, view, base + place, p, q);
      if (flat < 0) return FailView(agent, memory, p, q);
      Scalar value;
      const char* fault = completion != nullptr ? memory.AsyncRead(flat, agent, *completion, &value)
                                                : memory.Read(flat, agent, Threads::kAll, &value);
      if (fault != nullptr) return FailAccess(agent, memory, flat, fault);
      value = ConvertScalar(dtype, memory.buffer().dtype, value);
      if (tile.tf32) value = EvaluateOp(Op::kTF32, dtype, dtype, &value);
      factors->push_back(value);
    }
  }
  return State::kRunning;
}

namespace {

// sum += a * b, each operation rounded to the type.
void AddProduct(DType dtype, const Scalar& a, const Scalar& b, Scalar* sum) {
  if (dtype == DType::kF32) {
    sum->f = static_cast<float>(sum->f + static_cast<float>(a.f * b.f));
    return;
  }
  const Scalar factors[] = {a, b};
  const Scalar terms[] = {*sum, EvaluateOp(Op::kMul, dtype, dtype, factors)};
  *sum = EvaluateOp(Op::kAdd, dtype, dtype, terms);
}

}  // namespace

Machine::State Machine::Mma(Agent& agent, const Tile& tile) {
  int64_t bases[3] = {};  // the positions of the views' first elements
  for (const int v : {0, 1, 2}) {
    const Memory& memory = memories_[tile.views[v].memory];
    bases[v] = Flat(memory, tile.views[v].indices);
    if (bases[v] < 0) return FailRange(agent, memory, tile.views[v].indices);
  }
  const DType dtype = memories_[tile.views[0].memory].buffer().dtype;
  std::optional<Completion> later;
  if (tile.is_async) {
    later = Completion{ProductChannel(agent), agent.committed_products + 1, Threads::kAll, &accessors_};
    agent.last_product = later->time;
  }
  const Completion* const completion = later ? &*later : nullptr;
  for (const int operand : {1, 2}) {
    if (ReadFactors(agent, tile, operand, bases[operand], dtype, completion, &factors_[operand - 1]) ==
        State::kFailed)
      return State::kFailed;
  }
  for (int64_t i = 0; i < tile.m; ++i) {
    for (int64_t j = 0; j < tile.n; ++j) {
      if (AddProducts(agent, tile, bases[0], i, j, completion) == State::kFailed) return State::kFailed;
    }
  }
  return State::kRunning;
}

// Adds row i of a times column j of b to the accumulator.
Machine::State Machine::AddProducts(Agent& agent, const Tile& tile, int64_t base, int64_t i, int64_t j,
                                    const Completion* completion) {
  Memory& memory = memories_[tile.views[0].memory];
  const int64_t flat = InView(memory, tile.views[0], base, i, j);
  if (flat < 0) return FailView(agent, memory, i, j);
  Scalar sum = {};
  const char* fault = tile.first              ? nullptr
                      : completion != nullptr ? memory.AsyncReadSum(flat, agent, *completion, &sum)
                                              : memory.Read(flat, agent, Threads::kAll, &sum);
  if (fault != nullptr) return FailAccess(agent, memory, flat, fault);
  const DType dtype = memory.buffer().dtype;
  for (int64_t k = 0; k < tile.k; ++k)
    AddProduct(dtype, factors_[0][i * tile.k + k], factors_[1][j * tile.k + k], &sum);
  fault = completion != nullptr ? memory.AsyncWriteSum(flat, agent, *completion, sum)
                                : memory.Write(flat, agent, Threads::kTogether, sum);
  return fault != nullptr ? FailAccess(agent, memory, flat, fault) : State::kRunning;
}

void Machine::BeginIteration(Agent& agent, const Loop& loop, LoopState& state) {
  registers_[loop.variable].i = loop.any_order ? state.order[state.position] : state.position;
  // Iterations are distinguished in the outermost of nested parallel loops, and in those directly inside it.
  if (loop.parallel && (state.outermost || loop.is_direct)) agent.iteration = ++last_iteration_;
  if (loop.is_grid && agent.interval != 0) EndInterval(agent);
  if (loop.threads == 0) return;
  agent.thread = state.thread + registers_[loop.variable].i * loop.threads;
  agent.replication = loop.threads;
}

void Machine::EndInterval(Agent& agent) {
  if (program_.has_threads) agent.interval = ++last_interval_;
}

Machine::State Machine::EnterLoop(Agent& agent, const Instr& instr) {
  const Loop& loop = program_.loops[instr.a];
  LoopState& state = loops_[instr.a];
  state.position = 0;
  state.extent = registers_[loop.extent].i;
  if (state.extent > loop.max_extent) {
    return Fail(agent, absl::StrCat("loop ", loop.name, " of ", state.extent,
                                    " iterations: its variable's range is ", loop.max_extent));
  }
  if (state.extent <= 0) {
    agent.pc = instr.imm;
    return State::kRunning;
  }
  if (loop.any_order) {
    state.order.resize(state.extent);
    std::iota(state.order.begin(), state.order.end(), 0);
    for (int64_t i = state.extent - 1; i > 0; --i)
      std::swap(state.order[i], state.order[random_.Below(i + 1)]);
    state.outermost = loop.parallel && agent.iteration == 0;
    if (state.outermost) agent.first_iteration = last_iteration_ + 1;
  }
  state.thread = agent.thread;
  state.replication = agent.replication;
  state.interval = agent.interval;
  if (loop.is_nest && agent.interval == 0) EndInterval(agent);
  if (loop.is_nest && program_.has_threads) agent.nest = ++last_nest_;
  BeginIteration(agent, loop, state);
  ++agent.pc;
  return State::kRunning;
}

Machine::State Machine::NextIteration(Agent& agent, const Instr& instr) {
  const Loop& loop = program_.loops[instr.a];
  LoopState& state = loops_[instr.a];
  if (++state.position < state.extent) {
    BeginIteration(agent, loop, state);
    agent.pc = instr.imm;
    return State::kRunning;
  }
  if (loop.is_nest && agent.nest != 0 && EndNest(agent) == State::kFailed) return State::kFailed;
  if (loop.parallel && state.outermost) {
    agent.iteration = 0;
    agent.first_iteration = std::numeric_limits<uint32_t>::max();
  }
  if (loop.threads != 0) {
    agent.thread = state.thread;
    agent.replication = state.replication;
    if (state.interval == 0) agent.interval = 0;
  }
  // A launch's writes, those of its roles too, come before all later accesses.
  if (loop.is_launch && program_.concurrent)
    for (Agent& writer : agents_) writer.fences.push_back(writer.clock[writer.agent]);
  ++agent.pc;
  return State::kRunning;
}

Machine::State Machine::Execute(Agent& agent) {
  Scalar* const r = registers_.data();
  State state = State::kRunning;
  while (state == State::kRunning) {
    const Instr& instr = program_.code[agent.pc];
    switch (instr.code) {
      case Code::kEvaluate: {
        const Scalar args[] = {r[instr.a], r[instr.b]};
        r[instr.dst] = EvaluateOp(instr.op, instr.dtype, instr.operand, args);
        break;
      }
      // Index arithmetic wraps, as all integer arithmetic of the language.
      case Code::kAddIndex: r[instr.dst].i = WrapAdd(r[instr.a].i, r[instr.b].i); break;
      case Code::kSubIndex: r[instr.dst].i = WrapSub(r[instr.a].i, r[instr.b].i); break;
      case Code::kMulIndex: r[instr.dst].i = WrapMul(r[instr.a].i, r[instr.b].i); break;
      case Code::kLessIndex: r[instr.dst].i = r[instr.a].i < r[instr.b].i; break;
      case Code::kLessEqualIndex: r[instr.dst].i = r[instr.a].i <= r[instr.b].i; break;
      // Both operands are floats: rounding their sum or product from double gives the result of the float
      // operation.
      case Code::kAddF32: r[instr.dst].f = static_cast<float>(r[instr.a].f + r[instr.b].f); break;
      case Code::kMulF32: r[instr.dst].f = static_cast<float>(r[instr.a].f * r[instr.b].f); break;
      case Code::kMove: r[instr.dst] = r[instr.a]; break;
      case Code::kCheckRange:
        if (r[instr.a].i >= 0 && r[instr.a].i < instr.imm) break;
        return Fail(agent,
                    absl::StrCat("a value of ", r[instr.a].i, " for a variable in a range of ", instr.imm));
      case Code::kLoad: state = Load(agent, instr); break;
      case Code::kJump: agent.pc = instr.imm; continue;
      case Code::kJumpIfZero:
        if (r[instr.a].i != 0) break;
        agent.pc = instr.imm;
        continue;
      case Code::kJumpIfNonZero:
        if (r[instr.a].i == 0) break;
        agent.pc = instr.imm;
        continue;
      case Code::kJumpIfOutside:
        if (r[instr.a].i >= 0 && r[instr.a].i < r[instr.b].i) break;
        agent.pc = instr.imm;
        continue;
      case Code::kLoopEnter: state = EnterLoop(agent, instr); continue;
      case Code::kLoopNext: state = NextIteration(agent, instr); continue;
      case Code::kAlloc: memories_[instr.a].Begin(agent); break;
      case Code::kStore: state = Store(agent, instr); break;
      case Code::kVectorLoad:
      case Code::kVectorStore: state = MoveVector(agent, instr); break;
      case Code::kReduce: state = Reduce(agent, instr); break;
      case Code::kMma: state = Mma(agent, program_.tiles[instr.a]); break;
      case Code::kCopyLoad:
      case Code::kCopyStore: state = CopyEnd(agent, instr); break;
      default: state = Synchronise(agent, instr); break;
    }
    if (state != State::kFailed && state != State::kBlocked) ++agent.pc;
  }
  return state;
}

}  // namespace mycc::interpreter
