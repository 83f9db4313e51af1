#include "worker/build_link.h"

#include "base/status.h"

namespace mycc {
namespace {

// The size of one message: far below what the server reads.
constexpr size_t kMostMessageBytes = size_t{8} << 20;

}  // namespace

void BuildLink::Attach(const v1::LeaseId& lease, std::string artifact) {
  const MutexLock lock(&mutex_);
  artifacts_[KeyOf(lease)] = std::move(artifact);
}

absl::StatusOr<v1::RegisterResponse> BuildLink::Register(const v1::RegisterRequest& request) {
  v1::RegisterRequest builds = request;
  builds.clear_devices();
  builds.set_role(v1::WORKER_ROLE_BUILD);
  builds.mutable_build_targets()->Add(targets_.begin(), targets_.end());
  builds.set_builders(static_cast<uint32_t>(builders_));
  return server_->Register(builds);
}

absl::StatusOr<v1::LeaseResponse> BuildLink::Lease(const v1::LeaseRequest& request) {
  v1::LeaseBuildsRequest builds;
  builds.set_session(request.session());
  builds.set_max_orders(request.max_trials());
  builds.set_wait_seconds(request.wait_seconds());
  *builds.mutable_held() = request.held();
  MYCC_ASSIGN_OR_RETURN(v1::LeaseBuildsResponse leased, server_->LeaseBuilds(builds));
  v1::LeaseResponse response;
  *response.mutable_instructions() = std::move(*leased.mutable_instructions());
  for (v1::BuildOrder& order : *leased.mutable_orders()) {
    v1::Assignment& assignment = *response.add_assignments();
    *assignment.mutable_lease() = std::move(*order.mutable_lease());
    assignment.set_workload(std::move(*order.mutable_workload()));
    assignment.set_target(std::move(*order.mutable_target()));
    assignment.set_trace(std::move(*order.mutable_trace()));
  }
  return response;
}

v1::BuildReport BuildLink::ReportOf(const v1::Report& report) {
  v1::BuildReport built;
  *built.mutable_lease() = report.lease();
  built.set_status(report.result().status());
  built.set_error(report.result().error());
  built.set_code_digest(report.result().code_digest());
  *built.mutable_resources() = report.result().resources();
  built.set_build_seconds(report.result().timing().build_seconds());
  const MutexLock lock(&mutex_);
  const auto attached = artifacts_.find(KeyOf(report.lease()));
  if (attached != artifacts_.end()) built.set_artifact(attached->second);
  return built;
}

void BuildLink::Detach(const v1::ReportBuildsResponse& response) {
  const MutexLock lock(&mutex_);
  for (const v1::ReportAnswer& answer : response.answers()) {
    if (answer.kind() != v1::ReportAnswer::NOT_NOW) artifacts_.erase(KeyOf(answer.lease()));
  }
}

// In messages of a moderate size. A report whose message failed has no answer, and comes again; an error is
// that of the first message, when nothing is answered yet.
absl::StatusOr<v1::ReportResponse> BuildLink::Report(const v1::ReportRequest& request) {
  v1::ReportResponse response;
  for (int next = 0; next < request.reports_size();) {
    v1::ReportBuildsRequest builds;
    builds.set_session(request.session());
    *builds.mutable_held() = request.held();
    size_t bytes = 0;
    while (next < request.reports_size() && bytes < kMostMessageBytes) {
      v1::BuildReport& report = *builds.add_reports();
      report = ReportOf(request.reports(next++));
      bytes += report.ByteSizeLong();
    }
    const absl::StatusOr<v1::ReportBuildsResponse> answered = server_->ReportBuilds(builds);
    if (!answered.ok() && response.answers().empty()) return answered.status();
    if (!answered.ok()) break;
    Detach(*answered);
    response.mutable_answers()->MergeFrom(answered->answers());
    response.mutable_instructions()->MergeFrom(answered->instructions());
  }
  return response;
}

}  // namespace mycc
