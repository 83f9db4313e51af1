#include "mycc_tune/doctor_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/colour.h"

namespace mycc {
namespace {

Tone ToneOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return Tone::kHit;
    case Verdict::kWarning: return Tone::kWarning;
    case Verdict::kFault: return Tone::kError;
  }
  return Tone::kError;
}

std::string CountOf(const Findings& findings, Verdict verdict) {
  const auto count =
      std::ranges::count_if(findings, [verdict](const Finding& each) { return each.verdict == verdict; });
  return absl::StrCat(count, " ", VerdictName(verdict), count == 1 ? "" : "s");
}

std::string LineOf(const Finding& finding, size_t check_width) {
  // Padded before it is painted: a terminal does not show the codes of colours.
  const std::string verdict = absl::StrFormat("%-7s", VerdictName(finding.verdict));
  return absl::StrCat(Painted(verdict, ToneOf(finding.verdict), Stream::kOutput), "  ",
                      absl::StrFormat("%-*s", static_cast<int>(check_width), finding.check), "  ",
                      finding.found,
                      finding.remedy.empty() ? "" : absl::StrCat("; mend it: ", finding.remedy));
}

std::string JsonOf(const Finding& finding) {
  return nlohmann::ordered_json{{"check", finding.check},
                                {"verdict", VerdictName(finding.verdict)},
                                {"found", finding.found},
                                {"remedy", finding.remedy}}
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

absl::Status PrintFindings(const Findings& findings, bool json, std::ostream& out) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size());
  for (const Finding& finding : findings) out << (json ? JsonOf(finding) : LineOf(finding, width)) << "\n";
  const std::string faults = CountOf(findings, Verdict::kFault),
                    warnings = CountOf(findings, Verdict::kWarning);
  const bool has_fault =
      std::ranges::any_of(findings, [](const Finding& each) { return each.verdict == Verdict::kFault; });
  if (has_fault) return absl::FailedPreconditionError(absl::StrCat(faults, ", ", warnings));
  if (!json) out << "no fault, " << warnings << "\n";
  return absl::OkStatus();
}

absl::Status DoctorCommand(const DoctorOptions& options, std::ostream& out) {
  return PrintFindings(Examine(options.installation), options.json, out);
}

}  // namespace mycc
