#include "db/override_table.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

// Whether an equal or newer word stands where a word on a record's trace would. Words of one microsecond have
// an order of their own, in which a ban is newer than a pin.
constexpr char kStandsAgainst[] = R"sql(
SELECT count(*) FROM records r JOIN overrides o ON o.key = r.key
WHERE r.id = ?1 AND (o.trace_hash = r.trace_hash OR (o.kind = 1 AND ?2 = 1))
  AND (o.made, o.kind, o.trace_hash, o.reason) >= (?4, ?2, r.trace_hash, ?3))sql";

}  // namespace

absl::Status SetOverride(Database* database, int64_t record_id, const Override& override_by) {
  absl::StatusOr<int64_t> servable = database->ReadInt(
      "SELECT status = 1 AND verified = 1 AND proven = 1 FROM records WHERE id = ?1", {record_id});
  if (absl::IsNotFound(servable.status())) {
    return absl::NotFoundError(absl::StrCat(database->path(), ": no record ", record_id));
  }
  MYCC_RETURN_IF_ERROR(servable.status());
  if (override_by.kind == OverrideKind::kPin) {
    if (*servable == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(database->path(), ": record ", record_id,
                       " is not a verified and proven ok result; only those can be pinned"));
    }
    MYCC_RETURN_IF_ERROR(database->Run(
        "DELETE FROM overrides WHERE kind = 1 AND key = (SELECT key FROM records WHERE id = ?1)",
        {record_id}));
  }
  return database->Run(
      "INSERT OR REPLACE INTO overrides (key, trace_hash, record, kind, reason, made)"
      " SELECT key, trace_hash, id, ?2, ?3, ?4 FROM records WHERE id = ?1",
      {record_id, static_cast<int64_t>(override_by.kind), override_by.reason, override_by.made_unix_micros});
}

absl::StatusOr<bool> MergeOverride(Database* database, int64_t record_id, const Override& override_by) {
  MYCC_ASSIGN_OR_RETURN(
      const int64_t stands,
      database->ReadInt(kStandsAgainst, {record_id, static_cast<int64_t>(override_by.kind),
                                         override_by.reason, override_by.made_unix_micros}));
  if (stands != 0) return false;
  MYCC_RETURN_IF_ERROR(SetOverride(database, record_id, override_by));
  return true;
}

absl::Status ClearOverride(Database* database, int64_t record_id, OverrideKind kind) {
  MYCC_ASSIGN_OR_RETURN(
      Query word, database->Prepare("SELECT o.kind, o.reason FROM records r JOIN overrides o ON o.key = r.key"
                                    " AND o.trace_hash = r.trace_hash WHERE r.id = ?1",
                                    {record_id}));
  MYCC_ASSIGN_OR_RETURN(const bool found, word.Next());
  const char* const asked = kind == OverrideKind::kPin ? "pinned" : "banned";
  if (!found)
    return absl::NotFoundError(absl::StrCat(database->path(), ": record ", record_id, " is not ", asked));
  if (word.Int(0) != static_cast<int64_t>(kind)) {
    return absl::FailedPreconditionError(
        absl::StrCat(database->path(), ": record ", record_id, " is not ", asked, "; it is ",
                     kind == OverrideKind::kPin ? "banned, which `log ban --clear` takes back: "
                                                : "pinned, which `log pin --clear` takes back: ",
                     word.Text(1)));
  }
  return database->Run(
      "DELETE FROM overrides WHERE (key, trace_hash) = (SELECT key, trace_hash FROM records WHERE id = ?1)",
      {record_id});
}

}  // namespace mycc
