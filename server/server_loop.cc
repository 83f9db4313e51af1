#include "server/server_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"

namespace mycc {
namespace {

constexpr double kTurnSeconds = 2;

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
      coordinator_(options_.coordinator, log, time, MakeExecutors()) {}

Executors ServerLoop::MakeExecutors() {
  Executors executors;
  executors.write = [this](const LogWrite& write, LogWriteDone done) { Write(write, std::move(done)); };
  executors.read = [this](LogRead read, std::function<void()> done) {
    ++unanswered_;
    readers_->Add(std::move(read), [this, done = std::move(done)] {
      --unanswered_;
      done();
    });
  };
  executors.search = [this](std::function<void()> work, std::function<void()> done) {
    const MutexLock lock(&mutex_);
    searches_.push_back({std::move(work), std::move(done)});
    searches_changed_.NotifyOne();
  };
  executors.start_search = options_.start_search;
  return executors;
}

ServerLoop::~ServerLoop() { Stop(); }

absl::Status ServerLoop::Start() {
  MYCC_ASSIGN_OR_RETURN(readers_,
                        LogReaders::Open(log_->path(), options_.reader_threads,
                                         [this](std::function<void()> done) { Deliver(std::move(done)); }));
  MYCC_RETURN_IF_ERROR(coordinator_.Start());
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  const size_t searches = options_.search_threads > 0 ? options_.search_threads : cpus;
  while (search_threads_.size() < searches) search_threads_.emplace_back([this] { RunSearches(); });
  loop_ = std::thread([this] { RunLoop(); });
  return absl::OkStatus();
}

void ServerLoop::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    searches_changed_.NotifyAll();
  }
  for (std::thread& thread : search_threads_) thread.join();
  search_threads_.clear();
  if (loop_.joinable()) loop_.join();
  readers_.reset();
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

void ServerLoop::Write(const LogWrite& write, LogWriteDone done) {
  ++unanswered_;
  const absl::Status status = write();
  Deliver([this, done = std::move(done), status] {
    --unanswered_;
    done(status);
  });
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

void ServerLoop::RunLoop() {
  for (bool stopping = false; !stopping || unanswered_ > 0;) {
    std::deque<std::function<void()>> events;
    {
      const MutexLock lock(&mutex_);
      const auto tick = In(options_.tick_seconds);
      while (mailbox_.empty() && !stopping_ && changed_.WaitUntil(&mutex_, tick)) {
      }
      while (stopping_ && mailbox_.empty() && unanswered_ > 0) changed_.Wait(&mutex_);
      events.swap(mailbox_);
      stopping = stopping_;
    }
    for (const std::function<void()>& event : events) event();
    if (stopping) continue;  // what was begun is answered, and nothing is begun any more
    coordinator_.Tick();
    AnswerWatches();
  }
  RefuseWaiting();
}

void ServerLoop::RunSearches() {
  while (true) {
    SearchWork search;
    {
      const MutexLock lock(&mutex_);
      while (searches_.empty() && !stopping_) searches_changed_.Wait(&mutex_);
      if (stopping_) return;  // what was not begun is in the log, and begins again with the next server
      search = std::move(searches_.front());
      searches_.pop_front();
    }
    if (options_.around_search) {
      options_.around_search(search.work);
    } else {
      search.work();
    }
    Post(std::move(search.done), [] {});
  }
}

void ServerLoop::AnswerWatches() {
  const double now = time_->Seconds();
  watches_.remove_if([this, now](const auto& waiting) {
    const bool unchanged = coordinator_.RevisionOf(waiting.request.job()) == waiting.request.seen_revision();
    if (unchanged && now < waiting.until && waiting.alive()) return false;
    absl::StatusOr<v1::JobProgress> progress = coordinator_.Progress(waiting.request.job());
    if (!progress.ok()) {
      waiting.reply(progress.status());
      return true;
    }
    v1::WatchJobResponse response;
    *response.mutable_progress() = *std::move(progress);
    waiting.reply(std::move(response));
    return true;
  });
}

void ServerLoop::RefuseWaiting() {
  coordinator_.jobs().RefuseWaiting(Stopping());
  coordinator_.workers().RefuseWaiting(Stopping());
  for (const auto& waiting : watches_) waiting.reply(Stopping());
  watches_.clear();
}

void ServerLoop::Register(v1::RegisterRequest request, Reply<v1::RegisterResponse> reply) {
  Post([this, request = std::move(request), reply] { coordinator_.workers().Register(request, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Lease(v1::LeaseRequest request, IsAlive alive, Reply<v1::LeaseResponse> reply) {
  Post([this, request = std::move(request), alive = std::move(alive),
        reply] { coordinator_.workers().Lease(request, alive, reply); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::Report(v1::ReportRequest request, Reply<v1::ReportResponse> reply) {
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

void ServerLoop::SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply) {
  Post([this, request, reply] { coordinator_.Submit(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply) {
  PostCall<v1::ListJobsResponse>(std::move(reply), [this, request]() -> absl::StatusOr<v1::ListJobsResponse> {
    v1::ListJobsResponse response;
    MYCC_ASSIGN_OR_RETURN(const std::vector<v1::JobProgress> jobs, coordinator_.jobs().List(request.limit()));
    for (const v1::JobProgress& job : jobs) *response.add_jobs() = job;
    return response;
  });
}

void ServerLoop::WatchJob(v1::WatchJobRequest request, IsAlive alive, Reply<v1::WatchJobResponse> reply) {
  Post(
      [=, this] {
        double wait = std::clamp(request.wait_seconds(), 0.0, options_.max_wait_seconds);
        const absl::Status heard = coordinator_.jobs().Hear(request.job(), request.client(), wait);
        if (!heard.ok()) return reply(heard);
        if (coordinator_.RevisionOf(request.job()) == 0) {
          // It has ended, and there is nothing to wait for; or it waits for its turn, which is looked at now
          // and then.
          const absl::StatusOr<v1::JobProgress> progress = coordinator_.Progress(request.job());
          const bool has_turn_to_come = progress.ok() && progress->state() == v1::JOB_STATE_WAITING;
          wait = has_turn_to_come ? std::min(wait, kTurnSeconds) : 0;
        }
        watches_.push_back({request, alive, reply, time_->Seconds() + wait});
      },
      [reply] { reply(Stopping()); });
}

void ServerLoop::CancelJob(v1::CancelJobRequest request, Reply<v1::CancelJobResponse> reply) {
  Post([this, request, reply] { coordinator_.jobs().Cancel(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::LeaveJob(v1::LeaveJobRequest request, Reply<v1::LeaveJobResponse> reply) {
  Post([this, request, reply] { coordinator_.jobs().Leave(request, WithProgress(reply)); },
       [reply] { reply(Stopping()); });
}

void ServerLoop::ListDevices(v1::ListDevicesRequest, Reply<v1::ListDevicesResponse> reply) {
  PostCall<v1::ListDevicesResponse>(std::move(reply), [this]() -> absl::StatusOr<v1::ListDevicesResponse> {
    v1::ListDevicesResponse response;
    for (const v1::DeviceStatus& device : coordinator_.workers().Devices()) *response.add_devices() = device;
    return response;
  });
}

void ServerLoop::Best(v1::BestRequest request, Reply<v1::BestResponse> reply) {
  PostCall<v1::BestResponse>(std::move(reply), [this, request] { return coordinator_.Best(request); });
}

}  // namespace mycc
