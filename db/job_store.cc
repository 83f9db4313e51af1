// SQL for jobs, tasks, generations and trials; each public call is one transaction.
#include "db/job_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/namesake.h"
#include "db/record_check.h"
#include "db/standing_rank.h"
#include "db/trial_table.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr char kSelectJobs[] =
    "SELECT id, state, owner, spec, scheduler_state, message, created, updated, submission, summary FROM "
    "jobs ";
constexpr char kSelectTasks[] = R"sql(
SELECT a.task, w.text, w.hash, w.shape_erased_hash, a.name, t.text, a.spec, a.search_state, a.done, a.outcome
FROM tasks a JOIN keys k ON k.id = a.key JOIN workloads w ON w.id = k.workload JOIN targets t ON t.id = k.target
WHERE a.job = ?1 ORDER BY a.task)sql";
constexpr char kHasTasks[] = "SELECT EXISTS (SELECT 1 FROM tasks WHERE job = ?1)";
constexpr char kInsertTask[] =
    "INSERT INTO tasks (job, task, key, name, spec, search_state, done, outcome) VALUES (?1, ?2, ?3, ?4, ?5, "
    "?6, ?7, ?8)";
constexpr char kInsertTrial[] = R"sql(
INSERT INTO trials (task, generation, position, trace, provenance, state, attempt, lost, worker, leased, created)
VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, 0, '', 0, ?6))sql";
constexpr char kInsertGeneration[] =
    "INSERT INTO generations (task, generation, round, elapsed_seconds, state) VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr char kSelectGenerations[] = R"sql(
SELECT a.task, g.generation, g.round, g.elapsed_seconds, g.state
FROM tasks a JOIN generations g ON g.task = a.id WHERE a.job = ?1 ORDER BY g.round)sql";

int64_t Number(JobState state) { return static_cast<int64_t>(state); }

bool Ends(JobState state) {
  return state == JobState::kDone || state == JobState::kCancelled || state == JobState::kFailed;
}

Job ReadJob(const Query& row) {
  Job job;
  job.id = row.Text(0);
  job.state = static_cast<JobState>(row.Int(1));
  job.owner = row.Text(2);
  job.spec = row.Text(3);
  job.scheduler_state = row.Text(4);
  job.message = row.Text(5);
  job.created_unix_micros = row.Int(6);
  job.updated_unix_micros = row.Int(7);
  job.submission = row.Text(8);
  job.summary = row.Text(9);
  return job;
}

absl::StatusOr<std::vector<Job>> ReadJobs(Database* database, const std::string& where,
                                          std::vector<SqlValue> values) {
  MYCC_ASSIGN_OR_RETURN(Query query, database->Prepare(kSelectJobs + where, std::move(values)));
  std::vector<Job> jobs;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool row, query.Next());
    if (!row) return jobs;
    jobs.push_back(ReadJob(query));
  }
}

// The statement before changed the row that its condition names, if there was one.
absl::Status ExpectChanged(const Database& database, const std::string& what) {
  return database.changes() > 0 ? absl::OkStatus() : absl::NotFoundError(absl::StrCat("no ", what));
}

absl::Status ExpectState(Database* database, const std::string& id, JobState state,
                         const std::string& otherwise) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> jobs, ReadJobs(database, "WHERE id = ?1", {id}));
  if (jobs.empty())
    return absl::NotFoundError(absl::StrCat(
        "no job ", id,
        " in this log; expected one that `mycc-tune tune` said when it began, or `mycc-tune jobs` lists"));
  if (jobs[0].state == state) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("job ", id, " ", otherwise));
}

absl::Status InsertTasks(Database* database, const std::string& job, absl::Span<const Task> tasks) {
  for (size_t index = 0; index < tasks.size(); ++index) {
    const Task& task = tasks[index];
    MYCC_ASSIGN_OR_RETURN(const int64_t key, EnsureKey(database, task.key));
    MYCC_RETURN_IF_ERROR(database->Run(
        kInsertTask, {job, static_cast<int64_t>(index), key, task.key.workload_name, Blob{task.spec},
                      Blob{task.search_state}, int64_t{task.done}, task.outcome}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status JobStore::CreateJob(const Job& job, absl::Span<const Task> tasks) {
  if (!IsJobId(job.id)) return absl::InvalidArgumentError(absl::StrCat("\"", job.id, "\" is not a job's id"));
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> known, ReadJobs(database_, "WHERE id = ?1", {job.id}));
  if (!known.empty()) {
    if (known[0].spec == job.spec) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("job ", job.id, " exists already, with another specification"));
  }
  const int64_t now = log_->now();
  MYCC_RETURN_IF_ERROR(database_->Run(
      "INSERT INTO jobs (id, state, owner, spec, scheduler_state, message, created, updated, submission)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)",
      {job.id, Number(job.state), job.owner, Blob{job.spec}, Blob{job.scheduler_state}, job.message, now,
       job.submission}));
  MYCC_RETURN_IF_ERROR(InsertTasks(database_, job.id, tasks));
  return transaction.Commit();
}

absl::Status JobStore::AddTasks(const std::string& job, const std::string& spec,
                                absl::Span<const Task> tasks) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_ASSIGN_OR_RETURN(const int64_t has_tasks, database_->ReadInt(kHasTasks, {job}));
  if (has_tasks != 0)
    return absl::FailedPreconditionError(absl::StrCat("job ", job, " has its tasks already"));
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET spec = ?2 WHERE id = ?1", {job, Blob{spec}}));
  MYCC_RETURN_IF_ERROR(ExpectChanged(*database_, "job " + job));
  MYCC_RETURN_IF_ERROR(InsertTasks(database_, job, tasks));
  return transaction.Commit();
}

absl::StatusOr<bool> JobStore::HasTasks(const std::string& job) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(const int64_t has_tasks, database_->ReadInt(kHasTasks, {job}));
  return has_tasks != 0;
}

absl::StatusOr<Job> JobStore::GetJob(const std::string& id) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, ReadJobs(database_, "WHERE id = ?1", {id}));
  if (jobs.empty())
    return absl::NotFoundError(absl::StrCat(
        "no job ", id,
        " in this log; expected one that `mycc-tune tune` said when it began, or `mycc-tune jobs` lists"));
  return std::move(jobs[0]);
}

absl::StatusOr<std::vector<Job>> JobStore::ListJobs(absl::Span<const JobState> states) const {
  std::vector<int64_t> numbers;
  for (JobState state : states) numbers.push_back(Number(state));
  const std::string where =
      states.empty() ? "" : absl::StrCat("WHERE state IN (", absl::StrJoin(numbers, ", "), ") ");
  MutexLock lock(database_->mutex());
  return ReadJobs(database_, where + "ORDER BY created, id", {});
}

absl::StatusOr<std::vector<Job>> JobStore::JobsOf(const std::string& submission) const {
  MutexLock lock(database_->mutex());
  return ReadJobs(database_, "WHERE submission = ?1 AND submission != '' ORDER BY created DESC, id DESC",
                  {submission});
}

absl::StatusOr<std::vector<JobSummary>> JobStore::ListSummaries(uint32_t limit) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(
      Query row, database_->Prepare("SELECT id, state, message, summary FROM jobs ORDER BY created DESC, id"
                                    " DESC LIMIT ?1",
                                    {limit > 0 ? int64_t{limit} : int64_t{-1}}));
  std::vector<JobSummary> jobs;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return jobs;
    jobs.push_back({row.Text(0), static_cast<JobState>(row.Int(1)), row.Text(2), row.Text(3)});
  }
}

absl::Status JobStore::SetSummary(const std::string& id, const std::string& summary) {
  MutexLock lock(database_->mutex());
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET summary = ?2 WHERE id = ?1", {id, Blob{summary}}));
  return ExpectChanged(*database_, "job " + id);
}

absl::Status JobStore::SetJobState(const std::string& id, JobState state, const std::string& message) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_RETURN_IF_ERROR(ExpectState(database_, id, JobState::kRunning, "has ended before"));
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET state = ?2, message = ?3, updated = ?4 WHERE id = ?1",
                                      {id, Number(state), message, log_->now()}));
  if (Ends(state)) {
    MYCC_RETURN_IF_ERROR(database_->Run(
        "UPDATE trials SET state = 4 WHERE state IN (1, 2) AND task IN (SELECT id FROM tasks WHERE job = ?1)",
        {id}));
  }
  return transaction.Commit();
}

absl::Status JobStore::ReopenJob(const std::string& id) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_RETURN_IF_ERROR(ExpectState(database_, id, JobState::kCancelled, "is not cancelled"));
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET state = 1, message = '', updated = ?2 WHERE id = ?1",
                                      {id, log_->now()}));
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE tasks SET done = 0, outcome = '' WHERE job = ?1", {id}));
  MYCC_RETURN_IF_ERROR(database_->Run(
      "UPDATE trials SET state = 1 WHERE state = 4 AND task IN (SELECT id FROM tasks WHERE job = ?1)", {id}));
  return transaction.Commit();
}

absl::Status JobStore::SetJobSpec(const std::string& id, const std::string& spec) {
  MutexLock lock(database_->mutex());
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET spec = ?2 WHERE id = ?1", {id, Blob{spec}}));
  return ExpectChanged(*database_, "job " + id);
}

absl::Status JobStore::SetSpecs(const std::string& job, const std::string& spec,
                                absl::Span<const std::pair<uint32_t, std::string>> tasks) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE jobs SET spec = ?2 WHERE id = ?1", {job, Blob{spec}}));
  MYCC_RETURN_IF_ERROR(ExpectChanged(*database_, "job " + job));
  for (const auto& [task, of_task] : tasks) {
    MYCC_RETURN_IF_ERROR(database_->Run("UPDATE tasks SET spec = ?3 WHERE job = ?1 AND task = ?2",
                                        {job, int64_t{task}, Blob{of_task}}));
    MYCC_RETURN_IF_ERROR(ExpectChanged(*database_, absl::StrCat("task ", task, " of job ", job)));
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<Task>> JobStore::LoadTasks(const std::string& job) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, database_->Prepare(kSelectTasks, {job}));
  std::vector<Task> tasks;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return tasks;
    tasks.push_back({job, static_cast<uint32_t>(row.Int(0)),
                     KeyText{row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5)}, row.Text(6),
                     row.Text(7), row.Int(8) != 0, row.Text(9)});
  }
}

absl::Status JobStore::FinishTask(const std::string& job, uint32_t task, const std::string& outcome) {
  MutexLock lock(database_->mutex());
  MYCC_RETURN_IF_ERROR(database_->Run("UPDATE tasks SET done = 1, outcome = ?3 WHERE job = ?1 AND task = ?2",
                                      {job, int64_t{task}, outcome}));
  return ExpectChanged(*database_, absl::StrCat("task ", task, " of job ", job));
}

absl::Status JobStore::AddGeneration(const Generation& generation) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_ASSIGN_OR_RETURN(const int64_t task, FindTask(database_, generation.job, generation.task));
  MYCC_ASSIGN_OR_RETURN(const int64_t state,
                        database_->ReadInt("SELECT state FROM jobs WHERE id = ?1", {generation.job}));
  if (Ends(static_cast<JobState>(state)))
    return absl::FailedPreconditionError(absl::StrCat("job ", generation.job, " has ended"));
  const int64_t number = generation.generation;
  MYCC_ASSIGN_OR_RETURN(
      const int64_t known,
      database_->ReadInt("SELECT EXISTS (SELECT 1 FROM trials WHERE task = ?1 AND generation = ?2)",
                         {task, number}));
  if (known != 0) {
    return absl::AlreadyExistsError(absl::StrCat("task ", generation.task, " of job ", generation.job,
                                                 " has generation ", number, " already"));
  }
  const int64_t now = log_->now();
  for (size_t index = 0; index < generation.trials.size(); ++index) {
    v1::Provenance provenance = generation.trials[index].provenance;
    provenance.set_job(generation.job);
    provenance.set_task(generation.task);
    provenance.set_generation(generation.generation);
    provenance.set_index(static_cast<uint32_t>(index));
    MYCC_RETURN_IF_ERROR(database_->Run(
        kInsertTrial, {task, number, static_cast<int64_t>(index), StoredTrace(generation.trials[index].trace),
                       Blob{provenance.SerializeAsString()}, now}));
  }
  MYCC_RETURN_IF_ERROR(database_->Run(
      kInsertGeneration,
      {task, number, int64_t{generation.proposal}, generation.elapsed_seconds, Blob{generation.state}}));
  return transaction.Commit();
}

absl::StatusOr<std::vector<Generation>> JobStore::LoadGenerations(const std::string& job) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, database_->Prepare(kSelectGenerations, {job}));
  std::vector<Generation> generations;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return generations;
    generations.push_back({.job = job,
                           .task = static_cast<uint32_t>(row.Int(0)),
                           .generation = static_cast<uint32_t>(row.Int(1)),
                           .proposal = static_cast<uint32_t>(row.Int(2)),
                           .elapsed_seconds = row.Real(3),
                           .state = row.Text(4)});
  }
}

absl::StatusOr<std::vector<Trial>> JobStore::LoadTrials(const std::string& job, uint32_t task,
                                                        uint32_t from_generation) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(const int64_t id, FindTask(database_, job, task));
  return ReadTrials(database_, id, from_generation);
}

absl::StatusOr<Trial> JobStore::GetTrial(const std::string& name) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(TrialRow row, FindTrial(database_, name));
  return std::move(row.trial);
}

absl::StatusOr<std::vector<uint32_t>> JobStore::LeaseTrials(absl::Span<const std::string> names,
                                                            const std::string& worker) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  std::vector<uint32_t> attempts;
  for (const std::string& name : names) {
    MYCC_ASSIGN_OR_RETURN(const uint32_t attempt, LeaseTrial(database_, name, worker, log_->now()));
    attempts.push_back(attempt);
  }
  MYCC_RETURN_IF_ERROR(transaction.Commit());
  return attempts;
}

// Another log's records with the trial's name were merged into this one.
absl::StatusOr<AppendedRecord> JobStore::InsertNamesake(const FinishedTrial& report) {
  MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(database_, report.trial));
  MYCC_ASSIGN_OR_RETURN(v1::Record record, RecordOf(database_, row));
  *record.mutable_result() = report.result;
  if (IsListedAgain(record)) MYCC_RETURN_IF_ERROR(KeepStandingRank(database_, &record));
  return InsertRecord(database_, record, log_->now());
}

// A report that is refused has changed nothing when it is: everything is checked before the record is
// inserted.
absl::StatusOr<AppendedRecord> JobStore::Finish(const FinishedTrial& report) {
  MYCC_ASSIGN_OR_RETURN(EndingTrial trial, FindEndingTrial(database_, report.trial));
  if (trial.state == TrialState::kFinished) return AppendedRecord{trial.record_id, false};
  if (!trial.damage.empty()) return absl::DataLossError(trial.damage);
  if (trial.attempt != report.attempt || report.attempt == 0) {
    return absl::FailedPreconditionError(absl::StrCat("attempt ", report.attempt, " of trial ", report.trial,
                                                      " was given up; its current attempt is ",
                                                      trial.attempt));
  }
  *trial.detail.mutable_result() = report.result;
  if (IsListedAgain(trial.detail))
    MYCC_RETURN_IF_ERROR(KeepStandingRank(database_, trial.key, trial.stored_trace, &trial.detail));
  MYCC_RETURN_IF_ERROR(CheckContent(trial.detail));
  MYCC_ASSIGN_OR_RETURN(const bool is_known, HasNameOf(database_, report.trial));
  MYCC_ASSIGN_OR_RETURN(const AppendedRecord appended,
                        is_known ? InsertNamesake(report)
                                 : InsertNamed(database_, {report.trial, trial.key, trial.stored_trace},
                                               std::move(trial.detail), log_->now()));
  MYCC_RETURN_IF_ERROR(
      database_->Run("UPDATE trials SET state = 3, record = ?2 WHERE id = ?1", {trial.id, appended.id}));
  return appended;
}

absl::StatusOr<std::vector<absl::StatusOr<AppendedRecord>>> JobStore::FinishTrials(
    absl::Span<const FinishedTrial> reports) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  std::vector<absl::StatusOr<AppendedRecord>> answers;
  for (const FinishedTrial& report : reports) {
    answers.push_back(Finish(report));
    const absl::Status& status = answers.back().status();
    const bool refused =
        absl::IsFailedPrecondition(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
    if (!status.ok() && !refused) return status;
  }
  MYCC_RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::Status JobStore::RepairTrial(const std::string& name) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(database_, name));
  return database_->Run("UPDATE trials SET provenance = ?2 WHERE id = ?1",
                        {row.id, Blob{row.trial.provenance.SerializeAsString()}});
}

absl::StatusOr<uint32_t> JobStore::RequeueTrial(const LostAttempt& lost) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(database_, lost.trial));
  if (row.trial.state != TrialState::kLeased || row.trial.attempt != lost.attempt) {
    return absl::FailedPreconditionError(
        absl::StrCat("attempt ", lost.attempt, " does not hold trial ", lost.trial));
  }
  const bool counts = lost.status != v1::MEASURE_STATUS_UNSPECIFIED;
  const int64_t lost_attempts = row.trial.lost_attempts + (counts ? 1 : 0);
  MYCC_RETURN_IF_ERROR(
      database_->Run("UPDATE trials SET state = 1, lost = ?2 WHERE id = ?1", {row.id, lost_attempts}));
  if (counts) {
    const int64_t ended = lost.ended_unix_micros != 0 ? lost.ended_unix_micros : log_->now();
    MYCC_RETURN_IF_ERROR(database_->Run(
        "INSERT INTO lost_attempts (trial, attempt, worker, status, evidence, ended) VALUES (?1, ?2, ?3, ?4, "
        "?5, ?6)",
        {row.id, int64_t{lost.attempt}, row.trial.worker, int64_t{lost.status}, lost.evidence, ended}));
  }
  MYCC_RETURN_IF_ERROR(transaction.Commit());
  return static_cast<uint32_t>(lost_attempts);
}

absl::StatusOr<std::vector<LostAttempt>> JobStore::LostAttempts(const std::string& trial) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(database_, trial));
  MYCC_ASSIGN_OR_RETURN(
      Query query, database_->Prepare("SELECT attempt, worker, status, evidence, ended FROM lost_attempts"
                                      " WHERE trial = ?1 ORDER BY attempt",
                                      {row.id}));
  std::vector<LostAttempt> attempts;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, query.Next());
    if (!found) return attempts;
    attempts.push_back({trial, static_cast<uint32_t>(query.Int(0)), query.Text(1),
                        static_cast<v1::MeasureStatus>(query.Int(2)), query.Text(3), query.Int(4)});
  }
}

}  // namespace mycc
