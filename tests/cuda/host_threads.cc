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

constexpr int kMaxThreads = 1024, kStackBytes = 64 * 1024, kWarp = 32, kBarriers = 16;

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};

struct State {
  ucontext_t scheduler, threads[kMaxThreads];
  bool running[kMaxThreads];
  int size = 0, current = 0, block = 0;
  bool progress = false;
  Barrier barriers[kBarriers];
  std::map<std::pair<int, unsigned>, Barrier> warps;  // by warp and mask: parts of a warp meet by themselves
  uint64_t exchanged[kMaxThreads];
  char* stacks = nullptr;
  const std::function<void()>* kernel = nullptr;
};
State state;

// The last of `count` arrivals lets the others go on.
void Arrive(Barrier* barrier, int count) {
  state.progress = true;
  if (++barrier->arrived == count) {
    barrier->arrived = 0;
    ++barrier->generation;
    return;
  }
  const int self = state.current;
  const unsigned generation = barrier->generation;
  while (barrier->generation == generation) swapcontext(&state.threads[self], &state.scheduler);
}

void MeetWarp(unsigned mask) { Arrive(&state.warps[{state.current / kWarp, mask}], std::popcount(mask)); }

void RunThread() {
  const int self = state.current;
  (*state.kernel)();
  state.running[self] = false;
  state.progress = true;
  swapcontext(&state.threads[self], &state.scheduler);
}

bool RunBlock(std::mt19937_64* random) {
  std::vector<int> order(state.size);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), *random);
  for (const int t : order) {
    state.running[t] = true;
    getcontext(&state.threads[t]);
    state.threads[t].uc_stack.ss_sp = state.stacks + static_cast<ptrdiff_t>(t) * kStackBytes;
    state.threads[t].uc_stack.ss_size = kStackBytes;
    makecontext(&state.threads[t], RunThread, 0);
  }
  for (Barrier& barrier : state.barriers) barrier = Barrier();
  state.warps.clear();
  for (state.progress = true; state.progress;) {
    state.progress = false;
    for (const int t : order) {
      if (!state.running[t]) continue;
      state.current = t;
      swapcontext(&state.scheduler, &state.threads[t]);
    }
  }
  return std::none_of(order.begin(), order.end(), [](int t) { return state.running[t]; });
}

}  // namespace

HostThreads TheHostThreads() {
  HostThreads host;
  host.thread = [] { return state.current; };
  host.block = [] { return state.block; };
  host.meet = [](int barrier, int threads) {
    Arrive(&state.barriers[barrier], threads == 0 ? state.size : threads);
  };
  host.exchange = [](unsigned mask, uint64_t value, int from) {
    const int warp = state.current / kWarp * kWarp;
    state.exchanged[state.current] = value;
    MeetWarp(mask);
    const uint64_t result = state.exchanged[warp + from];
    MeetWarp(mask);
    return result;
  };
  host.ballot = [](unsigned mask, bool condition) {
    const int warp = state.current / kWarp * kWarp;
    state.exchanged[state.current] = condition ? 1 : 0;
    MeetWarp(mask);
    unsigned ballot = 0;
    for (int lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1u) != 0 && state.exchanged[warp + lane] != 0) ballot |= 1u << lane;
    }
    MeetWarp(mask);
    return ballot;
  };
  return host;
}

bool RunOnHostThreads(int blocks, int threads, uint64_t seed, const std::function<void()>& poison,
                      const std::function<void()>& kernel) {
  if (state.stacks == nullptr) {
    state.stacks = static_cast<char*>(mmap(nullptr, size_t{kMaxThreads} * kStackBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  std::mt19937_64 random(seed);
  std::vector<int> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  state.size = threads;
  state.kernel = &kernel;
  for (const int block : order) {
    state.block = block;
    poison();
    if (!RunBlock(&random)) return false;
  }
  return true;
}

}  // namespace mycc
