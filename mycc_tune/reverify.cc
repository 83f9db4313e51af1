#include "mycc_tune/reverify.h"

#include <unistd.h>

#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "base/random_word.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "db/tuning_log.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/embedded.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/job_follower.h"
#include "mycc_tune/left_out.h"
#include "mycc_tune/progress_view.h"
#include "mycc_tune/tuning_client.h"
#include "proto/names.h"
#include "server/listed_job.h"

namespace mycc {
namespace {

// Submits jobs to a server, or to one of its own on this host, and follows one after the other to its end.
class Measuring {
 public:
  // `targets`: of this host's devices, where there is no server.
  static absl::StatusOr<std::unique_ptr<Measuring>> Begin(const MeasuringOptions& options,
                                                          const std::set<std::string>& targets,
                                                          std::ostream& out);

  // The targets of the devices that measure.
  absl::StatusOr<std::set<std::string>> DeviceTargets();
  // False: there was nothing to measure (NotFound). An interrupt is an error.
  // `what`: for people.
  absl::StatusOr<bool> Run(v1::JobSpec spec, const std::string& what);
  void Say(const std::string& line) { view_.Say(line); }

 private:
  Measuring(const MeasuringOptions& options, std::ostream& out)
      : options_(options), view_(ProgressView::StyleFor(STDOUT_FILENO, options.json, options.quiet), &out) {}

  void SayWhatBegins(const std::string& job, const std::string& what);
  absl::Status Leave(const std::string& job);

  const MeasuringOptions& options_;
  const InterruptCount interrupts_;
  ProgressView view_;
  const std::string client_id_ = RandomWord();
  std::unique_ptr<EmbeddedServer> embedded_;
  std::unique_ptr<TuningClient> client_;
};

absl::StatusOr<std::unique_ptr<Measuring>> Measuring::Begin(const MeasuringOptions& options,
                                                            const std::set<std::string>& targets,
                                                            std::ostream& out) {
  if (options.detach && !options.server) return Misuse("--detach: expected --server, which goes on alone");
  std::unique_ptr<Measuring> measuring(new Measuring(options, out));
  ServerAddress address;
  if (options.server) {
    address = *options.server;
  } else {
    std::set<std::string> devices;
    for (const std::string& target : targets) {
      const absl::StatusOr<std::string> device = DeviceFor(target);
      if (!device.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat(device.status().message(), "; expected --server with a worker that can"));
      }
      devices.insert(*device);
    }
    MYCC_ASSIGN_OR_RETURN(measuring->embedded_,
                          EmbeddedServer::Start(options.log, {devices.begin(), devices.end()},
                                                /*measures_constants=*/false));  // nothing is predicted
    address = measuring->embedded_->address();
  }
  MYCC_ASSIGN_OR_RETURN(measuring->client_, TuningClient::Connect(address));
  return measuring;
}

absl::StatusOr<std::set<std::string>> Measuring::DeviceTargets() {
  MYCC_ASSIGN_OR_RETURN(const std::vector<v1::DeviceStatus> devices, client_->ListDevices());
  std::set<std::string> targets;
  for (const v1::DeviceStatus& device : devices) {
    if (device.role() != v1::WORKER_ROLE_BUILD) targets.insert(device.target());
  }
  if (!targets.empty()) return targets;
  return absl::FailedPreconditionError(
      "no device measures for the server now; expected a worker, or --target");
}

absl::StatusOr<bool> Measuring::Run(v1::JobSpec spec, const std::string& what) {
  spec.set_name("reverify");
  spec.set_only_when_idle(options_.only_when_idle);
  // Earlier results are no reason not to measure; a job that does so now is joined.
  spec.set_fresh(true);
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_submission(Sha256Hex(spec.SerializeAsString()));
  if (!options_.detach) request.set_client(client_id_);
  absl::StatusOr<v1::JobProgress> progress = client_->Submit(request);
  if (absl::IsNotFound(progress.status())) return false;
  MYCC_RETURN_IF_ERROR(progress.status());
  SayWhatBegins(progress->job(), what);
  if (options_.detach) {
    if (options_.json) view_.Finish(*progress);
    return true;
  }
  FollowOptions follow = {.client = client_id_};
  if (embedded_ != nullptr) follow.no_space = [this] { return embedded_->WriteTrouble(); };
  MYCC_ASSIGN_OR_RETURN(const v1::JobProgress ended,
                        FollowJob(client_.get(), follow, interrupts_, *std::move(progress), &view_));
  if (!HasEnded(ended)) return Leave(ended.job());
  view_.Finish(ended);
  if (ended.state() == v1::JOB_STATE_DONE) return true;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", ended.job(), " ", JobStateName(ended.state()), ": ", ended.message()));
}

void Measuring::SayWhatBegins(const std::string& job, const std::string& what) {
  const std::string place =
      options_.server ? absl::StrCat("the log of ", options_.server->address) : options_.log;
  const std::string idle = options_.only_when_idle ? ", on devices that have nothing else to do" : "";
  const std::string line = absl::StrCat("job ", job, " measures ", what, idle, "; results go to ", place);
  if (!options_.detach) return view_.Say(line);
  view_.Tell(absl::StrCat(line, "; mycc-tune watch ", job, ServerWords(*options_.server), " follows it"));
}

absl::Status Measuring::Leave(const std::string& job) {
  if (embedded_ != nullptr) {
    view_.Say("finishing the candidate that is being measured; another interrupt stops at once");
    embedded_->StopWorker();
  } else {
    MYCC_RETURN_IF_ERROR(client_->Leave(job, client_id_).status());
  }
  return Interrupted(absl::StrCat("interrupted; what job ", job,
                                  " has measured is kept, and the same command measures the rest"));
}

std::vector<v1::TimingProtocol> ProtocolsAsked(v1::TimingProtocol asked) {
  if (asked != v1::TIMING_PROTOCOL_UNSPECIFIED) return {asked};
  return {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_MODEL, v1::TIMING_PROTOCOL_COLD};
}

absl::Status ReverifyForeign(const ReverifyOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const v1::TimingProtocol asked, ReadProtocol(options.cache));
  std::set<std::string> targets;
  if (!options.target.empty() || !options.measuring.server) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target.empty() ? "host" : options.target));
    targets.insert(PrintTarget(target));
  }
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Measuring> measuring,
                        Measuring::Begin(options.measuring, targets, out));
  if (targets.empty()) {
    MYCC_ASSIGN_OR_RETURN(targets, measuring->DeviceTargets());
  }
  bool has_measured = false;
  for (const std::string& target : targets) {
    for (const v1::TimingProtocol protocol : ProtocolsAsked(asked)) {
      v1::JobSpec spec;
      spec.set_strategy(kForeignStrategy);
      spec.set_target(target);
      spec.set_protocol(protocol);
      spec.set_trials(options.top);
      for (const std::string& name : options.workloads) spec.add_tasks()->set_workload(name);
      const std::string what =
          absl::StrCat("schedules of others for ", target, " (", ProtocolName(protocol), ")");
      MYCC_ASSIGN_OR_RETURN(const bool measured, measuring->Run(std::move(spec), what));
      has_measured = has_measured || measured;
    }
  }
  if (!has_measured) {
    measuring->Say(absl::StrCat("nothing to measure: no foreign record waits that can be measured on ",
                                absl::StrJoin(targets, " or ")));
  }
  return absl::OkStatus();
}

// The targets of all tasks of the jobs.
std::set<std::string> TargetsOfJobs(const std::vector<v1::JobSpec>& jobs) {
  std::set<std::string> targets;
  for (const v1::JobSpec& job : jobs) {
    for (const v1::TaskSpec& task : job.tasks()) targets.insert(task.target());
  }
  return targets;
}

// Keeps the jobs that this host can run, and counts the others.
std::vector<v1::JobSpec> ForThisHost(std::vector<v1::JobSpec> jobs, size_t* elsewhere) {
  std::map<std::string, bool> runs;
  for (v1::JobSpec& job : jobs) {
    google::protobuf::RepeatedPtrField<v1::TaskSpec> tasks;
    tasks.Swap(job.mutable_tasks());
    for (v1::TaskSpec& task : tasks) {
      const auto [known, is_new] = runs.try_emplace(task.target(), false);
      if (is_new) known->second = DeviceFor(task.target()).ok();
      if (known->second) {
        *job.add_tasks() = std::move(task);
      } else {
        ++*elsewhere;
      }
    }
  }
  std::erase_if(jobs, [](const v1::JobSpec& job) { return job.tasks().empty(); });
  return jobs;
}

// Measures the changed records of a report again.
absl::Status ReverifyChanged(std::vector<v1::JobSpec> jobs, const MeasuringOptions& options,
                             std::ostream& out) {
  size_t elsewhere = 0;
  if (!options.server) jobs = ForThisHost(std::move(jobs), &elsewhere);
  if (!jobs.empty()) {
    MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Measuring> measuring,
                          Measuring::Begin(options, TargetsOfJobs(jobs), out));
    for (v1::JobSpec& job : jobs) {
      const std::string what = absl::StrCat(HowMany(job.tasks_size(), "schedule"), " whose code changed");
      MYCC_RETURN_IF_ERROR(measuring->Run(std::move(job), what).status());
    }
  }
  if (elsewhere == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(HowMany(elsewhere, "record"), elsewhere == 1 ? " is" : " are",
                   " for other machines; expected --server with workers that can measure them"));
}

absl::StatusOr<std::vector<v1::JobSpec>> CheckLog(const UpgradeCheckArgs& args, bool prints,
                                                  std::ostream& out) {
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  left_out.Watch(log.get());
  MYCC_ASSIGN_OR_RETURN(const UpgradeReport report, CheckUpgrade(*log, args, CodesInProcesses()));
  if (prints) WriteUpgradeReport(args, report, out);
  MYCC_RETURN_IF_ERROR(left_out.After(absl::OkStatus()));
  return JobsOfChanged(*log, report);
}

absl::Status ReverifyStale(const ReverifyOptions& options, std::ostream& out) {
  UpgradeCheckArgs args{
      .log = options.measuring.log, .top = static_cast<int>(options.top), .json = options.measuring.json};
  MYCC_ASSIGN_OR_RETURN(args.filter.protocol, ReadProtocol(options.cache));
  if (options.workloads.size() > 1) return Misuse("--workload: expected one, with --stale");
  if (!options.workloads.empty()) args.filter.workload_name = options.workloads[0];
  if (!options.target.empty()) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
    args.filter.target = PrintTarget(target);
  }
  MYCC_ASSIGN_OR_RETURN(std::vector<v1::JobSpec> jobs, CheckLog(args, !options.measuring.quiet, out));
  return ReverifyChanged(std::move(jobs), options.measuring, out);
}

}  // namespace

absl::Status ReverifyCommand(const ReverifyOptions& options, std::ostream& out) {
  BlockInterrupts();
  return options.stale ? ReverifyStale(options, out) : ReverifyForeign(options, out);
}

absl::Status UpgradeCheckCommand(const UpgradeCheckArgs& args, bool reverify,
                                 const MeasuringOptions& measuring, std::ostream& out) {
  if (reverify) BlockInterrupts();
  MYCC_ASSIGN_OR_RETURN(std::vector<v1::JobSpec> jobs, CheckLog(args, /*prints=*/true, out));
  return reverify ? ReverifyChanged(std::move(jobs), measuring, out) : absl::OkStatus();
}

}  // namespace mycc
