#include "server/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/target/target.h"

namespace mycc {
namespace {

constexpr uint32_t kMostBest = 1000;

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, TuningLog* log, const TimeSource* time,
                         SearchExecutor executor)
    : log_(log),
      queue_(options.dispatch.lease_seconds),
      board_(options.jobs, log, &queue_, time, std::move(executor)),
      dispatcher_(options.dispatch, log, &queue_, &board_, time) {}

void Coordinator::Tick() {
  dispatcher_.Tick();
  board_.Tick();
}

// A job that stands still says why.
v1::JobProgress Coordinator::Explained(v1::JobProgress progress) const {
  if (progress.state() == v1::JOB_STATE_RUNNING) {
    progress.set_trouble(std::string(log_->WriteTrouble().message()));
  }
  if (progress.state() != v1::JOB_STATE_RUNNING || !progress.message().empty()) return progress;
  const absl::StatusOr<Target> target = ParseTarget(progress.target());
  if (target.ok() && !dispatcher_.AnyFits(*target)) {
    progress.set_message(absl::StrCat("waiting for a worker that can run ", progress.target()));
  }
  return progress;
}

absl::StatusOr<v1::JobProgress> Coordinator::Submit(const v1::SubmitJobRequest& request) {
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, board_.Submit(request));
  return Explained(std::move(progress));
}

absl::StatusOr<v1::JobProgress> Coordinator::Progress(const std::string& job) {
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, board_.Progress(job));
  return Explained(std::move(progress));
}

absl::StatusOr<v1::BestResponse> Coordinator::Best(const v1::BestRequest& request) const {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  const LogKey key{request.workload_hash(), PrintTarget(target)};
  const v1::TimingProtocol protocol =
      request.protocol() == v1::TIMING_PROTOCOL_UNSPECIFIED ? v1::TIMING_PROTOCOL_WARM : request.protocol();
  const int top = static_cast<int>(std::clamp(request.top(), 1u, kMostBest));
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log_->TopK(key, protocol, top));
  v1::BestResponse response;
  for (const StoredRecord& record : records) {
    *response.add_records() = record.record;
    response.add_ids(record.id);
  }
  return response;
}

}  // namespace mycc
