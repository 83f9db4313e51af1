#include "db/baseline_store.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

absl::Status BaselineStore::Save(const Baseline& baseline) {
  if (!std::isfinite(baseline.seconds) || baseline.seconds <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("baseline ", baseline.kernel, " of ", baseline.worker,
                                                   " took ", baseline.seconds,
                                                   " s; expected a positive number"));
  }
  MutexLock lock(database_->mutex());
  return database_->Run(
      "INSERT OR REPLACE INTO baselines (worker, device, kernel, protocol, device_model, seconds, measured)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      {baseline.worker, baseline.device, baseline.kernel, int64_t{baseline.protocol}, baseline.device_model,
       baseline.seconds, baseline.measured_unix_micros});
}

absl::StatusOr<std::vector<Baseline>> BaselineStore::List() const {
  MutexLock lock(database_->mutex());
  MYCC_ASSIGN_OR_RETURN(
      Query row, database_->Prepare("SELECT worker, device, kernel, protocol, device_model, seconds, measured"
                                    " FROM baselines ORDER BY worker, device, kernel, protocol"));
  std::vector<Baseline> baselines;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return baselines;
    baselines.push_back({row.Text(0), row.Text(1), row.Text(2), static_cast<v1::TimingProtocol>(row.Int(3)),
                         row.Text(4), row.Real(5), row.Int(6)});
  }
}

}  // namespace mycc
