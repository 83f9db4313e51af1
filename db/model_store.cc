#include "db/model_store.h"

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"

namespace mycc {
namespace {

// A model that is known becomes the newest of its kind again, also within one microsecond.
constexpr char kInsert[] = R"sql(
INSERT INTO models (id, kind, info, created, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET
  created = max(excluded.created, 1 + (SELECT max(created) FROM models WHERE kind = excluded.kind))
WHERE kind = excluded.kind)sql";
constexpr char kSelectNewest[] =
    "SELECT id FROM models WHERE kind = ?1 ORDER BY created DESC, rowid DESC LIMIT 1";
constexpr char kSelectNewestOfEach[] = R"sql(
SELECT id, kind, info, created FROM
  (SELECT id, kind, info, created, row_number() OVER (PARTITION BY kind ORDER BY created DESC, rowid DESC) AS place
   FROM models) WHERE place = 1 ORDER BY kind)sql";
constexpr char kSelectOld[] = R"sql(
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY kind ORDER BY created DESC, rowid DESC) AS place
                FROM models) WHERE place > ?1)sql";

}  // namespace

absl::StatusOr<std::string> ModelStore::Save(const std::string& kind, const std::string& info,
                                             const std::string& bytes) {
  const std::string id = Sha256Hex(bytes);
  MutexLock lock(database_->mutex());
  MYCC_RETURN_IF_ERROR(database_->Run(kInsert, {id, kind, info, log_->now(), Blob{bytes}}));
  return id;
}

absl::StatusOr<StoredModel> ModelStore::Load(const std::string& id) const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(
      Query row, database_->Prepare("SELECT id, kind, info, created, bytes FROM models WHERE id = ?1", {id}));
  MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
  if (!found) return absl::NotFoundError(absl::StrCat("no model ", id));
  StoredModel model{row.Text(0), row.Text(1), row.Text(2), row.Int(3), row.Text(4)};
  if (Sha256Hex(model.bytes) == model.id) return model;
  return absl::DataLossError(
      absl::StrCat(database_->path(), ": model ", model.id, " is damaged; restore the log from a backup"));
}

absl::StatusOr<std::string> ModelStore::NewestId(const std::string& kind) const {
  MutexLock lock(database_->mutex());
  return database_->ReadText(kSelectNewest, {kind});
}

absl::StatusOr<std::vector<StoredModel>> ModelStore::ListNewest() const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, database_->Prepare(kSelectNewestOfEach, {}));
  std::vector<StoredModel> models;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return models;
    models.push_back({row.Text(0), row.Text(1), row.Text(2), row.Int(3), ""});
  }
}

absl::Status ModelStore::KeepNewest(int count, const std::set<std::string>& needed) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  std::vector<std::string> old;
  {
    MYCC_ASSIGN_OR_RETURN(Query row, database_->Prepare(kSelectOld, {int64_t{count}}));
    while (true) {
      MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
      if (!found) break;
      old.push_back(row.Text(0));
    }
  }
  for (const std::string& id : old) {
    if (needed.contains(id)) continue;
    MYCC_RETURN_IF_ERROR(database_->Run("DELETE FROM models WHERE id = ?1", {id}));
  }
  return transaction.Commit();
}

}  // namespace mycc
