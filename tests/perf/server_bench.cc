// How the server bears a large log and large submissions. It fills a log, and then, in this process and
// without a network:
//
//   submission   a job of thousands of tasks: when the client has its id, when its first trial can be leased
//   meanwhile    heartbeats and leases of a worker, `best`, and a list of thousands of jobs
//   restarts     the log is copied while a job is in the middle, and just after the large one began, as
//                kill -9 would leave it; the time from a start on the copy to the first new result, and to
//                the first result of a new generation
//
// Usage: server_bench [RECORDS [TASKS [ENDED_JOBS]]]. Prints one line for each measurement, and exits with
// 1 where a limit is missed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/temporary_folder.h"
#include "db/job_store.h"
#include "proto/names.h"
#include "server/job_listing.h"
#include "server/search_child.h"
#include "server/search_process.h"
#include "server/server_loop.h"

namespace mycc {
namespace {

constexpr char kTarget[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
constexpr int kRestartTrials = 1000;  // measured before the restart

double Now() { return SystemTime().Seconds(); }

template <typename Response>
absl::StatusOr<Response> Await(const std::function<void(Reply<Response>)>& start) {
  std::promise<absl::StatusOr<Response>> promise;
  start([&promise](absl::StatusOr<Response> answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

// Whether all limits were kept.
bool all_kept = true;
void Report(const std::string& what, double milliseconds, double limit) {
  const bool kept = milliseconds <= limit;
  all_kept &= kept;
  std::printf("%-58s %10.1f ms  (limit %.0f)%s\n", what.c_str(), milliseconds, limit, kept ? "" : "  MISSED");
  std::fflush(stdout);
}

class Latencies {
 public:
  void Add(double seconds) { milliseconds_.push_back(1e3 * seconds); }
  double Percentile(double share) {
    if (milliseconds_.empty()) return 0;
    std::ranges::sort(milliseconds_);
    return milliseconds_[static_cast<size_t>(share * static_cast<double>(milliseconds_.size() - 1))];
  }

 private:
  std::vector<double> milliseconds_;
};

std::string WorkloadText(int shape) {
  const int rows = 32 + 8 * (shape % 64), columns = 32 + 8 * (shape / 64);
  return absl::StrCat("workload gemm", shape, "(x: f32[", rows, ",64], w: f32[64,", columns, "]) -> (y: f32[",
                      rows, ",", columns, "]) {\n  y[i,j] = sum[k:64](x[i,k] * w[k,j])\n}\n");
}

v1::JobSpec SpecOf(int first_shape, int tasks, uint32_t trials) {
  v1::JobSpec spec;
  spec.set_name("bench");
  for (int i = 0; i < tasks; ++i) spec.add_tasks()->set_workload(WorkloadText(first_shape + i));
  spec.set_target(kTarget);
  spec.set_trials(trials);
  spec.set_strategy("evolutionary");
  spec.set_seed(1);
  return spec;
}

v1::MeasureResult ResultOf(const std::string& trace, uint64_t salt) {
  const double seconds =
      1e-3 * (1 + static_cast<double>((std::hash<std::string>()(trace) ^ salt) % 65536) / 65536);
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  result.mutable_timing()->set_protocol(v1::TIMING_PROTOCOL_WARM);
  result.mutable_timing()->set_timer_version(1);
  result.mutable_timing()->set_seconds(seconds);
  for (int i = 0; i < 20; ++i) result.mutable_timing()->add_samples_seconds(seconds);
  result.mutable_verification()->set_passed(true);
  result.mutable_device()->set_worker("w");
  result.mutable_device()->set_device("cpu");
  return result;
}

void FillRecords(TuningLog* log, int records, const JobPlan& plan) {
  constexpr int kBatch = 2000;
  const std::string step(600, 's');
  for (int first = 0; first < records; first += kBatch) {
    std::vector<v1::Record> batch;
    for (int i = first; i < std::min(records, first + kBatch); ++i) {
      const KeyText& key = plan.tasks[static_cast<size_t>(i) % plan.tasks.size()].key;
      v1::Record& record = batch.emplace_back();
      record.set_trial(TrialName({JobId(1, 1), 0, static_cast<uint32_t>(i), 0}));
      record.set_workload(key.workload);
      record.set_workload_hash(key.workload_hash);
      record.set_shape_erased_hash(key.shape_erased_hash);
      record.set_workload_name(key.workload_name);
      record.set_target(key.target);
      record.set_trace(absl::StrCat("v1\n", step, "(", i, ")\n"));
      record.set_attempt(1);
      record.set_created_unix_micros(1000 + i);
      *record.mutable_result() = ResultOf(record.trace(), static_cast<uint64_t>(i));
      record.mutable_result()->set_finished_unix_micros(2000 + i);
    }
    const auto appended = log->Append(batch);
    MYCC_CHECK(appended.ok()) << appended.status();
  }
}

void FillJobs(TuningLog* log, int jobs, const JobPlan& plan) {
  JobStore store(log);
  auto transaction = Transaction::Begin(log->database());
  MYCC_CHECK(transaction.ok()) << transaction.status();
  for (int i = 0; i < jobs; ++i) {
    const std::string id = JobId(2, static_cast<uint64_t>(i));
    std::vector<Task> tasks(4);
    v1::JobProgress progress;
    progress.set_job(id);
    for (size_t t = 0; t < tasks.size(); ++t) {
      tasks[t].key = plan.tasks[(static_cast<size_t>(i) + t) % plan.tasks.size()].key;
      progress.add_tasks()->set_workload_name(tasks[t].key.workload_name);
    }
    MYCC_CHECK(store.CreateJob({.id = id, .owner = "bench", .spec = "spec"}, tasks).ok());
    MYCC_CHECK(store.SetJobState(id, JobState::kDone, "all trials are measured").ok());
    MYCC_CHECK(store.SetSummary(id, SummaryOf(progress, JobState::kDone, "all trials are measured")).ok());
  }
  const absl::Status committed = transaction->Commit();
  MYCC_CHECK(committed.ok()) << committed;
}

// A server on a log, as `mycc-tune serve` has it.
class Server {
 public:
  explicit Server(const std::string& path) {
    const double begun = Now();
    auto log = TuningLog::Open(path, OpenMode::kServe);
    MYCC_CHECK(log.ok()) << log.status();
    log_ = *std::move(log);
    open_seconds = Now() - begun;
    ServerLoopOptions options;
    options.start_search = [](const SearchStart& start) { return SearchProcess::Start({}, start); };
    loop_ = std::make_unique<ServerLoop>(options, log_.get(), &SystemTime());
    const absl::Status started = loop_->Start();
    MYCC_CHECK(started.ok()) << started;
  }
  ServerLoop* operator->() { return loop_.get(); }

  std::string Submit(const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    const auto answer = Await<v1::SubmitJobResponse>([&](auto reply) { loop_->SubmitJob(request, reply); });
    MYCC_CHECK(answer.ok()) << answer.status();
    return answer->progress().job();
  }

  double open_seconds = 0;

 private:
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
};

// A worker that answers without measuring.
class Worker {
 public:
  Worker(Server* server, const std::string& name) : server_(server) {
    v1::RegisterRequest request;
    request.set_worker(name);
    request.add_devices()->set_device("cpu");
    request.mutable_devices(0)->set_target(kTarget);
    const auto answer =
        Await<v1::RegisterResponse>([&](auto reply) { (*server_)->Register(request, reply); });
    MYCC_CHECK(answer.ok()) << answer.status();
    session_ = answer->session();
  }
  std::vector<v1::Assignment> Lease(uint32_t count, double wait_seconds) {
    v1::LeaseRequest request;
    request.set_session(session_);
    request.set_device("cpu");
    request.set_max_trials(count);
    request.set_wait_seconds(wait_seconds);
    const auto answer = Await<v1::LeaseResponse>([&](auto reply) {
      (*server_)->Lease(
          request, [] { return true; }, reply);
    });
    MYCC_CHECK(answer.ok()) << answer.status();
    return {answer->assignments().begin(), answer->assignments().end()};
  }
  void Report(const std::vector<v1::Assignment>& assignments) {
    v1::ReportRequest request;
    request.set_session(session_);
    for (const v1::Assignment& assignment : assignments) {
      v1::Report& report = *request.add_reports();
      *report.mutable_lease() = assignment.lease();
      *report.mutable_result() = ResultOf(assignment.trace(), 0);
      for (const std::string& rival : assignment.rivals()) *report.add_rivals() = ResultOf(rival, 0);
    }
    const auto answer = Await<v1::ReportResponse>([&](auto reply) { (*server_)->Report(request, reply); });
    MYCC_CHECK(answer.ok()) << answer.status();
  }
  void Beat() {
    v1::HeartbeatRequest request;
    request.set_session(session_);
    const auto answer =
        Await<v1::HeartbeatResponse>([&](auto reply) { (*server_)->Heartbeat(request, reply); });
    MYCC_CHECK(answer.ok()) << answer.status();
  }

 private:
  Server* const server_;
  std::string session_;
};

// Calls again and again, on a thread, and keeps how long each took.
class Repeated {
 public:
  explicit Repeated(std::function<void()> call)
      : thread_([this, call = std::move(call)] {
          while (!stopped_) {
            const double begun = Now();
            call();
            latencies.Add(Now() - begun);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}
  ~Repeated() { Stop(); }
  void Stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Latencies latencies;

 private:
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

void BenchSubmission(Server* server, int shapes, int tasks) {
  v1::BestRequest best;
  best.set_workload_hash(PlanJob(SpecOf(0, 1, 1))->tasks[0].key.workload_hash);
  best.set_target(kTarget);
  best.set_top(3);
  Worker worker(server, "w"), beating(server, "beating");
  Repeated beats([&beating] { beating.Beat(); });
  Repeated bests([&] {
    MYCC_CHECK(Await<v1::BestResponse>([&](auto reply) { (*server)->Best(best, reply); })->records_size() >
               0);
  });
  size_t listed = 0;
  Repeated lists([&] {
    listed = Await<v1::ListJobsResponse>([&](auto reply) { (*server)->ListJobs({}, reply); })->jobs_size();
  });
  const double begun = Now();
  server->Submit(SpecOf(shapes, tasks, 16));  // none of them is in the log
  Report(absl::StrCat("submission of ", tasks, " tasks: the client has its id after"), 1e3 * (Now() - begun),
         2000);
  while (worker.Lease(1, 1).empty()) {
  }
  Report("  its first trial is leased after", 1e3 * (Now() - begun), 30000);
  beats.Stop(), bests.Stop(), lists.Stop();
  Report("  heartbeats meanwhile, the slowest", beats.latencies.Percentile(1), 100);
  Report("  heartbeats meanwhile, 99 of 100 within", beats.latencies.Percentile(0.99), 20);
  Report("  `best` meanwhile, 99 of 100 within", bests.latencies.Percentile(0.99), 500);
  Report(absl::StrCat("  a list of ", listed, " jobs meanwhile, half of them within"),
         lists.latencies.Percentile(0.5), 1000);
  Report("  the loop's longest turn", 1e3 * (*server)->stats().longest_turn_seconds, 100);
}

void BenchLookups(Server* server) {
  Latencies lists, beats;
  Worker beating(server, "beating");
  Repeated beat([&beating] { beating.Beat(); });
  for (int i = 0; i < 10; ++i) {
    const double begun = Now();
    MYCC_CHECK(Await<v1::ListJobsResponse>([&](auto reply) { (*server)->ListJobs({}, reply); }).ok());
    lists.Add(Now() - begun);
  }
  beat.Stop();
  Report("a list of all jobs, alone", lists.Percentile(0.5), 200);
  Report("  heartbeats meanwhile, the slowest", beat.latencies.Percentile(1), 50);
}

// The log as it is now: what kill -9 leaves.
void CopyImage(const std::string& path, const std::string& image) {
  auto database = Database::Open(path, Database::Access::kReadWrite);
  MYCC_CHECK(database.ok() && (*database)->Execute("BEGIN IMMEDIATE").ok());  // nobody writes meanwhile
  for (const char* end : {"", "-wal", "-lock"}) {
    std::filesystem::copy_file(path + end, image + end, std::filesystem::copy_options::overwrite_existing);
  }
}

// Measures a job until it has kRestartTrials results, and copies the log as it is then.
void TakeImage(const std::string& path, const std::string& image) {
  Server server(path);
  const std::string job = server.Submit(SpecOf(0, 4, 100000));
  Worker worker(&server, "w");
  int measured = 0;
  while (measured < kRestartTrials) {
    const std::vector<v1::Assignment> assignments = worker.Lease(16, 10);
    worker.Report(assignments);
    measured += static_cast<int>(assignments.size());
  }
  CopyImage(path, image);
  v1::CancelJobRequest cancel;
  cancel.set_job(job);
  const auto cancelled = Await<v1::CancelJobResponse>([&](auto reply) { server->CancelJob(cancel, reply); });
  MYCC_CHECK(cancelled.ok()) << cancelled.status();
  std::printf("restart of a job with %d results\n", measured);
}

// Measures the time from a start on an image to a worker's first results.
void BenchRestart(const std::string& image, double new_generation_limit) {
  const double begun = Now();
  Server server(image);
  const double started = Now();
  Worker worker(&server, "w");
  int results = 0;
  const auto work = [&] {
    const std::vector<v1::Assignment> assignments = worker.Lease(1, 30);
    MYCC_CHECK(!assignments.empty()) << "no trial in 30 s";
    worker.Report(assignments);
    ++results;
  };
  Report("  the log is open after", 1e3 * server.open_seconds, 1000);
  Report("  the server answers after", 1e3 * (started - begun), 1500);
  work();
  Report("  the first new result is in the log after", 1e3 * (Now() - begun), 2000);
  while (results < 2 * 16 + 1) work();  // two generations at most were proposed before
  Report("  the first result of a new generation is in the log after", 1e3 * (Now() - begun),
         new_generation_limit);
}

int Main(int records, int tasks, int jobs) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder.path() + "/bench.db", image = folder.path() + "/image.db";
  const JobPlan plan = PlanJob(SpecOf(0, 2000, 1)).value();
  {
    const double begun = Now();
    auto log = TuningLog::Open(path, OpenMode::kServe);
    MYCC_CHECK(log.ok()) << log.status();
    FillRecords(log->get(), records, plan);
    FillJobs(log->get(), jobs, plan);
    MYCC_CHECK((*log)->Close().ok());
    std::printf("a log of %d records, %d ended jobs, %.0f MB, filled in %.0f s\n", records, jobs,
                static_cast<double>(std::filesystem::file_size(path)) / 1e6, Now() - begun);
  }
  TakeImage(path, image);
  BenchRestart(image, 5000);
  {
    Server server(path);
    BenchLookups(&server);
    BenchSubmission(&server, 2000, tasks);
    CopyImage(path, image);
  }
  std::printf("restart of the job of %d tasks, just after its first trial was leased\n", tasks);
  BenchRestart(image, 5000);
  return all_kept ? 0 : 1;
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (const std::optional<int> search = mycc::RunSearchChild(argc, argv)) return *search;
  std::vector<int> numbers = {300000, 2000, 10000};
  for (int i = 1; i < argc; ++i) {
    if (i <= 3 && absl::SimpleAtoi(argv[i], &numbers[i - 1]) && numbers[i - 1] >= 0) continue;
    std::fprintf(stderr, "server_bench: `%s`; expected at most three numbers: RECORDS TASKS ENDED_JOBS\n",
                 argv[i]);
    return 2;
  }
  return mycc::Main(numbers[0], numbers[1], numbers[2]);
}
