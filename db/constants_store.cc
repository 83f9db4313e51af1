#include "db/constants_store.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

namespace {

absl::Status CheckConstants(const StoredConstants& constants) {
  const std::string name = absl::StrCat("constants of ", constants.device, " of ", constants.host);
  if (constants.constants.values().empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": none; expected one, at least"));
  for (const auto& [constant, value] : constants.constants.values()) {
    if (!std::isfinite(value) || value <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", constant, " is ", value, "; expected a positive number"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ConstantsStore::Save(const StoredConstants& constants) {
  MYCC_RETURN_IF_ERROR(CheckConstants(constants));
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  MYCC_RETURN_IF_ERROR(
      database_->Run("INSERT OR REPLACE INTO device_constants (host, device, model, target, version, worker, "
                     "measured, detail)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                     {constants.host, constants.device, constants.model, constants.target,
                      int64_t{constants.constants.version()}, constants.worker,
                      constants.measured_unix_micros, Blob{constants.constants.SerializeAsString()}}));
  MYCC_RETURN_IF_ERROR(
      database_->Run("DELETE FROM device_constants WHERE id IN"
                     " (SELECT id FROM device_constants ORDER BY measured DESC, id DESC LIMIT -1 OFFSET ?1)",
                     {kMostDevices}));
  return transaction.Commit();
}

absl::StatusOr<int64_t> ConstantsStore::Clear() {
  MutexLock lock(database_->mutex());
  MYCC_RETURN_IF_ERROR(database_->Run("DELETE FROM device_constants"));
  return database_->changes();
}

absl::StatusOr<std::vector<StoredConstants>> ConstantsStore::List() const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(
      Query row, database_->Prepare("SELECT host, device, model, target, worker, measured, detail"
                                    " FROM device_constants ORDER BY host, device, model, target, version"));
  std::vector<StoredConstants> listed;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return listed;
    StoredConstants one{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4), {}, row.Int(5)};
    if (one.constants.ParseFromString(row.Text(6)) && CheckConstants(one).ok())
      listed.push_back(std::move(one));
  }
}

}  // namespace mycc
