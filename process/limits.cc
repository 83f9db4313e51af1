#include "process/limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <new>
#include <string>
#include <string_view>

#include "absl/base/config.h"
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace mycc {
namespace {

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
// AddressSanitizer's operator new ends the process with a report where another would call the handler.
void ExitOutOfMemoryInsteadOfReporting() {
  __sanitizer_set_death_callback([] {
    if (std::string_view(__asan_get_report_description()) == "out-of-memory") _exit(kExitOutOfMemory);
  });
}
#else
void ExitOutOfMemoryInsteadOfReporting() {}
#endif

void SetLimit(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  setrlimit(resource, &limit);  // fails only above a hard limit that is stricter already
}

int64_t AddressSpaceBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// The number behind `key` in a file of "key number" lines; -1 where there is none.
int64_t ReadCounter(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return -1;
}

std::string MemoryEventsPath() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3) + "/memory.events";
  }
  return "";
}

}  // namespace

bool DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;
}

void ConfineSelf(pid_t parent, const v1::ForkRequest& limits) {
  if (!DieWithParent(parent)) _exit(1);
  setpgid(0, 0);
  SetLimit(RLIMIT_CORE, 0, 0);
  if (limits.cpu_seconds() > 0) {
    const rlim_t seconds = static_cast<rlim_t>(std::ceil(limits.cpu_seconds()));
    SetLimit(RLIMIT_CPU, seconds, seconds + 1);
  }
  if (limits.file_bytes() > 0) {
    const rlim_t bytes = static_cast<rlim_t>(limits.file_bytes());
    SetLimit(RLIMIT_FSIZE, bytes, bytes);
  }
  if (limits.address_space_bytes() > 0) {
    const rlim_t bytes = static_cast<rlim_t>(AddressSpaceBytes() + limits.address_space_bytes());
    SetLimit(RLIMIT_AS, bytes, bytes);
  }
  std::set_new_handler([] { _exit(kExitOutOfMemory); });
  ExitOutOfMemoryInsteadOfReporting();
}

std::string BootName() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  file >> name;
  return name;
}

int64_t MemoryKills() {
  const int64_t own = ReadCounter(MemoryEventsPath(), "oom_kill");
  return own >= 0 ? own : ReadCounter("/proc/vmstat", "oom_kill");
}

}  // namespace mycc
