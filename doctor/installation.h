// The installation that `mycc-tune doctor` examines, and the table of its checks. Thread rule: functions are
// re-entrant, except that two examinations of one listening address disturb each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/system.h"
#include "proto/channel.h"

namespace mycc {

struct Installation {
  System system = System::Real();
  std::string root;                     // before /proc, /sys and /dev; empty: this host's own
  std::vector<std::string> devices;     // "cpu", "cuda:0"; empty: the CPU, and all GPUs that there are
  std::string log;                      // the tuning log of a server here; empty: none
  std::string listen;                   // the address of a server that is to be started here; empty: none
  std::string certificates, key;        // of that server; PEM files
  std::optional<ServerAddress> server;  // that workers and clients here call

  bool MeasuresOn(const std::string& kind) const;  // "cpu" or "cuda"
};

// Each looks at one thing, and finds nothing where the installation does not have it.
using Check = Findings (*)(const Installation&);
struct NamedCheck {
  const char* name;
  Check check;
};
const std::vector<NamedCheck>& Checks();

// All checks, in the order of the table.
Findings Examine(const Installation& installation);

// cpu_checks.cc
Findings CheckGovernor(const Installation& installation);
Findings CheckTurbo(const Installation& installation);
Findings CheckCpus(const Installation& installation);
Findings CheckQuota(const Installation& installation);
// host_checks.cc
Findings CheckMemory(const Installation& installation);
Findings CheckLimits(const Installation& installation);
Findings CheckScratch(const Installation& installation);
Findings CheckConfinement(const Installation& installation);
Findings CheckClock(const Installation& installation);
// log_checks.cc
Findings CheckLog(const Installation& installation);
Findings CheckFileSystem(const Installation& installation);
Findings CheckSpace(const Installation& installation);
Findings CheckSync(const Installation& installation);
// gpu_checks.cc
Findings CheckDriver(const Installation& installation);
Findings CheckNvrtc(const Installation& installation);
Findings CheckGpus(const Installation& installation);
Findings CheckXids(const Installation& installation);
// certificate_checks.cc
Findings CheckOwnCertificate(const Installation& installation);
Findings CheckCredential(const Installation& installation);
Findings CheckTrust(const Installation& installation);
Findings CheckSecrets(const Installation& installation);
// server_checks.cc
Findings CheckListen(const Installation& installation);
Findings CheckServer(const Installation& installation);

}  // namespace mycc
