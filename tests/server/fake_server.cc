#include "tests/server/fake_server.h"

#include <cstdlib>
#include <functional>

#include "base/sha256.h"
#include "proto/names.h"

namespace mycc {

TestFolder TestFolder::InMemory() {
  absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::CreateIn("/dev/shm");
  return folder.ok() ? TestFolder(*std::move(folder)) : TestFolder();
}

v1::JobSpec MakeSpec(const std::vector<std::string>& workloads, uint32_t trials, uint64_t seed) {
  v1::JobSpec spec;
  spec.set_name("test");
  for (const std::string& workload : workloads) spec.add_tasks()->set_workload(workload);
  spec.set_target(kTestTarget);
  spec.set_trials(trials);
  spec.set_seed(seed);
  spec.set_strategy("random");
  return spec;
}

v1::MeasureResult FakeResult(const v1::Assignment& assignment) {
  const std::string digest = Sha256Hex(assignment.trace());
  const double seconds =
      1e-3 * (1 + static_cast<double>(std::strtoul(digest.substr(0, 4).c_str(), nullptr, 16)) / 65536);
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  result.mutable_timing()->set_protocol(assignment.protocol());
  result.mutable_timing()->set_timer_version(1);
  result.mutable_timing()->set_seconds(seconds);
  result.mutable_timing()->add_samples_seconds(seconds);
  result.mutable_timing()->set_baseline_seconds(1e-3);
  result.mutable_verification()->set_passed(true);
  result.mutable_device()->set_device("cpu");
  return result;
}

std::vector<v1::MeasureResult> FakeResults(const v1::Assignment& assignment) {
  std::vector<v1::MeasureResult> results = {FakeResult(assignment)};
  for (const std::string& rival : assignment.rivals()) {
    v1::Assignment own = assignment;
    own.set_trace(rival);
    results.push_back(FakeResult(own));
  }
  return results;
}

CoordinatorOptions FakeServer::DefaultOptions() {
  CoordinatorOptions options;
  options.jobs.admission.generation_size = 4;
  // The same for every server, and none twice in one log.
  options.jobs.admission.new_job_id = [made = std::make_shared<uint64_t>(0)] { return JobId(0, ++*made); };
  options.dispatch.lease_seconds = 10;
  return options;
}

FakeServer::FakeServer(CoordinatorOptions options, StartSearch start_search)
    : options_(std::move(options)), start_search_(std::move(start_search)) {
  Open();
}

void FakeServer::Open(const std::function<void(Coordinator&)>& before) {
  auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kServe);
  ASSERT_TRUE(log.ok()) << log.status();
  log_ = *std::move(log);
  Executors executors;
  executors.write = [this](LogWrite write, LogWriteDone done) {
    (hold_writes_ ? held_writes_ : works_)
        .emplace_back([this, write = std::move(write), done = std::move(done)] {
          done(write_error_.ok() ? write() : write_error_);
        });
  };
  executors.read = [this](LogRead read, std::function<void()> done) {
    works_.emplace_back([this, read = std::move(read), done = std::move(done)] {
      read(log_.get());
      if (hold_read_ends_) {
        held_read_ends_.push_back(done);
      } else {
        done();
      }
    });
  };
  executors.search = [this](std::function<void()> work, std::function<void()> done) {
    works_.emplace_back([work = std::move(work), done = std::move(done)] {
      work();
      done();
    });
  };
  executors.start_search = start_search_;
  coordinator_ = std::make_unique<Coordinator>(options_, log_.get(), &time_, executors);
  const absl::Status started = coordinator_->Start();
  ASSERT_TRUE(started.ok()) << started;
  if (before != nullptr) before(*coordinator_);
  Commit();
}

void FakeServer::Commit() {
  while (!works_.empty()) {
    const std::function<void()> work = std::move(works_.front());
    works_.pop_front();
    work();
  }
}

void FakeServer::HoldWrites(bool hold) {
  hold_writes_ = hold;
  if (hold) return;
  works_.insert(works_.end(), held_writes_.begin(), held_writes_.end());
  held_writes_.clear();
}

void FakeServer::HoldReadEnds(bool hold) {
  hold_read_ends_ = hold;
  if (hold) return;
  works_.insert(works_.end(), held_read_ends_.begin(), held_read_ends_.end());
  held_read_ends_.clear();
}

void FakeServer::Restart(const std::function<void(Coordinator&)>& before) {
  coordinator_.reset();
  works_.clear();
  held_writes_.clear();
  held_read_ends_.clear();
  log_.reset();
  Open(before);
}

std::string FakeServer::Submit(const v1::JobSpec& spec, const std::string& submission,
                               const std::string& client) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_submission(submission);
  request.set_client(client);
  const auto progress = TrySubmit(request);
  EXPECT_TRUE(progress.ok()) << progress.status();
  return progress.ok() ? progress->job() : "";
}

absl::StatusOr<v1::JobProgress> FakeServer::TrySubmit(const v1::SubmitJobRequest& request) {
  return AnswerOf<v1::JobProgress>(this,
                                   [&](const JobReply& reply) { coordinator_->Submit(request, reply); });
}

absl::StatusOr<v1::JobProgress> FakeServer::Update(const v1::UpdateJobRequest& request) {
  return AnswerOf<v1::JobProgress>(this,
                                   [&](const JobReply& reply) { coordinator_->Update(request, reply); });
}

absl::StatusOr<v1::JobProgress> FakeServer::Cancel(const std::string& job, const std::string& by) {
  v1::CancelJobRequest request;
  request.set_job(job);
  request.set_by(by);
  return AnswerOf<v1::JobProgress>(
      this, [&](const JobReply& reply) { coordinator_->jobs().Cancel(request, reply); });
}

absl::StatusOr<v1::JobProgress> FakeServer::Leave(const std::string& job, const std::string& client) {
  v1::LeaveJobRequest request;
  request.set_job(job);
  request.set_client(client);
  return AnswerOf<v1::JobProgress>(
      this, [&](const JobReply& reply) { coordinator_->jobs().Leave(request, reply); });
}

v1::JobProgress FakeServer::Progress(const std::string& job) {
  absl::StatusOr<v1::JobProgress> progress = TryProgress(job);
  EXPECT_TRUE(progress.ok()) << progress.status();
  return progress.ok() ? *std::move(progress) : v1::JobProgress();
}

absl::StatusOr<v1::JobProgress> FakeServer::TryProgress(const std::string& job) {
  return AnswerOf<v1::JobProgress>(this, [&](const JobReply& reply) { coordinator_->Show(job, reply); });
}

std::vector<v1::JobProgress> FakeServer::List(uint32_t limit) {
  const auto jobs = AnswerOf<v1::ListJobsResponse>(
      this, [&](const auto& reply) { coordinator_->jobs().listing().List(limit, reply); });
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  return {jobs->jobs().begin(), jobs->jobs().end()};
}

std::vector<StoredRecord> FakeServer::RecordsOf(const std::string& job, bool finals) {
  RecordFilter filter;
  filter.job = job;
  absl::StatusOr<std::vector<StoredRecord>> records = log_->List(filter);
  EXPECT_TRUE(records.ok()) << records.status();
  if (!records.ok()) return {};
  std::erase_if(*records, [finals](const StoredRecord& stored) {
    return stored.record.result().timing().final_round().empty() == finals;
  });
  return *std::move(records);
}

std::map<std::string, std::string> FakeServer::TracesOf(const std::string& job) {
  std::map<std::string, std::string> traces;
  for (const StoredRecord& record : RecordsOf(job)) {
    EXPECT_TRUE(traces.emplace(record.record.trial(), record.record.trace()).second)
        << record.record.trial() << " twice";
  }
  return traces;
}

FakeWorker::FakeWorker(FakeServer* server, std::string name, std::string target, Version version)
    : server_(server), name_(std::move(name)), version_(version) {
  v1::DeviceOffer& device = devices.emplace_back();
  device.set_device("cpu");
  device.set_target(std::move(target));
  if (version == Version::kThis) {
    for (const auto protocol :
         {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_MODEL})
      device.add_protocols(protocol);
  }
  Register();
}

v1::RegisterRequest FakeWorker::Registration() const {
  v1::RegisterRequest request;
  request.set_worker(name_);
  for (const v1::DeviceOffer& device : devices) *request.add_devices() = device;
  for (const auto& [key, lease] : held) *request.add_held() = lease;
  *request.mutable_host() = host;
  if (version_ == Version::kBefore) return request;
  request.set_version("0.1.0");
  request.set_role(v1::WORKER_ROLE_BOTH);
  request.set_instance(instance_);
  request.set_replaces(replaces_);
  request.set_names_what_it_holds(true);
  return request;
}

absl::StatusOr<v1::RegisterResponse> FakeWorker::TryRegister(const v1::RegisterRequest& request) {
  return AnswerOf<v1::RegisterResponse>(
      server_, [&](const auto& reply) { (*server_)->workers().Register(request, reply); });
}

v1::RegisterResponse FakeWorker::Register() {
  std::string& latest = server_->processes_[name_];
  replaces_ = latest;
  instance_ = latest = name_ + "'" + latest;
  held.clear();
  return RegisterAgain();
}

v1::RegisterResponse FakeWorker::RegisterAgain() {
  const absl::StatusOr<v1::RegisterResponse> response = TryRegister(Registration());
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return {};
  session = response->session();
  for (const v1::LeaseId& lost : response->lost()) held.erase({lost.trial(), lost.attempt()});
  return *response;
}

template <typename Request>
Request FakeWorker::Named() const {
  Request request;
  request.set_session(session);
  if (version_ == Version::kBefore) return request;
  for (const auto& [key, lease] : held) *request.add_held() = lease;
  return request;
}

void FakeWorker::Apply(const v1::Instructions& told) {
  instructions = told;
  for (const v1::LeaseId& lease : told.revoked()) held.erase({lease.trial(), lease.attempt()});
}

absl::StatusOr<v1::LeaseResponse> FakeWorker::TryLease(uint32_t count, const std::string& device) {
  auto request = Named<v1::LeaseRequest>();
  request.set_device(device);
  request.set_max_trials(count);
  return AnswerOf<v1::LeaseResponse>(server_, [&](const auto& reply) {
    (*server_)->workers().Lease(
        request, [] { return true; }, reply);
  });
}

std::vector<v1::Assignment> FakeWorker::Lease(uint32_t count, const std::string& device) {
  const absl::StatusOr<v1::LeaseResponse> response = TryLease(count, device);
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return {};
  Apply(response->instructions());
  for (const v1::Assignment& assignment : response->assignments()) {
    const v1::LeaseId& lease = assignment.lease();
    held[{lease.trial(), lease.attempt()}] = lease;
  }
  return {response->assignments().begin(), response->assignments().end()};
}

absl::Status FakeWorker::Beat(const std::map<std::string, v1::DeviceConstants>& constants) {
  auto request = Named<v1::HeartbeatRequest>();
  for (const auto& [device, measured] : constants) {
    v1::MeasuredConstants& told = *request.add_constants();
    told.set_device(device);
    *told.mutable_constants() = measured;
  }
  const auto response = AnswerOf<v1::HeartbeatResponse>(
      server_, [&](const auto& reply) { (*server_)->workers().Heartbeat(request, reply); });
  if (response.ok()) Apply(response->instructions());
  return response.status();
}

absl::Status FakeWorker::Leave() {
  v1::LeaveRequest request;
  request.set_session(session);
  return AnswerOf<v1::LeaveResponse>(server_,
                                     [&](const auto& reply) { (*server_)->workers().Leave(request, reply); })
      .status();
}

absl::Status FakeWorker::Report(const v1::Assignment& assignment, const v1::MeasureResult& result) {
  std::vector<v1::MeasureResult> results = FakeResults(assignment);
  results[0] = result;
  return ReportAll(assignment, results);
}

absl::Status FakeWorker::ReportAll(const v1::Assignment& assignment,
                                   const std::vector<v1::MeasureResult>& results) {
  auto request = Named<v1::ReportRequest>();
  v1::Report& report = *request.add_reports();
  *report.mutable_lease() = assignment.lease();
  *report.mutable_result() = results[0];
  for (size_t i = 1; i < results.size(); ++i) *report.add_rivals() = results[i];
  const auto response = AnswerOf<v1::ReportResponse>(
      server_, [&](const auto& reply) { (*server_)->workers().Report(request, reply); });
  if (!response.ok()) return response.status();
  Apply(response->instructions());
  EXPECT_EQ(response->answers_size(), 1);
  answer = response->answers(0);
  if (answer.kind() != v1::ReportAnswer::NOT_NOW)
    held.erase({assignment.lease().trial(), assignment.lease().attempt()});
  for (const v1::LeaseId& lease : response->ignored()) ignored.push_back(lease.trial());
  return absl::OkStatus();
}

int FakeWorker::Work(uint32_t batch) {
  int trials = 0;
  while (true) {
    const std::vector<v1::Assignment> assignments = Lease(batch);
    if (assignments.empty()) return trials;
    for (const v1::Assignment& assignment : assignments) {
      const absl::Status reported = Report(assignment);
      EXPECT_TRUE(reported.ok()) << reported;
      trials += assignment.rivals().empty();
    }
  }
}

}  // namespace mycc
