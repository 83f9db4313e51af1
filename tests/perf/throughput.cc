// How much the service bears: throughput.sh builds and runs this program. It starts a real server as a
// process of its own (gRPC on localhost, its loop, its log with a disk write for each group of changes), with
// a scripted search and simulated workers, and prints one line for each figure, `name: value`:
//
//   trials_per_second    through lease, report and durable commit: 100 workers, 50 jobs
//   silent_1000_cost     the share of them that 1,000 silent connections cost, in turns with the former
//   server_rss_mb        of the server when the log has --records trials, made in this way
//   busy_share_1000      of 1,000 workers with trials of 1 s in the mean, 4 jobs of 25 tasks
//   best_p99_ms          of `best` over gRPC, from that log, while these workers go on
//   lookup_100_ms        of 100 kernels' best records in this process
//   compile_lookup_1m_ms the same as `mycc compile` has it, with opening the log
//   recovery_s           from kill -9 with 20 running jobs to the first lease
//   proposals_per_second of real evolutionary searches, for comparison: candidates
//
// --only runs a part: trials, many, recovery or search. --log begins with the log of an earlier run, and
// keeps it. --equal-trials makes every trial of the 1,000 workers take exactly 1 s, so that they go in step.
// --quick runs all of it with small numbers in some seconds, and checks that nothing is lost.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/temporary_folder.h"
#include "db/tuning_log.h"
#include "server/search_child.h"
#include "server/time_source.h"
#include "tests/perf/throughput_client.h"
#include "tests/perf/throughput_lookups.h"
#include "tests/perf/throughput_search.h"
#include "tests/perf/throughput_server.h"
#include "tests/perf/throughput_workers.h"

namespace mycc {
namespace {

struct Plan {
  int64_t records = 1000000;
  int workers = 100, jobs = 50, tasks_of_job = 20;
  double segment_seconds = 6;
  int segments = 4;  // of each kind
  int silent = 1000;
  int many_workers = 1000;
  bool equal_trials = false;  // of the many workers
  double trial_seconds = 1, warm_up_seconds = 8, busy_seconds = 20;
  int best_calls = 4000;
  int recovered_jobs = 20;
  int64_t trials_before_recovery = 10000;
  double search_seconds = 10;
  std::string folder;  // empty: a temporary one
  std::string only;    // a part; empty: all
  std::string log;     // that is begun with, and stays; empty: a new one in the folder
};

Plan QuickPlan() {
  return {.records = 4000,
          .workers = 10,
          .jobs = 40,
          .tasks_of_job = 3,
          .segment_seconds = 0.5,
          .segments = 1,
          .silent = 50,
          .many_workers = 200,
          .trial_seconds = 0.5,
          .warm_up_seconds = 0.5,
          .busy_seconds = 1.5,
          .best_calls = 50,
          .recovered_jobs = 4,
          .trials_before_recovery = 200,
          .search_seconds = 0.5};
}

constexpr uint32_t kNoLimit = 2000000000;
constexpr int kLookups = 100;

double Now() { return SystemTime().Seconds(); }
void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double Percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void Print(const char* name, double value) {
  std::printf("%s: %.4g\n", name, value);
  std::fflush(stdout);
}

class Bench {
 public:
  Bench(Plan plan, std::string folder)
      : plan_(std::move(plan)),
        log_(plan_.log.empty() ? folder + "/throughput.db" : plan_.log),
        server_(std::make_unique<ServerProcess>(log_, 0)) {}

  void Run() {
    if (Wants("trials")) BenchTrials();
    if (Wants("many")) BenchManyWorkers();
    if (plan_.only.empty()) BenchLookups();
    if (Wants("recovery")) BenchRecovery();
    CheckKept();
    if (Wants("search")) Print("proposals_per_second", ProposalsPerSecond(plan_.search_seconds));
    MYCC_CHECK(missing_.empty()) << missing_;
  }

 private:
  bool Wants(const std::string& part) const { return plan_.only.empty() || plan_.only == part; }

  std::vector<std::string> SubmitJobs(int jobs, int tasks) {
    TuningUser user(server_->address());
    std::vector<std::string> ids;
    for (int i = 0; i < jobs; ++i) ids.push_back(user.Submit(BenchJob(i * tasks, tasks, kNoLimit)));
    return ids;
  }
  void CancelJobs(const std::vector<std::string>& jobs) {
    TuningUser user(server_->address());
    for (const std::string& job : jobs) user.Cancel(job);
  }

  // Trials a second in the time that begins now.
  double Rate(const SimulatedWorkers& workers, double seconds) {
    const double begun = Now(), cpu = server_->cpu_seconds();
    const std::clock_t own_cpu = std::clock();
    const int64_t kept = workers.counts().kept;
    Sleep(seconds);
    const double rate = static_cast<double>(workers.counts().kept - kept) / (Now() - begun);
    const double own = static_cast<double>(std::clock() - own_cpu) / CLOCKS_PER_SEC;
    std::printf(
        "  %.0f trials/s, the server at %.0f %% of a CPU and %.0f MB, the workers at %.0f %%, %lld trials\n",
        rate, 100 * (server_->cpu_seconds() - cpu) / (Now() - begun), server_->resident_mb(),
        100 * own / (Now() - begun), static_cast<long long>(kept_before_ + workers.counts().kept));
    std::fflush(stdout);
    return rate;
  }

  void BenchTrials() {
    std::printf("%d workers, %d jobs of %d tasks\n", plan_.workers, plan_.jobs, plan_.tasks_of_job);
    const std::vector<std::string> jobs = SubmitJobs(plan_.jobs, plan_.tasks_of_job);
    SimulatedWorkers workers({.address = server_->address(), .prefix = "w", .workers = plan_.workers});
    Rate(workers, plan_.segment_seconds);  // a start
    std::vector<double> plain, silent;
    for (int i = 0; i < plan_.segments; ++i) {
      plain.push_back(Rate(workers, plan_.segment_seconds));
      const SilentConnections strangers(plan_.silent, server_->port());
      silent.push_back(Rate(workers, plan_.segment_seconds));
    }
    Print("trials_per_second", Percentile(plain, 0.5));
    Print("silent_1000_cost", std::max(0.0, 1 - Percentile(silent, 0.5) / Percentile(plain, 0.5)));
    const int64_t missing = plan_.records - records_before_;
    while (workers.counts().kept < missing) Rate(workers, plan_.segment_seconds);
    Print("server_rss_mb", server_->resident_mb());
    CancelJobs(jobs);
    Count(workers);
  }

  void BenchManyWorkers() {
    std::printf("%d workers with trials of %g s, 4 jobs of 25 tasks\n", plan_.many_workers,
                plan_.trial_seconds);
    const std::vector<std::string> jobs = SubmitJobs(4, 25);
    SimulatedWorkers workers({.address = server_->address(),
                              .prefix = "many",
                              .workers = plan_.many_workers,
                              .batch = 4,
                              .trial_seconds = plan_.trial_seconds,
                              .equal_trials = plan_.equal_trials});
    Rate(workers, plan_.warm_up_seconds);
    const double begun = Now(), busy = workers.counts().busy_seconds;
    Rate(workers, plan_.busy_seconds);
    Print("busy_share_1000", (workers.counts().busy_seconds - busy) / (Now() - begun) / plan_.many_workers);
    if (records_before_ + kept_before_ >= plan_.records) BenchBest();
    CancelJobs(jobs);
    Count(workers);
  }

  void BenchBest() {
    const std::vector<double> seconds = SecondsOfLookups(server_->address(), plan_.best_calls, Shapes());
    std::printf("  best: half within %.2f ms, 90 of 100 within %.2f ms, the slowest %.2f ms\n",
                1e3 * Percentile(seconds, 0.5), 1e3 * Percentile(seconds, 0.9), 1e3 * Percentile(seconds, 1));
    Print("best_p99_ms", 1e3 * Percentile(seconds, 0.99));
  }

  // Workloads of all jobs.
  std::vector<int> Shapes() const {
    std::vector<int> shapes;
    for (int i = 0; i < kLookups; ++i) shapes.push_back(i * plan_.jobs * plan_.tasks_of_job / kLookups);
    return shapes;
  }

  void BenchLookups() {
    std::vector<std::string> workloads;
    for (const int shape : Shapes()) workloads.push_back(BenchWorkload(shape));
    Print("lookup_100_ms", MillisecondsOfLookups(log_, workloads));
    Print("compile_lookup_1m_ms", MillisecondsOfCompileLookups(log_, workloads));
  }

  void BenchRecovery() {
    std::printf("%d running jobs, and kill -9\n", plan_.recovered_jobs);
    SubmitJobs(plan_.recovered_jobs, plan_.tasks_of_job);
    SimulatedWorkers workers({.address = server_->address(), .prefix = "r", .workers = plan_.workers});
    while (workers.counts().kept < plan_.trials_before_recovery) Sleep(0.05);
    const int port = server_->port();
    const double killed = Now();
    server_->Kill();
    Sleep(0.01);  // the calls under way end
    const int64_t leased = workers.counts().leased;
    server_ = std::make_unique<ServerProcess>(log_, port);
    const double answers = Now();
    while (workers.counts().leased == leased) Sleep(0.001);
    std::printf("  it answers after %.2f s\n", answers - killed);
    Print("recovery_s", Now() - killed);
    Sleep(plan_.segment_seconds);
    Count(workers);
  }

  void Count(const SimulatedWorkers& workers) {
    kept_before_ += workers.counts().kept;
    std::printf("  %lld kept, %lld not, %lld final rounds\n", static_cast<long long>(workers.counts().kept),
                static_cast<long long>(workers.counts().not_kept),
                static_cast<long long>(workers.counts().rounds));
  }

  int64_t CountRecords() const {
    auto database = Database::Open(log_, Database::Access::kRead);
    MYCC_CHECK(database.ok()) << database.status();
    return (*database)->ReadInt("SELECT count(*) FROM records").value();
  }

  // Each report that was answered as kept is in the log.
  void CheckKept() {
    server_->Stop();
    auto database = Database::Open(log_, Database::Access::kRead);
    MYCC_CHECK(database.ok()) << database.status();
    const int64_t records = CountRecords() - records_before_;
    const int64_t twice = (*database)
                              ->ReadInt(
                                  "SELECT count(*) FROM (SELECT 1 FROM trials WHERE record IS NOT NULL"
                                  " GROUP BY record HAVING count(*) > 1)")
                              .value();
    std::printf("%lld records, %lld reports kept, %lld records of two trials\n",
                static_cast<long long>(records), static_cast<long long>(kept_before_),
                static_cast<long long>(twice));
    if (records < kept_before_ || twice > 0) missing_ = "the log lacks what was kept";
  }

  const Plan plan_;
  const std::string log_;
  std::unique_ptr<ServerProcess> server_;
  const int64_t records_before_ = CountRecords();
  int64_t kept_before_ = 0;
  std::string missing_;
};

// Thousands of connections need as many descriptors, also in the server.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(const Plan& plan) {
  AllowManyFiles();
  const TemporaryFolder folder =
      (plan.folder.empty() ? TemporaryFolder::Create() : TemporaryFolder::CreateIn(plan.folder)).value();
  Bench(plan, folder.path()).Run();
  return 0;
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (const std::optional<int> search = mycc::RunSearchChild(argc, argv)) return *search;
  if (const std::optional<int> server = mycc::RunServer(argc, argv)) return *server;
  if (const std::optional<int> lookups = mycc::RunLookups(argc, argv)) return *lookups;
  mycc::Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--equal-trials") {
      plan.equal_trials = true;
    } else if (flag == "--quick") {
      plan = mycc::QuickPlan();
    } else if (flag == "--records" && absl::SimpleAtoi(value, &plan.records)) {
      ++i;
    } else if (flag == "--log" && !value.empty()) {
      plan.log = value;
      ++i;
    } else if (flag == "--only" && !value.empty()) {
      plan.only = value;
      ++i;
    } else if (flag == "--folder" && !value.empty()) {
      plan.folder = value;
      ++i;
    } else {
      std::fprintf(stderr,
                   "throughput: `%s`; expected --quick, --equal-trials, --records N, --only PART, --log "
                   "FILE, or --folder FOLDER\n",
                   argv[i]);
      return 2;
    }
  }
  return mycc::Main(plan);
}
