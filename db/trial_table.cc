#include "db/trial_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr char kSelectTrials[] = R"sql(
SELECT i.id, i.task, a.job, a.task, i.generation, i.position, i.trace, i.provenance, i.state, i.attempt, i.lost, i.worker,
       i.leased, i.created, i.record, r.detail, r.trace, r.trace_hash
FROM trials i JOIN tasks a ON a.id = i.task LEFT JOIN records r ON r.id = i.record )sql";

constexpr char kSelectEnding[] = R"sql(
SELECT i.id, a.key, a.name, i.trace, i.provenance, i.state, i.attempt, i.created, i.record
FROM tasks a JOIN trials i ON i.task = a.id
WHERE a.job = ?1 AND a.task = ?2 AND i.generation = ?3 AND i.position = ?4)sql";
constexpr char kLease[] = R"sql(
UPDATE trials SET state = 2, attempt = attempt + 1, worker = ?5, leased = ?6
WHERE task = (SELECT id FROM tasks WHERE job = ?1 AND task = ?2) AND generation = ?3 AND position = ?4 AND state = 1
RETURNING attempt)sql";

// The provenance that a trial's own columns give.
v1::Provenance KnownProvenance(const std::string& job, const Trial& trial) {
  v1::Provenance provenance;
  provenance.set_job(job);
  provenance.set_task(trial.task);
  provenance.set_generation(trial.generation);
  provenance.set_index(trial.index);
  return provenance;
}

std::string WordsOfDamage(const Database& database, const std::string& trial) {
  return absl::StrCat(database.path(), ": trial ", trial, " is damaged; restore the log from a backup");
}

absl::StatusOr<TrialId> IdOf(const std::string& name) {
  absl::StatusOr<TrialId> id = ParseTrialName(name);
  if (id.ok()) return id;
  return absl::NotFoundError(absl::StrCat("no trial: ", std::string(id.status().message())));
}

// A damaged row is read as far as possible, so that other rows are not affected.
TrialRow ReadTrial(const Database& database, const Query& row) {
  TrialRow out;
  out.id = row.Int(0);
  out.task_id = row.Int(1);
  Trial& trial = out.trial;
  trial.task = static_cast<uint32_t>(row.Int(3));
  trial.generation = static_cast<uint32_t>(row.Int(4));
  trial.index = static_cast<uint32_t>(row.Int(5));
  trial.name = TrialName({row.Text(2), trial.task, trial.generation, trial.index});
  trial.trace = CurrentTrace(row.Text(6));
  trial.state = static_cast<TrialState>(row.Int(8));
  trial.attempt = static_cast<uint32_t>(row.Int(9));
  trial.lost_attempts = static_cast<uint32_t>(row.Int(10));
  trial.worker = row.Text(11);
  trial.leased_unix_micros = row.Int(12);
  trial.created_unix_micros = row.Int(13);
  const std::string damage = WordsOfDamage(database, trial.name);
  if (!trial.provenance.ParseFromString(row.Text(7))) {
    trial.damage = damage;
    trial.provenance = KnownProvenance(row.Text(2), trial);
  }
  if (row.IsNull(14)) return out;
  trial.record_id = row.Int(14);
  // The record has the trace once more, with its hash.
  const std::string trace_hash = row.Text(17);
  if (Sha256Hex(row.Text(6)) != trace_hash)
    trial.trace = Sha256Hex(row.Text(16)) == trace_hash ? CurrentTrace(row.Text(16)) : "";
  v1::Record detail;
  if (!trial.trace.empty() && detail.ParseFromString(row.Text(15))) {
    trial.result = std::move(*detail.mutable_result());
  } else {
    trial.damage = damage;
    trial.result.emplace().set_status(v1::MEASURE_STATUS_WORKER_LOST);
    trial.result->set_error(damage);
  }
  return out;
}

}  // namespace

absl::StatusOr<int64_t> FindTask(Database* database, const std::string& job, uint32_t task) {
  absl::StatusOr<int64_t> id =
      database->ReadInt("SELECT id FROM tasks WHERE job = ?1 AND task = ?2", {job, int64_t{task}});
  if (absl::IsNotFound(id.status()))
    return absl::NotFoundError(absl::StrCat("no task ", task, " of job ", job));
  return id;
}

absl::StatusOr<TrialRow> FindTrial(Database* database, const std::string& name) {
  MYCC_ASSIGN_OR_RETURN(const TrialId id, IdOf(name));
  MYCC_ASSIGN_OR_RETURN(
      Query query,
      database->Prepare(std::string(kSelectTrials) +
                            "WHERE a.job = ?1 AND a.task = ?2 AND i.generation = ?3 AND i.position = ?4",
                        {id.job, int64_t{id.task}, int64_t{id.generation}, int64_t{id.index}}));
  MYCC_ASSIGN_OR_RETURN(const bool found, query.Next());
  if (!found) return absl::NotFoundError(absl::StrCat("no trial ", name));
  return ReadTrial(*database, query);
}

absl::StatusOr<EndingTrial> FindEndingTrial(Database* database, const std::string& name) {
  MYCC_ASSIGN_OR_RETURN(const TrialId id, IdOf(name));
  MYCC_ASSIGN_OR_RETURN(
      Query row, database->Prepare(kSelectEnding,
                                   {id.job, int64_t{id.task}, int64_t{id.generation}, int64_t{id.index}}));
  MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
  if (!found) return absl::NotFoundError(absl::StrCat("no trial ", name));
  EndingTrial trial;
  trial.id = row.Int(0);
  trial.key = row.Int(1);
  trial.stored_trace = row.Text(3);
  trial.state = static_cast<TrialState>(row.Int(5));
  trial.attempt = static_cast<uint32_t>(row.Int(6));
  if (!row.IsNull(8)) trial.record_id = row.Int(8);
  trial.detail.set_workload_name(row.Text(2));
  trial.detail.set_created_unix_micros(row.Int(7));
  trial.detail.set_attempt(trial.attempt);
  if (!trial.detail.mutable_provenance()->ParseFromString(row.Text(4)))
    trial.damage = WordsOfDamage(*database, name);
  return trial;
}

absl::StatusOr<uint32_t> LeaseTrial(Database* database, const std::string& name, const std::string& worker,
                                    int64_t now_unix_micros) {
  MYCC_ASSIGN_OR_RETURN(const TrialId id, IdOf(name));
  MYCC_ASSIGN_OR_RETURN(Query row,
                        database->Prepare(kLease, {id.job, int64_t{id.task}, int64_t{id.generation},
                                                   int64_t{id.index}, worker, now_unix_micros}));
  MYCC_ASSIGN_OR_RETURN(const bool leased, row.Next());
  if (leased) return static_cast<uint32_t>(row.Int(0));
  MYCC_RETURN_IF_ERROR(FindTrial(database, name).status());
  return absl::FailedPreconditionError(absl::StrCat("trial ", name, " is not queued"));
}

absl::StatusOr<std::vector<Trial>> ReadTrials(Database* database, int64_t task_id, uint32_t from_generation) {
  MYCC_ASSIGN_OR_RETURN(
      Query query, database->Prepare(std::string(kSelectTrials) + "WHERE i.task = ?1 AND i.generation >= ?2"
                                                                  " ORDER BY i.generation, i.position",
                                     {task_id, int64_t{from_generation}}));
  std::vector<Trial> trials;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool row, query.Next());
    if (!row) return trials;
    TrialRow trial = ReadTrial(*database, query);
    trials.push_back(std::move(trial.trial));
  }
}

absl::StatusOr<v1::Record> RecordOf(Database* database, const TrialRow& row) {
  MYCC_ASSIGN_OR_RETURN(
      Query query, database->Prepare("SELECT w.text, w.hash, w.shape_erased_hash, a.name, t.text FROM tasks a"
                                     " JOIN keys k ON k.id = a.key JOIN workloads w ON w.id = k.workload"
                                     " JOIN targets t ON t.id = k.target WHERE a.id = ?1",
                                     {row.task_id}));
  MYCC_ASSIGN_OR_RETURN(const bool found, query.Next());
  if (!found) return absl::InternalError(absl::StrCat("trial ", row.trial.name, " has no task"));
  v1::Record record;
  record.set_trial(row.trial.name);
  record.set_workload(query.Text(0));
  record.set_workload_hash(query.Text(1));
  record.set_shape_erased_hash(query.Text(2));
  record.set_workload_name(query.Text(3));
  record.set_target(query.Text(4));
  record.set_trace(row.trial.trace);
  *record.mutable_provenance() = row.trial.provenance;
  record.set_created_unix_micros(row.trial.created_unix_micros);
  record.set_attempt(row.trial.attempt);
  return record;
}

}  // namespace mycc
