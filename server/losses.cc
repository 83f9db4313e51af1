#include "server/losses.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "server/assignment.h"
#include "server/result_keeping.h"

namespace mycc {
namespace {

constexpr double kRewriteSeconds = 1;

// The evidence about the workers that were lost with the trial, the oldest first.
absl::StatusOr<std::string> EvidenceOf(const JobStore& store, const Grant& grant, const std::string& last) {
  std::string all =
      absl::StrCat("quarantined: ", grant.work.losses + 1, " workers were lost while they measured it");
  if (!grant.work.is_round()) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<LostAttempt> before, store.LostAttempts(grant.work.name));
    for (const LostAttempt& lost : before)
      absl::StrAppend(&all, "; attempt ", lost.attempt, ": ", lost.evidence);
  }
  absl::StrAppend(&all, "; attempt ", grant.work.attempt, ": ", last);
  return all;
}

// Each goes back to the head of its line: in this order they stand there as before.
std::vector<Grant> LastFirst(std::vector<Grant> grants) {
  std::ranges::reverse(grants);
  return grants;
}

}  // namespace

void Losses::Return(const Grant& grant) { End({.grant = grant}); }

void Losses::ReturnElsewhere(const Grant& grant, FailedTry failed) {
  const bool too_often = grant.work.attempt >= options_.max_attempts;
  End({.grant = grant,
       .status = too_often ? v1::MEASURE_STATUS_WORKER_LOST : v1::MEASURE_STATUS_UNSPECIFIED,
       .failed = std::move(failed)});
}

void Losses::Lose(const Grant& grant, v1::MeasureStatus status, FailedTry failed) {
  End({.grant = grant, .status = status, .failed = std::move(failed)});
}

void Losses::LoseAll(const std::vector<Grant>& grants, const FailedTry& failed) {
  const bool has_suspect =
      std::ranges::any_of(grants, [](const Grant& grant) { return grant.work.is_suspect(); });
  for (const Grant& grant : LastFirst(grants)) {
    if (has_suspect && !grant.work.is_suspect()) {
      Return(grant);
    } else {
      Lose(grant, v1::MEASURE_STATUS_WORKER_LOST, failed);
    }
  }
}

void Losses::HandBack(const std::vector<Grant>& grants, const FailedTry& failed) {
  for (const Grant& grant : LastFirst(grants)) {
    if (grant.work.attempt < options_.max_attempts) {
      Return(grant);
    } else {
      Lose(grant, v1::MEASURE_STATUS_WORKER_LOST, failed);
    }
  }
}

void Losses::Retry() {
  const double now = time_->Seconds();
  if (unwritten_.empty() || now < retry_at_) return;
  retry_at_ = now + kRewriteSeconds;
  for (const auto& [trial, ending] : std::exchange(unwritten_, {})) Write(ending);
}

bool Losses::IsLast(const Ending& ending) const {
  return ending.is_blamed() && ending.grant.work.losses + 1 >= options_.max_losses;
}

void Losses::End(Ending ending) {
  const QueuedWork& work = ending.grant.work;
  if (!queue_->BeginCommit(work.name, work.attempt)) return;
  if (!work.is_round()) {
    Write(ending);
  } else if (!IsLast(ending)) {
    Requeue(ending);
  } else {
    // The log holds nothing of a final round, and nothing is read for it.
    const absl::StatusOr<std::string> evidence = EvidenceOf(*store_, ending.grant, ending.failed->what);
    queue_->Finish(work.name, work.attempt);
    board_->GiveUpRound(work.job, work.name, *evidence);
  }
}

void Losses::Requeue(const Ending& ending) {
  const QueuedWork& work = ending.grant.work;
  if (ending.failed) {
    queue_->ReturnElsewhere(work.name, work.attempt, ending.is_blamed(), *ending.failed, time_->Seconds());
  } else {
    queue_->Return(work.name, work.attempt, ending.is_blamed());
  }
}

void Losses::Write(const Ending& ending) {
  if (queue_->Find(ending.grant.work.name, ending.grant.work.attempt) == nullptr) return;  // its job ended
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
    queue_->Finish(ending.grant.work.name, ending.grant.work.attempt);
  } else {
    unwritten_.insert_or_assign(ending.grant.work.name, ending);
  }
  return false;
}

void Losses::WriteReturn(const Ending& ending) {
  const LostAttempt lost{.trial = ending.grant.work.name,
                         .attempt = ending.grant.work.attempt,
                         .status = ending.status,
                         .evidence = ending.failed ? ending.failed->what : ""};
  write_([store = store_, lost] { return store->RequeueTrial(lost).status(); },
         [this, ending](const absl::Status& status) {
           if (Stands(ending, status)) Requeue(ending);
         });
}

void Losses::WriteQuarantine(const Ending& ending) {
  const QueuedWork& work = ending.grant.work;
  auto finished = std::make_shared<FinishedTrial>();
  finished->trial = work.name;
  finished->attempt = work.attempt;
  finished->result.set_status(ending.status);
  if (const JobLedger* ledger = board_->Leasable(work.job); ledger != nullptr) {
    const v1::Assignment assignment = AssignmentOf(ending.grant, *ledger);
    finished->result.mutable_timing()->set_protocol(assignment.protocol());
    finished->result.set_reproduction(ReproductionOf(assignment));
  }
  write_(
      [store = store_, ending, finished]() -> absl::Status {
        MYCC_ASSIGN_OR_RETURN(std::string evidence, EvidenceOf(*store, ending.grant, ending.failed->what));
        finished->result.set_error(std::move(evidence));
        return KeepResult(store, finished.get());
      },
      [this, ending, finished](const absl::Status& status) {
        if (!Stands(ending, status)) return;
        queue_->Finish(finished->trial, finished->attempt);
        const absl::StatusOr<TrialId> id = ParseTrialName(finished->trial);
        if (id.ok()) board_->OnFinished(*id, finished->result);
      });
}

}  // namespace mycc
