#include "tests/cuda/host_threads.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace mycc {
namespace {

constexpr int kMaxThreads = 1024 * kHostClusterBlocks, kStackBytes = 64 * 1024, kWarp = 32, kBarriers = 16;

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};

struct State {
  ucontext_t scheduler, threads[kMaxThreads];
  bool running[kMaxThreads];
  int size = 0, current = 0;                  // threads of the cluster
  int threads_of_block = 0, first_block = 0;  // of the cluster
  bool progress = false;
  Barrier barriers[kHostClusterBlocks][kBarriers];
  Barrier of_cluster;
  unsigned awaited[kMaxThreads];                      // generations of that
  std::map<std::pair<int, unsigned>, Barrier> warps;  // by warp and mask: parts of a warp have their own
  uint64_t exchanged[kMaxThreads];
  char* stacks = nullptr;
  const std::function<void()>* kernel = nullptr;
};
State state;

int RankOfBlock() { return state.current / state.threads_of_block; }

void Pause() { swapcontext(&state.threads[state.current], &state.scheduler); }

// The last of `count` arrivals completes the generation that is returned.
unsigned ArriveAt(Barrier* barrier, int count) {
  state.progress = true;
  const unsigned generation = barrier->generation;
  if (++barrier->arrived == count) {
    barrier->arrived = 0;
    ++barrier->generation;
  }
  return generation;
}

// Waits for the others of the `count` that arrive.
void WaitAt(Barrier* barrier, int count) {
  const unsigned generation = ArriveAt(barrier, count);
  while (barrier->generation == generation) Pause();
}

void WarpBarrier(unsigned mask) { WaitAt(&state.warps[{state.current / kWarp, mask}], std::popcount(mask)); }

void RunThread() {
  const int self = state.current;
  (*state.kernel)();
  state.running[self] = false;
  state.progress = true;
  swapcontext(&state.threads[self], &state.scheduler);
}

void ForgetBarriers() {
  for (auto& of_block : state.barriers) {
    for (Barrier& barrier : of_block) barrier = Barrier();
  }
  state.of_cluster = Barrier();
  state.warps.clear();
}

// Turns that each block of a cluster begins after: one may be far ahead of the others.
std::vector<int> Beginnings(std::mt19937_64* random) {
  constexpr uint64_t kMost = 64;
  std::vector<int> begins(state.size / state.threads_of_block, 0);
  for (size_t block = 0; begins.size() > 1 && block < begins.size(); ++block)
    begins[block] = static_cast<int>((*random)() % kMost);
  return begins;
}

// A function of its own: GCC takes getcontext for a call that returns twice, and then distrusts its caller's
// variables.
[[gnu::noinline]] void MakeThread(int t) {
  state.running[t] = true;
  getcontext(&state.threads[t]);
  state.threads[t].uc_stack.ss_sp = state.stacks + static_cast<ptrdiff_t>(t) * kStackBytes;
  state.threads[t].uc_stack.ss_size = kStackBytes;
  makecontext(&state.threads[t], RunThread, 0);
}

bool RunCluster(std::mt19937_64* random) {
  std::vector<int> order(state.size);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, *random);
  for (const int t : order) MakeThread(t);
  const std::vector<int> begins = Beginnings(random);
  const int all = *std::ranges::max_element(begins);
  state.progress = true;
  for (int turn = 0; state.progress || turn <= all; ++turn) {
    state.progress = false;
    for (const int t : order) {
      if (!state.running[t] || turn < begins[t / state.threads_of_block]) continue;
      state.current = t;
      swapcontext(&state.scheduler, &state.threads[t]);
    }
  }
  return std::ranges::none_of(order, [](int t) { return state.running[t]; });
}

}  // namespace

HostThreads TheHostThreads() {
  HostThreads host;
  host.thread = [] { return state.current % state.threads_of_block; };
  host.block = [] { return state.first_block + RankOfBlock(); };
  host.rank = RankOfBlock;
  host.barrier = [](int number, int threads) {
    WaitAt(&state.barriers[RankOfBlock()][number], threads == 0 ? state.threads_of_block : threads);
  };
  host.exchange = [](unsigned mask, uint64_t value, int from) {
    const int warp = state.current / kWarp * kWarp;
    state.exchanged[state.current] = value;
    WarpBarrier(mask);
    const uint64_t result = state.exchanged[warp + from];
    WarpBarrier(mask);
    return result;
  };
  host.ballot = [](unsigned mask, bool condition) {
    const int warp = state.current / kWarp * kWarp;
    state.exchanged[state.current] = condition ? 1 : 0;
    WarpBarrier(mask);
    unsigned ballot = 0;
    for (int lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1u) != 0 && state.exchanged[warp + lane] != 0) ballot |= 1u << lane;
    }
    WarpBarrier(mask);
    return ballot;
  };
  host.arrive_in_cluster = [] { state.awaited[state.current] = ArriveAt(&state.of_cluster, state.size); };
  host.wait_for_cluster = [] {
    while (state.of_cluster.generation == state.awaited[state.current]) Pause();
  };
  host.wait = Pause;
  host.done = [] { state.progress = true; };
  return host;
}

bool RunOnHostThreads(int blocks, int cluster, int threads, uint64_t seed,
                      const std::function<void()>& poison, const std::function<void()>& kernel) {
  if (state.stacks == nullptr) {
    state.stacks = static_cast<char*>(mmap(nullptr, size_t{kMaxThreads} * kStackBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  std::mt19937_64 random(seed);
  std::vector<int> order(blocks / cluster);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  state.size = threads * cluster;
  state.threads_of_block = threads;
  state.kernel = &kernel;
  for (const int first : order) {
    state.first_block = first * cluster;
    poison();
    ForgetBarriers();
    if (!RunCluster(&random)) return false;
  }
  return true;
}

}  // namespace mycc
