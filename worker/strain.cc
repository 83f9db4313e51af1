#include "worker/strain.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

// OpenMP's functions as libgomp exports them; its header omp.h belongs to a compiler, not to the system.
extern "C" {
void omp_set_num_threads(int threads);
int omp_get_num_places();
int omp_get_place_num_procs(int place);
void omp_get_place_proc_ids(int place, int* ids);
}

namespace mycc {
namespace {

constexpr auto kShortBurst = std::chrono::microseconds(20), kLongBurst = std::chrono::microseconds(900);
constexpr int kSmallTeamEvery = 8;
constexpr size_t kCacheBytes = size_t{1} << 18;  // what a burst writes over

// The processors that teams are bound to; this thread's own binding is to one of them.
std::vector<int> Processors() {
  std::vector<int> all;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

void MoveTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);  // where that is not allowed it stays
}

void Disturb(const std::atomic<bool>& stopping) {
  const std::vector<int> processors = Processors();
  std::vector<uint8_t> memory(kCacheBytes);
  uint64_t random = 0x9e3779b97f4a7c15;
  while (!stopping.load(std::memory_order_relaxed)) {
    random = random * 6364136223846793005 + 1442695040888963407;
    if (!processors.empty()) MoveTo(processors[(random >> 33) % processors.size()]);
    const auto burst =
        (random >> 60) == 0 ? kLongBurst : kShortBurst * (1 + static_cast<int>(random >> 58) % 16);
    const auto end = std::chrono::steady_clock::now() + burst;
    for (size_t at = random % kCacheBytes; std::chrono::steady_clock::now() < end;) {
      for (int i = 0; i < 64; ++i) ++memory[at = (at + 4160) % kCacheBytes];
    }
    std::this_thread::yield();
  }
}

}  // namespace

int StrainedTeam(int i, int threads) {
  if (i % kSmallTeamEvery == kSmallTeamEvery - 1)
    return std::max(1, threads - 1 - i / kSmallTeamEvery % threads);
  const int sizes[] = {threads, threads + 1, 2 * threads, 2 * threads + 1, threads};
  return sizes[i % 5];
}

void SetTeam(int threads) { omp_set_num_threads(threads); }

BusyNeighbour::BusyNeighbour() : thread_([this] { Disturb(stopping_); }) {}

BusyNeighbour::~BusyNeighbour() {
  stopping_ = true;
  thread_.join();
}

}  // namespace mycc
