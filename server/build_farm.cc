#include "server/build_farm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/executors.h"

namespace mycc {

BuildFarm::BuildFarm(const BuildFarmOptions& options, const Around& around)
    : around_(around),
      store_(options.folder, options.most_bytes),
      queue_(options.lease_seconds, around.trials, around.workers),
      leasing_(&queue_, &store_, around.board, around.workers, around.tickets, around.time),
      reports_({&queue_, &store_, around.log, around.trials, around.board, around.workers, around.tickets,
                around.time, around.write, around.read, options.count_refusal}) {}

void BuildFarm::Fetch(const v1::FetchArtifactRequest& request, Reply<v1::FetchArtifactResponse> reply) {
  ReadLog(
      around_.read,
      [store = &store_, digest = request.digest()](TuningLog*) -> absl::StatusOr<std::string> {
        absl::StatusOr<std::string> bytes = store->Get(digest);
        // NotFound would mean that the session is unknown.
        if (absl::IsNotFound(bytes.status())) return absl::FailedPreconditionError(bytes.status().message());
        return bytes;
      },
      [reply = std::move(reply)](absl::StatusOr<std::string> bytes) {
        if (!bytes.ok()) return reply(bytes.status());
        v1::FetchArtifactResponse response;
        response.set_artifact(*std::move(bytes));
        reply(std::move(response));
      });
}

void BuildFarm::AddArtifacts(v1::Assignment* assignment) const {
  assignment->set_artifact(store_.Find(CandidateOf(*assignment)));
  std::vector<std::string> rivals;
  for (const std::string& rival : assignment->rivals())
    rivals.push_back(
        store_.Find(ArtifactStore::CandidateOf(assignment->workload(), assignment->target(), rival)));
  const bool any = std::ranges::any_of(rivals, [](const auto& digest) { return !digest.empty(); });
  if (any) assignment->mutable_rival_artifacts()->Add(rivals.begin(), rivals.end());
}

bool BuildFarm::IsBuildDoubted(const QueuedWork& trial, v1::MeasureStatus status) const {
  if (trial.built_by.empty() || status == v1::MEASURE_STATUS_OK) return false;
  const WorkerTable::Builder* const builder = around_.workers->FindBuilder(trial.built_by);
  return builder == nullptr || !builder->code.is_believed();
}

void BuildFarm::OnMeasured(const QueuedWork& trial, v1::MeasureStatus status) {
  const double now = around_.time->Seconds();
  if (WorkerTable::Builder* const builder = around_.workers->FindBuilder(trial.built_by)) {
    v1::MeasureResult outcome;
    outcome.set_status(status);
    builder->code.OnResult(outcome, /*has_rival=*/true, now);
  }
  WorkerTable::Builder* const doubted = around_.workers->FindBuilder(trial.doubted_builder);
  if (doubted == nullptr) return;
  if (status == v1::MEASURE_STATUS_OK) {
    doubted->code.OnRefuted(
        absl::StrCat("what it built failed, and did not when it was built elsewhere; the last: ", trial.name),
        now);
  } else {
    doubted->code.OnConfirmed();
  }
}

}  // namespace mycc
