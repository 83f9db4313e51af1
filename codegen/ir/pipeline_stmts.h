// The statements of pipelines: asynchronous copies, concurrent roles, and their synchronization. Thread rule:
// immutable, so free to share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// kThreads: each thread copies 4 to 16 bytes at a time (cp.async). kRegisters: each thread loads and stores
// its elements itself. kBulk: one thread issues the copy of a whole box to the copy engine
// (cp.async.bulk.tensor).
enum class CopyEngine : uint8_t { kThreads, kRegisters, kBulk };

// Executes `body` asynchronously, except by kRegisters: a nest of loops around one store of a loaded element,
// or of select(condition, element, 0). With `barrier`, the copy signals the phase of that barrier that is
// open when it is issued; without, it belongs to the group that is committed next. A role that has not waited
// for that phase or group must not access the elements that the copy writes, nor write those that it reads:
// that is a race.
//
// With `cluster` (the variable of a cluster loop of n blocks) it is a multicast. Each block copies its n-th
// part of the nest's outermost loop to the tiles of all blocks, and signals the barrier in each (see
// ir/cluster.h).
//
// The elements of a copy by threads, flattened in the order of the loops, are dealt to the threads in chunks
// of `chunk` elements. A chunk is one access, at the source and (by kThreads) at the destination. A copy by
// kRegisters may begin and end apart: one statement loads into the registers that the other one stores, a
// tensor of scope fragment with a row for each chunk.
struct Copy : StmtOf<Copy, StmtKind::kCopy> {
  Copy(Stmt body, CopyEngine engine, Expr barrier = nullptr, Expr cluster = nullptr)
      : body(std::move(body)), engine(engine), barrier(std::move(barrier)), cluster(std::move(cluster)) {}
  Stmt body;
  CopyEngine engine;
  Expr barrier;  // index into the enclosing Roles' barriers, over loop variables (a ring's slot); null for
                 // none
  Expr cluster;  // null for none
  int64_t chunk = 0;  // of a copy by threads; 0 before the pass divide_copies
};

// Runs its roles concurrently (producer and consumers of a warp-specialized pipeline) and ends when all have
// ended. Barrier `b` completes a phase after `barrier_counts[b]` arrivals, and after asynchronous copies have
// signalled all bytes that these arrivals expect; phases count up from 0. The counts are the hardware's: back
// ends initialize their barriers with them.
struct Roles : StmtOf<Roles, StmtKind::kRoles> {
  struct Role {
    std::string name;
    Stmt body;
    // Set by the pass place_roles.
    int64_t threads = 0;    // of the block, in the order of the roles
    bool by_one = false;    // the first of them alone executes the body
    int64_t registers = 0;  // that each thread asks for; 0: its share of the launch's
  };
  Roles(std::vector<Role> roles, std::vector<int> barrier_counts)
      : roles(std::move(roles)), barrier_counts(std::move(barrier_counts)) {}
  std::vector<Role> roles;
  std::vector<int> barrier_counts;
};

// Arrives at barrier[index] (index over loop variables: a ring's slot); with `cluster` (the variable of a
// cluster loop), at that barrier of every block of the cluster.
//
// One thread arrives for each of `arrivals` equal parts of the role's threads. In a role that multiplies by
// warpgroups these are the warpgroups, because each has waited for its own products. In another role there is
// one arrival for all threads. An arrival says nothing of what other threads have read or written themselves:
// where they have, a Barrier comes before it, or it gathers.
//
// `expected_bytes`: the bytes of the asynchronous copies that signal the barrier in this phase, copies of
// other blocks of the cluster included (arrive.expect_tx). A copy signals the bytes that it writes.
//
// `released`: the tiles that the arrival gives back; empty for all that the role has accessed. Asynchronous
// products of other tiles may still run (passes/overlap_products.cc).
//
// `gathers`: the threads of each part wait for each other before the part arrives, because they have read the
// released tiles themselves. Warpgroups do not wait for each other.
struct Arrive : StmtOf<Arrive, StmtKind::kArrive> {
  explicit Arrive(Expr barrier, Expr cluster = nullptr, int arrivals = 1, int64_t expected_bytes = 0,
                  std::vector<Buffer> released = {}, bool gathers = false)
      : barrier(std::move(barrier)),
        cluster(std::move(cluster)),
        arrivals(arrivals),
        expected_bytes(expected_bytes),
        released(std::move(released)),
        gathers(gathers) {}
  Expr barrier, cluster;
  int arrivals;
  int64_t expected_bytes;
  std::vector<Buffer> released;
  bool gathers;
};
// Waits until the barrier has completed phase number `phase`; phase -1 is complete from the start (the first
// pass through a ring). Hardware keeps one bit of the phase, so waiting for a phase when the barrier has
// already completed the one after it, or has not completed the one before it, is an error.
struct Wait : StmtOf<Wait, StmtKind::kWait> {
  Wait(Expr barrier, Expr phase) : barrier(std::move(barrier)), phase(std::move(phase)) {}
  Expr barrier, phase;
};
// Groups of asynchronous products, as in wgmma: CommitProducts closes the group of this role's products so
// far; WaitProducts waits until at most the `pending` newest groups are incomplete. Then all products of
// `sums` are complete. A compiler that knows nothing of products may read these registers before the wait:
// back ends prevent it.
struct CommitProducts : StmtOf<CommitProducts, StmtKind::kCommitProducts> {};
struct WaitProducts : StmtOf<WaitProducts, StmtKind::kWaitProducts> {
  explicit WaitProducts(int pending, std::vector<Buffer> sums = {})
      : pending(pending), sums(std::move(sums)) {}
  int pending;
  std::vector<Buffer> sums;
  bool after_loop = false;  // stands behind a loop of products
};
// Groups as in cp.async: CommitGroup closes the group of this role's asynchronous copies so far; WaitGroup
// waits until at most `pending` groups are incomplete.
struct CommitGroup : StmtOf<CommitGroup, StmtKind::kCommitGroup> {};
struct WaitGroup : StmtOf<WaitGroup, StmtKind::kWaitGroup> {
  explicit WaitGroup(int pending) : pending(pending) {}
  int pending;
};
// Makes this role's ordinary writes visible to asynchronous copies and products (fence.proxy.async). A copy,
// or a product of tiles in shared memory, that reads such a write without a fence is a race.
struct Fence : StmtOf<Fence, StmtKind::kFence> {};
// The warpgroups of a role take turns in executing what stands between kTake and kPass. A warpgroup waits at
// kTake until the one before it has passed; the first one follows the last one, and does not wait in its
// first turn. Outside of turns the warpgroups run beside each other: one computes a softmax while another
// multiplies (FlashAttention-3). Turns change no result. All warpgroups must have the same number of turns.
enum class TurnStep : uint8_t { kTake, kPass };
struct Turn : StmtOf<Turn, StmtKind::kTurn> {
  explicit Turn(TurnStep step) : step(step) {}
  TurnStep step;
};
// A barrier of the threads that execute this code (a block's or a role's): all their accesses before it come
// before all those after it. Before code is in a Launch, the end of a nest of thread loops is
// an implicit barrier; the pass place_barriers puts these statements in its place.
struct Barrier : StmtOf<Barrier, StmtKind::kBarrier> {};
// Flags between roles of different thread blocks: elements of an i32 tensor in memory, which an earlier
// launch sets to 0. Signal sets flags[index], once. Await waits until it is set, and then sees all earlier
// writes of the signalling role. A GPU without room for both blocks runs them in the order of their numbers,
// so the awaiting block must have the higher number; otherwise the GPU hangs.
struct Signal : StmtOf<Signal, StmtKind::kSignal> {
  Signal(Buffer flags, Expr index) : flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};
struct Await : StmtOf<Await, StmtKind::kAwait> {
  Await(Buffer flags, Expr index) : flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};

}  // namespace mycc
