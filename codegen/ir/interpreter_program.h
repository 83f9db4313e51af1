// The interpreter's bytecode: a function flattened to register instructions. Execution walks no trees and
// looks nothing up. Every variable and intermediate value has a register; roles are entry points into the
// same code. Thread rule: immutable once compiled. A Program points into the Function it was compiled from,
// which must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"

namespace mycc::interpreter {

// Names of fields: dst, a, b, c, imm of Instr. "list" is a run of registers in Program::operands.
enum class Code : uint8_t {
  // dst = a (op) b: kEvaluate for any operation of the language, the others for the common ones.
  kEvaluate,
  kAddIndex,
  kSubIndex,
  kMulIndex,
  kLessIndex,
  kLessEqualIndex,
  kAddF32,
  kMulF32,
  kMove,           // dst = a
  kLoad,           // dst = memory a [list b], by Threads c of several equal threads, of combine imm - 1
  kJump,           // to imm
  kJumpIfZero,     // to imm when a == 0
  kJumpIfNonZero,  // to imm when a != 0
  kJumpIfOutside,  // to imm unless 0 <= a < b
  kCheckRange,     // fails unless 0 <= a < imm
  kLoopEnter,      // starts loop a; to imm when it has no iteration
  kLoopNext,       // to imm for the next iteration of loop a; falls through after the last
  kAlloc,          // begins a lifetime of memory a
  kStore,          // memory a [list b] = c, by Threads imm, of combine dst - 1
  kVectorLoad,     // memory dst = the elements of memory a from [list b] on, c at a time, by Threads imm
  kVectorStore,    // the reverse
  kReduce,         // memory a [list b] (op imm)= c, by the threads of combine dst - 1; 0: not known
  kMma,            // tile statement a
  kCopyLoad,       // dst = memory a [list b], by copy imm
  kCopyStore,      // memory a [list b] = c, by copy imm
  kRoles,          // runs group a of roles to their ends
  kArrive,         // b times at barrier a of group imm, expecting c bytes
  kWait,           // for phase b of barrier a of group imm
  kCommitProducts,
  kWaitProducts,  // until at most imm groups are open
  kCommitGroup,
  kWaitGroup,  // until at most imm are open
  kFence,
  kBarrier,  // the agent's threads
  kLaunch,   // a launch of imm threads begins
  kEnd,      // of the function, or of a role
};

struct Instr {
  Code code;
  Op op = Op::kConst;
  DType dtype = DType::kI64;
  DType operand = DType::kI64;
  int32_t dst = 0, a = 0, b = 0, c = 0;
  int64_t imm = 0;
};

struct Loop {
  std::string name;
  int variable;  // registers
  int extent;
  int64_t max_extent;
  bool parallel;   // iterations are distinguished
  bool any_order;  // they run in a random order
  bool is_launch;  // no other loop is around these thread blocks or threads
  bool is_grid;    // its iterations are thread blocks
  // The number of threads that execute each iteration of a thread loop; 0: not a thread loop.
  int64_t threads = 0;
  bool is_nest = false;  // no other thread loop is around
  // A parallel loop directly inside another one: iterations of both are distinguished.
  bool is_direct = false;
};

struct View {
  int memory;
  int indices;    // list: the indices of element (0, 0)
  TileView tile;  // the statement's view, for its strides
};

struct Tile {
  View views[3];  // acc, a, b
  int64_t m, n, k;
  int64_t group = 1;  // elements of the depth that lie together in a and b: see Mma
  bool tf32 = false;  // a and b are rounded
  bool first = false;
  bool is_async = false;
};

// The target of an asynchronous copy's signal: a barrier, or (without one) the agent's open group.
struct CopySignal {
  int barrier = -1;         // register
  int group = -1;           // the role group that the barrier belongs to
  bool by_threads = false;  // each thread copies a part; otherwise one thread issues the copy
};

struct RoleGroup {
  struct Role {
    std::string name;
    int64_t entry;
    int64_t threads;
  };
  std::vector<Role> roles;
  std::vector<int> barrier_counts;
  int first_barrier;  // in the function's numbering over all groups
};

struct MemorySlot {
  Buffer buffer;
  bool read_only;  // an input
  bool is_shared;  // in memory that the threads of a block share, not in registers
  bool is_spread;  // distributed over the registers of the block's threads, or replicated in them
  // The bytes of shared memory that it takes in which launch; none before places are known.
  int64_t begin = 0, end = 0;
  int launch = 0;

  bool Overlaps(const MemorySlot& other) const {
    return launch == other.launch && begin < other.end && other.begin < end;
  }
};

// An instruction's origin, for error messages.
struct Site {
  Stmt stmt;
  std::vector<std::pair<std::string, int>> variables;  // name and register, outermost first
};

struct Program {
  std::vector<Instr> code;
  std::vector<int> site_of;  // for each instruction
  std::vector<Site> sites;
  std::vector<int> operands;
  std::vector<Scalar> registers;  // initial values, constants among them
  std::vector<Loop> loops;
  std::vector<Tile> tiles;
  std::vector<CopySignal> copies;
  std::vector<std::vector<CombineGroup>> combines;
  std::vector<RoleGroup> groups;
  std::vector<MemorySlot> memories;  // parameters first, in order
  int num_barriers = 0;
  int num_agents = 1;        // the function itself, and the largest number of roles of any group
  bool concurrent = false;   // has roles or asynchronous copies
  bool has_threads = false;  // lowered code with thread loops
};

// FailedPrecondition when a variable or buffer is used outside its scope, an input is written, or roles are
// nested.
absl::StatusOr<Program> Compile(const Function& function);

// "block t2 at t2.a0=3, t2.r0=7"
std::string DescribeSite(const Program& program, int64_t pc, const std::vector<Scalar>& registers);

}  // namespace mycc::interpreter
