#include "server/result_keeping.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse.h"
#include "proto/job_state.pb.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "proto/timing_protocol.h"
#include "server/assignment.h"
#include "server/ceilings.h"
#include "server/job_plan.h"

namespace mycc {
namespace {

absl::Status Finish(JobStore* store, const FinishedTrial& finished) {
  MYCC_ASSIGN_OR_RETURN(const auto recorded, store->FinishTrials({&finished, 1}));
  return recorded[0].status();
}

// The result that is kept for a trial whose row in the log is damaged.
v1::MeasureResult Unreadable(const v1::MeasureResult& result, const absl::Status& why) {
  v1::MeasureResult unreadable;
  unreadable.set_status(v1::MEASURE_STATUS_WORKER_LOST);
  unreadable.mutable_timing()->set_protocol(result.timing().protocol());
  unreadable.set_error(absl::StrCat("its result is not kept: ", why.message()));
  *unreadable.mutable_device() = result.device();
  return unreadable;
}

}  // namespace

absl::Status KeepResult(JobStore* store, FinishedTrial* finished) {
  const absl::Status status = Finish(store, *finished);
  if (!absl::IsDataLoss(status) || !store->RepairTrial(finished->trial).ok()) return status;
  // With the row, what was measured is perhaps damaged.
  finished->result = Unreadable(finished->result, status);
  return Finish(store, *finished);
}

absl::Status KeepLateResult(JobStore* store, FinishedTrial* finished, Expectation source) {
  MYCC_ASSIGN_OR_RETURN(const TrialId id, ParseTrialName(finished->trial));
  MYCC_ASSIGN_OR_RETURN(const Trial trial, store->GetTrial(finished->trial));
  MYCC_ASSIGN_OR_RETURN(const Job job, store->GetJob(id.job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Task> tasks, store->LoadTasks(id.job));
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec) || id.task >= tasks.size())
    return absl::DataLossError(absl::StrCat("job ", id.job, " is damaged"));
  const KeyText& key = tasks[id.task].key;
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(key.workload, "the log"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(key.target));
  source.protocol = ProtocolFor(target, stored.spec().protocol(), UseOf(stored.spec()));
  source.least_seconds = LeastSeconds(workload, target);
  MYCC_RETURN_IF_ERROR(CheckResult(finished->result, source));
  if (finished->result.status() != v1::MEASURE_STATUS_OK) {
    v1::Assignment assignment;
    assignment.set_workload(key.workload);
    assignment.set_target(key.target);
    assignment.set_trace(trial.trace);
    assignment.set_protocol(source.protocol);
    assignment.set_seed(InputSeed(stored.spec().seed(), id));
    finished->result.set_reproduction(ReproductionOf(assignment));
  }
  return KeepResult(store, finished);
}

}  // namespace mycc
