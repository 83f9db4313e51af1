#include "tests/perf/throughput_workers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/worker.grpc.pb.h"
#include "tests/perf/throughput_search.h"

namespace mycc {
namespace {

constexpr char kDevice[] = "cpu";
constexpr double kWaitSeconds = 5, kCallSeconds = 60;
constexpr double kRetrySeconds = 0.02;

// Between 0 and 1, and the same for equal traces.
double ShareOf(const std::string& trace) {
  return static_cast<double>(std::hash<std::string>()(trace) % 65536) / 65536;
}

v1::MeasureResult ResultOf(const std::string& trace, v1::TimingProtocol protocol, double trial_seconds) {
  const double share = ShareOf(trace);
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  v1::Timing& timing = *result.mutable_timing();
  timing.set_protocol(protocol);
  timing.set_timer_version(1);
  timing.set_seconds(1e-3 * (1 + share));
  timing.set_run_seconds(trial_seconds);
  for (int i = 0; i < 20; ++i) timing.add_samples_seconds(timing.seconds());
  result.mutable_verification()->set_passed(true);
  result.set_code_digest(absl::StrCat(std::hash<std::string>()(trace)));
  return result;
}

}  // namespace

class SimulatedWorker {
 public:
  SimulatedWorker(SimulatedWorkers* all, std::string name) : all_(all), name_(std::move(name)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    stub_ = v1::WorkerService::NewStub(
        grpc::CreateCustomChannel(all_->options_.address, grpc::InsecureChannelCredentials(), arguments));
    lanes_.resize(static_cast<size_t>(all_->options_.lanes));
  }

  void Register() {
    auto call = std::make_shared<Call<v1::RegisterRequest, v1::RegisterResponse>>();
    call->request.set_worker(name_);
    v1::DeviceOffer& offer = *call->request.add_devices();
    offer.set_device(kDevice);
    offer.set_target(kBenchTarget);
    offer.set_timer_version(1);
    call->request.set_names_what_it_holds(true);
    call->request.set_replaces(instance_);
    instance_ = absl::StrCat(name_, "-", ++instances_);
    call->request.set_instance(instance_);
    if (!Begin(call.get())) return;
    stub_->async()->Register(&call->context, &call->request, &call->response,
                             [this, call](const grpc::Status& status) {
                               if (status.ok()) {
                                 session_ = call->response.session();
                                 {
                                   const MutexLock lock(&mutex_);
                                   open_lanes_ = static_cast<int>(lanes_.size());
                                 }
                                 for (Lane& lane : lanes_) Lease(&lane);
                               } else {
                                 all_->timers_.After(kRetrySeconds, [this] { Register(); });
                               }
                               End(&call->context);
                             });
  }

  // How long its device has been busy until now.
  double BusySeconds() {
    const MutexLock lock(&mutex_);
    const Timers::Clock::duration to_come = std::max(device_free_ - Timers::Clock::now(), {});
    return std::chrono::duration<double>(given_ - to_come).count();
  }

  void Stop() {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    while (!contexts_.empty()) ended_.Wait(&mutex_);
  }

 private:
  using Key = std::pair<std::string, uint32_t>;  // trial, attempt
  struct Lane {
    std::vector<v1::Assignment> assignments;  // leased and not reported
  };
  template <typename Request, typename Response>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
  };

  // False when the worker is told to stop: then nothing is begun any more.
  template <typename C>
  bool Begin(C* call) {
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::milliseconds(static_cast<int64_t>(1e3 * kCallSeconds)));
    const MutexLock lock(&mutex_);
    if (stopping_) return false;
    contexts_.push_back(&call->context);
    return true;
  }
  void End(grpc::ClientContext* context) {
    const MutexLock lock(&mutex_);
    std::erase(contexts_, context);
    ended_.NotifyAll();
  }

  template <typename Request>
  void Name(Request* request) {
    request->set_session(session_);
    const MutexLock lock(&mutex_);
    for (const auto& [key, lease] : held_) *request->add_held() = lease;
  }

  void Lease(Lane* lane) {
    auto call = std::make_shared<Call<v1::LeaseRequest, v1::LeaseResponse>>();
    Name(&call->request);
    call->request.set_device(kDevice);
    call->request.set_max_trials(static_cast<uint32_t>(all_->options_.batch));
    call->request.set_wait_seconds(kWaitSeconds);
    if (!Begin(call.get())) return;
    stub_->async()->Lease(&call->context, &call->request, &call->response,
                          [this, call, lane](const grpc::Status& status) {
                            if (status.ok()) {
                              OnLeased(lane, call->response);
                            } else {
                              OnLost();
                            }
                            End(&call->context);
                          });
  }

  void OnLeased(Lane* lane, const v1::LeaseResponse& leased) {
    if (leased.assignments().empty()) return Lease(lane);
    lane->assignments.assign(leased.assignments().begin(), leased.assignments().end());
    all_->counters_.leased += leased.assignments_size();
    {
      const MutexLock lock(&mutex_);
      for (const v1::Assignment& assignment : lane->assignments)
        held_[{assignment.lease().trial(), assignment.lease().attempt()}] = assignment.lease();
    }
    if (all_->options_.trial_seconds <= 0) return Report(lane);
    all_->timers_.At(DeviceEnd(*lane), [this, lane] { Report(lane); });
  }

  double TrialSeconds(const std::string& trace) const {
    const WorkersOptions& options = all_->options_;
    return options.trial_seconds * (options.equal_trials ? 1 : 0.5 + ShareOf(trace));
  }

  // The time when the device is done with the lane's trials, too.
  Timers::Clock::time_point DeviceEnd(const Lane& lane) {
    double seconds = 0;
    for (const v1::Assignment& assignment : lane.assignments) seconds += TrialSeconds(assignment.trace());
    const auto length =
        std::chrono::duration_cast<Timers::Clock::duration>(std::chrono::duration<double>(seconds));
    const MutexLock lock(&mutex_);
    given_ += length;
    return device_free_ = std::max(device_free_, Timers::Clock::now()) + length;
  }

  void Report(Lane* lane) {
    auto call = std::make_shared<Call<v1::ReportRequest, v1::ReportResponse>>();
    Name(&call->request);
    for (const v1::Assignment& assignment : lane->assignments) {
      v1::Report& report = *call->request.add_reports();
      *report.mutable_lease() = assignment.lease();
      *report.mutable_result() =
          ResultOf(assignment.trace(), assignment.protocol(), TrialSeconds(assignment.trace()));
      for (const std::string& rival : assignment.rivals())
        *report.add_rivals() = ResultOf(rival, assignment.protocol(), TrialSeconds(rival));
    }
    if (!Begin(call.get())) return;
    stub_->async()->Report(&call->context, &call->request, &call->response,
                           [this, call, lane](const grpc::Status& status) {
                             if (status.ok()) {
                               OnReported(lane, call->response);
                             } else {
                               OnLost();
                             }
                             End(&call->context);
                           });
  }

  void OnReported(Lane* lane, const v1::ReportResponse& response) {
    SimulatedWorkers::Counters& counters = all_->counters_;
    bool again = false;
    std::map<Key, bool> kept;
    for (const v1::ReportAnswer& answer : response.answers()) {
      again |= answer.kind() == v1::ReportAnswer::NOT_NOW;
      kept[{answer.lease().trial(), answer.lease().attempt()}] = answer.kind() == v1::ReportAnswer::KEPT;
    }
    if (again) return all_->timers_.After(kRetrySeconds, [this, lane] { Report(lane); });
    {
      const MutexLock lock(&mutex_);
      for (const auto& [key, is_kept] : kept) held_.erase(key);
    }
    for (const v1::Assignment& assignment : lane->assignments) {
      const bool is_kept = kept[{assignment.lease().trial(), assignment.lease().attempt()}];
      std::atomic<int64_t>& counter = !is_kept                      ? counters.not_kept
                                      : assignment.rivals().empty() ? counters.kept
                                                                    : counters.rounds;
      ++counter;
    }
    lane->assignments.clear();
    Lease(lane);
  }

  // The server is away, or has forgotten the worker: when the last lane knows, a new process of the worker
  // registers.
  void OnLost() {
    {
      const MutexLock lock(&mutex_);
      if (--open_lanes_ > 0) return;
      held_.clear();
    }
    for (Lane& lane : lanes_) lane.assignments.clear();
    all_->timers_.After(kRetrySeconds, [this] { Register(); });
  }

  SimulatedWorkers* const all_;
  const std::string name_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::string session_, instance_;  // while no lane is open, or read alone
  int instances_ = 0;
  std::vector<Lane> lanes_;

  Mutex mutex_;
  CondVar ended_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int open_lanes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);  // of calls under way
  std::map<Key, v1::LeaseId> held_ ABSL_GUARDED_BY(mutex_);
  Timers::Clock::duration given_ ABSL_GUARDED_BY(mutex_) = Timers::Clock::duration::zero();  // work so far
  Timers::Clock::time_point device_free_ ABSL_GUARDED_BY(mutex_);
};

SimulatedWorkers::SimulatedWorkers(const WorkersOptions& options) : options_(options) {
  for (int i = 0; i < options.workers; ++i)
    workers_.push_back(std::make_unique<SimulatedWorker>(this, absl::StrCat(options.prefix, i)));
  double pause = 0;
  for (const auto& worker : workers_) {
    timers_.After(pause, [worker = worker.get()] { worker->Register(); });
    pause += options.trial_seconds / options.workers;
  }
}

SimulatedWorkers::~SimulatedWorkers() {
  for (const auto& worker : workers_) worker->Stop();
}

SimulatedWorkers::Counts SimulatedWorkers::counts() const {
  Counts counts;
  counts.kept = counters_.kept;
  counts.not_kept = counters_.not_kept;
  counts.rounds = counters_.rounds;
  counts.leased = counters_.leased;
  for (const auto& worker : workers_) counts.busy_seconds += worker->BusySeconds();
  return counts;
}

}  // namespace mycc
