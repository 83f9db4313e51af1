// The statements of pipelines: asynchronous copies, roles that run side by side, and what orders them. Thread
// rule: immutable, so free to share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// An asynchronous copy is carried out by each thread, 4 to 16 bytes at a time (cp.async), or by the copy
// engine, a whole box that one thread issues (cp.async.bulk.tensor).
enum class CopyEngine : uint8_t { kThreads, kBulk };

// Carries out `body` asynchronously: a nest of loops around one store of a loaded element, or of
// select(condition, element, 0). It is complete only for those who waited for the phase of the barrier it
// signals (when `barrier` is given: the phase that is open when the copy is issued), or for a group it was
// committed with; for all others reading or writing what it writes, or writing what it reads, is a race.
//
// With `cluster` (the variable of a cluster loop of n blocks) it is a multicast: all blocks of the cluster
// carry it out, each copying the n-th part of the nest's outermost loop that is its own to the tiles of all
// of them, where it signals the barrier (see ir/cluster.h).
struct Copy : StmtNode {
  Copy(Stmt body, CopyEngine engine, Expr barrier = nullptr, Expr cluster = nullptr)
      : StmtNode(StmtKind::kCopy),
        body(std::move(body)),
        engine(engine),
        barrier(std::move(barrier)),
        cluster(std::move(cluster)) {}
  Stmt body;
  CopyEngine engine;
  Expr barrier;  // index into the enclosing Roles' barriers, over loop variables (a ring's slot); null for
                 // none
  Expr cluster;  // null for none
};

// Runs its roles concurrently (producer and consumers of a warp-specialized pipeline) and ends when all have
// ended. Barrier `b` completes a phase when `barrier_counts[b]` arrivals (and the asynchronous copies that
// signal it) have come; phases count up from 0.
struct Roles : StmtNode {
  struct Role {
    std::string name;
    Stmt body;
  };
  Roles(std::vector<Role> roles, std::vector<int> barrier_counts)
      : StmtNode(StmtKind::kRoles), roles(std::move(roles)), barrier_counts(std::move(barrier_counts)) {}
  std::vector<Role> roles;
  std::vector<int> barrier_counts;
};

// Arrives at barrier[index] (index over loop variables: a ring's slot); with `cluster` (the variable of a
// cluster loop), at that barrier of every block of the cluster.
struct Arrive : StmtNode {
  explicit Arrive(Expr barrier, Expr cluster = nullptr)
      : StmtNode(StmtKind::kArrive), barrier(std::move(barrier)), cluster(std::move(cluster)) {}
  Expr barrier, cluster;
};
// Waits until the barrier has completed phase number `phase`; -1 is complete from the start (the first turn
// of a ring). Hardware keeps one bit of the phase, so waiting for a phase when the barrier has already
// completed the one after it, or has not completed the one before it, is an error.
struct Wait : StmtNode {
  Wait(Expr barrier, Expr phase)
      : StmtNode(StmtKind::kWait), barrier(std::move(barrier)), phase(std::move(phase)) {}
  Expr barrier, phase;
};
// cp.async style groups: Commit closes the group of this role's asynchronous copies so far; WaitGroup waits
// until at most `pending` are open.
struct CommitGroup : StmtNode {
  CommitGroup() : StmtNode(StmtKind::kCommitGroup) {}
};
struct WaitGroup : StmtNode {
  explicit WaitGroup(int pending) : StmtNode(StmtKind::kWaitGroup), pending(pending) {}
  int pending;
};
// Makes this role's ordinary writes visible to asynchronous copies (fence.proxy.async): a copy from memory
// written without it is a race.
struct Fence : StmtNode {
  Fence() : StmtNode(StmtKind::kFence) {}
};
// The threads that carry out this code, a block's or a role's, wait for each other: what each has read and
// written before comes before what any of them does after. Thread loops meet at their ends by themselves;
// code in which they do not has these in their place (codegen/cuda/launch.h), and is checked as such
// (Barriers, interpreter.h).
struct Barrier : StmtNode {
  Barrier() : StmtNode(StmtKind::kBarrier) {}
};
// Flags between the roles of different thread blocks: elements of an i32 tensor in memory, which an earlier
// launch sets to 0. Signal raises flags[index], once; Await waits until it is raised, and then sees all that
// the signalling role did before. Blocks may run one after the other, in the order of their numbers: the
// awaiting block must have a higher number than the signalling one, or a GPU without room for both hangs.
struct Signal : StmtNode {
  Signal(Buffer flags, Expr index)
      : StmtNode(StmtKind::kSignal), flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};
struct Await : StmtNode {
  Await(Buffer flags, Expr index)
      : StmtNode(StmtKind::kAwait), flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};

}  // namespace mycc
