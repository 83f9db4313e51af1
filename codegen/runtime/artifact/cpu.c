// Checks that this machine has the instruction sets that the module was compiled for, before compiled code
// runs.
#define _DEFAULT_SOURCE 1  // syscall()

#include <cpuid.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codegen/runtime/artifact/artifact.h"

enum {
  kXcr0TileData = 1 << 18,  // AMX: on Linux a process must request its tile registers
  kArchReqXcompPerm = 0x1023,
  kXfeatureTileData = 18,
};

// XCR0, the register state that the operating system saves; 0 when it cannot be read.
static uint64_t Xcr0(void) {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 27 & 1)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int HasNeed(const struct MyccCpuNeed* need, uint64_t xcr0) {
  uint32_t regs[4] = {0, 0, 0, 0};
  if (!__get_cpuid_count((uint32_t)need->leaf, (uint32_t)need->subleaf, &regs[0], &regs[1], &regs[2],
                         &regs[3]))
    return 0;
  if (!(regs[need->reg] >> need->bit & 1)) return 0;
  if ((xcr0 & (uint64_t)need->xcr0) != (uint64_t)need->xcr0) return 0;
  if (need->xcr0 & kXcr0TileData) return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
  return 1;
}

// Writes the names of the missing features, separated by commas; returns their number.
static int ListMissing(char* text, int size) {
  const uint64_t xcr0 = Xcr0();
  int used = 0, missing = 0;
  text[0] = '\0';
  for (int64_t i = 0; i < mycc_module.num_needs; ++i) {
    const struct MyccCpuNeed* need = &mycc_module.needs[i];
    if (HasNeed(need, xcr0)) continue;
    if (used < size) used += snprintf(text + used, size - used, "%s%s", missing > 0 ? ", " : "", need->name);
    ++missing;
  }
  return missing;
}

int32_t MyccCheckCpu(void) {
  enum { kUnknown, kHasAll, kLacks };
  static int known = kUnknown;
  int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (state == kHasAll) return 0;
  char missing[512];
  state = ListMissing(missing, sizeof missing) == 0 ? kHasAll : kLacks;
  __atomic_store_n(&known, state, __ATOMIC_RELAXED);
  if (state == kHasAll) return 0;
  return MyccFail("%s: compiled for `%s`, but this machine lacks %s", mycc_module.name, mycc_module.target,
                  missing);
}
