// The mailbox, the turns of the loop, and one function for each kind of call.
#include "server/server_loop.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace mycc {
namespace {

constexpr double kTurnSeconds = 2;
// Between two answers to one who watches: a job of thousands of tasks has much to show.
constexpr double kWatchPauseSeconds = 0.1;
constexpr double kLongestStepSeconds = 0.25;

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

std::chrono::steady_clock::time_point In(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

// The answer to a call that answers with a job's progress.
template <typename Response>
JobReply WithProgress(const Reply<Response>& reply) {
  return [reply](absl::StatusOr<v1::JobProgress> progress) {
    if (!progress.ok()) return reply(progress.status());
    Response response;
    *response.mutable_progress() = *std::move(progress);
    reply(std::move(response));
  };
}

}  // namespace

ServerLoop::ServerLoop(ServerLoopOptions options, TuningLog* log, const TimeSource* time)
    : options_(std::move(options)),
      log_(log),
      time_(time),
      last_turn_(time->Seconds()),
      loop_clock_(time, kLongestStepSeconds),
      coordinator_(options_.coordinator, log, &loop_clock_, MakeExecutors()) {}

// Called on the loop's thread, and before there is one.
Executors ServerLoop::MakeExecutors() {
  Executors executors;
  executors.write = [this](LogWrite write, LogWriteDone done) {
    ++unanswered_;
    writer_->Add(std::move(write),
                 [this, begun = time_->Seconds(), done = std::move(done)](const absl::Status& status) {
                   latencies_.commit.Add(time_->Seconds() - begun);
                   --unanswered_;
                   done(status);
                 });
  };
  executors.read = [this](LogRead read, std::function<void()> done) {
    ++unanswered_;
    readers_->Add(std::move(read), [this, done = std::move(done)] {
      --unanswered_;
      done();
    });
  };
  executors.search = [this](std::function<void()> work, std::function<void()> done) {
    searches_->Add(std::move(work), std::move(done));
  };
  executors.start_search = options_.start_search;
  return executors;
}

ServerLoop::~ServerLoop() { Stop(); }

absl::Status ServerLoop::Start() {
  const auto deliver = [this](std::function<void()> event) { Deliver(std::move(event)); };
  writer_ = std::make_unique<LogWriter>(log_, deliver);
  const DamageListener on_damage = [this](int64_t record, const absl::Status& why) { OnDamage(record, why); };
  log_->OnDamage([deliver, on_damage](int64_t record, const absl::Status& why) {
    deliver([on_damage, record, why] { on_damage(record, why); });
  });
  MYCC_ASSIGN_OR_RETURN(readers_,
                        LogReaders::Open(log_->path(), options_.reader_threads, deliver, on_damage));
  searches_ = std::make_unique<SearchThreads>(SearchThreads::Options{
      .threads = options_.search_threads, .around = options_.around_search, .deliver = deliver});
  MYCC_RETURN_IF_ERROR(coordinator_.Start());
  loop_ = std::thread([this] { RunLoop(); });
  return absl::OkStatus();
}

void ServerLoop::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (searches_ != nullptr) searches_->Stop();
  if (loop_.joinable()) loop_.join();
  readers_.reset();
  writer_.reset();
  log_->OnDamage(nullptr);
}

void ServerLoop::OnDamage(int64_t record, const absl::Status& why) {
  const auto& say = options_.coordinator.dispatch.log;
  if (say && damaged_records_.insert(record).second)
    say(Event("record.damaged", absl::StrCat(why.message(), "; it is passed over")));
}

void ServerLoop::Post(std::function<void()> event, std::function<void()> refuse) {
  {
    const MutexLock lock(&mutex_);
    if (!stopping_) {
      mailbox_.push_back(std::move(event));
      changed_.NotifyOne();
      return;
    }
  }
  refuse();
}

void ServerLoop::Deliver(std::function<void()> event) {
  const MutexLock lock(&mutex_);
  mailbox_.push_back(std::move(event));
  changed_.NotifyOne();
}

template <typename Response>
void ServerLoop::PostCall(Reply<Response> reply, std::function<absl::StatusOr<Response>()> handler) {
  Post([reply, handler = std::move(handler)] { reply(handler()); }, [reply] { reply(Stopping()); });
}

std::pair<std::deque<std::function<void()>>, bool> ServerLoop::TakeEvents() {
  const MutexLock lock(&mutex_);
  const auto tick = In(options_.tick_seconds);
  while (mailbox_.empty() && !stopping_ && changed_.WaitUntil(&mutex_, tick)) {
  }
  while (stopping_ && mailbox_.empty() && unanswered_ > 0) changed_.Wait(&mutex_);
  return {std::exchange(mailbox_, {}), stopping_};
}

void ServerLoop::RunLoop() {
  for (bool stopping = false; !stopping || unanswered_ > 0;) {
    std::deque<std::function<void()>> events;
    std::tie(events, stopping) = TakeEvents();
    const double begun = time_->Seconds();
    loop_clock_.Turn();
    for (std::function<void()>& event : events) std::exchange(event, nullptr)();
    if (stopping) continue;  // calls that were begun are answered, and none is begun any more
    coordinator_.Tick();
    AnswerWatches();
    CountTurn(time_->Seconds() - begun);
  }
  RefuseWaiting();
}

void ServerLoop::CountTurn(double seconds) {
  latencies_.turn.Add(seconds);
  last_turn_.store(time_->Seconds(), std::memory_order_relaxed);
  const MutexLock lock(&mutex_);
  ++stats_.turns;
  stats_.longest_turn_seconds = std::max(stats_.longest_turn_seconds, seconds);
  stats_.search_crashes = coordinator_.search_crashes();
  stats_.searches = coordinator_.searches();
}

LoopStats ServerLoop::stats() const {
  const MutexLock lock(&mutex_);
  return stats_;
}

void ServerLoop::AnswerWatches() {
  const double now = loop_clock_.Seconds();
  watches_.remove_if([this, now](const Watch& watch) {
    const uint64_t revision = coordinator_.RevisionOf(watch.request.job());
    const bool has_news = revision != watch.request.seen_revision() && (now >= watch.from || revision == 0);
    if (!has_news && now < watch.until && watch.alive()) return false;
    coordinator_.Show(watch.request.job(), WithProgress(watch.reply));
    return true;
  });
}

void ServerLoop::RefuseWaiting() {
  coordinator_.jobs().RefuseWaiting(Stopping());
  coordinator_.workers().RefuseWaiting(Stopping());
  for (const Watch& watch : watches_) watch.reply(Stopping());
  watches_.clear();
}

void ServerLoop::Register(v1::RegisterRequest request, Reply<v1::RegisterResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().Register(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Lease(v1::LeaseRequest request, IsAlive alive, Reply<v1::LeaseResponse> answer) {
  const Reply<v1::LeaseResponse> reply = [this, begun = time_->Seconds(), answer = std::move(answer)](
                                             absl::StatusOr<v1::LeaseResponse> response) {
    if (response.ok() && !response->assignments().empty()) latencies_.lease.Add(time_->Seconds() - begun);
    answer(std::move(response));
  };
  Post([this, request = std::move(request), alive = std::move(alive),
        reply] { coordinator_.workers().Lease(request, alive, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Report(v1::ReportRequest request, Reply<v1::ReportResponse> answer) {
  const Reply<v1::ReportResponse> reply = [this, begun = time_->Seconds(), answer = std::move(answer)](
                                              absl::StatusOr<v1::ReportResponse> response) {
    latencies_.report.Add(time_->Seconds() - begun);
    answer(std::move(response));
  };
  Post([this, request = std::move(request), reply] { coordinator_.workers().Report(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Heartbeat(v1::HeartbeatRequest request, Reply<v1::HeartbeatResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().Heartbeat(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Leave(v1::LeaveRequest request, Reply<v1::LeaveResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().Leave(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::LeaseBuilds(v1::LeaseBuildsRequest request, IsAlive alive,
                             Reply<v1::LeaseBuildsResponse> reply) {
  Post([this, request = std::move(request), alive = std::move(alive),
        reply] { coordinator_.workers().LeaseBuilds(request, alive, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::ReportBuilds(v1::ReportBuildsRequest request, Reply<v1::ReportBuildsResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().ReportBuilds(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::FetchArtifact(v1::FetchArtifactRequest request, Reply<v1::FetchArtifactResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().FetchArtifact(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply) {
  Post([this, request, reply] { coordinator_.Submit(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply) {
  Post([this, request, reply] { coordinator_.jobs().listing().List(request.limit(), reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::WatchJob(v1::WatchJobRequest request, IsAlive alive, Reply<v1::WatchJobResponse> reply) {
  Post(
      [=, this] {
        const double wait = std::clamp(request.wait_seconds(), 0.0, options_.max_wait_seconds);
        const absl::Status heard = coordinator_.jobs().Renew(request.job(), request.client(), wait);
        if (!heard.ok()) return reply(heard);
        if (coordinator_.RevisionOf(request.job()) == 0) return WatchStored(request, alive, wait, reply);
        const double now = loop_clock_.Seconds();
        watches_.push_back({request, alive, reply, now + kWatchPauseSeconds, now + wait});
      },
      [reply] { reply(Stopping()); });
}

void ServerLoop::WatchStored(const v1::WatchJobRequest& request, const IsAlive& alive, double wait,
                             const Reply<v1::WatchJobResponse>& reply) {
  coordinator_.Show(
      request.job(), [this, request, alive, wait, reply](absl::StatusOr<v1::JobProgress> progress) {
        const bool has_turn_to_come = progress.ok() && progress->state() == v1::JOB_STATE_WAITING;
        if (!has_turn_to_come || wait == 0) return WithProgress(reply)(std::move(progress));
        // It is looked at now and then.
        const double now = loop_clock_.Seconds();
        watches_.push_back({request, alive, reply, now, now + std::min(wait, kTurnSeconds)});
      });
}

void ServerLoop::CancelJob(v1::CancelJobRequest request, Reply<v1::CancelJobResponse> reply) {
  Post([this, request, reply] { coordinator_.jobs().Cancel(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::LeaveJob(v1::LeaveJobRequest request, Reply<v1::LeaveJobResponse> reply) {
  Post([this, request, reply] { coordinator_.jobs().Leave(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::UpdateJob(v1::UpdateJobRequest request, Reply<v1::UpdateJobResponse> reply) {
  Post([this, request, reply] { coordinator_.Update(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::ListOwners(v1::ListOwnersRequest, Reply<v1::ListOwnersResponse> reply) {
  PostCall<v1::ListOwnersResponse>(std::move(reply), [this]() -> absl::StatusOr<v1::ListOwnersResponse> {
    return coordinator_.jobs().ListOwners();
  });
}

void ServerLoop::ListDevices(v1::ListDevicesRequest, Reply<v1::ListDevicesResponse> reply) {
  PostCall<v1::ListDevicesResponse>(std::move(reply), [this]() -> absl::StatusOr<v1::ListDevicesResponse> {
    v1::ListDevicesResponse response;
    for (const v1::DeviceStatus& device : coordinator_.workers().Devices()) *response.add_devices() = device;
    return response;
  });
}

void ServerLoop::Best(v1::BestRequest request, Reply<v1::BestResponse> reply) {
  LogReaders::Loan loan;
  {
    const MutexLock lock(&mutex_);
    if (!stopping_) loan = readers_->Borrow();
    if (!stopping_ && loan == nullptr) {
      readers_->Add([request, reply](TuningLog* log) { reply(ReadBest(request, *log)); }, nullptr);
      return;
    }
  }
  reply(loan != nullptr ? ReadBest(request, *loan) : absl::StatusOr<v1::BestResponse>(Stopping()));
}

void ServerLoop::GetOverview(Reply<Overview> reply) {
  PostCall<Overview>(std::move(reply),
                     [this]() -> absl::StatusOr<Overview> { return coordinator_.Overview(); });
}

void ServerLoop::GetDeviceHistory(Reply<DeviceHistory> reply) {
  PostCall<DeviceHistory>(
      std::move(reply), [this]() -> absl::StatusOr<DeviceHistory> { return coordinator_.device_history(); });
}

}  // namespace mycc
