// The two kinds of threads of a worker: lanes, which lease and measure, and the connection thread, which
// registers, reports and sends heartbeats.
#include "worker/worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "process/limits.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr size_t kMostTold = 100;

// Errors that do not go away by waiting: the server does not accept this worker.
bool IsRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kFailedPrecondition: return true;
    default: return false;
  }
}

}  // namespace

Worker::Worker(WorkerOptions options, ServerLink* link, std::vector<WorkerDevice> devices)
    : options_(std::move(options)), link_(link), devices_(std::move(devices)) {}

void Worker::Log(const std::string& line) const { Tell(Event(line)); }

void Worker::Tell(Event event) const {
  if (!options_.log) return;
  event.worker = options_.name;
  options_.log(event);
}

void Worker::LogOnce(const std::string& line, Told* told) const {
  if (told->size() < kMostTold && told->insert(line).second) Log(line);
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

bool Worker::WaitUntilReady(double seconds) {
  const Deadline deadline = After(seconds);
  const MutexLock lock(&mutex_);
  while ((session_.empty() || !constants_.empty()) && !stopping_ && changed_.WaitUntil(&mutex_, deadline)) {
  }
  return !session_.empty() && constants_.empty();
}

void Worker::ForgetSession(const std::string& session) {
  const MutexLock lock(&mutex_);
  if (session_ == session) session_.clear();
  changed_.NotifyAll();
}

void Worker::Apply(const v1::Instructions& instructions) {
  holdings_.Revoke(instructions.revoked());
  if (instructions.drain() != drain_) {
    drain_ = instructions.drain();
    Event event(drain_.empty() ? "worker.recovered" : "worker.drained",
                drain_.empty() ? "the server gives work again"
                               : absl::StrCat("the server gives no more work: ", drain_));
    event.is_warning = !drain_.empty();
    Tell(std::move(event));
  }
}

bool Worker::IsUnwanted(const v1::LeaseId& lease) {
  const MutexLock lock(&mutex_);
  while (!stopping_ && options_.now() - word_at_ > std::chrono::duration<double>(lease_seconds_)) {
    if (!std::exchange(needs_word_, true)) changed_.NotifyAll();
    changed_.Wait(&mutex_);
  }
  return stopping_ || !holdings_.IsWanted(lease);
}

void Worker::AskFor(const v1::RegisterResponse& response) {
  for (const std::string& name : response.unmeasured()) {
    const auto device = std::ranges::find_if(devices_, [&name](const WorkerDevice& one) {
      return one.offer.device() == name && one.measure_constants != nullptr;
    });
    if (device == devices_.end()) continue;
    needs_word_ |= constants_.Ask(name);
  }
}

void Worker::MeasureConstants(const WorkerDevice& device) {
  const std::string& name = device.offer.device();
  {
    const MutexLock lock(&mutex_);
    if (stopping_ || !constants_.TakeToMeasure(name)) return;
  }
  const absl::StatusOr<v1::DeviceConstants> measured = device.measure_constants([this] {
    const MutexLock lock(&mutex_);
    return stopping_;
  });
  {
    const MutexLock lock(&mutex_);
    // The search does without those that cannot be measured.
    constants_.Measured(name, measured.ok() ? std::make_optional(*measured) : std::nullopt);
    needs_word_ |= measured.ok();
    changed_.NotifyAll();
    if (stopping_) return;
  }
  Tell(Event("worker.measured_constants",
             measured.ok()
                 ? absl::StrCat(name, ": its constants are measured")
                 : absl::StrCat(name, ": its constants cannot be measured: ", measured.status().message())));
}

void Worker::RunLane(const WorkerDevice& device) {
  double retry = options_.first_retry_seconds;
  Told told;
  while (true) {
    v1::LeaseRequest request;
    request.set_session(WaitForSession());
    if (request.session().empty()) break;
    MeasureConstants(device);
    request.set_device(device.offer.device());
    request.set_max_trials(static_cast<uint32_t>(device.batch));
    request.set_wait_seconds(options_.poll_seconds);
    {
      const MutexLock lock(&mutex_);
      holdings_.Name(request.mutable_held());
    }
    const absl::StatusOr<v1::LeaseResponse> leased = link_->Lease(request);
    if (leased.ok()) {
      retry = options_.first_retry_seconds;
      told.clear();
      MeasureBatch(device, *leased);
      continue;
    }
    if (absl::IsNotFound(leased.status())) {
      ForgetSession(request.session());
      retry = options_.first_retry_seconds;
    }
    if (!Pause(retry)) break;
    // The connection thread tells of a server that is away.
    if (IsRefusal(leased.status()))
      LogOnce(absl::StrCat(device.offer.device(), ": no trials: ", leased.status().message()), &told);
    retry = LongerRetry(retry);
  }
}

void Worker::MeasureBatch(const WorkerDevice& device, const v1::LeaseResponse& leased) {
  {
    const MutexLock lock(&mutex_);
    for (const v1::Assignment& assignment : leased.assignments()) holdings_.Take(assignment.lease());
    Apply(leased.instructions());
  }
  if (leased.assignments().empty()) return;
  const std::vector<v1::Assignment> assignments(leased.assignments().begin(), leased.assignments().end());
  device.measure(
      assignments, [this](const v1::LeaseId& lease) { return IsUnwanted(lease); },
      [this, &device](const v1::Assignment& assignment, std::vector<v1::MeasureResult> results) {
        Finish(device, assignment, std::move(results));
      });
  const MutexLock lock(&mutex_);
  for (const v1::Assignment& assignment : assignments) holdings_.Drop(assignment.lease());
  flush_ = true;
  changed_.NotifyAll();
}

void Worker::Finish(const WorkerDevice& device, const v1::Assignment& assignment,
                    std::vector<v1::MeasureResult> results) {
  Event measured("trial.measured", "");
  measured.trial = assignment.lease().trial();
  measured.job = measured.trial.substr(0, measured.trial.find('/'));
  measured.attempt = assignment.lease().attempt();
  measured.device = device.offer.device();
  measured.status = StatusName(results[0].status());
  measured.seconds = results[0].timing().seconds();
  Tell(std::move(measured));
  v1::Report report;
  *report.mutable_lease() = assignment.lease();
  for (v1::MeasureResult& result : results) {
    result.mutable_device()->set_worker(options_.name);
    *(report.has_result() ? report.add_rivals() : report.mutable_result()) = std::move(result);
  }
  const MutexLock lock(&mutex_);
  holdings_.Finish(std::move(report));
  flush_ |= device.reports_at_once;
  if (flush_) changed_.NotifyAll();
}

absl::StatusOr<std::string> Worker::FetchArtifact(const std::string& digest) {
  v1::FetchArtifactRequest request;
  request.set_session(WaitForSession());
  if (request.session().empty()) return absl::CancelledError("the worker is stopping");
  request.set_digest(digest);
  MYCC_ASSIGN_OR_RETURN(v1::FetchArtifactResponse response, link_->FetchArtifact(request));
  return std::move(*response.mutable_artifact());
}

absl::Status Worker::Register() {
  v1::RegisterRequest request;
  request.set_worker(options_.name);
  request.set_instance(options_.instance);
  request.set_replaces(options_.replaces);
  request.set_names_what_it_holds(true);
  request.set_role(options_.role);
  *request.mutable_toolchain() = options_.toolchain;
  request.set_version(options_.toolchain.mycc());
  request.mutable_host()->set_boot(BootName());
  request.mutable_host()->set_memory_kills(MemoryKills());
  for (const WorkerDevice& device : devices_) *request.add_devices() = device.offer;
  {
    const MutexLock lock(&mutex_);
    holdings_.Name(request.mutable_held());
  }
  MYCC_ASSIGN_OR_RETURN(const v1::RegisterResponse response, link_->Register(request));
  const MutexLock lock(&mutex_);
  session_ = response.session();
  was_registered_ = true;
  heartbeat_seconds_ = response.heartbeat_seconds();
  if (response.lease_seconds() > 0) lease_seconds_ = response.lease_seconds();
  holdings_.Revoke(response.lost());
  AskFor(response);
  changed_.NotifyAll();
  Tell(Event("worker.registered", absl::StrCat("registered as ", options_.name)));
  return absl::OkStatus();
}

absl::Status Worker::SendReports(const std::string& session) {
  v1::ReportRequest request;
  request.set_session(session);
  {
    const MutexLock lock(&mutex_);
    holdings_.Name(request.mutable_held());
    holdings_.AddReports(&request);
    flush_ = static_cast<size_t>(request.reports_size()) < holdings_.num_results();
  }
  if (request.reports().empty()) return absl::OkStatus();
  const absl::StatusOr<v1::ReportResponse> response = link_->Report(request);
  std::vector<v1::ReportAnswer> refusals;
  absl::Status status = response.status();
  {
    const MutexLock lock(&mutex_);
    if (response.ok()) {
      Apply(response->instructions());
      status = holdings_.OnAnswers(request, *response, &refusals);
    } else {
      holdings_.OnFailure(request);
    }
    flush_ |= !status.ok();  // again, after a pause
  }
  for (const v1::ReportAnswer& refusal : refusals)
    LogOnce(absl::StrCat("the server refused a result: ", refusal.reason()), &refusals_);
  return status;
}

absl::Status Worker::SendHeartbeat(const std::string& session) {
  v1::HeartbeatRequest request;
  request.set_session(session);
  for (v1::DeviceTrouble& trouble : Troubles()) *request.add_troubles() = std::move(trouble);
  for (const WorkerDevice& device : devices_) {
    if (device.reading) *request.add_readings() = device.reading();
  }
  {
    const MutexLock lock(&mutex_);
    holdings_.Name(request.mutable_held());
    constants_.AddTo(&request);
  }
  MYCC_ASSIGN_OR_RETURN(const v1::HeartbeatResponse response, link_->Heartbeat(request));
  const MutexLock lock(&mutex_);
  constants_.Told(request);
  changed_.NotifyAll();
  Apply(response.instructions());
  return absl::OkStatus();
}

std::vector<v1::DeviceTrouble> Worker::Troubles() {
  std::vector<v1::DeviceTrouble> troubles;
  for (const WorkerDevice& device : devices_) {
    const std::string& name = device.offer.device();
    const std::string text = device.trouble ? device.trouble() : "";
    if (!text.empty()) {
      v1::DeviceTrouble& trouble = troubles.emplace_back();
      trouble.set_device(name);
      trouble.set_text(text);
    }
    std::string& told = troubles_[name];
    if (text != told) Log(absl::StrCat(name, text.empty() ? " goes on" : " stands still: ", text));
    told = text;
  }
  return troubles;
}

absl::Status Worker::Send(bool reports) {
  std::string session;
  {
    const MutexLock lock(&mutex_);
    session = session_;
  }
  const Deadline begun = options_.now();
  const absl::Status status = session.empty() ? Register()
                              : reports       ? SendReports(session)
                                              : SendHeartbeat(session);
  if (absl::IsNotFound(status)) {
    ForgetSession(session);
    return status;
  }
  // A server that is away gives no trials to others either.
  const MutexLock lock(&mutex_);
  word_at_ = begun;
  changed_.NotifyAll();
  return status;
}

absl::Status Worker::KeepAlive() {
  bool reports = false;
  {
    const MutexLock lock(&mutex_);
    while (!flush_ && !needs_word_ && !stopping_ && !session_.empty() &&
           changed_.WaitUntil(&mutex_, next_beat_)) {
    }
    if (stopping_) return absl::OkStatus();
    reports = flush_ && !needs_word_ && (beat_failed_ || std::chrono::steady_clock::now() < next_beat_);
    needs_word_ = false;
  }
  const absl::Status status = Send(reports);
  beat_failed_ = !reports && !status.ok();
  if (!reports && status.ok()) {
    const MutexLock lock(&mutex_);
    next_beat_ = After(heartbeat_seconds_);
  }
  return status;
}

absl::Status Worker::KeepAliveUntilStopped() {
  double retry = options_.first_retry_seconds;
  Told told;
  while (true) {
    const absl::Status status = KeepAlive();
    {
      const MutexLock lock(&mutex_);
      if (stopping_) return absl::OkStatus();
      if (!was_registered_ && IsRefusal(status)) return status;
    }
    if (status.ok()) {
      retry = options_.first_retry_seconds;
      told.clear();
      continue;
    }
    LogOnce(absl::StrCat("trying again: ", status.message()), &told);
    // The server is there again, and is told at once who this is.
    if (absl::IsNotFound(status)) retry = options_.first_retry_seconds;
    if (!Pause(retry)) return absl::OkStatus();
    retry = LongerRetry(retry);
  }
}

absl::Status Worker::Run() {
  std::vector<std::thread> lanes;
  for (const WorkerDevice& device : devices_) {
    for (int i = 0; i < device.lanes; ++i) lanes.emplace_back([this, &device] { RunLane(device); });
  }
  const absl::Status refused = KeepAliveUntilStopped();
  Stop();
  for (std::thread& lane : lanes) lane.join();
  Leave();
  return refused;
}

void Worker::Leave() {
  const Deadline end = After(options_.leave_seconds);
  size_t waiting = 0;
  std::string session;
  const auto look = [&] {
    const MutexLock lock(&mutex_);
    waiting = holdings_.num_results();
    session = session_;
  };
  for (look(); waiting > 0 && std::chrono::steady_clock::now() < end; look()) {
    if (!Send(/*reports=*/true).ok())
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.first_retry_seconds));
  }
  if (waiting > 0) Log(absl::StrCat(waiting, " results are lost: the server does not take them now"));
  if (session.empty()) return;
  v1::LeaveRequest request;
  request.set_session(session);
  (void)link_->Leave(request);  // where it is not heard, the leases end by themselves
}

}  // namespace mycc
