#include "worker/cpu_constants.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "proto/device_constants.h"
#include "worker/vector_loops.h"

// libgomp's own entry points, as generated code uses them (worker/baseline_kernel.cc).
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num();
}

namespace mycc {
namespace {

constexpr double kSecondsEach = 0.03;  // of the repeats of one figure
constexpr int kFewestRuns = 10, kFewestLongRuns = 3;
constexpr int64_t kFmaRounds = 50'000, kLatencyRounds = 100'000, kClockRounds = 2'000;
constexpr int kAddsARound = 100;
constexpr size_t kBytesARun = 4 << 20;  // of a cache level that holds less: so often it is read again
constexpr size_t kLine = 64, kPage = 4096;
constexpr size_t kLeastMemory = size_t{64} << 20, kMostMemory = size_t{1} << 30;
constexpr int kChaseLoads = 20'000, kRegions = 200;

volatile uint64_t result_sink;  // what was computed is used

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using ThreadWork = std::function<void(int thread)>;

void RunOnTeam(int threads, const ThreadWork& work) {
  if (threads == 1) return work(0);
  GOMP_parallel([](void* data) { (*static_cast<const ThreadWork*>(data))(omp_get_thread_num()); },
                const_cast<ThreadWork*>(&work), static_cast<unsigned>(threads), 0);
}

// The shortest run.
double ShortestRun(int threads, const ThreadWork& work, int fewest = kFewestRuns) {
  RunOnTeam(threads, work);  // warms up, and makes the team
  double shortest = std::numeric_limits<double>::infinity();
  const double end = SecondsNow() + kSecondsEach;
  for (int run = 0; run < fewest || SecondsNow() < end; ++run) {
    const double start = SecondsNow();
    RunOnTeam(threads, work);
    shortest = std::min(shortest, SecondsNow() - start);
  }
  return shortest;
}

double FlopsPerSecond(int threads) {
  const VectorLoops& loops = WidestLoops();
  const double flops = 2.0 * loops.lanes * VectorLoops::kChains * static_cast<double>(kFmaRounds) * threads;
  return flops / ShortestRun(threads, [&](int) { loops.independent(kFmaRounds); });
}

double FmaLatency() {
  const double seconds = ShortestRun(1, [](int) { WidestLoops().dependent(kLatencyRounds); });
  return seconds / static_cast<double>(kLatencyRounds);
}

// An addition that waits for the one before takes a cycle.
double ClockRate() {
  const double seconds = ShortestRun(1, [](int) {
    uint64_t sum = result_sink;
    const uint64_t more = sum | 1;
    for (int64_t round = 0; round < kClockRounds; ++round)
      asm volatile(".rept 100\n\taddq %1, %0\n\t.endr" : "+r"(sum) : "r"(more) : "cc");
    result_sink = sum;
  });
  return static_cast<double>(kClockRounds) * kAddsARound / seconds;
}

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, FreeMemory>;

// Null where the system gives none.
Memory MakeMemory(size_t bytes) {
  return Memory(static_cast<char*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)));
}

// Bytes that all threads together read in a second, each from memory of its own, which it wrote first. 0: the
// system gives no memory.
double ReadRate(int threads, size_t bytes_of_thread) {
  const size_t bytes = bytes_of_thread / VectorLoops::kReadStep * VectorLoops::kReadStep;
  const size_t passes = std::max<size_t>(1, kBytesARun / bytes);
  std::vector<Memory> parts;
  for (int thread = 0; thread < threads; ++thread) {
    if (parts.emplace_back(MakeMemory(bytes)) == nullptr) return 0;
  }
  RunOnTeam(threads, [&](int thread) { std::memset(parts[thread].get(), 1, bytes); });
  const auto read = [&](int thread) {
    for (size_t pass = 0; pass < passes; ++pass) WidestLoops().read(parts[thread].get(), bytes);
  };
  const double seconds = ShortestRun(threads, read, bytes > kBytesARun ? kFewestLongRuns : kFewestRuns);
  return static_cast<double>(bytes) * static_cast<double>(passes) * threads / seconds;
}

// Loads that wait for each other, from lines in an order that nothing foretells. The lines lie in the first
// half of the memory; the second half is written last, and puts them out of the caches.
double LoadLatency(size_t bytes) {
  const auto lines = static_cast<uint32_t>(bytes / 2 / kLine), mask = std::bit_ceil(lines) - 1;
  const Memory memory = MakeMemory(bytes);
  if (memory == nullptr) return 0;
  const auto next_of = [&](uint32_t line) {
    return reinterpret_cast<uint32_t*>(memory.get() + size_t{line} * kLine);
  };
  for (uint32_t line = 0; line < lines; ++line) {
    uint32_t next = line;
    // A linear congruential generator of full period, less the numbers that are no lines (Knuth 1981, 3.2.1).
    do {
      next = (1664525u * next + 1013904223u) & mask;
    } while (next >= lines);
    *next_of(line) = next;
  }
  std::memset(memory.get() + bytes / 2, 1, bytes - bytes / 2);
  uint32_t at = 0;
  const double seconds = ShortestRun(1, [&](int) {
    for (int load = 0; load < kChaseLoads; ++load) at = *next_of(at);
    result_sink = at;
  });
  return seconds / kChaseLoads;
}

// The threads that share a third-level cache, as the processor says; 1 where it does not.
int ThreadsOfL3() {
  constexpr unsigned kIntelCaches = 4, kAmdCaches = 0x8000001d, kL3 = 3;
  for (const unsigned leaf : {kIntelCaches, kAmdCaches}) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool is_known = __get_cpuid_count(leaf, kL3, &a, &b, &c, &d) != 0 && (a & 0x1f) != 0;
    if (is_known) return static_cast<int>((a >> 14) & 0xfff) + 1;
  }
  return 1;
}

size_t CacheSize(int name) { return static_cast<size_t>(std::max<int64_t>(0, sysconf(name))); }

// Puts what was measured among the constants.
class Constants {
 public:
  explicit Constants(int threads) : threads_(threads) { Put(kThreadsConstant, threads); }

  void Put(const char* name, double value) {
    if (value > 0) (*made_.mutable_values())[name] = value;
  }
  // A rate of one thread, or of all. All reach what one does, at least: otherwise a neighbour had one of
  // their cores all the time, and nothing is known.
  void PutRate(const char* of_one, const char* of_all, int threads, double rate) {
    if (threads == 1) {
      Put(of_one, rate);
    } else if (rate >= ConstantOf(made_, of_one)) {
      Put(of_all, rate);
    }
  }
  // Reads a level where its size is known, from a set that the level before does not hold.
  void PutCaches(int threads);
  v1::DeviceConstants Measure();

 private:
  const int threads_;
  v1::DeviceConstants made_;
};

void Constants::PutCaches(int threads) {
  const size_t l1 = CacheSize(_SC_LEVEL1_DCACHE_SIZE), l2 = CacheSize(_SC_LEVEL2_CACHE_SIZE),
               l3 = CacheSize(_SC_LEVEL3_CACHE_SIZE), all = static_cast<size_t>(threads);
  if (threads == 1 && l1 > 0) Put(kL1OfThread, ReadRate(1, l1 / 2));
  if (l1 > 0 && l2 >= 4 * l1) PutRate(kL2OfThread, kL2OfAll, threads, ReadRate(threads, l2 / 2));
  if (l2 > 0 && l3 >= 2 * l2 * all) PutRate(kL3OfThread, kL3OfAll, threads, ReadRate(threads, 2 * l2));
  const size_t memory = BytesPastCaches(l2, l3, ThreadsOfL3(), threads);
  if (memory == 0) return;
  PutRate(kMemoryOfThread, kMemoryOfAll, threads, ReadRate(threads, memory / all));
  if (threads == 1) Put(kMemoryLatency, LoadLatency(memory));
}

v1::DeviceConstants Constants::Measure() {
  made_.set_version(kConstantsVersion);
  // Before there is a team, whose threads wait by turning.
  Put(kPeakOfThread, FlopsPerSecond(1));
  Put(kClockConstant, ClockRate());
  Put(kFmaLatency, FmaLatency());
  PutCaches(1);
  if (threads_ == 1) return std::move(made_);
  PutRate(kPeakOfThread, kPeakOfAll, threads_, FlopsPerSecond(threads_));
  PutCaches(threads_);
  const ThreadWork nothing = [](int) {};
  const double seconds = ShortestRun(1, [&](int) {
    for (int region = 0; region < kRegions; ++region) RunOnTeam(threads_, nothing);
  });
  Put(kLaunchTime, seconds / kRegions);
  return std::move(made_);
}

}  // namespace

size_t BytesPastCaches(size_t l2_bytes, size_t l3_bytes, int threads_of_l3, int threads) {
  const int l3s = (threads + threads_of_l3 - 1) / threads_of_l3;
  const size_t held = l2_bytes * static_cast<size_t>(threads) + l3_bytes * static_cast<size_t>(l3s);
  return 2 * held > kMostMemory ? 0 : std::max(2 * held, kLeastMemory);
}

v1::DeviceConstants MeasureCpuConstants(int threads) { return Constants(threads).Measure(); }

}  // namespace mycc
