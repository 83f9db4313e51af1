// Checks of the host around a worker or server: memory, limits, the scratch folder, the confinement of
// candidates, and the clock.
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "doctor/host_files.h"
#include "doctor/installation.h"

namespace mycc {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;
// A builder holds LLVM or NVRTC with one candidate.
constexpr int64_t kBuilderBytes = kGiB;
// A server has a descriptor for each connection, and as many again for its log and searches.
constexpr int64_t kFewFiles = 4096, kTooFewFiles = 256;
constexpr int64_t kTooFewProcesses = 512;
constexpr int64_t kLeastScratch = 256 * kMiB, kGoodScratch = 2 * kGiB;

std::string InGib(int64_t bytes) { return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / kGiB); }

// The limit of this process' groups; none where there is none. Version 1 writes a huge number for that.
std::optional<int64_t> GroupMemory(const std::string& root) {
  std::optional<int64_t> least;
  for (const std::string& group : ControlGroups(root, "memory")) {
    std::optional<int64_t> limit = NumberIn(group + "/memory.max");
    if (!limit) limit = NumberIn(group + "/memory.limit_in_bytes");
    if (limit && *limit < (int64_t{1} << 60) && (!least || *limit < *least)) least = limit;
  }
  return least;
}

// A soft limit of /proc/self/limits; none: unlimited, or not told.
std::optional<int64_t> SoftLimit(const std::string& root, const std::string& name) {
  std::ifstream file(absl::StrCat(root, "/proc/self/limits"));
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, name)) continue;
    const std::vector<std::string> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    int64_t limit = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &limit)) return limit;
  }
  return std::nullopt;
}

}  // namespace

Findings CheckMemory(const Installation& installation) {
  const std::optional<int64_t> available = MemoryBytes(installation.root, "MemAvailable");
  if (!available) return {Warning("the kernel does not tell", "mount /proc")};
  int64_t usable = *available;
  std::string found = InGib(usable) + " available";
  if (const std::optional<int64_t> limit = GroupMemory(installation.root)) {
    usable = std::min(usable, *limit);
    found += absl::StrCat(", limited to ", InGib(*limit), " by the control group");
  }
  const int builders = installation.system.usable_cpus();
  if (usable >= builders * kBuilderBytes) return {Ok(found)};
  return {Warning(
      absl::StrCat(found, ": less than ", InGib(kBuilderBytes), " for each of ", builders, " builders"),
      absl::StrCat("worker --builders ", std::max<int64_t>(1, usable / kBuilderBytes), ", or more memory"))};
}

Findings CheckLimits(const Installation& installation) {
  Findings findings;
  if (const auto files = SoftLimit(installation.root, "Max open files"); files && *files < kFewFiles) {
    const std::string found = absl::StrCat(*files, " open files: a server has one for each connection");
    const std::string remedy = "LimitNOFILE=65536 of the unit, or ulimit -n 65536";
    findings.push_back(*files < kTooFewFiles ? Fault(found, remedy) : Warning(found, remedy));
  }
  if (const auto count = SoftLimit(installation.root, "Max processes"); count && *count < kTooFewProcesses) {
    findings.push_back(Warning(absl::StrCat(*count, " processes and threads"),
                               "LimitNPROC= or TasksMax= of the unit, or ulimit -u 4096"));
  }
  if (findings.empty()) findings.push_back(Ok("open files and processes suffice"));
  return findings;
}

Findings CheckScratch(const Installation& installation) {
  const char* const variable = std::getenv("TMPDIR");
  const std::string folder = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  std::error_code error;
  const std::string path = std::filesystem::canonical(folder, error).string();
  if (error)
    return {Fault(absl::StrCat(folder, ": ", error.message()), "set TMPDIR to a folder that exists")};
  const std::optional<Mount> mount = MountOf(installation.root, path);
  if (mount && mount->Has("noexec")) {
    return {Fault(absl::StrCat(path, " is mounted noexec: no candidate can be loaded from it"),
                  "set TMPDIR to a folder whose file system is mounted with exec")};
  }
  const absl::StatusOr<int64_t> bytes = installation.system.free_bytes(path);
  if (!bytes.ok()) return {Fault(std::string(bytes.status().message()), "set TMPDIR to another folder")};
  const std::string found = absl::StrCat(path, ", ", InGib(*bytes), " free");
  if (*bytes < kLeastScratch) return {Fault(found, "make space, or set TMPDIR to another folder")};
  if (*bytes < kGoodScratch) return {Warning(found, "make space, or set TMPDIR to another folder")};
  return {Ok(found)};
}

Findings CheckConfinement(const Installation& installation) {
  const absl::StatusOr<std::vector<std::string>> missing = installation.system.missing_confinement();
  if (missing.ok() && missing->empty()) return {Ok("candidates are confined fully")};
  const std::string sysctl = absl::StrCat(installation.root, "/proc/sys/");
  std::string remedy =
      "in a container, a seccomp profile that permits unshare (the chart's workers.seccompProfile); in a "
      "unit, "
      "no RestrictNamespaces=";
  if (NumberIn(sysctl + "user/max_user_namespaces") == 0) {
    remedy = "sysctl user.max_user_namespaces=16384";
  } else if (NumberIn(sysctl + "kernel/unprivileged_userns_clone") == 0) {
    remedy = "sysctl kernel.unprivileged_userns_clone=1";
  } else if (NumberIn(sysctl + "kernel/apparmor_restrict_unprivileged_userns") == 1) {
    remedy =
        "an AppArmor profile with userns for mycc-tune, or sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0";
  }
  const std::string words =
      missing.ok() ? absl::StrJoin(*missing, "; ") : std::string(missing.status().message());
  return {Warning(absl::StrCat("candidates would go without: ", words), remedy)};
}

Findings CheckClock(const Installation& installation) {
  const std::optional<bool> is_kept = installation.system.clock_is_kept();
  if (!is_kept) return {Ok("the kernel does not tell whether it is kept by a time service")};
  if (*is_kept) return {Ok("kept by a time service")};
  return {Warning("no time service keeps it: certificates and the times of records depend on it",
                  "timedatectl set-ntp true, or chrony")};
}

}  // namespace mycc
