// The limits of owners: JSON that an operator edits while the server runs.
//
//   {"default": {"running_jobs": 4, "waiting_jobs": 20, "highest_priority": 0,
//                "device_seconds_per_day": 36000, "trials_per_day": 100000},
//    "owners": {"ann": {"highest_priority": 5, "trials_per_day": null}}}
//
// An owner's entry overrides the default's limits one by one; null is no limit. Thread rule: a value;
// QuotaFile is thread-compatible.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/tuning.pb.h"

namespace mycc {

class Quotas {
 public:
  // InvalidArgument names the key, and what was expected.
  static absl::StatusOr<Quotas> Parse(const std::string& text);
  const v1::Quota& Of(const std::string& owner) const;

 private:
  v1::Quota by_default_;
  std::map<std::string, v1::Quota> owners_;
};

// A file of quotas that is read again when it changes. While it cannot be read the earlier quotas stand.
class QuotaFile {
 public:
  // Without a path there are no limits.
  explicit QuotaFile(std::string path) : path_(std::move(path)) {}

  // Reads the file where it has changed since the last time. The error of a file that has been broken since.
  absl::Status Refresh();
  const Quotas& quotas() const { return quotas_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  std::string seen_;  // the file's state when it was read last
  Quotas quotas_;
};

}  // namespace mycc
