#include "worker/device.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "base/version.h"
#include "codegen/llvm/emit.h"

namespace mycc {
namespace {

// The first value of `key` in /proc/cpuinfo.
std::string CpuInfo(const std::string& key) {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

v1::DeviceInfo DescribeHost() {
  v1::DeviceInfo info;
  utsname system;
  if (uname(&system) == 0) {
    info.set_host(system.nodename);
    info.set_kernel(std::string(system.sysname) + " " + system.release);
  }
  return info;
}

v1::DeviceInfo DescribeCpu() {
  v1::DeviceInfo info = DescribeHost();
  info.set_device("cpu");
  info.set_model(CpuInfo("model name"));
  info.set_clock_mhz(CpuClockMhz());
  return info;
}

double CpuClockMhz() {
  double mhz = 0;
  return absl::SimpleAtod(CpuInfo("cpu MHz"), &mhz) ? mhz : 0;
}

v1::Toolchain CpuToolchain() {
  v1::Toolchain toolchain;
  toolchain.set_mycc(ProgramVersion());
  toolchain.set_llvm(LlvmToolchain());
  return toolchain;
}

int64_t FlushBytes() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{1} << 30;
  return std::clamp(2 * static_cast<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE)), kLeast, kMost);
}

}  // namespace mycc
