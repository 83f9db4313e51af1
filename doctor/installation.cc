#include "doctor/installation.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace mycc {

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarning: return "warning";
    case Verdict::kFault: return "fault";
  }
  return "";
}

bool Installation::MeasuresOn(const std::string& kind) const {
  return devices.empty() || std::ranges::any_of(devices, [&kind](const std::string& device) {
           return absl::StartsWith(device, kind);
         });
}

const std::vector<NamedCheck>& Checks() {
  static const auto* const checks = new std::vector<NamedCheck>{
      {"CPU governor", CheckGovernor},
      {"CPU turbo", CheckTurbo},
      {"CPUs", CheckCpus},
      {"CPU quota", CheckQuota},
      {"memory", CheckMemory},
      {"limits", CheckLimits},
      {"scratch folder", CheckScratch},
      {"confinement", CheckConfinement},
      {"clock", CheckClock},
      {"GPU driver", CheckDriver},
      {"NVRTC", CheckNvrtc},
      {"GPU", CheckGpus},
      {"GPU errors", CheckXids},
      {"log", CheckLog},
      {"log's file system", CheckFileSystem},
      {"log's space", CheckSpace},
      {"log's disk", CheckSync},
      {"certificate", CheckOwnCertificate},
      {"credential", CheckCredential},
      {"trust", CheckTrust},
      {"secrets", CheckSecrets},
      {"listening", CheckListen},
      {"server", CheckServer},
  };
  return *checks;
}

Findings Examine(const Installation& installation) {
  Findings all;
  for (const auto& [name, check] : Checks()) {
    for (Finding& finding : check(installation)) {
      finding.check = name;
      all.push_back(std::move(finding));
    }
  }
  return all;
}

}  // namespace mycc
