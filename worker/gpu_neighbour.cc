#include "worker/gpu_neighbour.h"

#include <algorithm>

namespace mycc {
namespace {

// Blocks for each multiprocessor; what they hold of its threads and its shared memory keeps a kernel's blocks
// waiting, or leaves them the rest.
struct Company {
  double blocks;
  int threads, shared_bytes;
};
constexpr Company kCompanies[] = {
    {1, 64, 0},              // a little of everything
    {0.5, 1024, 48 * 1024},  // half of the device, most of it
    {2, 1024, 0},            // all threads: a later block waits
    {4, 32, 32 * 1024},      // shared memory
    {8, 128, 0},
};
// Shares of the kernel's own time.
constexpr double kLengths[] = {0.3, 1, 0.6, 1.7};

constexpr double kRoundSeconds = 1e-6;  // about: two accesses to memory, one after the other
constexpr int kFewestRounds = 4, kMostRounds = 50000;

}  // namespace

absl::Status GpuNeighbour::Disturb(int i, double seconds) {
  const Company& company = kCompanies[i % std::size(kCompanies)];
  const double rounds = kLengths[i % std::size(kLengths)] * seconds / kRoundSeconds;
  const int64_t words = memory_.bytes() / static_cast<int64_t>(sizeof(uint32_t));
  const int blocks = std::max(1, static_cast<int>(company.blocks * device_->multiprocessors()));
  return device_->LaunchBeside("mycc_neighbour", blocks, company.threads, company.shared_bytes,
                               memory_.address(), words,
                               static_cast<int>(std::clamp<double>(rounds, kFewestRounds, kMostRounds)));
}

}  // namespace mycc
