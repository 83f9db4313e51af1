#include "db/usage_store.h"

#include "base/status.h"

namespace mycc {

absl::Status UsageStore::Save(const std::string& owner, const UseByHour& use) {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_RETURN_IF_ERROR(database_->Run("DELETE FROM usage WHERE owner = ?1", {owner}));
  for (const auto& [hour, of_hour] : use) {
    MYCC_RETURN_IF_ERROR(
        database_->Run("INSERT INTO usage (owner, hour, device_seconds, trials) VALUES (?1, ?2, ?3, ?4)",
                       {owner, hour, of_hour.device_seconds, of_hour.trials}));
  }
  return transaction.Commit();
}

absl::StatusOr<std::map<std::string, UseByHour>> UsageStore::Load() const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row,
                        database_->Prepare("SELECT owner, hour, device_seconds, trials FROM usage", {}));
  std::map<std::string, UseByHour> usage;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return usage;
    usage[row.Text(0)][row.Int(1)] = {row.Real(2), row.Int(3)};
  }
}

}  // namespace mycc
