// The tables of a tuning log, as a list of SQL migrations. user_version counts the migrations that a file
// has had; a new log gets all of them. A released migration never changes. A new field of records.proto
// needs a migration too, an empty one at least, so that an older build, which would lose the field, refuses
// the log.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/database.h"

namespace mycc {

// "mycc" as SQLite's application_id, which distinguishes a tuning log from another program's file.
inline constexpr int64_t kApplicationId = 0x6d796363;

// Files and the SQL of schema.cc hold the numbers below; they never change.
enum class OverrideKind { kPin = 1, kBan = 2 };
enum class JobState { kRunning = 1, kDone = 2, kCancelled = 3, kFailed = 4 };
enum class TrialState { kQueued = 1, kLeased = 2, kFinished = 3, kDropped = 4 };

// SQL for each step, from version i to version i + 1.
absl::Span<const char* const> Migrations();
// The version that this build writes.
int64_t SchemaVersion();

absl::StatusOr<int64_t> ReadVersion(Database* database);

// Brings a file from its version to the last one of `migrations`, all in one transaction: a failure leaves
// the file as it was.
absl::Status Migrate(Database* database, absl::Span<const char* const> migrations);

}  // namespace mycc
