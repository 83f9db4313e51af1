// `mycc-tune doctor`: prints what is wrong with an installation and how it is mended. Thread rule:
// re-entrant.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "doctor/installation.h"

namespace mycc {

struct DoctorOptions {
  Installation installation;
  bool json = false;
};
// FailedPrecondition when there is a fault.
absl::Status DoctorCommand(const DoctorOptions& options, std::ostream& out);

// The findings as lines, or as JSON lines, and the error with their number.
absl::Status PrintFindings(const Findings& findings, bool json, std::ostream& out);

}  // namespace mycc
