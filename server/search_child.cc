#include "server/search_child.h"

#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "base/status.h"
#include "codegen/workload/parse.h"
#include "process/framing.h"
#include "process/limits.h"
#include "proto/measure.pb.h"

namespace mycc {
namespace {

constexpr int kChannel = 3;                        // to the server
constexpr int64_t kFileBytes = int64_t{64} << 20;  // of what it prints

v1::SearchReply ErrorReply(const absl::Status& status) {
  v1::SearchReply reply;
  reply.set_code(static_cast<int32_t>(status.code()));
  reply.set_message(std::string(status.message()));
  return reply;
}

TaskOutcomes OutcomesOf(const v1::SearchRequest::Next& next) {
  TaskOutcomes outcomes;
  for (const v1::SearchOutcome& told : next.outcomes()) {
    Outcome& outcome = outcomes[told.task()].emplace_back();
    outcome.generation = told.generation();
    outcome.index = told.index();
    if (told.has_seconds()) outcome.seconds = told.seconds();
    outcome.failure = told.failure();
  }
  return outcomes;
}

absl::StatusOr<v1::SearchReply> AnswerNext(LocalSearch* search, const v1::SearchRequest::Next& next) {
  search->SetThreads(static_cast<int>(next.threads()));
  MYCC_ASSIGN_OR_RETURN(SearchStep step,
                        search->Next(OutcomesOf(next), next.elapsed_seconds(), next.window()));
  v1::SearchReply reply;
  if (step.proposal) *reply.mutable_proposal() = *std::move(step.proposal);
  if (step.stop_reason) reply.set_stop_reason(static_cast<uint32_t>(*step.stop_reason));
  return reply;
}

}  // namespace

absl::Status SearchAnswerer::AddTask(const v1::SearchTask& task) {
  PlannedTask& planned = tasks_.emplace_back();
  MYCC_ASSIGN_OR_RETURN(planned.workload, ParseWorkload(task.workload(), "the job"));
  MYCC_ASSIGN_OR_RETURN(planned.target, ParseTarget(task.target()));
  planned.key.workload = task.workload();
  planned.key.workload_hash = task.workload_hash();
  planned.key.shape_erased_hash = task.shape_erased_hash();
  planned.key.target = task.target();
  planned.count = task.stored().count();
  planned.weight = WeightOf(task.stored());
  stored_.push_back(task.stored());
  return absl::OkStatus();
}

absl::StatusOr<LocalSearch*> SearchAnswerer::Search() {
  if (search_ == nullptr) {
    MYCC_ASSIGN_OR_RETURN(search_, LocalSearch::Create(job_, tasks_, stored_, models_));
    models_.clear();
  }
  return search_.get();
}

absl::StatusOr<v1::SearchReply> SearchAnswerer::AnswerModels(const v1::SearchRequest::Models& asked) {
  if (asked.after().empty()) {
    search_->SetThreads(static_cast<int>(asked.threads()));
    MYCC_ASSIGN_OR_RETURN(models_, search_->Models());
  }
  v1::SearchReply reply;
  const auto next = models_.upper_bound(asked.after());
  if (next != models_.end()) (*reply.mutable_models())[next->first] = next->second;
  return reply;
}

v1::SearchReply SearchAnswerer::Answer(const v1::SearchRequest& request) {
  if (request.has_create()) {
    if (request.create().has_job()) job_ = request.create().job();
    models_.insert(request.create().models().begin(), request.create().models().end());
    return v1::SearchReply();
  }
  if (request.has_task()) return ErrorReply(AddTask(request.task()));
  const absl::StatusOr<LocalSearch*> search = Search();
  if (!search.ok()) return ErrorReply(search.status());
  if (request.has_restore()) return ErrorReply((*search)->Restore(request.restore()));
  const absl::StatusOr<v1::SearchReply> reply =
      request.has_next() ? AnswerNext(*search, request.next()) : AnswerModels(request.models());
  return reply.ok() ? *reply : ErrorReply(reply.status());
}

std::optional<int> RunSearchChild(int argc, char** argv, AnswerSearch answer) {
  if (argc != 4 || std::string(argv[1]) != kSearchCommand) return std::nullopt;
  v1::ForkRequest limits;
  limits.set_address_space_bytes(std::atoll(argv[3]));
  limits.set_file_bytes(kFileBytes);
  ConfineSelf(std::atoi(argv[2]), limits);
  SearchAnswerer answerer;
  if (answer == nullptr) answer = [&answerer](const auto& request) { return answerer.Answer(request); };
  while (true) {
    const absl::StatusOr<std::string> bytes = ReadMessage(kChannel);
    if (!bytes.ok()) return absl::IsUnavailable(bytes.status()) ? 0 : 1;
    v1::SearchRequest request;
    if (!request.ParseFromString(*bytes)) return 1;
    if (!WriteMessage(kChannel, answer(request).SerializeAsString()).ok()) return 1;
  }
}

}  // namespace mycc
