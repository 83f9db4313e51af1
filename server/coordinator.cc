#include "server/coordinator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "proto/timing_protocol.h"

namespace mycc {
namespace {

constexpr uint32_t kMostBest = 1000;
constexpr double kTrySeconds = 5;    // between attempts to write a log that could not be written
constexpr size_t kMostListed = 500;  // lines and leases of an overview

std::set<std::string> TargetsOf(const v1::JobProgress& progress) {
  std::set<std::string> targets;
  for (const v1::TaskProgress& task : progress.tasks()) targets.insert(task.target());
  return targets;
}

// Why no worker can measure the job's tasks for the target; empty where one can.
std::string MissingWorker(const Dispatcher& workers, const JobLedger& ledger, const Target& target,
                          const std::string& text) {
  const v1::TimingProtocol protocol = ProtocolOf(ledger.plan().spec, target);
  if (workers.AnyFits(target, protocol)) return "";
  if (!workers.AnyFits(target, v1::TIMING_PROTOCOL_UNSPECIFIED)) return text;
  return absl::StrCat(text, " and time by the protocol ", ProtocolName(protocol),
                      " (the workers for it are older, and do not know it)");
}
}  // namespace

absl::StatusOr<v1::BestResponse> ReadBest(const v1::BestRequest& request, const TuningLog& log) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  const LogKey key{request.workload_hash(), PrintTarget(target)};
  const v1::TimingProtocol protocol = ProtocolFor(target, request.protocol(), KernelUse::kAlone);
  const int top = static_cast<int>(std::clamp(request.top(), 1u, kMostBest));
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log.TopK(key, protocol, top));
  v1::BestResponse response;
  for (const StoredRecord& record : records) {
    *response.add_records() = record.record;
    response.add_ids(record.id);
  }
  return response;
}

Coordinator::Coordinator(CoordinatorOptions options, TuningLog* log, const TimeSource* time,
                         const Executors& executors)
    : read_(executors.read),
      log_(options.dispatch.log),
      time_(time),
      tried_log_(log),
      write_(Watched(executors).write),
      queue_(options.dispatch.lease_seconds),
      board_(std::move(options.jobs), log, &queue_, time, Watched(executors),
             {[this](const std::string& job) {
                Tell("job.ended", job);
                dispatcher_.Revoke(job);
              },
              [this](const std::string& job) { dispatcher_.OnAdopted(job); },
              [this](const Target& code) { return dispatcher_.Width(code); }}),
      dispatcher_(options.dispatch, log, &queue_, &board_, time, Watched(executors).write, executors.read) {}

Executors Coordinator::Watched(Executors executors) {
  executors.write = [this, write = std::move(executors.write)](LogWrite change, LogWriteDone done) {
    write(std::move(change), [this, done = std::move(done)](const absl::Status& status) {
      OnWritten(status);
      done(status);
    });
  };
  return executors;
}

void Coordinator::OnWritten(const absl::Status& status) {
  if (status.ok()) TellTrouble("");
  if (IsPassing(status)) TellTrouble(std::string(status.message()));
  if (status.ok()) board_.OnLogThere();
  if (IsLogGone(status)) board_.OnLogGone(status);
}

void Coordinator::TellTrouble(const std::string& trouble) {
  if (trouble_.empty() != trouble.empty()) {
    next_try_ = time_->Seconds() + kTrySeconds;
    Event told(trouble.empty() ? "log.writable" : "log.unwritable",
               trouble.empty() ? "the log can be written again" : "the log cannot be written: " + trouble);
    told.is_warning = !trouble.empty();
    if (log_) log_(told);
  }
  trouble_ = trouble;
}

void Coordinator::TryLog() {
  if (trouble_.empty() || is_trying_ || time_->Seconds() < next_try_) return;
  is_trying_ = true;
  next_try_ = time_->Seconds() + kTrySeconds;
  write_([log = tried_log_] { return log->TryWrite(); }, [this](const absl::Status&) { is_trying_ = false; });
}

absl::Status Coordinator::Start() {
  MYCC_RETURN_IF_ERROR(dispatcher_.Start());
  return board_.Start();
}

void Coordinator::Tick() {
  dispatcher_.Tick();
  board_.Tick();
  TryLog();
  dispatcher_.Serve();
}

v1::JobProgress Coordinator::Explained(v1::JobProgress progress) const {
  if (progress.state() == v1::JOB_STATE_RUNNING) {
    progress.set_trouble(trouble_.empty() ? dispatcher_.TroubleOf(progress.job()) : trouble_);
  }
  const JobLedger* const ledger = board_.LedgerOf(progress.job());
  if (progress.state() != v1::JOB_STATE_RUNNING || ledger == nullptr) return progress;
  const bool is_mere_remark = progress.message() == ledger->stored().begun_anew() ||
                              progress.message() == board_.SearchNoteOf(progress.job());
  if (!progress.message().empty() && !is_mere_remark) return progress;
  std::vector<std::string> waiting_for, standing;
  for (const std::string& text : TargetsOf(progress)) {
    const absl::StatusOr<Target> target = ParseTarget(text);
    if (!target.ok()) continue;
    const std::string standstill =
        dispatcher_.StandstillOf(*target, ProtocolOf(ledger->plan().spec, *target));
    const std::string missing = MissingWorker(dispatcher_, *ledger, *target, text);
    if (!missing.empty()) waiting_for.push_back(missing);
    if (!standstill.empty()) standing.push_back(standstill);
  }
  if (!standing.empty())
    progress.set_message(absl::StrCat("nothing is measured: ", absl::StrJoin(standing, "; ")));
  if (!waiting_for.empty()) {
    progress.set_message(
        absl::StrCat("waiting for a worker that can run ", absl::StrJoin(waiting_for, ", and for one for ")));
  }
  return progress;
}

JobReply Coordinator::Explaining(const JobReply& reply) const {
  return [this, reply](absl::StatusOr<v1::JobProgress> progress) {
    reply(progress.ok() ? Explained(*std::move(progress)) : std::move(progress));
  };
}

void Coordinator::Submit(const v1::SubmitJobRequest& request, const JobReply& reply) {
  jobs().Submit(request, Explaining([this, reply](absl::StatusOr<v1::JobProgress> progress) {
                  if (progress.ok()) Tell("job.submitted", progress->job());
                  reply(std::move(progress));
                }));
}

void Coordinator::Tell(const char* event, const std::string& job) const {
  if (!log_) return;
  Event told(event, "");
  told.job = job;
  log_(told);
}

void Coordinator::Update(const v1::UpdateJobRequest& request, const JobReply& reply) {
  jobs().Update(request, Explaining(reply));
}

void Coordinator::Show(const std::string& job, const JobReply& reply) const {
  board_.admission().listing().Show(job, Explaining(reply));
}

void Coordinator::Best(const v1::BestRequest& request, const Reply<v1::BestResponse>& reply) const {
  ReadLog(
      read_, [request](TuningLog* log) { return ReadBest(request, *log); },
      [reply](absl::StatusOr<v1::BestResponse> best) { reply(std::move(best)); });
}

Overview Coordinator::Overview() const {
  mycc::Overview overview;
  overview.running_jobs = static_cast<int64_t>(board_.num_running());
  overview.waiting_jobs = static_cast<int64_t>(board_.admission().num_waiting());
  overview.waiting_trials = queue_.waiting();
  overview.leased_trials = queue_.leased();
  overview.lines = queue_.ListLines(kMostListed);
  overview.leases = queue_.ListLeases(kMostListed, time_->Seconds());
  for (QueueLease& lease : overview.leases) lease.holder = dispatcher_.WorkerOf(lease.holder);
  overview.devices = dispatcher_.Devices();
  overview.trouble = board_.log_gone().ok() ? trouble_ : std::string(board_.log_gone().message());
  overview.counters = dispatcher_.counters();
  overview.counters.search_crashes = board_.search_crashes();
  return overview;
}

}  // namespace mycc
