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

std::set<std::string> TargetsOf(const v1::JobProgress& progress) {
  std::set<std::string> targets;
  for (const v1::TaskProgress& task : progress.tasks()) targets.insert(task.target());
  return targets;
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
      queue_(options.dispatch.lease_seconds),
      board_(std::move(options.jobs), log, &queue_, time, Watched(executors),
             {[this](const std::string& job) { dispatcher_.Revoke(job); },
              [this](const std::string& job) { dispatcher_.OnAdopted(job); },
              [this](const Target& code) { return dispatcher_.CountFitting(code); }}),
      dispatcher_(options.dispatch, log, &queue_, &board_, time, Watched(executors).write) {}

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
  if (status.ok()) trouble_.clear();
  if (IsPassing(status)) trouble_ = std::string(status.message());
  if (status.ok()) board_.OnLogThere();
  if (IsLogGone(status)) board_.OnLogGone(status);
}

absl::Status Coordinator::Start() {
  MYCC_RETURN_IF_ERROR(dispatcher_.Start());
  return jobs().Start();
}

void Coordinator::Tick() {
  dispatcher_.Tick();
  board_.Tick();
  dispatcher_.Serve();
}

v1::JobProgress Coordinator::Explained(v1::JobProgress progress) const {
  if (progress.state() == v1::JOB_STATE_RUNNING) {
    progress.set_trouble(trouble_.empty() ? dispatcher_.TroubleOf(progress.job()) : trouble_);
  }
  const bool has_message =
      !progress.message().empty() && progress.message() != board_.SearchNoteOf(progress.job());
  if (progress.state() != v1::JOB_STATE_RUNNING || has_message) return progress;
  std::vector<std::string> waiting_for, standing;
  for (const std::string& text : TargetsOf(progress)) {
    const absl::StatusOr<Target> target = ParseTarget(text);
    if (!target.ok()) continue;
    const std::string standstill = dispatcher_.StandstillOf(*target);
    if (!dispatcher_.AnyFits(*target)) waiting_for.push_back(text);
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
  jobs().Submit(request, Explaining(reply));
}

void Coordinator::Show(const std::string& job, const JobReply& reply) const {
  board_.admission().listing().Show(job, Explaining(reply));
}

void Coordinator::Best(const v1::BestRequest& request, const Reply<v1::BestResponse>& reply) const {
  ReadLog(
      read_, [request](TuningLog* log) { return ReadBest(request, *log); },
      [reply](absl::StatusOr<v1::BestResponse> best) { reply(std::move(best)); });
}

}  // namespace mycc
