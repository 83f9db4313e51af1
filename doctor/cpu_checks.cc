// Checks of the processors on which a worker builds and measures: how steady their clocks are, and how many
// of them the worker gets.
#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "doctor/host_files.h"
#include "doctor/installation.h"

namespace mycc {
namespace {

constexpr char kCpuFolder[] = "/sys/devices/system/cpu";

std::vector<int> OnlineCpus(const std::string& root) {
  return CpusOf(FirstLine(absl::StrCat(root, kCpuFolder, "/online")).value_or(""));
}

// The CPUs that a group's quota is worth; none where there is no quota.
std::optional<double> QuotaOf(const std::string& group) {
  double quota = 0, period = 0;
  if (const std::optional<std::string> line = FirstLine(group + "/cpu.max")) {
    const std::pair<std::string, std::string> words = absl::StrSplit(*line, absl::MaxSplits(' ', 1));
    if (!absl::SimpleAtod(words.first, &quota) || !absl::SimpleAtod(words.second, &period))
      return std::nullopt;
  } else {
    quota = static_cast<double>(NumberIn(group + "/cpu.cfs_quota_us").value_or(-1));
    period = static_cast<double>(NumberIn(group + "/cpu.cfs_period_us").value_or(0));
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

Findings CheckGovernor(const Installation& installation) {
  if (!installation.MeasuresOn("cpu")) return {};
  std::map<std::string, int> counts;
  const std::vector<int> cpus = OnlineCpus(installation.root);
  for (const int cpu : cpus) {
    const auto governor =
        FirstLine(absl::StrCat(installation.root, kCpuFolder, "/cpu", cpu, "/cpufreq/scaling_governor"));
    if (governor) ++counts[*governor];
  }
  if (counts.empty()) return {Ok("the kernel does not choose clocks here, as in most virtual machines")};
  Findings findings;
  for (const auto& [governor, count] : counts) {
    const std::string found = absl::StrCat(governor, " on ", count, " of ", cpus.size(), " CPUs");
    if (governor == "performance") {
      findings.push_back(Ok(found));
    } else {
      findings.push_back(Warning(found + ": clocks change within a timing",
                                 "cpupower frequency-set --governor performance"));
    }
  }
  return findings;
}

Findings CheckTurbo(const Installation& installation) {
  if (!installation.MeasuresOn("cpu")) return {};
  const std::string folder = absl::StrCat(installation.root, kCpuFolder);
  const std::optional<int64_t> no_turbo = NumberIn(folder + "/intel_pstate/no_turbo");
  const std::optional<int64_t> boost = NumberIn(folder + "/cpufreq/boost");
  if (!no_turbo && !boost) return {Ok("the kernel does not tell")};
  if (no_turbo ? *no_turbo == 1 : *boost == 0)
    return {Ok("off: clocks do not depend on heat and neighbours")};
  return {Ok("on: clocks depend on heat and on busy neighbours; each trial's baseline kernel shows how far")};
}

Findings CheckCpus(const Installation& installation) {
  const int usable = installation.system.usable_cpus();
  const int online = static_cast<int>(OnlineCpus(installation.root).size());
  std::string found = absl::StrCat(usable, " of ", std::max(online, usable), " CPUs");
  if (NumberIn(absl::StrCat(installation.root, kCpuFolder, "/smt/active")).value_or(0) == 1)
    found += ", two hardware threads on a core";
  if (usable < 2 && installation.MeasuresOn("cpu")) {
    return {Warning(found + ": nothing is left for the system while a candidate is timed",
                    "give the worker at least 2 CPUs")};
  }
  return {Ok(found)};
}

Findings CheckQuota(const Installation& installation) {
  std::optional<double> least;
  for (const std::string& group : ControlGroups(installation.root, "cpu")) {
    const std::optional<double> quota = QuotaOf(group);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  if (!least) return {Ok("none")};
  const int usable = installation.system.usable_cpus();
  const std::string found = absl::StrFormat("%g CPUs' time for %d CPUs", *least, usable);
  if (*least >= usable || !installation.MeasuresOn("cpu")) return {Ok(found)};
  return {Warning(found + ": the kernel stops candidates in the middle of a timing",
                  "give whole CPUs: a cpuset, Slurm's cgroups, or Kubernetes' static CPU manager")};
}

}  // namespace mycc
