#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <ostream>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "codegen/workload/print.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "db/log_report.h"
#include "proto/names.h"
#include "server/commands.h"
#include "server/interrupt.h"
#include "server/progress_view.h"
#include "server/tuning_client.h"

namespace mycc {
namespace {

constexpr uint32_t kDefaultTrials = 128;
constexpr double kRedrawSeconds = 0.5;
constexpr auto kRetryPause = std::chrono::seconds(1);

std::string FileStem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

// A task for each workload and target.
absl::Status AddTasks(const TuneOptions& options, v1::JobSpec* spec) {
  std::vector<std::string> targets;
  for (const std::string& words : options.targets) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(words));
    targets.push_back(PrintTarget(target));
  }
  spec->set_target(targets.front());
  std::string name;
  for (const std::string& file : options.files) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, ReadWorkloads(file));
    for (const Workload& workload : workloads) {
      for (const std::string& target : targets) {
        v1::TaskSpec& task = *spec->add_tasks();
        task.set_workload(PrintWorkload(workload));
        task.set_count(workload.count);
        if (target != spec->target()) task.set_target(target);
      }
    }
    absl::StrAppend(&name, name.empty() ? "" : ", ", FileStem(file));
  }
  spec->set_name(name);
  return absl::OkStatus();
}

std::set<std::string> TargetsOf(const v1::JobSpec& spec) {
  std::set<std::string> targets;
  for (const v1::TaskSpec& task : spec.tasks())
    targets.insert(task.target().empty() ? spec.target() : task.target());
  return targets;
}

absl::StatusOr<v1::JobSpec> SpecOf(const TuneOptions& options) {
  v1::JobSpec spec;
  MYCC_RETURN_IF_ERROR(AddTasks(options, &spec));
  MYCC_ASSIGN_OR_RETURN(const v1::TimingProtocol protocol, ReadProtocol(options.cache));
  spec.set_protocol(protocol);
  spec.set_strategy(options.strategy);
  spec.set_trials(options.trials);
  if (!options.budget.empty()) {
    MYCC_ASSIGN_OR_RETURN(const double budget, ParseBudget(options.budget));
    spec.set_budget_seconds(budget);
  } else if (options.trials == 0) {
    spec.set_trials(kDefaultTrials);
  }
  spec.set_seed(options.seed.value_or(0));
  spec.set_fresh(options.fresh);
  return spec;
}

// The same command is the same submission: it finds the job that was interrupted, or the one that has done
// it.
std::string SubmissionOf(v1::JobSpec spec) {
  const bool fresh = spec.fresh();
  spec.clear_fresh();
  const std::string words = Sha256Hex(spec.SerializeAsString());
  return fresh ? absl::StrCat(words, " fresh ", getpid(), " ",
                              std::chrono::system_clock::now().time_since_epoch().count())
               : words;
}

// Whether a log has been in trouble for so long, with nothing measured meanwhile, that it is no passing one.
class TroubleWatch {
 public:
  bool IsStuck(const v1::JobProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (progress.trouble().empty() || progress.trials() != trials_) {
      trials_ = progress.trials();
      since_ = now;
    }
    return now - since_ > kPatience;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(5);
  int64_t trials_ = -1;
  std::chrono::steady_clock::time_point since_;
};

// Follows the job to its end; an interrupt cancels it, with the best so far kept. A server of this command's
// own is given up when it cannot write; another's is waited for.
absl::StatusOr<v1::JobProgress> Follow(TuningClient* client, bool own_server, v1::JobProgress progress,
                                       ProgressView* view) {
  const std::string job = progress.job();
  std::atomic<int> interrupts = 0;
  const InterruptWatch watch([&interrupts](int nth) {
    if (nth > 1) std::_Exit(1);
    interrupts = nth;
  });
  bool cancelled = false;
  std::string trouble;
  TroubleWatch log_trouble;
  while (!HasEnded(progress)) {
    view->Update(progress);
    if (own_server && log_trouble.IsStuck(progress)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(progress.trouble(), "; the same command continues job ", job));
    }
    if (interrupts > 0 && !cancelled) {
      view->Say("stopping; the best so far is kept");
      cancelled = client->Cancel(job).ok();
    }
    absl::StatusOr<v1::JobProgress> next = client->Watch(job, progress.revision(), kRedrawSeconds);
    if (next.ok()) {
      progress = *std::move(next);
      trouble.clear();
      continue;
    }
    // The server may be away for a moment, and the job goes on without this client in any case.
    if (!absl::IsUnavailable(next.status()) && !absl::IsDeadlineExceeded(next.status())) return next.status();
    if (interrupts > 0) return next.status();
    if (trouble.empty()) view->Say(absl::StrCat(next.status().message(), "; trying again"));
    trouble = std::string(next.status().message());
    std::this_thread::sleep_for(kRetryPause);
  }
  return progress;
}

absl::Status Verdict(const v1::JobProgress& progress, bool interrupted_is_fine) {
  if (progress.state() == v1::JOB_STATE_FAILED)
    return absl::FailedPreconditionError(
        absl::StrCat("job ", progress.job(), " failed: ", progress.message()));
  if (progress.state() == v1::JOB_STATE_CANCELLED && !interrupted_is_fine) {
    return absl::CancelledError(absl::StrCat("job ", progress.job(), " was cancelled"));
  }
  for (const v1::TaskProgress& task : progress.tasks()) {
    const bool fruitless = task.best_seconds() == 0 && task.trials() > 0;
    if (fruitless)
      return absl::FailedPreconditionError(absl::StrCat(task.workload_name(), ": ", task.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::TimingProtocol> ReadProtocol(const std::string& word) {
  if (word.empty()) return v1::TIMING_PROTOCOL_UNSPECIFIED;
  absl::StatusOr<v1::TimingProtocol> protocol = ParseProtocolName(word);
  if (!protocol.ok()) return Misuse(absl::StrCat("--cache: ", protocol.status().message()));
  return protocol;
}

absl::StatusOr<double> ParseBudget(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  const bool parsed = absl::SimpleAtod(text, &seconds) || (absl::ParseDuration(text, &duration) &&
                                                           (seconds = absl::ToDoubleSeconds(duration), true));
  if (parsed && seconds > 0 && std::isfinite(seconds)) return seconds;
  return Misuse(absl::StrCat("--budget: \"", text, "\" is no duration; expected 90s, 8m or 1h30m"));
}

absl::Status TuneCommand(const TuneOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const v1::JobSpec spec, SpecOf(options));
  std::unique_ptr<EmbeddedServer> embedded;
  ServerAddress address;
  if (options.server) {
    address = *options.server;
  } else {
    // Without a server only this host measures.
    std::set<std::string> devices;
    for (const std::string& target : TargetsOf(spec)) {
      const absl::StatusOr<std::string> device = DeviceFor(target);
      if (!device.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat(device.status().message(), "; expected --server with a worker that can"));
      }
      devices.insert(*device);
    }
    MYCC_ASSIGN_OR_RETURN(embedded, EmbeddedServer::Start(options.log, {devices.begin(), devices.end()}));
    address = embedded->address();
  }
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(address));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_submission(SubmissionOf(spec));
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, client->Submit(request));

  ProgressView view(ProgressView::StyleFor(STDOUT_FILENO, options.json), &out);
  const std::string where = options.server ? absl::StrCat("the log of ", address.address) : options.log;
  if (progress.state() == v1::JOB_STATE_DONE) {
    view.Say(absl::StrCat("nothing to tune: ", where, " already holds what was asked for (job ",
                          progress.job(), " of ", FormatUnixMicros(progress.created_unix_micros()),
                          "); --fresh tunes again"));
  } else {
    const std::string verb = progress.trials() > 0 ? "continuing" : "started";
    view.Say(absl::StrCat(verb, " job ", progress.job(), ": ", progress.tasks_size(), " tasks for ",
                          absl::StrJoin(TargetsOf(spec), " and "), ", results go to ", where));
    MYCC_ASSIGN_OR_RETURN(progress, Follow(client.get(), !options.server, std::move(progress), &view));
  }
  view.Finish(progress);
  return Verdict(progress, /*interrupted_is_fine=*/true);
}

absl::Status WatchCommand(const JobOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  ProgressView view(ProgressView::StyleFor(STDOUT_FILENO, options.json), &out);
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, client->Watch(options.job, 0, 0));
  // Watching changes nothing: an interrupt ends the watching alone.
  const InterruptWatch watch([](int) { std::_Exit(0); });
  while (!HasEnded(progress)) {
    view.Update(progress);
    MYCC_ASSIGN_OR_RETURN(progress, client->Watch(options.job, progress.revision(), kRedrawSeconds));
  }
  view.Finish(progress);
  return Verdict(progress, /*interrupted_is_fine=*/false);
}

}  // namespace mycc
