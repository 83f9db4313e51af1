#include "tests/perf/throughput_lookups.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "db/tuning_log.h"
#include "proto/timing_protocol.h"
#include "server/job_plan.h"
#include "server/search_process.h"
#include "server/time_source.h"
#include "tests/perf/throughput_search.h"

namespace mycc {
namespace {

double Now() { return SystemTime().Seconds(); }

std::unique_ptr<TuningLog> OpenLog(const std::string& path) {
  auto log = TuningLog::Open(path, OpenMode::kRead);
  MYCC_CHECK(log.ok()) << log.status();
  return *std::move(log);
}

// One search asks and tells until the time is over, and returns how many candidates it was given.
int64_t Search(int shape, double until) {
  v1::StoredJob stored;
  const JobPlan plan = PlanJob(BenchJob(shape, 4, 1000000)).value();
  *stored.mutable_spec() = plan.spec;
  stored.set_generation_size(16);
  const std::vector<v1::StoredTask> tasks(plan.tasks.size());
  const auto search =
      SearchProcess::Start({}, {.job = &stored, .tasks = &plan.tasks, .stored_tasks = &tasks});
  MYCC_CHECK(search.ok()) << search.status();
  int64_t candidates = 0;
  TaskOutcomes untold;
  while (Now() < until) {
    const absl::StatusOr<SearchStep> step = (*search)->Next(untold, 1, 0);
    MYCC_CHECK(step.ok() && step->proposal) << step.status();
    untold.clear();
    const v1::Proposal& proposal = *step->proposal;
    for (int i = 0; i < proposal.traces_size(); ++i) {
      Outcome& outcome = untold[proposal.task()].emplace_back();
      outcome.generation = proposal.generation();
      outcome.index = static_cast<uint32_t>(i);
      outcome.seconds =
          1e-3 * (1 + static_cast<double>(std::hash<std::string>()(proposal.traces(i)) % 65536) / 65536);
    }
    candidates += proposal.traces_size();
  }
  return candidates;
}

}  // namespace

double MillisecondsOfLookups(const std::string& log_path, const std::vector<std::string>& workloads) {
  const std::unique_ptr<TuningLog> log = OpenLog(log_path);
  std::vector<LogKey> keys;
  for (const std::string& text : workloads)
    keys.push_back({WorkloadHash(ParseWorkload(text, "bench").value()), kBenchTarget});
  const double begun = Now();
  for (const LogKey& key : keys) {
    const auto best = log->Best(key, v1::TIMING_PROTOCOL_WARM);
    MYCC_CHECK(best.ok()) << best.status();
  }
  return 1e3 * (Now() - begun);
}

double MillisecondsOfCompileLookups(const std::string& log_path, const std::vector<std::string>& workloads) {
  const Target target = ParseTarget(kBenchTarget).value();
  const double begun = Now();
  const std::unique_ptr<TuningLog> log = OpenLog(log_path);
  for (const std::string& text : workloads) {
    const LogKey key{WorkloadHash(Canonicalize(ParseWorkload(text, "bench").value())), PrintTarget(target)};
    bool found = false;
    for (const v1::TimingProtocol protocol :
         ProtocolsOf(target, v1::TIMING_PROTOCOL_UNSPECIFIED, KernelUse::kAlone)) {
      const auto best = log->TopK(key, protocol, 1);
      MYCC_CHECK(best.ok()) << best.status();
      found = found || !best->empty();
      if (found) break;
    }
    MYCC_CHECK(found) << text;
  }
  return 1e3 * (Now() - begun);
}

double ProposalsPerSecond(double seconds) {
  const int searches = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::atomic<int64_t> candidates = 0;
  const double begun = Now();
  std::vector<std::thread> threads;
  for (int i = 0; i < searches; ++i)
    threads.emplace_back([&, i] { candidates += Search(4 * i, begun + seconds); });
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(candidates) / (Now() - begun);
}

}  // namespace mycc
