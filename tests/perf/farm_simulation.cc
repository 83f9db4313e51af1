#include "tests/perf/farm_simulation.h"

#include <algorithm>
#include <ctime>
#include <sstream>
#include <tuple>

#include "base/check.h"
#include "base/sha256.h"
#include "codegen/workload/parse.h"
#include "proto/names.h"
#include "server/build_queue.h"
#include "server/local_search.h"
#include "tests/cuda/any_portable.h"

namespace mycc {
namespace {

constexpr double kTickSeconds = 0.1, kPollSeconds = 20, kBeatSeconds = 5, kAgainSeconds = 0.1;
// The same numbers as in worker/local_worker.cc.
constexpr int kLanesOfDevice = 2, kMostLanesOfBuilder = 32;
constexpr double kRoundSeconds = 0.5;  // a final round's

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A time that no ceiling forbids, the same for each trace.
v1::MeasureResult ResultOf(const v1::Assignment& assignment, const std::string& trace) {
  const std::string digest = Sha256Hex(trace);
  const double seconds =
      0.01 * (1 + static_cast<double>(std::stoul(digest.substr(0, 4), nullptr, 16)) / 65536);
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  result.set_code_digest(digest);
  result.mutable_timing()->set_protocol(assignment.protocol());
  result.mutable_timing()->set_timer_version(1);
  result.mutable_timing()->set_seconds(seconds);
  result.mutable_timing()->add_samples_seconds(seconds);
  result.mutable_timing()->set_baseline_seconds(1e-3);
  result.mutable_verification()->set_passed(true);
  result.mutable_verification()->set_launches(64);
  result.mutable_verification()->set_strained_launches(10);
  result.mutable_device()->set_device("cuda:0");
  return result;
}

}  // namespace

FarmSimulation::FarmSimulation(const Assumptions& assumptions)
    : assumptions_(assumptions), folder_(TemporaryFolder::Create().value()) {
  log_ = TuningLog::Open(folder_.path() + "/farm.db", OpenMode::kServe).value();
  Executors executors;
  executors.write = [this](LogWrite write, LogWriteDone done) {
    const absl::Status status = write();
    After(assumptions_.commit, [done = std::move(done), status] { done(status); });
  };
  executors.read = [this](LogRead read, std::function<void()> done) {
    read(log_.get());
    After(assumptions_.call, std::move(done));
  };
  executors.search = [this](std::function<void()> work, std::function<void()> done) {
    const double start = CpuSeconds();
    work();
    const double seconds = CpuSeconds() - start;
    search_seconds_ += seconds;
    After(seconds, std::move(done));
  };
  executors.start_search = LocalSearch::Start;
  coordinator_ = std::make_unique<Coordinator>(CoordinatorOptions(), log_.get(), &time_, executors);
  MYCC_CHECK(coordinator_->Start().ok());
}

void FarmSimulation::After(double seconds, std::function<void()> event) {
  events_.push({now() + seconds, ++added_, std::move(event)});
}

bool FarmSimulation::RunUntil(const std::function<bool()>& holds, double most_seconds) {
  const double until = now() + most_seconds;
  double tick = now();
  while (!holds()) {
    const double next =
        events_.empty() ? tick + kTickSeconds : std::min(events_.top().at, tick + kTickSeconds);
    if (next > until) return false;
    time_.Set(std::max(now(), next));
    if (!events_.empty() && events_.top().at <= now()) {
      const std::function<void()> event = events_.top().run;
      events_.pop();
      event();
    } else {
      tick = now();
    }
    coordinator_->Tick();
  }
  return true;
}

RecordedTrials::RecordedTrials(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string workload, status;
    RecordedTrial trial;
    if (line.empty() || line[0] == '#') continue;
    MYCC_CHECK(words >> workload >> trial.build_seconds >> trial.run_seconds >> status) << line;
    trial.builds = status != "build_error";
    if (!trials_.contains(workload)) workloads_.push_back(workload);
    trials_[workload].push_back(trial);
    ++size_;
  }
}

const RecordedTrial& RecordedTrials::Of(const std::string& trial) {
  const std::string order = BuildQueue::TrialOf(trial);
  const std::string& name = order.empty() ? trial : order;
  const auto [met, is_new] = met_.try_emplace(name, nullptr);
  if (is_new) {
    const std::string& workload = workloads_.at(ParseTrialName(name)->task);
    const std::vector<RecordedTrial>& recorded = trials_.at(workload);
    met->second = &recorded[next_[workload]++ % recorded.size()];
  }
  return *met->second;
}

double RecordedTrials::build_seconds() const {
  double sum = 0;
  for (const auto& [name, trials] : trials_) {
    for (const RecordedTrial& trial : trials) sum += trial.build_seconds;
  }
  return sum;
}

double RecordedTrials::run_seconds() const {
  double sum = 0;
  for (const auto& [name, trials] : trials_) {
    for (const RecordedTrial& trial : trials) sum += trial.run_seconds;
  }
  return sum;
}

double RecordedTrials::longest_build() const {
  double longest = 0;
  for (const auto& [name, trials] : trials_) {
    for (const RecordedTrial& trial : trials) longest = std::max(longest, trial.build_seconds);
  }
  return longest;
}

SimulatedHost::SimulatedHost(FarmSimulation* farm, RecordedTrials* trials, std::string name,
                             v1::WorkerRole role, int cores, const std::string& target)
    : farm_(farm), trials_(trials), name_(std::move(name)), role_(role), cores_(cores) {
  Register(target);
  Beat();
  if (role_ == v1::WORKER_ROLE_BUILD) {
    for (int lane = 0; lane < std::min(cores_ + 1, kMostLanesOfBuilder); ++lane) LeaseOrders();
  } else {
    for (int lane = 0; lane < kLanesOfDevice; ++lane) LeaseTrials();
  }
}

void SimulatedHost::Register(const std::string& target) {
  v1::RegisterRequest request;
  request.set_worker(name_);
  request.set_instance(name_);
  request.set_names_what_it_holds(true);
  request.set_role(role_);
  if (role_ == v1::WORKER_ROLE_BUILD) {
    request.add_build_targets(target);
    request.set_builders(static_cast<uint32_t>(cores_));
  } else {
    v1::DeviceOffer& device = *request.add_devices();
    device.set_device("cuda:0");
    device.set_target(target);
    for (const v1::TimingProtocol protocol : {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD})
      device.add_protocols(protocol);
  }
  farm_->server().workers().Register(request, [this](const absl::StatusOr<v1::RegisterResponse>& response) {
    MYCC_CHECK(response.ok()) << response.status();
    session_ = response->session();
  });
}

template <typename Request>
Request SimulatedHost::Named() const {
  Request request;
  request.set_session(session_);
  for (const auto& [key, lease] : held_) *request.add_held() = lease;
  return request;
}

void SimulatedHost::Beat() {
  farm_->After(kBeatSeconds, [this] {
    farm_->server().workers().Heartbeat(Named<v1::HeartbeatRequest>(), [](const auto&) {});
    Beat();
  });
}

void SimulatedHost::Start(Job job) {
  to_build_.push(std::move(job));
  StartNext();
}

void SimulatedHost::StartNext() {
  while (building_ < cores_ && !to_build_.empty()) {
    ++building_;
    const Job job = std::move(to_build_.front());
    to_build_.pop();
    farm_->After(job.seconds, [this, job] {
      --building_;
      job.done();
      StartNext();
    });
  }
}

void SimulatedHost::LeaseOrders() {
  auto request = Named<v1::LeaseBuildsRequest>();
  request.set_max_orders(1);
  request.set_wait_seconds(kPollSeconds);
  const auto alive = [] { return true; };
  farm_->server().workers().LeaseBuilds(
      request, alive, [this](absl::StatusOr<v1::LeaseBuildsResponse> leased) {
        MYCC_CHECK(leased.ok()) << leased.status();
        for (const v1::BuildOrder& order : leased->orders())
          held_[{order.lease().trial(), order.lease().attempt()}] = order.lease();
        farm_->After(farm_->assumptions().call, [this, leased = *std::move(leased)] {
          if (leased.orders().empty()) LeaseOrders();
          for (const v1::BuildOrder& order : leased.orders()) Build(order);
        });
      });
}

void SimulatedHost::Build(const v1::BuildOrder& order) {
  const RecordedTrial& recorded = trials_->Of(order.lease().trial());
  Start({recorded.build_seconds, [this, order, builds = recorded.builds] {
           v1::BuildReport report;
           *report.mutable_lease() = order.lease();
           report.set_status(builds ? v1::MEASURE_STATUS_OK : v1::MEASURE_STATUS_BUILD_ERROR);
           report.set_code_digest(Sha256Hex(order.trace()));
           if (builds) {
             report.set_artifact(
                 SerializePortable(AnyPortable(ParseWorkload(order.workload(), "order").value(),
                                               ParseTarget(order.target()).value(), report.code_digest())));
           } else {
             report.set_error("not measured: it spills");
           }
           ++built_;
           farm_->After(farm_->assumptions().call, [this, report] { ReportBuild(report); });
           LeaseOrders();
         }});
}

void SimulatedHost::ReportBuild(const v1::BuildReport& report) {
  auto request = Named<v1::ReportBuildsRequest>();
  *request.add_reports() = report;
  const auto answered = [this, report](const absl::StatusOr<v1::ReportBuildsResponse>& response) {
    MYCC_CHECK(response.ok()) << response.status();
    const v1::ReportAnswer::Kind kind = response->answers(0).kind();
    MYCC_CHECK(kind != v1::ReportAnswer::REFUSED) << response->answers(0).reason();
    if (kind == v1::ReportAnswer::NOT_NOW) {
      farm_->After(kAgainSeconds, [this, report] { ReportBuild(report); });
      return;
    }
    held_.erase({report.lease().trial(), report.lease().attempt()});
    if (kind == v1::ReportAnswer::KEPT && !report.error().empty()) ++finished_;
  };
  farm_->server().workers().ReportBuilds(request, answered);
}

void SimulatedHost::LeaseTrials() {
  auto request = Named<v1::LeaseRequest>();
  request.set_device("cuda:0");
  request.set_max_trials(static_cast<uint32_t>(std::max(4, cores_)));
  request.set_wait_seconds(kPollSeconds);
  const auto alive = [] { return true; };
  farm_->server().workers().Lease(request, alive, [this](absl::StatusOr<v1::LeaseResponse> leased) {
    MYCC_CHECK(leased.ok()) << leased.status();
    for (const v1::Assignment& assignment : leased->assignments())
      held_[{assignment.lease().trial(), assignment.lease().attempt()}] = assignment.lease();
    farm_->After(farm_->assumptions().call, [this, leased = *std::move(leased)] { Take(leased); });
  });
}

void SimulatedHost::Take(const v1::LeaseResponse& leased) {
  if (leased.assignments().empty()) return LeaseTrials();
  const auto open = std::make_shared<int>(leased.assignments_size());
  for (const v1::Assignment& assignment : leased.assignments()) {
    const bool is_built = !assignment.artifact().empty() || !assignment.rivals().empty();
    Start({is_built ? farm_->assumptions().link : trials_->Of(assignment.lease().trial()).build_seconds,
           [this, assignment, open] { Measure(assignment, open); }});
  }
}

void SimulatedHost::Measure(const v1::Assignment& assignment, const std::shared_ptr<int>& open) {
  const bool is_round = !assignment.rivals().empty();
  const RecordedTrial recorded = is_round ? RecordedTrial() : trials_->Of(assignment.lease().trial());
  const double seconds = is_round ? kRoundSeconds : recorded.builds ? recorded.run_seconds : 0;
  to_run_.push({seconds, [this, assignment, open] {
                  farm_->After(farm_->assumptions().call, [this, assignment] { ReportTrial(assignment); });
                  if (--*open == 0) LeaseTrials();
                }});
  if (!running_) RunNext();
}

void SimulatedHost::RunNext() {
  running_ = !to_run_.empty();
  if (!running_) return;
  const Job job = std::move(to_run_.front());
  to_run_.pop();
  busy_seconds_ += job.seconds;
  farm_->After(job.seconds, [this, job] {
    job.done();
    RunNext();
  });
}

void SimulatedHost::ReportTrial(const v1::Assignment& assignment) {
  auto request = Named<v1::ReportRequest>();
  v1::Report& report = *request.add_reports();
  *report.mutable_lease() = assignment.lease();
  *report.mutable_result() = ResultOf(assignment, assignment.trace());
  for (const std::string& rival : assignment.rivals()) *report.add_rivals() = ResultOf(assignment, rival);
  const bool is_round = !assignment.rivals().empty();
  if (!is_round && !trials_->Of(assignment.lease().trial()).builds) {
    report.mutable_result()->set_status(v1::MEASURE_STATUS_BUILD_ERROR);
    report.mutable_result()->set_error("not measured: it spills");
  }
  const auto answered = [this, assignment, is_round](const absl::StatusOr<v1::ReportResponse>& response) {
    MYCC_CHECK(response.ok()) << response.status();
    const v1::ReportAnswer& answer = response->answers(0);
    MYCC_CHECK(answer.kind() != v1::ReportAnswer::REFUSED) << answer.reason();
    if (answer.kind() == v1::ReportAnswer::NOT_NOW) {
      farm_->After(kAgainSeconds, [this, assignment] { ReportTrial(assignment); });
      return;
    }
    held_.erase({assignment.lease().trial(), assignment.lease().attempt()});
    if (answer.kind() == v1::ReportAnswer::KEPT && !is_round) ++finished_;
  };
  farm_->server().workers().Report(request, answered);
}

}  // namespace mycc
