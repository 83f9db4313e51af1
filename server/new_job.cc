#include "server/new_job.h"

#include <set>
#include <utility>

#include "base/sha256.h"
#include "base/status.h"
#include "proto/job_state.pb.h"
#include "server/history.h"

namespace mycc {
namespace {

v1::StoredJob StoredJobOf(const JobRequest& request, uint32_t generation_size, const ModelStore& models) {
  v1::StoredJob stored;
  *stored.mutable_spec() = request.plan.spec;
  stored.set_submission(request.submission);
  stored.set_generation_size(generation_size);
  stored.set_detached(request.detached);
  std::set<std::string> kinds;
  for (const PlannedTask& planned : request.plan.tasks) kinds.insert(ModelKind(planned.target));
  for (const std::string& kind : kinds) {
    if (const auto model = models.LoadNewest(kind); model.ok()) stored.add_models(model->id);
  }
  return stored;
}

}  // namespace

std::string DigestOf(const std::string& submission) {
  return submission.empty() ? "" : Sha256Hex(submission);
}

absl::StatusOr<NewJob> MakeJob(const std::string& id, const JobRequest& request, uint32_t generation_size,
                               const TuningLog& log, const ModelStore& models) {
  NewJob made;
  const v1::JobSpec& spec = request.plan.spec;
  bool all_reused = true;
  for (const PlannedTask& planned : request.plan.tasks) {
    MYCC_ASSIGN_OR_RETURN(const v1::StoredTask recalled,
                          RecallTask(log, planned, planned.protocol, spec.trials(), spec.fresh()));
    all_reused &= recalled.reused();
    Task& task = made.tasks.emplace_back();
    task.key = planned.key;
    task.spec = recalled.SerializeAsString();
  }
  made.job.id = id;
  made.job.owner = spec.name();
  made.job.spec = StoredJobOf(request, generation_size, models).SerializeAsString();
  made.job.submission = DigestOf(request.submission);
  if (all_reused) {
    made.job.state = JobState::kDone;
    made.job.message = "the log already held what was asked for";
  }
  return made;
}

}  // namespace mycc
