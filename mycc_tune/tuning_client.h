// A client of the tuning service, over gRPC. Thread rule: thread-safe; calls block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/channel.h"
#include "proto/tuning.pb.h"

namespace mycc {

// The options that name the server, for a command that is shown to be pasted: " --server HOST:PORT
// --credentials DIR".
std::string ServerWords(const ServerAddress& address);

class TuningClient {
 public:
  static absl::StatusOr<std::unique_ptr<TuningClient>> Connect(const ServerAddress& address);
  ~TuningClient();

  absl::StatusOr<v1::JobProgress> Submit(const v1::SubmitJobRequest& request);
  absl::StatusOr<std::vector<v1::JobProgress>> ListJobs(uint32_t limit);
  // Waits until the job's revision is another than `seen_revision`, or the time is over. `client` waits for
  // the job itself; empty: an onlooker.
  absl::StatusOr<v1::JobProgress> Watch(const std::string& job, uint64_t seen_revision, double wait_seconds,
                                        const std::string& client = "");
  // A job that had ended before says how it ended. `by` names the user who cancels.
  absl::StatusOr<v1::JobProgress> Cancel(const std::string& job, const std::string& by = "");
  absl::StatusOr<v1::JobProgress> Leave(const std::string& job, const std::string& client);
  absl::StatusOr<v1::JobProgress> Update(const v1::UpdateJobRequest& request);
  absl::StatusOr<std::vector<v1::OwnerStatus>> ListOwners();
  absl::StatusOr<std::vector<v1::DeviceStatus>> ListDevices();
  // The name by which the server knew the caller of the latest ListJobs or ListOwners; empty where it knows
  // none.
  std::string caller() const;
  absl::StatusOr<v1::BestResponse> Best(const v1::BestRequest& request);

 private:
  struct Impl;
  explicit TuningClient(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mycc
