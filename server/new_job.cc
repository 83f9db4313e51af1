#include "server/new_job.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "db/model_store.h"
#include "proto/job_state.pb.h"
#include "server/device_choice.h"
#include "server/history.h"
#include "server/listed_job.h"
#include "tuner/cost/model_kind.h"

namespace mycc {
namespace {

// The newest model of each kind that the plan's targets ask for, or of the nearest kind that has one.
absl::Status NameModels(const JobPlan& plan, TuningLog* log, v1::StoredJob* stored) {
  std::set<std::string> kinds;
  for (const PlannedTask& planned : plan.tasks) kinds.insert(ModelKind(planned.target));
  stored->clear_models();
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredModel> models, ModelStore(log).ListNewest());
  std::map<std::string, std::string> ids;
  for (const StoredModel& model : models) ids[model.kind] = model.id;
  std::set<std::string> named;
  for (const std::string& kind : kinds) {
    const std::string* const id = OfNearestKind(ids, kind);
    if (id != nullptr && named.insert(*id).second) stored->add_models(*id);
  }
  return absl::OkStatus();
}

// Whether the log holds as many measured candidates of the job's tasks together as it asks for, and a valid
// schedule of each.
absl::StatusOr<bool> HoldsTotal(const JobPlan& plan, const History& history) {
  const int64_t total = plan.spec.total_trials();
  if (total == 0 || plan.spec.fresh() || IsListed(plan.spec)) return false;
  int64_t measured = 0;
  for (const PlannedTask& planned : plan.tasks) {
    MYCC_ASSIGN_OR_RETURN(const int64_t of_task, history.CountMeasured(planned, total));
    if (of_task == 0) return false;
    measured += of_task;
  }
  return measured >= total;
}

// The search's knowledge of a task whose candidates are given: these alone.
v1::StoredTask ListedTask(const PlannedTask& planned) {
  v1::StoredTask stored;
  stored.set_count(planned.count);
  stored.set_weight(planned.weight);
  for (const std::string& trace : planned.candidates) stored.add_history(trace);
  return stored;
}

}  // namespace

std::string DigestOf(const std::string& submission) {
  return submission.empty() ? "" : Sha256Hex(submission);
}

Job MakeJob(const std::string& id, const JobRequest& request, uint32_t generation_size) {
  v1::StoredJob stored;
  *stored.mutable_spec() = request.spec;
  stored.set_submission(request.submission);
  stored.set_generation_size(generation_size);
  stored.set_detached(request.detached);
  stored.set_owner(request.owner);
  stored.set_priority(request.priority);
  stored.set_deadline_unix_micros(request.deadline_unix_micros);
  Job job;
  job.id = id;
  job.owner = request.owner;
  job.spec = stored.SerializeAsString();
  job.submission = DigestOf(request.submission);
  return job;
}

absl::StatusOr<PreparedJob> PrepareJob(const Job& job, TuningLog* log) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec))
    return absl::DataLossError(absl::StrCat("job ", job.id, ": its spec is damaged"));
  if (IsForeign(stored.spec())) {
    absl::StatusOr<v1::JobSpec> listed = ListForeign(stored.spec(), *log);
    // Another job has measured them since this one was submitted.
    if (absl::IsNotFound(listed.status())) return PreparedJob{.spec = job.spec, .tasks = {}, .is_done = true};
    MYCC_RETURN_IF_ERROR(listed.status());
    *stored.mutable_spec() = *std::move(listed);
  }
  MYCC_ASSIGN_OR_RETURN(JobPlan plan, PlanJob(stored.spec(), stored.deadline_unix_micros() > 0));
  History history(log);
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredConstants> known, ConstantsStore(log).List());
  const DeviceChoice devices(known);
  MYCC_ASSIGN_OR_RETURN(const bool holds_total, HoldsTotal(plan, history));
  PreparedJob prepared;
  prepared.is_done = true;
  for (const PlannedTask& planned : plan.tasks) {
    v1::StoredTask recalled;
    if (IsListed(plan.spec)) {
      recalled = ListedTask(planned);
    } else {
      MYCC_ASSIGN_OR_RETURN(recalled, history.Recall(planned, plan.spec.trials(), plan.spec.fresh()));
    }
    if (holds_total) recalled.set_reused(true);
    if (const v1::DeviceConstants* const constants = devices.For(planned.target); constants != nullptr)
      *recalled.mutable_constants() = *constants;
    prepared.is_done &= recalled.reused();
    Task& task = prepared.tasks.emplace_back();
    task.key = planned.key;
    task.spec = recalled.SerializeAsString();
  }
  MYCC_RETURN_IF_ERROR(NameModels(plan, log, &stored));
  *stored.mutable_spec() = std::move(plan.spec);
  prepared.spec = stored.SerializeAsString();
  return prepared;
}

}  // namespace mycc
