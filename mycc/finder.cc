#include "mycc/finder.h"

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/ir/debug.h"
#include "codegen/workload/canonical.h"
#include "command/colour.h"
#include "command/times.h"
#include "db/foreign_table.h"
#include "mycc/near_record.h"
#include "mycc/predicted_schedules.h"
#include "mycc/spot_check.h"
#include "proto/precision.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// The records of a key that are tried before none is taken to replay. The first one nearly always does.
constexpr int kMostTried = 64;

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
  if (GetPassDebug().level >= kDebugSteps) std::fputs(Printable(PrintTrace(trace)).c_str(), stderr);
}

// The records before the one that serves, and what spoke against them.
class Refusals {
 public:
  void Add(int64_t record, const absl::Status& status) {
    if (count_++ == 0)
      first_ = absl::StrCat("record ", record, " no longer replays: ", std::string(status.message()));
  }
  bool empty() const { return count_ == 0; }
  std::string Text() const {
    return count_ > 1 ? absl::StrCat(first_, ", and ", count_ - 1, " more do not") : first_;
  }

 private:
  std::string first_;
  int count_ = 0;
};

// Records of others are not used before they were measured here; `count` of them might serve then.
Found WithForeign(int64_t count, Found found) {
  if (count == 0) return found;
  absl::StrAppend(&found.why, "; ", count, count == 1 ? " foreign record waits" : " foreign records wait",
                  " for re-measuring: mycc-tune reverify");
  return found;
}

std::string RuleName(const Trace& trace) {
  return trace.sketch.empty() ? "naive nest" : absl::StrCat("default of rule `", trace.sketch, "`");
}

std::string PredictedText(double seconds) {
  return std::isinf(seconds) ? "not predicted" : absl::StrCat("predicted ", FormatSeconds(seconds));
}

}  // namespace

std::string Headline(const Found& found) {
  const KernelSpec& kernel = found.kernel;
  const std::string source = kernel.record                    ? absl::StrCat(", record ", *kernel.record)
                             : kernel.reason == Reason::kMiss ? absl::StrCat(", ", RuleName(kernel.trace))
                                                              : "";
  return absl::StrCat(kernel.workload.name, ": ", ReasonName(kernel.reason), source, " (", found.why, ")");
}

std::string PaintedReason(const std::string& reason) {
  const bool is_hit = reason == ReasonName(Reason::kHit) || reason == ReasonName(Reason::kTrace);
  return Painted(reason, is_hit ? Tone::kHit : Tone::kMiss, Stream::kOutput);
}

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindOwn(
    Query* query, const std::vector<v1::TimingProtocol>& protocols) const {
  const LogKey key{query->hash, PrintTarget(target_)};
  Refusals refusals;
  for (const v1::TimingProtocol protocol : protocols) {
    size_t tried = 0;
    for (const int most : {1, kMostTried}) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> best, log_->TopK(key, protocol, most));
      for (; tried < best.size(); ++tried) {
        absl::StatusOr<Found> found = Use(*query, best[tried]);
        if (!found.ok()) {
          refusals.Add(best[tried].id, found.status());
          continue;
        }
        if (!refusals.empty()) absl::StrAppend(&found->why, "; the next best, as ", refusals.Text());
        return *std::move(found);
      }
      if (static_cast<int>(best.size()) < most) break;
    }
  }
  if (!refusals.empty()) query->why_not = refusals.Text();
  return std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Use(const Query& query, const StoredRecord& best) const {
  const v1::MeasureResult& result = best.record.result();
  if (GetPassDebug().level >= kDebugCandidates)
    std::fprintf(stderr, "%s: candidate: record %lld, its own, measured %.6f ms\n",
                 query.workload.name.c_str(), static_cast<long long>(best.id),
                 result.timing().seconds() * 1e3);
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, CompileRecord(query.workload, target_, best.record));
  MYCC_ASSIGN_OR_RETURN(const std::string digest, CodeDigestOf(kernel, target_));
  kernel.record = best.id;
  kernel.expected_seconds = result.timing().seconds();
  const std::string wide = WideText(RelativeWidth(result.timing()));
  const std::string known = wide.empty() ? "" : absl::StrCat("; its time is ", wide);
  if (digest == result.code_digest()) {
    kernel.reason = Reason::kHit;
    return Found{std::move(kernel),
                 absl::StrCat(best.override_by ? absl::StrCat("pinned: ", best.override_by->reason)
                                               : "same workload, target and code",
                              known)};
  }
  kernel.reason = Reason::kStale;
  return Found{std::move(kernel),
               absl::StrCat("code digest ", Short(digest), " differs from ", Short(result.code_digest()),
                            " that was measured; unverified until `mycc-tune log verify`", known)};
}

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindNear(Query* query) const {
  MYCC_ASSIGN_OR_RETURN(NearRecords near, FindNearRecords(*log_, protocols_, query->canonical, target_));
  if (query->why_not.empty()) query->why_not = near.why_none;
  if (near.records.empty()) return std::nullopt;
  for (const NearRecord& near_record : near.records) {
    absl::StatusOr<Found> found = Adapt(query, near_record);
    if (found.ok()) return *std::move(found);
    const std::string refusal = absl::StrCat("record ", near_record.record, " (", near_record.difference,
                                             ") ", std::string(found.status().message()));
    if (GetPassDebug().level >= kDebugCandidates)
      std::fprintf(stderr, "%s: refused: %s\n", query->workload.name.c_str(), Printable(refusal).c_str());
    // The nearest one's refusal is the one to tell.
    if (query->why_not.empty()) query->why_not = refusal;
  }
  return std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Adapt(Query* query, const NearRecord& near_record) const {
  const auto refuse = [](const std::string& why) { return absl::FailedPreconditionError(why); };
  const UnmeasuredSchedules& unmeasured = UnmeasuredOf(query);
  const absl::StatusOr<ScoredSchedule> refitted = unmeasured.Refit(near_record.trace);
  if (!refitted.ok()) return refuse(absl::StrCat("does not fit: ", std::string(refitted.status().message())));
  PrintCandidate(
      query->workload,
      absl::StrCat("record ", near_record.record, ", re-fitted, ", PredictedText(refitted->seconds)),
      refitted->trace);
  if (refitted->seconds >= unmeasured.defaults()[0].seconds)
    return refuse("is predicted no faster than the default schedule");
  absl::StatusOr<KernelSpec> kernel =
      CompileScheduled(query->workload, target_, refitted->trace, refitted->function);
  if (!kernel.ok())
    return refuse(absl::StrCat("does not compile here: ", std::string(kernel.status().message())));
  const SpotCheck check = CheckOnRandomInputs(*kernel, target_);
  if (check.verdict == SpotCheck::kWrong)
    return refuse(absl::StrCat("gives wrong results here: ", check.detail));
  kernel->reason = Reason::kNear;
  kernel->record = near_record.record;
  return Found{*std::move(kernel), absl::StrCat(near_record.difference, "; ", check.detail)};
}

const UnmeasuredSchedules& ScheduleFinder::UnmeasuredOf(Query* query) const {
  if (!query->unmeasured) query->unmeasured.emplace(query->canonical, target_);
  return *query->unmeasured;
}

absl::StatusOr<std::optional<Found>> ScheduleFinder::FindPredicted(Query* query) const {
  std::vector<Trace> near_traces;
  if (log_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(NearRecords near, FindNearRecords(*log_, protocols_, query->canonical, target_));
    for (NearRecord& record : near.records) near_traces.push_back(std::move(record.trace));
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<ScoredSchedule> best, model_->Best(query->canonical, near_traces));
  std::string refusal = "it finds no schedule that fits the target's limits";
  for (const ScoredSchedule& schedule : best) {
    PrintCandidate(query->workload,
                   absl::StrCat("by ", model_->name(), ", ", PredictedText(schedule.seconds)),
                   schedule.trace);
    absl::StatusOr<KernelSpec> kernel =
        CompileScheduled(query->workload, target_, schedule.trace, schedule.function);
    if (!kernel.ok()) {
      refusal = absl::StrCat("its choice does not compile here: ", std::string(kernel.status().message()));
      continue;
    }
    const SpotCheck check = CheckOnRandomInputs(*kernel, target_);
    if (check.verdict == SpotCheck::kWrong) {
      refusal = absl::StrCat("its choice gives wrong results here: ", check.detail);
      continue;
    }
    kernel->reason = Reason::kPredicted;
    kernel->predicted_seconds = schedule.seconds;
    return Found{*std::move(kernel), absl::StrCat(PredictedText(schedule.seconds), " by ", model_->name(),
                                                  ", not measured; ", check.detail)};
  }
  query->why_not = absl::StrCat(model_->name(), ": ", refusal);
  return std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Default(Query* query) const {
  std::string why = query->why_not;
  absl::Status status;
  for (const ScoredSchedule& schedule : UnmeasuredOf(query).defaults()) {
    PrintCandidate(query->workload,
                   absl::StrCat(RuleName(schedule.trace), ", ", PredictedText(schedule.seconds)),
                   schedule.trace);
    absl::StatusOr<KernelSpec> kernel =
        CompileScheduled(query->workload, target_, schedule.trace, schedule.function);
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

absl::StatusOr<Found> ScheduleFinder::FindUnmeasured(Query* query) const {
  std::optional<Found> found;
  if (model_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(found, FindPredicted(query));
  } else if (log_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(found, FindNear(query));
  }
  return found ? *std::move(found) : Default(query);
}

absl::StatusOr<std::optional<double>> ScheduleFinder::MeasuredSeconds(const Workload& workload,
                                                                      v1::TimingProtocol protocol) const {
  if (log_ == nullptr) return std::nullopt;
  Query query{workload, Canonicalize(workload), WorkloadHash(workload), "", std::nullopt};
  MYCC_ASSIGN_OR_RETURN(const std::optional<Found> own, FindOwn(&query, {protocol}));
  return own ? own->kernel.expected_seconds : std::nullopt;
}

absl::StatusOr<Found> ScheduleFinder::Find(const Workload& workload) const {
  Query query{workload, Canonicalize(workload), WorkloadHash(workload),
              log_ == nullptr ? "no tuning log was named" : "", std::nullopt};
  if (log_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(std::optional<Found> own, FindOwn(&query, protocols_));
    if (own) return *std::move(own);
    MYCC_ASSIGN_OR_RETURN(const int64_t foreign,
                          CountWaitingForeign(*log_, {query.hash, PrintTarget(target_)}));
    MYCC_ASSIGN_OR_RETURN(Found unmeasured, FindUnmeasured(&query));
    return WithForeign(foreign, std::move(unmeasured));
  }
  return FindUnmeasured(&query);
}

}  // namespace mycc
