// The table of pins and bans, by which a user overrides ranks. For classes of db/ that own a transaction;
// others use tuning_log.h. Thread rule: thread-compatible; the caller holds the database's mutex.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/database.h"
#include "db/record_table.h"

namespace mycc {

// Pins or bans a record's trace. It replaces an earlier pin or ban of that trace, and a pin replaces the
// key's earlier pin. NotFound, and FailedPrecondition for a pin of anything but a verified OK record.
// REQUIRES: a transaction.
absl::Status SetOverride(Database* database, int64_t record_id, const Override& override_by);

// The same, but only where it is newer than all that it would replace; false otherwise. So the newest pins
// and bans hold, in every order of merging logs. REQUIRES: a transaction.
absl::StatusOr<bool> MergeOverride(Database* database, int64_t record_id, const Override& override_by);

// Removes a record's pin or ban. NotFound when there is none; FailedPrecondition, with its reason, when it is
// of another kind.
absl::Status ClearOverride(Database* database, int64_t record_id, OverrideKind kind);

}  // namespace mycc
