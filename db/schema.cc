// The migrations as SQL text, in order; the last one is at the end.
#include "db/schema.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

// The log. A record's columns are what queries filter and rank by; `detail` is the Record message without
// workload, target and trace. Times are micros since 1970. A record is superseded when a newer result of the
// same trace speaks for it (precedence.h).
constexpr char kLog[] = R"sql(
CREATE TABLE workloads (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  shape_erased_hash TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX workloads_by_shape_erased_hash ON workloads (shape_erased_hash);

CREATE TABLE targets (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
);

CREATE TABLE keys (
  id INTEGER PRIMARY KEY,
  workload INTEGER NOT NULL REFERENCES workloads,
  target INTEGER NOT NULL REFERENCES targets,
  UNIQUE (workload, target)
);

CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  trial TEXT NOT NULL UNIQUE,
  key INTEGER NOT NULL REFERENCES keys,
  trace TEXT NOT NULL,
  trace_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  verified INTEGER NOT NULL,
  superseded INTEGER NOT NULL,
  protocol INTEGER NOT NULL,
  timer_version INTEGER NOT NULL,
  seconds REAL,
  finished INTEGER NOT NULL,
  recorded INTEGER NOT NULL,
  job TEXT NOT NULL,
  worker TEXT NOT NULL,
  detail BLOB NOT NULL,
  CHECK ((status = 1) = (seconds IS NOT NULL)),
  CHECK (seconds > 0)
);
CREATE INDEX records_by_rank ON records (key, protocol, timer_version DESC, seconds, id)
  WHERE status = 1 AND verified = 1 AND superseded = 0;
CREATE INDEX records_by_trace ON records (key, trace_hash);
CREATE INDEX records_by_status ON records (key, status);
CREATE INDEX records_by_job ON records (job);

CREATE TABLE overrides (
  key INTEGER NOT NULL REFERENCES keys,
  trace_hash TEXT NOT NULL,
  record INTEGER NOT NULL REFERENCES records,
  kind INTEGER NOT NULL CHECK (kind IN (1, 2)),
  reason TEXT NOT NULL,
  made INTEGER NOT NULL,
  PRIMARY KEY (key, trace_hash)
) WITHOUT ROWID;
CREATE UNIQUE INDEX overrides_one_pin ON overrides (key) WHERE kind = 1;
CREATE INDEX overrides_by_record ON overrides (record);
)sql";

// Jobs, so that a server that dies continues the same search: the search's state, its candidates and who
// holds them, its models.
constexpr char kJobs[] = R"sql(
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  state INTEGER NOT NULL,
  owner TEXT NOT NULL,
  spec BLOB NOT NULL,
  scheduler_state BLOB NOT NULL,
  message TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
);
CREATE INDEX jobs_by_state ON jobs (state, created);

CREATE TABLE tasks (
  id INTEGER PRIMARY KEY,
  job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
  task INTEGER NOT NULL,
  key INTEGER NOT NULL REFERENCES keys,
  name TEXT NOT NULL,
  spec BLOB NOT NULL,
  search_state BLOB NOT NULL,
  done INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  UNIQUE (job, task)
);

CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  position INTEGER NOT NULL,
  trace TEXT NOT NULL,
  provenance BLOB NOT NULL,
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  worker TEXT NOT NULL,
  leased INTEGER NOT NULL,
  created INTEGER NOT NULL,
  record INTEGER REFERENCES records,
  UNIQUE (task, generation, position)
);
CREATE INDEX trials_open ON trials (state, id) WHERE state IN (1, 2);
CREATE INDEX trials_by_record ON trials (record);

CREATE TABLE lost_attempts (
  trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  status INTEGER NOT NULL,
  evidence TEXT NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (trial, attempt)
) WITHOUT ROWID;

CREATE TABLE models (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  info TEXT NOT NULL,
  created INTEGER NOT NULL,
  bytes BLOB NOT NULL
);
CREATE INDEX models_by_kind ON models (kind, created);

CREATE TABLE baselines (
  worker TEXT NOT NULL,
  device TEXT NOT NULL,
  kernel TEXT NOT NULL,
  protocol INTEGER NOT NULL,
  device_model TEXT NOT NULL,
  seconds REAL NOT NULL CHECK (seconds > 0),
  measured INTEGER NOT NULL,
  PRIMARY KEY (worker, device, kernel, protocol)
) WITHOUT ROWID;
)sql";

// Final rounds (records.proto): what their results rank by, in place of their own seconds.
constexpr char kFinalRounds[] = R"sql(
ALTER TABLE records ADD COLUMN rank_seconds REAL CHECK (rank_seconds > 0);
DROP INDEX records_by_rank;
CREATE INDEX records_by_rank ON records (key, protocol, timer_version DESC, coalesce(rank_seconds, seconds), id)
  WHERE status = 1 AND verified = 1 AND superseded = 0;
CREATE INDEX records_of_final_rounds ON records (key) WHERE rank_seconds IS NOT NULL;
)sql";

// A job is found by what its client submitted, which several jobs may share; one that has ended keeps the
// progress that people are shown (tuning.proto).
constexpr char kSubmissions[] = R"sql(
ALTER TABLE jobs ADD COLUMN submission TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN summary BLOB NOT NULL DEFAULT x'';
CREATE INDEX jobs_by_submission ON jobs (submission, created) WHERE submission != '';
)sql";

// Proofs (proto/proof.h): a record that is not proven ranks, and is not served. Records of older versions
// count as proven.
constexpr char kProofs[] = "ALTER TABLE records ADD COLUMN proven INTEGER NOT NULL DEFAULT 1";

// The search's state of a generation, in a row of its own: older jobs have it for all generations
// together, in tasks.search_state, and the order of their proposals in jobs.scheduler_state. The column round
// has the number of the proposal that the generation belongs to.
constexpr char kGenerations[] = R"sql(
CREATE TABLE generations (
  task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  round INTEGER NOT NULL,
  elapsed_seconds REAL NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (task, generation)
) WITHOUT ROWID;
CREATE INDEX jobs_by_age ON jobs (created, id);
)sql";

// `recorded` becomes the stamp that says which result of a trace is the newest (precedence.h), and decides
// between equal times; until here that was the worker's clock.
constexpr char kStamps[] = R"sql(
CREATE TABLE clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  stamp INTEGER NOT NULL
);
INSERT INTO clock (id, stamp) SELECT 1, coalesce(max(recorded), 0) FROM records;
UPDATE records SET superseded = 0 WHERE superseded != 0;
UPDATE records AS old SET superseded = 1
WHERE +old.status = 1 AND old.verified = 1
  AND EXISTS (SELECT 1 FROM records AS new
    WHERE new.key = old.key AND new.trace_hash = old.trace_hash AND
      CASE WHEN +new.status IN (4, 6) THEN (new.recorded, new.trial) > (old.recorded, old.trial)
           ELSE +new.status = 1 AND new.verified = 1
                AND new.protocol = old.protocol AND new.timer_version = old.timer_version
                AND (new.proven, new.rank_seconds IS NOT NULL, new.recorded, new.trial)
                    > (old.proven, old.rank_seconds IS NOT NULL, old.recorded, old.trial) END);
DROP INDEX records_by_rank;
CREATE INDEX records_by_rank
  ON records (key, protocol, timer_version DESC, coalesce(rank_seconds, seconds), recorded, trial)
  WHERE status = 1 AND verified = 1 AND superseded = 0;
)sql";

// By this a server that is started again knows the tickets of its leases (server/lease_tickets.h).
constexpr char kServerKey[] = R"sql(
CREATE TABLE server_key (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  bytes BLOB NOT NULL
);
INSERT INTO server_key (id, bytes) VALUES (1, randomblob(32));
)sql";

// For quotas (usage_store.h). An hour counts from 1970.
constexpr char kUsage[] = R"sql(
CREATE TABLE usage (
  owner TEXT NOT NULL,
  hour INTEGER NOT NULL,
  device_seconds REAL NOT NULL,
  trials INTEGER NOT NULL,
  PRIMARY KEY (owner, hour)
) WITHOUT ROWID;
)sql";

// Records that others measured and signed (foreign_table.h), apart from those of this log's own workers.
constexpr char kForeign[] = R"sql(
CREATE TABLE signers (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL
);
CREATE TABLE foreign_records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key INTEGER NOT NULL REFERENCES keys,
  trial TEXT NOT NULL,
  trace TEXT NOT NULL,
  trace_hash TEXT NOT NULL,
  protocol INTEGER NOT NULL,
  seconds REAL NOT NULL CHECK (seconds > 0),
  recorded INTEGER NOT NULL,
  signer INTEGER NOT NULL REFERENCES signers,
  taken INTEGER NOT NULL,
  detail BLOB NOT NULL,
  UNIQUE (key, trace_hash, protocol, signer)
);
CREATE INDEX foreign_by_time ON foreign_records (key, protocol, seconds);
CREATE INDEX foreign_by_signer ON foreign_records (signer);
)sql";

// Micro-benchmarks of devices (constants_store.h); `measured` says which ones are the newest.
constexpr char kConstants[] = R"sql(
CREATE TABLE device_constants (
  id INTEGER PRIMARY KEY,
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  model TEXT NOT NULL,
  target TEXT NOT NULL,
  version INTEGER NOT NULL,
  worker TEXT NOT NULL,
  measured INTEGER NOT NULL,
  detail BLOB NOT NULL,
  UNIQUE (host, device, model, target, version)
);
CREATE INDEX device_constants_by_age ON device_constants (measured, id);
)sql";

constexpr const char* kMigrations[] = {kLog,    kJobs,        kFinalRounds, kSubmissions,
                                       kProofs, kGenerations, kStamps,      kServerKey,
                                       kUsage,  kForeign,     kConstants};

}  // namespace

absl::Span<const char* const> Migrations() { return kMigrations; }

int64_t SchemaVersion() { return static_cast<int64_t>(Migrations().size()); }

absl::StatusOr<int64_t> ReadVersion(Database* database) { return database->ReadInt("PRAGMA user_version"); }

absl::Status Migrate(Database* database, absl::Span<const char* const> migrations) {
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  // Read inside the transaction: another process may have migrated meanwhile.
  MYCC_ASSIGN_OR_RETURN(const int64_t from, ReadVersion(database));
  const int64_t to = static_cast<int64_t>(migrations.size());
  if (from >= to) return absl::OkStatus();
  for (int64_t version = from; version < to; ++version)
    MYCC_RETURN_IF_ERROR(database->Execute(migrations[version]));
  MYCC_RETURN_IF_ERROR(database->Execute(
      absl::StrCat("PRAGMA application_id = ", kApplicationId, "; PRAGMA user_version = ", to)));
  return transaction.Commit();
}

}  // namespace mycc
