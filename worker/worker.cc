#include "worker/worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "worker/limits.h"

namespace mycc {
namespace {

// Errors that the same call may get over: the server is away, busy, or out of disk.
bool IsPassing(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled: return true;
    default: return false;
  }
}

}  // namespace

Worker::Worker(WorkerOptions options, ServerLink* link, std::vector<WorkerDevice> devices)
    : options_(std::move(options)), link_(link), devices_(std::move(devices)) {}

void Worker::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void Worker::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  link_->StopWaiting();
}

bool Worker::Pause(double seconds) {
  const Deadline deadline = After(seconds);
  const MutexLock lock(&mutex_);
  while (!stopping_ && changed_.WaitUntil(&mutex_, deadline)) {
  }
  return !stopping_;
}

// A server that was started again waits for its workers no longer than a lease.
double Worker::LongerRetry(double seconds) {
  const MutexLock lock(&mutex_);
  return std::min({2 * seconds, options_.last_retry_seconds, heartbeat_seconds_});
}

std::string Worker::WaitForSession() {
  const MutexLock lock(&mutex_);
  while (session_.empty() && !stopping_) changed_.Wait(&mutex_);
  return stopping_ ? "" : session_;
}

bool Worker::WaitUntilRegistered(double seconds) {
  const Deadline deadline = After(seconds);
  const MutexLock lock(&mutex_);
  while (session_.empty() && !stopping_ && changed_.WaitUntil(&mutex_, deadline)) {
  }
  return !session_.empty();
}

void Worker::ForgetSession(const std::string& session) {
  const MutexLock lock(&mutex_);
  if (session_ == session) session_.clear();
  changed_.NotifyAll();
}

void Worker::Obey(const v1::Instructions& instructions) {
  for (const v1::LeaseId& lease : instructions.revoked()) revoked_.insert({lease.trial(), lease.attempt()});
  if (instructions.drain() != drain_) {
    drain_ = instructions.drain();
    Log(drain_.empty() ? "the server gives work again"
                       : absl::StrCat("the server gives no more work: ", drain_));
  }
}

bool Worker::IsUnwanted(const v1::LeaseId& lease) {
  const MutexLock lock(&mutex_);
  const LeaseKey key(lease.trial(), lease.attempt());
  if (!stopping_ && !revoked_.contains(key)) return false;
  // The server knows about what it revoked; what stops with the worker goes back when it leaves.
  if (revoked_.erase(key) > 0) held_.erase(key);
  return true;
}

void Worker::RunLane(const WorkerDevice& device) {
  double retry = options_.first_retry_seconds;
  while (true) {
    v1::LeaseRequest request;
    request.set_session(WaitForSession());
    if (request.session().empty()) break;
    request.set_device(device.offer.device());
    request.set_max_trials(static_cast<uint32_t>(device.batch));
    request.set_wait_seconds(options_.poll_seconds);
    const absl::StatusOr<v1::LeaseResponse> leased = link_->Lease(request);
    if (leased.ok()) {
      retry = options_.first_retry_seconds;
      MeasureBatch(device, *leased);
      continue;
    }
    if (absl::IsNotFound(leased.status())) ForgetSession(request.session());
    if (!Pause(retry)) break;
    retry = LongerRetry(retry);
  }
  const MutexLock lock(&mutex_);
  --lanes_;
  changed_.NotifyAll();
}

void Worker::MeasureBatch(const WorkerDevice& device, const v1::LeaseResponse& leased) {
  {
    const MutexLock lock(&mutex_);
    Obey(leased.instructions());
    for (const v1::Assignment& assignment : leased.assignments()) {
      held_.insert({assignment.lease().trial(), assignment.lease().attempt()});
    }
  }
  if (leased.assignments().empty()) return;
  const std::vector<v1::Assignment> assignments(leased.assignments().begin(), leased.assignments().end());
  device.measure(
      assignments, [this](const v1::LeaseId& lease) { return IsUnwanted(lease); },
      [this, &device](const v1::Assignment& assignment, std::vector<v1::MeasureResult> results) {
        v1::Report report;
        *report.mutable_lease() = assignment.lease();
        for (v1::MeasureResult& result : results) {
          result.mutable_device()->set_worker(options_.name);
          *(report.has_result() ? report.add_rivals() : report.mutable_result()) = std::move(result);
        }
        const MutexLock lock(&mutex_);
        outbox_.push_back(std::move(report));
        flush_ |= device.reports_at_once;
        if (flush_) changed_.NotifyAll();
      });
  const MutexLock lock(&mutex_);
  flush_ = true;
  changed_.NotifyAll();
}

absl::Status Worker::Register() {
  v1::RegisterRequest request;
  request.set_worker(options_.name);
  *request.mutable_toolchain() = options_.toolchain;
  request.mutable_host()->set_boot(BootName());
  request.mutable_host()->set_memory_kills(MemoryKills());
  for (const WorkerDevice& device : devices_) *request.add_devices() = device.offer;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [trial, attempt] : held_) {
      v1::LeaseId& lease = *request.add_held();
      lease.set_trial(trial);
      lease.set_attempt(attempt);
    }
  }
  MYCC_ASSIGN_OR_RETURN(const v1::RegisterResponse response, link_->Register(request));
  const MutexLock lock(&mutex_);
  session_ = response.session();
  heartbeat_seconds_ = response.heartbeat_seconds();
  for (const v1::LeaseId& lost : response.lost()) revoked_.insert({lost.trial(), lost.attempt()});
  changed_.NotifyAll();
  Log(absl::StrCat("registered as ", options_.name));
  return absl::OkStatus();
}

absl::Status Worker::SendReports(const std::string& session) {
  v1::ReportRequest request;
  request.set_session(session);
  {
    const MutexLock lock(&mutex_);
    flush_ = false;
    for (const v1::Report& report : outbox_) *request.add_reports() = report;
  }
  if (request.reports().empty()) return absl::OkStatus();
  const absl::StatusOr<v1::ReportResponse> response = link_->Report(request);
  const MutexLock lock(&mutex_);
  if (!response.ok() && (IsPassing(response.status()) || absl::IsNotFound(response.status()))) {
    flush_ = true;  // again, once the server answers or this worker is registered again
    return response.status();
  }
  // Acknowledged, or refused for good: either way the server has spoken.
  if (response.ok()) Obey(response->instructions());
  if (!response.ok())
    Log(absl::StrCat("the server refused ", request.reports_size(),
                     " results: ", response.status().message()));
  for (const v1::Report& report : request.reports()) {
    const LeaseKey key(report.lease().trial(), report.lease().attempt());
    held_.erase(key);
    revoked_.erase(key);
  }
  outbox_.erase(outbox_.begin(), outbox_.begin() + request.reports_size());
  return absl::OkStatus();
}

absl::Status Worker::SendHeartbeat(const std::string& session) {
  v1::HeartbeatRequest request;
  request.set_session(session);
  MYCC_ASSIGN_OR_RETURN(const v1::HeartbeatResponse response, link_->Heartbeat(request));
  const MutexLock lock(&mutex_);
  Obey(response.instructions());
  return absl::OkStatus();
}

// One message to the server when one is due; returns what came of it.
absl::Status Worker::KeepLine() {
  std::string session;
  bool flush = false;
  {
    const MutexLock lock(&mutex_);
    if (session_.empty()) {
      if (stopping_) return absl::OkStatus();
    } else {
      const Deadline beat = After(heartbeat_seconds_);
      while (!flush_ && !stopping_ && !session_.empty() && changed_.WaitUntil(&mutex_, beat)) {
      }
      if (stopping_) return absl::OkStatus();
    }
    session = session_;
    flush = flush_;
  }
  if (session.empty()) return Register();
  const absl::Status status = flush ? SendReports(session) : SendHeartbeat(session);
  if (!absl::IsNotFound(status)) return status;
  ForgetSession(session);
  return absl::OkStatus();
}

absl::Status Worker::Run() {
  std::vector<std::thread> lanes;
  {
    const MutexLock lock(&mutex_);
    for (const WorkerDevice& device : devices_) lanes_ += device.lanes;
  }
  for (const WorkerDevice& device : devices_) {
    for (int i = 0; i < device.lanes; ++i) lanes.emplace_back([this, &device] { RunLane(device); });
  }

  absl::Status refused;
  double retry = options_.first_retry_seconds;
  while (true) {
    const absl::Status status = KeepLine();
    {
      const MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    if (status.ok()) {
      retry = options_.first_retry_seconds;
      continue;
    }
    if (!IsPassing(status)) {
      refused = status;
      Stop();
      break;
    }
    if (retry == options_.first_retry_seconds)
      Log(absl::StrCat("the server does not answer: ", status.message()));
    if (!Pause(retry)) break;
    retry = LongerRetry(retry);
  }
  for (std::thread& lane : lanes) lane.join();
  Leave();
  return refused;
}

void Worker::Leave() {
  std::string session;
  {
    const MutexLock lock(&mutex_);
    session = session_;
  }
  if (session.empty()) return;
  const Deadline end = After(options_.leave_seconds);
  while (!SendReports(session).ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  v1::LeaveRequest request;
  request.set_session(session);
  (void)link_->Leave(request);  // where it is not heard, the leases end by themselves
}

}  // namespace mycc
