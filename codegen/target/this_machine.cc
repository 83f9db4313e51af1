#include "codegen/target/this_machine.h"

#include <cpuid.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"

namespace mycc {
namespace {

class HostCpuid : public CpuidSource {
 public:
  CpuidRegisters Read(uint32_t leaf, uint32_t subleaf) const override {
    CpuidRegisters registers;
    __get_cpuid_count(leaf, subleaf, &registers.eax, &registers.ebx, &registers.ecx, &registers.edx);
    return registers;
  }

  uint64_t ReadXcr0() const override {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return static_cast<uint64_t>(high) << 32 | low;
  }
};

// The control group's limit in whole processors (containers set it); 0 for no limit.
int ControlGroupProcessors() {
  double quota = 0, period = 0;
  std::string limit;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> limit >> period) {
    if (limit == "max") return 0;
    if (!absl::SimpleAtod(limit, &quota)) return 0;
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(quota / period)) : 0;
}

}  // namespace

const CpuidSource& ThisProcessor() {
  static const HostCpuid processor;
  return processor;
}

int UsableThreads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int threads = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int granted = ControlGroupProcessors();
  return granted > 0 ? std::min(threads, granted) : threads;
}

}  // namespace mycc
