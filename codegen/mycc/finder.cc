#include "codegen/mycc/finder.h"

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/library/compile.h"
#include "codegen/mycc/default_schedule.h"
#include "codegen/mycc/neighbour.h"
#include "codegen/mycc/spot_check.h"
#include "codegen/passes/debug.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

// Warm times are what calls in a loop see; a log that was tuned with cold caches alone still serves.
constexpr v1::TimingProtocol kProtocols[] = {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD};

absl::StatusOr<std::optional<StoredRecord>> BestRecord(const TuningLog& log, const LogKey& key) {
  for (v1::TimingProtocol protocol : kProtocols) {
    absl::StatusOr<StoredRecord> best = log.Best(key, protocol);
    if (best.ok()) return *std::move(best);
    if (!absl::IsNotFound(best.status())) return best.status();
  }
  return std::nullopt;
}

absl::StatusOr<KernelSpec> CompileRecord(const Workload& workload, const Target& target,
                                         const v1::Record& record) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(record.trace()));
  return CompileKernel(workload, target, trace);
}

std::string Short(const std::string& digest) { return digest.substr(0, 8); }

// A schedule that was looked at, for MYCC_DEBUG.
void PrintCandidate(const Workload& workload, const std::string& line, const Trace& trace) {
  if (GetPassDebug().level < kDebugCandidates) return;
  std::fprintf(stderr, "%s: candidate: %s\n", workload.name.c_str(), line.c_str());
  if (GetPassDebug().level >= kDebugSteps) std::fputs(PrintTrace(trace).c_str(), stderr);
}

std::string RuleName(const Trace& trace) {
  return trace.sketch.empty() ? "naive nest" : absl::StrCat("default of rule `", trace.sketch, "`");
}

std::string Predicted(double seconds) {
  return std::isinf(seconds) ? "not predicted" : absl::StrFormat("predicted %.6f ms", seconds * 1e3);
}

}  // namespace

std::string Headline(const Found& found) {
  const KernelSpec& kernel = found.kernel;
  const std::string source = kernel.record                    ? absl::StrCat(", record ", *kernel.record)
                             : kernel.reason == Reason::kMiss ? absl::StrCat(", ", RuleName(kernel.trace))
                                                              : "";
  return absl::StrCat(kernel.workload.name, ": ", ReasonName(kernel.reason), source, " (", found.why, ")");
}

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindOwn(Query* query) const {
  MYCC_ASSIGN_OR_RETURN(const std::optional<StoredRecord> best,
                        BestRecord(*log_, {query->hash, PrintTarget(target_)}));
  if (!best) return std::nullopt;
  const v1::MeasureResult& result = best->record.result();
  if (GetPassDebug().level >= kDebugCandidates)
    std::fprintf(stderr, "%s: candidate: record %lld, its own, measured %.6f ms\n",
                 query->workload.name.c_str(), static_cast<long long>(best->id),
                 result.timing().seconds() * 1e3);
  absl::StatusOr<KernelSpec> kernel = CompileRecord(query->workload, target_, best->record);
  if (!kernel.ok()) {
    query->why_not =
        absl::StrCat("record ", best->id, " no longer replays: ", std::string(kernel.status().message()));
    return std::nullopt;
  }
  kernel->record = best->id;
  kernel->expected_seconds = result.timing().seconds();
  MYCC_ASSIGN_OR_RETURN(const std::string digest, CodeDigestOf(*kernel, target_));
  if (digest == result.code_digest()) {
    kernel->reason = Reason::kHit;
    return Found{*std::move(kernel), best->override_by ? absl::StrCat("pinned: ", best->override_by->reason)
                                                       : "same workload, target and code"};
  }
  kernel->reason = Reason::kStale;
  return Found{*std::move(kernel),
               absl::StrCat("code digest ", Short(digest), " differs from ", Short(result.code_digest()),
                            " that was measured; unverified until `mycc-tune log verify`")};
}

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindNear(Query* query) const {
  MYCC_ASSIGN_OR_RETURN(Neighbourhood neighbourhood,
                        FindNeighbours(*log_, kProtocols, query->canonical, target_));
  if (query->why_not.empty()) query->why_not = neighbourhood.why_none;
  if (neighbourhood.neighbours.empty()) return std::nullopt;
  const double default_seconds = DefaultSchedules(query->canonical, target_)[0].seconds;
  for (const Neighbour& neighbour : neighbourhood.neighbours) {
    absl::StatusOr<Found> found = Adapt(*query, neighbour, default_seconds);
    if (found.ok()) return *std::move(found);
    const std::string refusal = absl::StrCat("record ", neighbour.record, " (", neighbour.difference, ") ",
                                             std::string(found.status().message()));
    if (GetPassDebug().level >= kDebugCandidates)
      std::fprintf(stderr, "%s: refused: %s\n", query->workload.name.c_str(), refusal.c_str());
    // The nearest one's refusal is the one to tell.
    if (query->why_not.empty()) query->why_not = refusal;
  }
  return std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Adapt(const Query& query, const Neighbour& neighbour,
                                            double default_seconds) const {
  const auto refuse = [](const std::string& why) { return absl::FailedPreconditionError(why); };
  const absl::StatusOr<ScoredTrace> refitted = RefitSchedule(neighbour.trace, query.canonical, target_);
  if (!refitted.ok()) return refuse(absl::StrCat("does not fit: ", std::string(refitted.status().message())));
  PrintCandidate(query.workload,
                 absl::StrCat("record ", neighbour.record, ", re-fitted, ", Predicted(refitted->seconds)),
                 refitted->trace);
  if (refitted->seconds >= default_seconds) return refuse("is predicted no faster than the default schedule");
  absl::StatusOr<KernelSpec> kernel = CompileKernel(query.workload, target_, refitted->trace);
  if (!kernel.ok())
    return refuse(absl::StrCat("does not compile here: ", std::string(kernel.status().message())));
  const SpotCheck check = CheckOnRandomInputs(*kernel, target_);
  if (check.verdict == SpotCheck::kWrong)
    return refuse(absl::StrCat("gives wrong results here: ", check.detail));
  kernel->reason = Reason::kNear;
  kernel->record = neighbour.record;
  return Found{*std::move(kernel), absl::StrCat(neighbour.difference, "; ", check.detail)};
}

absl::StatusOr<Found> ScheduleFinder::Default(const Query& query) const {
  std::string why = query.why_not;
  absl::Status status;
  for (const ScoredTrace& schedule : DefaultSchedules(query.canonical, target_)) {
    PrintCandidate(query.workload, absl::StrCat(RuleName(schedule.trace), ", ", Predicted(schedule.seconds)),
                   schedule.trace);
    absl::StatusOr<KernelSpec> kernel = CompileKernel(query.workload, target_, schedule.trace);
    if (kernel.ok()) {
      kernel->reason = Reason::kMiss;
      return Found{*std::move(kernel), why};
    }
    status = kernel.status();
    absl::StrAppend(&why, "; the ", RuleName(schedule.trace),
                    " does not lower: ", std::string(status.message()));
  }
  return status;
}

absl::StatusOr<Found> ScheduleFinder::Find(const Workload& workload) const {
  Query query{workload, Canonicalize(workload), WorkloadHash(workload),
              log_ == nullptr ? "no tuning log was named" : ""};
  if (log_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(std::optional<Found> own, FindOwn(&query));
    if (own) return *std::move(own);
    MYCC_ASSIGN_OR_RETURN(std::optional<Found> near, FindNear(&query));
    if (near) return *std::move(near);
  }
  return Default(query);
}

}  // namespace mycc
