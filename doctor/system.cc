#include "doctor/system.h"

#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os_error.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/runtime/cuda_device.h"
#include "process/confine.h"

namespace mycc {
namespace {

int UsableCpuCount() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::optional<bool> ClockIsKept() {
  timex state = {};
  const int clock = adjtimex(&state);
  if (clock < 0) return std::nullopt;
  return clock != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

absl::StatusOr<std::vector<std::string>> MissingConfinement() {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  GiveToChildren(scratch.path());
  Confinement candidate;
  candidate.mode = ConfinementMode::kWherePossible;
  candidate.hides_current_folder = true;
  candidate.writable = {scratch.path()};
  return MissingMeasures(candidate);
}

absl::StatusOr<int64_t> FreeBytes(const std::string& folder) {
  struct statvfs space;
  if (statvfs(folder.c_str(), &space) != 0) return OsError("look at", folder);
  return static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

absl::StatusOr<std::vector<double>> SyncSeconds(const std::string& folder) {
  constexpr int kWrites = 15;
  std::string path = folder + "/.mycc-doctor-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return OsError("write in", folder);
  const absl::Cleanup remove = [file, path] {
    close(file);
    unlink(path.c_str());
  };
  const std::string page(4096, 'm');
  std::vector<double> seconds;
  for (int i = 0; i < kWrites; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (write(file, page.data(), page.size()) != static_cast<ssize_t>(page.size()) || fdatasync(file) != 0)
      return OsError("write in", folder);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count());
  }
  return seconds;
}

absl::Status Bind(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* places = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &places); error != 0)
    return absl::UnavailableError(gai_strerror(error));
  const absl::Cleanup release = [places] { freeaddrinfo(places); };
  const int file = socket(places->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return absl::UnavailableError(std::strerror(errno));
  const absl::Cleanup shut = [file] { close(file); };
  // The server binds in the same way: a port whose connections have just ended is free.
  const int on = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(file, places->ai_addr, places->ai_addrlen) != 0 || listen(file, 1) != 0)
    return absl::UnavailableError(std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace

System System::Real() {
  return {
      .usable_cpus = UsableCpuCount,
      .clock_is_kept = ClockIsKept,
      .missing_confinement = MissingConfinement,
      .free_bytes = FreeBytes,
      .sync_seconds = SyncSeconds,
      .bind = Bind,
      .unix_seconds = [] { return SystemUnixMicros() / 1'000'000; },
      .count_gpus = CountCudaDevices,
      .gpu = ReadGpuState,
      .gpu_compiler = CudaToolchain,
  };
}

}  // namespace mycc
