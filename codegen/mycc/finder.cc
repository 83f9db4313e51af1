#include "codegen/mycc/finder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/emit.h"
#include "codegen/mycc/default_schedule.h"
#include "codegen/mycc/neighbour.h"
#include "codegen/mycc/spot_check.h"
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

}  // namespace

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindOwn(Query* query) const {
  MYCC_ASSIGN_OR_RETURN(const std::optional<StoredRecord> best,
                        BestRecord(*log_, {query->hash, PrintTarget(target_)}));
  if (!best) return std::nullopt;
  const v1::MeasureResult& result = best->record.result();
  absl::StatusOr<KernelSpec> kernel = CompileRecord(query->workload, target_, best->record);
  if (!kernel.ok()) {
    query->why_not =
        absl::StrCat("record ", best->id, " no longer replays: ", std::string(kernel.status().message()));
    return std::nullopt;
  }
  kernel->record = best->id;
  kernel->expected_seconds = result.timing().seconds();
  const std::string digest = CodeDigest(kernel->lowered, target_, LlvmToolchain());
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
  const double fallback_seconds = DefaultSchedules(query->canonical, target_)[0].seconds;
  for (const Neighbour& neighbour : neighbourhood.neighbours) {
    const std::string origin = absl::StrCat("record ", neighbour.record, " (", neighbour.difference, ")");
    // The nearest one's refusal is the one to tell.
    const auto refuse = [&](const std::string& why) {
      if (query->why_not.empty()) query->why_not = absl::StrCat(origin, " ", why);
    };
    absl::StatusOr<ScoredTrace> refitted = RefitSchedule(neighbour.trace, query->canonical, target_);
    if (!refitted.ok()) {
      refuse(absl::StrCat("does not fit: ", std::string(refitted.status().message())));
      continue;
    }
    if (refitted->seconds >= fallback_seconds) {
      refuse("is predicted no faster than the default schedule");
      continue;
    }
    absl::StatusOr<KernelSpec> kernel = CompileKernel(query->workload, target_, refitted->trace);
    if (!kernel.ok()) {
      refuse(absl::StrCat("does not compile here: ", std::string(kernel.status().message())));
      continue;
    }
    const SpotCheck check = CheckOnRandomInputs(*kernel, target_);
    if (check.verdict == SpotCheck::kWrong) {
      refuse(absl::StrCat("gives wrong results here: ", check.detail));
      continue;
    }
    kernel->reason = Reason::kNear;
    kernel->record = neighbour.record;
    return Found{*std::move(kernel), absl::StrCat(neighbour.difference, "; ", check.detail)};
  }
  return std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Default(const Query& query) const {
  std::string why = query.why_not;
  absl::Status status;
  for (const ScoredTrace& schedule : DefaultSchedules(query.canonical, target_)) {
    absl::StatusOr<KernelSpec> kernel = CompileKernel(query.workload, target_, schedule.trace);
    if (kernel.ok()) {
      kernel->reason = Reason::kMiss;
      return Found{*std::move(kernel), why};
    }
    status = kernel.status();
    absl::StrAppend(&why, "; the default of rule `", schedule.trace.sketch,
                    "` does not lower: ", std::string(status.message()));
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
