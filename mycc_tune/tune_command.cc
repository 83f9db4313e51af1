// `mycc-tune tune` and `watch`: submits a job, follows it to its end, and prints the result.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/random_word.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "command/misuse.h"
#include "command/model.h"
#include "command/sources.h"
#include "command/times.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/deadline.h"
#include "mycc_tune/embedded.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/job_follower.h"
#include "mycc_tune/progress_view.h"
#include "mycc_tune/tuning_client.h"
#include "mycc_tune/user_name.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr uint32_t kDefaultTrials = 128;  // of each workload
constexpr char kModelBudget[] = "10m", kModelMinGain[] = "0.5%";

std::string FileStem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

void AddTask(const Workload& workload, const Target& target, bool is_alternative, v1::JobSpec* spec) {
  v1::TaskSpec& task = *spec->add_tasks();
  task.set_workload(PrintWorkload(workload));
  task.set_count(workload.count);
  task.set_is_alternative(is_alternative);
  if (PrintTarget(target) != spec->target()) task.set_target(PrintTarget(target));
}

// The tasks of a file for a target, and those that may take their place.
void AddTasksFor(const Tasks& tasks, const Target& target, v1::JobSpec* spec) {
  std::map<std::string, uint32_t> numbers;  // by hash
  for (const Workload& workload : tasks.workloads) {
    numbers.emplace(WorkloadHash(workload), spec->tasks_size());
    AddTask(workload, target, /*is_alternative=*/false, spec);
  }
  for (const Alternative& alternative : tasks.alternatives) {
    v1::Grouping& grouping = *spec->add_groupings();
    grouping.set_task(numbers.at(WorkloadHash(alternative.instead_of[0])));
    grouping.set_count(alternative.instead_of[0].count);
    for (size_t i = 1; i < alternative.instead_of.size(); ++i) {
      v1::Grouping::Part& other = *grouping.add_more();
      other.set_task(numbers.at(WorkloadHash(alternative.instead_of[i])));
      other.set_count(alternative.instead_of[i].count);
    }
    for (const Workload& workload : alternative.parts) {
      v1::Grouping::Part& part = *grouping.add_parts();
      const auto [known, is_new] = numbers.emplace(WorkloadHash(workload), spec->tasks_size());
      part.set_task(known->second);
      part.set_count(workload.count);
      if (is_new) AddTask(workload, target, /*is_alternative=*/true, spec);
    }
  }
}

// A task for each workload and target.
absl::Status AddTasks(const TuneOptions& options, v1::JobSpec* spec) {
  std::vector<Target> targets;
  for (const std::string& words : options.targets) {
    MYCC_ASSIGN_OR_RETURN(Target target, ReadTarget(words));
    targets.push_back(std::move(target));
  }
  spec->set_target(PrintTarget(targets.front()));
  std::string name;
  for (const std::string& file : options.files) {
    ModelSource source = options.model;
    source.file = file;
    for (const Target& target : targets) {
      MYCC_ASSIGN_OR_RETURN(const Tasks tasks, ReadTasks(source, target));
      AddTasksFor(tasks, target, spec);
    }
    absl::StrAppend(&name, name.empty() ? "" : ", ", FileStem(file));
  }
  spec->set_name(name);
  if (spec->tasks().empty() && IsModel(options.files.front())) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(options.files, ", "),
                     ": nothing to tune: all launches are of library kernels, which have no schedules"));
  }
  return absl::OkStatus();
}

std::set<std::string> TargetsOf(const v1::JobSpec& spec) {
  std::set<std::string> targets;
  for (const v1::TaskSpec& task : spec.tasks())
    targets.insert(task.target().empty() ? spec.target() : task.target());
  return targets;
}

bool HasModel(const TuneOptions& options) { return std::ranges::any_of(options.files, IsModel); }

// How long a model is tuned where the command does not say: until little more is to be expected.
bool HasModelDefaults(const TuneOptions& options) {
  return HasModel(options) && options.trials == 0 && options.budget.empty() && options.deadline.empty();
}

// The trials are the job's, which gives them out where they gain most. Those of a single task are the task's:
// so jobs that have it in common measure it once.
absl::Status AddLimits(const TuneOptions& options, v1::JobSpec* spec) {
  const bool by_default = HasModelDefaults(options);
  const std::string budget = by_default ? kModelBudget : options.budget;
  if (!budget.empty()) {
    MYCC_ASSIGN_OR_RETURN(const double seconds, ParseBudget(budget));
    spec->set_budget_seconds(seconds);
  }
  const std::string min_gain = by_default && options.min_gain.empty() ? kModelMinGain : options.min_gain;
  if (!min_gain.empty()) {
    MYCC_ASSIGN_OR_RETURN(const double share, ParseMinGain(min_gain));
    spec->set_min_gain(share);
  }
  const bool is_limited =
      HasModel(options) || options.trials > 0 || !budget.empty() || !options.deadline.empty();
  const auto tasks = static_cast<uint32_t>(spec->tasks_size());
  const uint32_t trials = is_limited ? options.trials : kDefaultTrials * tasks;
  if (HasModel(options) || tasks > 1) {
    spec->set_total_trials(trials);
  } else {
    spec->set_trials(trials);
  }
  spec->set_is_model(HasModel(options) && options.files.size() == 1 && options.targets.size() == 1);
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSpec> SpecOf(const TuneOptions& options) {
  v1::JobSpec spec;
  MYCC_RETURN_IF_ERROR(AddTasks(options, &spec));
  MYCC_ASSIGN_OR_RETURN(const v1::TimingProtocol protocol, ReadProtocol(options.cache));
  spec.set_protocol(protocol);
  spec.set_strategy(options.strategy);
  MYCC_RETURN_IF_ERROR(AddLimits(options, &spec));
  spec.set_seed(options.seed.value_or(0));
  spec.set_fresh(options.fresh);
  spec.set_only_when_idle(options.only_when_idle);
  return spec;
}

// The same command is the same submission, with --fresh or without: it joins the job that others wait for,
// continues the one that was interrupted, or finds the one that has done it.
std::string SubmissionOf(v1::JobSpec spec) {
  spec.clear_fresh();
  return Sha256Hex(spec.SerializeAsString());
}

// "3 others wait", "1 other waits".
std::string OthersWait(uint32_t others) {
  return others == 1 ? "1 other waits" : absl::StrCat(others, " others wait");
}

// Without a server only this host measures.
absl::StatusOr<std::unique_ptr<EmbeddedServer>> StartServer(const v1::JobSpec& spec,
                                                            const TuneOptions& options) {
  std::set<std::string> devices;
  for (const std::string& target : TargetsOf(spec)) {
    const absl::StatusOr<std::string> device = DeviceFor(target);
    if (!device.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(device.status().message(), "; expected --server with a worker that can"));
    }
    devices.insert(*device);
  }
  return EmbeddedServer::Start(options.log, {devices.begin(), devices.end()}, options.measures_constants);
}

// A command that tunes, from its submission on.
class Tuning {
 public:
  Tuning(const TuneOptions& options, const v1::JobSpec& spec, const InterruptCount& interrupts,
         std::ostream& out)
      : options_(options),
        spec_(spec),
        interrupts_(interrupts),
        view_(ProgressView::StyleFor(STDOUT_FILENO, options.json, options.quiet), &out) {}

  absl::Status Run();

 private:
  absl::Status Connect();
  absl::StatusOr<v1::JobProgress> Submit();
  void SayWhatBegins(const v1::JobProgress& progress);
  absl::Status Detach(const v1::JobProgress& progress);
  // After an interrupt.
  absl::Status Leave(const v1::JobProgress& seen);
  // How the job continues that was given up here.
  std::string HowToContinue(const v1::JobProgress& progress) const;
  std::string At() const { return ServerWords(address_); }

  const TuneOptions& options_;
  const v1::JobSpec& spec_;
  const InterruptCount& interrupts_;
  ProgressView view_;
  const std::string client_id_ = RandomWord();
  std::unique_ptr<EmbeddedServer> embedded_;
  ServerAddress address_;
  std::unique_ptr<TuningClient> client_;
};

absl::Status Tuning::Run() {
  MYCC_RETURN_IF_ERROR(Connect());
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, Submit());
  SayWhatBegins(progress);
  if (options_.detach && !HasEnded(progress)) return Detach(progress);
  FollowOptions follow = {.client = client_id_};
  if (embedded_ != nullptr) follow.no_space = [this] { return embedded_->WriteTrouble(); };
  MYCC_ASSIGN_OR_RETURN(progress, FollowJob(client_.get(), follow, interrupts_, std::move(progress), &view_));
  if (!HasEnded(progress)) return Leave(progress);
  view_.Finish(progress);
  return Verdict(progress);
}

absl::Status Tuning::Connect() {
  if (options_.server) {
    address_ = *options_.server;
  } else {
    MYCC_ASSIGN_OR_RETURN(embedded_, StartServer(spec_, options_));
    address_ = embedded_->address();
  }
  MYCC_ASSIGN_OR_RETURN(client_, TuningClient::Connect(address_));
  return absl::OkStatus();
}

absl::StatusOr<v1::JobProgress> Tuning::Submit() {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec_;
  request.set_submission(SubmissionOf(spec_));
  request.set_owner(UserAtHost());
  request.set_priority(options_.priority);
  if (!options_.deadline.empty()) {
    MYCC_ASSIGN_OR_RETURN(const int64_t deadline,
                          ParseDeadline(options_.deadline, absl::Now(), absl::LocalTimeZone()));
    request.set_deadline_unix_micros(deadline);
  }
  if (!options_.detach) request.set_client(client_id_);
  return client_->Submit(request);
}

void Tuning::SayWhatBegins(const v1::JobProgress& progress) {
  const std::string where = options_.server ? absl::StrCat("the log of ", address_.address) : options_.log;
  const std::string job = absl::StrCat("job ", progress.job());
  if (progress.state() == v1::JOB_STATE_DONE) {
    view_.Say(absl::StrCat("nothing to tune: ", where, " already has the results (", job, " of ",
                           FormatUnixMicros(progress.created_unix_micros()), "); --fresh tunes again"));
    return;
  }
  const uint32_t others = progress.waiters() - std::min(progress.waiters(), options_.detach ? 0u : 1u);
  const std::string begins = others > 0
                                 ? absl::StrCat("joining ", job, ", which ", OthersWait(others), " for")
                             : progress.trials() > 0 ? absl::StrCat("continuing ", job)
                                                     : absl::StrCat("started ", job);
  const auto of_others =
      std::ranges::count_if(spec_.tasks(), [](const v1::TaskSpec& task) { return task.is_alternative(); });
  const auto own = spec_.tasks_size() - of_others;
  const std::string what =
      absl::StrCat(spec_.is_model() ? "kernel" : "workload", own == 1 ? "" : "s",
                   of_others > 0 ? absl::StrCat(" and ", of_others, " of other groupings or layouts") : "");
  const std::string until =
      HasModelDefaults(options_)
          ? absl::StrCat(", for ", kModelBudget, " at most, and no longer than a minute gains ",
                         options_.min_gain.empty() ? kModelMinGain : options_.min_gain)
          : "";
  view_.Say(absl::StrCat(begins, ": ", own, " ", what, " for ", absl::StrJoin(TargetsOf(spec_), " and "),
                         until, ", results go to ", where));
}

absl::Status Tuning::Detach(const v1::JobProgress& progress) {
  view_.Tell(
      absl::StrCat("mycc-tune watch ", progress.job(), At(), " follows it, and mycc-tune cancel ends it"));
  if (options_.json) view_.Finish(progress);
  return absl::OkStatus();
}

absl::Status Tuning::Leave(const v1::JobProgress& seen) {
  absl::StatusOr<v1::JobProgress> left = absl::UnknownError("");
  if (embedded_ != nullptr) {
    view_.Say("finishing the candidate that is being measured; another interrupt stops at once");
    embedded_->StopWorker();
    left = client_->Watch(seen.job(), 0, 0);
  } else {
    left = client_->Leave(seen.job(), client_id_);
  }
  if (!left.ok()) {
    view_.Finish(seen);
    return Interrupted(absl::StrCat("interrupted; job ", seen.job(),
                                    " goes on, since its server was not told: ", left.status().message()));
  }
  view_.Finish(*left);
  const bool ended_by_itself = left->state() == v1::JOB_STATE_DONE || left->state() == v1::JOB_STATE_FAILED;
  return ended_by_itself ? Verdict(*left) : Interrupted(HowToContinue(*left));
}

std::string Tuning::HowToContinue(const v1::JobProgress& progress) const {
  const std::string job = absl::StrCat("interrupted; job ", progress.job());
  const std::string kept = absl::StrCat(KeptResults(progress), ", and the same command");
  if (embedded_ != nullptr) return absl::StrCat(job, " can go on: its ", kept, " continues it");
  // --fresh asks for a new job, never for a cancelled one.
  if (HasEnded(progress)) {
    return absl::StrCat(job, " is cancelled, since nobody else waits for it; its ", kept,
                        spec_.fresh() ? " without --fresh" : "", " continues it");
  }
  if (progress.waiters() > 0)
    return absl::StrCat(job, " goes on: ", OthersWait(progress.waiters()), " for it");
  return absl::StrCat(job, " goes on, as somebody submitted it with --detach; mycc-tune cancel ",
                      progress.job(), At(), " ends it");
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

absl::StatusOr<double> ParseMinGain(const std::string& text) {
  std::string number = text;
  const bool is_percent = absl::EndsWith(number, "%");
  if (is_percent) number.pop_back();
  double share = 0;
  const bool parsed = absl::SimpleAtod(number, &share);
  if (is_percent) share /= 100;
  if (parsed && share > 0 && share < 1) return share;
  return Misuse(absl::StrCat("--min-gain: \"", text,
                             "\" is no share; expected more than 0 and less than 1, such as 0.5% or 0.005"));
}

absl::Status TuneCommand(const TuneOptions& options, std::ostream& out) {
  BlockInterrupts();
  // Before anything is begun.
  if (!options.deadline.empty())
    MYCC_RETURN_IF_ERROR(ParseDeadline(options.deadline, absl::Now(), absl::LocalTimeZone()).status());
  const InterruptCount interrupts;  // to the end, so that a second one is heard while this one stops
  MYCC_ASSIGN_OR_RETURN(const v1::JobSpec spec, SpecOf(options));
  return Tuning(options, spec, interrupts, out).Run();
}

absl::Status WatchCommand(const JobOptions& options, std::ostream& out) {
  BlockInterrupts();
  const InterruptCount interrupts;
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  ProgressView view(ProgressView::StyleFor(STDOUT_FILENO, options.json, options.quiet), &out);
  MYCC_ASSIGN_OR_RETURN(v1::JobProgress progress, client->Watch(options.job, 0, 0));
  MYCC_ASSIGN_OR_RETURN(progress, FollowJob(client.get(), {}, interrupts, std::move(progress), &view));
  view.Finish(progress);
  // Watching changes nothing: an interrupt ends the watching alone.
  if (!HasEnded(progress)) return Interrupted(absl::StrCat("interrupted; job ", options.job, " goes on"));
  return Verdict(progress);
}

}  // namespace mycc
