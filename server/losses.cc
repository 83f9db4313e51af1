#include "server/losses.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "server/assignment.h"

namespace mycc {
namespace {

constexpr double kRetrySeconds = 1;

// What is known of the workers that were lost with the trial, oldest first.
absl::StatusOr<std::string> EvidenceOf(const JobStore& store, const Grant& grant, const std::string& last) {
  std::string all =
      absl::StrCat("quarantined: ", grant.trial.losses + 1, " workers were lost while they measured it");
  if (!grant.trial.is_round()) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<LostAttempt> before, store.LostAttempts(grant.trial.name));
    for (const LostAttempt& lost : before)
      absl::StrAppend(&all, "; attempt ", lost.attempt, ": ", lost.evidence);
  }
  absl::StrAppend(&all, "; attempt ", grant.trial.attempt, ": ", last);
  return all;
}

}  // namespace

void Losses::ReturnUntouched(const Grant& grant) { End({.grant = grant}); }

void Losses::Lose(const Grant& grant, v1::MeasureStatus status, const std::string& evidence) {
  End({.grant = grant, .status = status, .evidence = evidence});
}

// A candidate runs in a process of its own, so a worker that dies on a healthy host was killed by somebody
// else.
void Losses::ReturnOrLose(const Grant& grant, const std::string& worker, const std::string& accident) {
  if (accident.empty() && grant.trial.attempt < options_.max_attempts) {
    ReturnUntouched(grant);
  } else {
    Lose(grant, v1::MEASURE_STATUS_WORKER_LOST,
         absl::StrCat("worker ", worker, " was started again", accident));
  }
}

void Losses::Retry(double now) {
  if (unwritten_.empty() || now < retry_at_) return;
  retry_at_ = now + kRetrySeconds;
  for (const auto& [trial, ending] : std::exchange(unwritten_, {})) Write(ending);
}

bool Losses::IsLast(const Ending& ending) const {
  return ending.status != v1::MEASURE_STATUS_UNSPECIFIED &&
         ending.grant.trial.losses + 1 >= options_.max_losses;
}

void Losses::End(Ending ending) {
  const QueuedTrial& trial = ending.grant.trial;
  if (!queue_->Settle(trial.name, trial.attempt)) return;
  if (!trial.is_round()) {
    Write(ending);
  } else if (!IsLast(ending)) {
    queue_->Return(trial.name, trial.attempt, ending.status != v1::MEASURE_STATUS_UNSPECIFIED);
  } else {
    const absl::StatusOr<std::string> evidence = EvidenceOf(*store_, ending.grant, ending.evidence);
    queue_->Finish(trial.name, trial.attempt);
    board_->GiveUpRound(trial.job, trial.name, *evidence);  // nothing was read for it
  }
}

void Losses::Write(const Ending& ending) {
  if (queue_->Find(ending.grant.trial.name, ending.grant.trial.attempt) == nullptr) return;  // its job ended
  if (IsLast(ending)) {
    WriteQuarantine(ending);
  } else {
    WriteReturn(ending);
  }
}

bool Losses::Stands(const Ending& ending, const absl::Status& status) {
  if (status.ok()) return true;
  if (absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) {
    // The log holds no such attempt any more: the trial's job has ended there.
    queue_->Finish(ending.grant.trial.name, ending.grant.trial.attempt);
    return false;
  }
  unwritten_[ending.grant.trial.name] = ending;
  return false;
}

void Losses::WriteReturn(const Ending& ending) {
  const LostAttempt lost{.trial = ending.grant.trial.name,
                         .attempt = ending.grant.trial.attempt,
                         .status = ending.status,
                         .evidence = ending.evidence};
  write_([store = store_, lost] { return store->RequeueTrial(lost).status(); },
         [this, ending](const absl::Status& status) {
           if (!Stands(ending, status)) return;
           queue_->Return(ending.grant.trial.name, ending.grant.trial.attempt,
                          ending.status != v1::MEASURE_STATUS_UNSPECIFIED);
         });
}

void Losses::WriteQuarantine(const Ending& ending) {
  const QueuedTrial& trial = ending.grant.trial;
  auto finished = std::make_shared<FinishedTrial>();
  finished->trial = trial.name;
  finished->attempt = trial.attempt;
  finished->result.set_status(ending.status);
  if (const ActiveJob* job = board_->Leasable(trial.job); job != nullptr) {
    const v1::Assignment assignment = AssignmentOf(ending.grant, *job);
    finished->result.mutable_timing()->set_protocol(assignment.protocol());
    finished->result.set_reproduction(ReproductionOf(assignment));
  }
  write_(
      [store = store_, ending, finished]() -> absl::Status {
        MYCC_ASSIGN_OR_RETURN(std::string evidence, EvidenceOf(*store, ending.grant, ending.evidence));
        finished->result.set_error(std::move(evidence));
        MYCC_ASSIGN_OR_RETURN(const auto recorded, store->FinishTrials({finished.get(), 1}));
        return recorded[0].status();
      },
      [this, ending, finished](const absl::Status& status) {
        if (!Stands(ending, status)) return;
        queue_->Finish(finished->trial, finished->attempt);
        const absl::StatusOr<TrialId> id = ParseTrialName(finished->trial);
        if (id.ok()) board_->OnFinished(*id, finished->result);
      });
}

}  // namespace mycc
