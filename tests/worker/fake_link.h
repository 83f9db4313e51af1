// A server of one worker, in the worker's own process: hands out what a test queues, answers as the test
// says, and keeps what it was told. Thread rule: thread-safe, but for what tests set before the worker runs
// and read after it ended.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "worker/server_link.h"

namespace mycc {

class FakeLink final : public ServerLink {
 public:
  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override {
    const MutexLock lock(&mutex_);
    registrations_.push_back(request);
    const absl::Status refusal = Next(&register_errors_);
    if (!refusal.ok()) return refusal;
    v1::RegisterResponse response;
    session_ = "s" + std::to_string(registrations_.size());
    response.set_session(session_);
    response.set_lease_seconds(10);
    response.set_heartbeat_seconds(heartbeat_seconds_);
    for (const std::string& device : ask_for_) response.add_unmeasured(device);
    for (const v1::LeaseId& lease : request.held()) {
      if (lease.trial() == lose_) *response.add_lost() = lease;
    }
    changed_.NotifyAll();
    return response;
  }

  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) override {
    const MutexLock lock(&mutex_);
    named_.push_back({request.held().begin(), request.held().end()});
    while (queue_.empty() && !stopped_) changed_.Wait(&mutex_);
    if (stopped_) return absl::CancelledError("stopping");
    if (request.session() != session_) return absl::NotFoundError("unknown session");
    v1::LeaseResponse response;
    while (!queue_.empty() && response.assignments_size() < static_cast<int>(request.max_trials())) {
      *response.add_assignments()->mutable_lease() = LeaseOf(queue_.front());
      queue_.pop_front();
    }
    for (const std::string& trial : revoke_) *response.mutable_instructions()->add_revoked() = LeaseOf(trial);
    const absl::Status lost = Next(&lease_errors_);
    if (!lost.ok()) return lost;  // and what was granted with it
    return response;
  }

  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) override {
    const MutexLock lock(&mutex_);
    named_.push_back({request.held().begin(), request.held().end()});
    reported_.emplace_back();
    for (const v1::Report& report : request.reports()) reported_.back().push_back(report.lease().trial());
    changed_.NotifyAll();
    const absl::Status error = Next(&report_errors_);
    if (absl::IsNotFound(error)) session_.clear();
    if (!error.ok()) return error;
    if (request.session() != session_) return absl::NotFoundError("unknown session");
    // gRPC does the same with a request that it cannot read.
    if (v1::ReportRequest read; !read.ParseFromString(request.SerializeAsString()))
      return absl::InternalError("the request does not parse");
    for (const v1::Report& report : request.reports()) {
      if (report.lease().trial() == too_large_)
        return absl::ResourceExhaustedError("the message is too large");
    }
    v1::ReportResponse response;
    for (const v1::Report& report : request.reports()) Answer(report, &response);
    return response;
  }

  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) override {
    const MutexLock lock(&mutex_);
    named_.push_back({request.held().begin(), request.held().end()});
    heartbeats_.push_back(request);
    changed_.NotifyAll();
    const absl::Status error = Next(&heartbeat_errors_);
    if (!error.ok()) return error;
    v1::HeartbeatResponse response;
    for (const std::string& trial : revoke_later_)
      *response.mutable_instructions()->add_revoked() = LeaseOf(trial);
    return response;
  }

  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest&) override {
    const MutexLock lock(&mutex_);
    left_ = true;
    return v1::LeaveResponse();
  }

  void StopWaiting() override {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  static v1::LeaseId LeaseOf(const std::string& trial) {
    v1::LeaseId lease;
    lease.set_trial(trial);
    lease.set_attempt(1);
    lease.set_ticket("ticket of " + trial);
    return lease;
  }

  void Queue(std::vector<std::string> trials) {
    const MutexLock lock(&mutex_);
    queue_.insert(queue_.end(), trials.begin(), trials.end());
    changed_.NotifyAll();
  }
  // The message with this trial's report is too large; empty: none is.
  void SetTooLarge(const std::string& trial) {
    const MutexLock lock(&mutex_);
    too_large_ = trial;
  }
  void WaitForCommitted(size_t count) {
    WaitUntil([this, count] { return committed_.size() >= count; });
  }
  void WaitForReports(size_t calls) {
    WaitUntil([this, calls] { return reported_.size() >= calls; });
  }
  void WaitForHeartbeats(size_t more) {
    size_t seen = 0;
    {
      const MutexLock lock(&mutex_);
      seen = heartbeats_.size();
    }
    WaitUntil([this, seen, more] { return heartbeats_.size() >= seen + more; });
  }
  // How often a report of the trial came.
  int TimesReported(const std::string& trial) const {
    int times = 0;
    for (const auto& call : reported_) times += static_cast<int>(std::ranges::count(call, trial));
    return times;
  }
  // Whether any message named the trial.
  bool WasNamed(const std::string& trial) const {
    for (const auto& message : named_) {
      for (const v1::LeaseId& lease : message) {
        if (lease.trial() == trial) return true;
      }
    }
    return false;
  }

  double heartbeat_seconds_ = 60;
  // The errors of the first calls, in order; later calls succeed.
  std::deque<absl::Status> register_errors_, lease_errors_, report_errors_, heartbeat_errors_;
  std::vector<std::string> revoke_, revoke_later_;  // with trials, and with heartbeats
  std::string lose_;
  std::vector<std::string> ask_for_;  // the devices whose constants a registration is asked for
  std::map<std::string, std::deque<v1::ReportAnswer::Kind>> answers_;  // in place of KEPT
  std::vector<v1::RegisterRequest> registrations_;
  std::vector<v1::HeartbeatRequest> heartbeats_;
  std::vector<std::vector<v1::LeaseId>> named_;     // in each message but registrations
  std::vector<std::vector<std::string>> reported_;  // in each call
  std::vector<std::string> committed_;
  std::map<std::string, v1::MeasureResult> results_;  // of what is committed
  bool left_ = false;

 private:
  static absl::Status Next(std::deque<absl::Status>* errors) {
    if (errors->empty()) return absl::OkStatus();
    const absl::Status error = errors->front();
    errors->pop_front();
    return error;
  }
  void WaitUntil(const std::function<bool()>& holds) {
    const MutexLock lock(&mutex_);
    while (!holds()) changed_.Wait(&mutex_);
  }
  void Answer(const v1::Report& report, v1::ReportResponse* response) {
    const std::string& trial = report.lease().trial();
    std::deque<v1::ReportAnswer::Kind>& next = answers_[trial];
    v1::ReportAnswer::Kind kind = v1::ReportAnswer::KEPT;
    if (!next.empty()) {
      kind = next.front();
      next.pop_front();
    }
    if (kind == v1::ReportAnswer::KEPT) {
      committed_.push_back(trial);
      results_[trial] = report.result();
    }
    if (kind == v1::ReportAnswer::UNSPECIFIED) return;  // no answer to this one
    v1::ReportAnswer& answer = *response->add_answers();
    *answer.mutable_lease() = report.lease();
    answer.set_kind(kind);
    answer.set_reason("the reason");
  }

  Mutex mutex_;
  CondVar changed_;
  std::string session_, too_large_;
  std::deque<std::string> queue_;
  bool stopped_ = false;
};

}  // namespace mycc
