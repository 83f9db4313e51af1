// `mycc-tune measure`: builds, verifies and times one trace on this machine, without a server.

#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/plural.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/print.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "command/times.h"
#include "db/message_json.h"
#include "mycc_tune/commands.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "proto/timing_protocol.h"
#include "server/job_plan.h"
#include "worker/local_worker.h"

namespace mycc {
namespace {

void PrintResult(const v1::MeasureResult& result, std::ostream& out) {
  const v1::Timing& timing = result.timing();
  out << StatusName(result.status());
  if (result.status() == v1::MEASURE_STATUS_OK) {
    out << "  " << FormatSeconds(timing.seconds()) << " (" << FormatSeconds(timing.ci_low_seconds()) << " .. "
        << FormatSeconds(timing.ci_high_seconds()) << ", " << HowMany(timing.samples_seconds_size(), "sample")
        << ", " << ProtocolName(timing.protocol()) << "), "
        << absl::StrFormat("%.3f", timing.relative_to_baseline()) << " of the baseline";
    if (RelativeWidth(timing) > kWideInterval) out << "  wide interval: repeat it on a quiet machine";
  }
  out << "\n";
  if (result.has_verification()) {
    const v1::Verification& verification = result.verification();
    out << "verified: " << (verification.passed() ? "yes" : "no") << ", "
        << HowMany(verification.elements_checked(), "element") << ", max error "
        << absl::StrFormat("%.3g absolute, %.3g relative", verification.max_abs_error(),
                           verification.max_rel_error())
        << "\n";
    if (verification.launches() > 0)
      out << HowMany(verification.launches(), "launch", "launches") << " left the same bits, "
          << verification.strained_launches() << " of them under strain\n";
  }
  out << "build " << FormatSeconds(timing.build_seconds()) << ", run " << FormatSeconds(timing.run_seconds())
      << "\n";
}

}  // namespace

absl::Status MeasureCommand(const MeasureOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, ReadWorkloads(options.file));
  if (workloads.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.file, " holds ", workloads.size(), " workloads; expected one"));
  }
  MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
  MYCC_ASSIGN_OR_RETURN(const std::string trace, ReadText(options.trace, kMostSourceBytes));
  if (const absl::Status parsed = ParseTrace(trace).status(); !parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(options.trace, ": ", parsed.message()));
  }
  MYCC_ASSIGN_OR_RETURN(const v1::TimingProtocol protocol, ReadProtocol(options.cache));
  if (protocol == v1::TIMING_PROTOCOL_MODEL && target.kind != TargetKind::kCpu)
    return Misuse(absl::StrCat("--cache model: it is for CPUs; the target is ", PrintTarget(target)));
  v1::Assignment assignment;
  assignment.set_workload(PrintWorkload(workloads[0]));
  assignment.set_target(PrintTarget(target));
  assignment.set_trace(trace);
  assignment.set_protocol(ProtocolFor(target, protocol, KernelUse::kAlone));
  assignment.set_seed(options.seed);
  LocalMeasurer measurer;
  MYCC_ASSIGN_OR_RETURN(const v1::MeasureResult result, measurer.Measure(assignment));
  if (options.json) {
    out << MessageToJson(result).dump() << "\n";
  } else {
    PrintResult(result, out);
  }
  if (result.status() == v1::MEASURE_STATUS_OK) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(StatusName(result.status()), ": ", result.error()));
}

}  // namespace mycc
