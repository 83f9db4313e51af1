#include "server/search_process.h"

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "process/limits.h"
#include "server/search_child.h"

namespace mycc {
namespace {

constexpr double kEndSeconds = 5;  // for a process that closed its end to be gone
// The address space that a thread takes by itself: its stack, and what the allocator reserves for it.
constexpr int64_t kThreadBytes = int64_t{144} << 20;

int64_t ThreadsBytes(const SearchProcessOptions& options) {
  return options.cores == nullptr ? 0 : (options.cores->most_of_call() - 1) * kThreadBytes;
}

std::string Gibibytes(int64_t bytes) {
  return absl::StrCat(static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30), " GiB");
}

// The last line that the process printed: what a failed check or an allocator says before it aborts.
std::string LastLine(const std::string& output) {
  const std::vector<std::string> lines = absl::StrSplit(absl::StripTrailingAsciiWhitespace(output), '\n');
  return lines.back();
}

}  // namespace

SearchProcess::SearchProcess(const SearchProcessOptions& options, size_t tasks)
    : options_(options),
      memory_bytes_(options.memory_bytes + static_cast<int64_t>(tasks) * options.task_memory_bytes +
                    ThreadsBytes(options)),
      child_({.command = kSearchCommand,
              .arguments = {absl::StrCat(memory_bytes_)},
              .environment = {},
              .keeps_output = true}) {}

absl::StatusOr<std::unique_ptr<JobSearch>> SearchProcess::Start(const SearchProcessOptions& options,
                                                                const SearchStart& start) {
  std::unique_ptr<SearchProcess> search(new SearchProcess(options, start.tasks->size()));
  MYCC_RETURN_IF_ERROR(search->child_.Start());
  MYCC_RETURN_IF_ERROR(search->Begin(start));
  return std::unique_ptr<JobSearch>(std::move(search));
}

absl::Status SearchProcess::Begin(const SearchStart& start) {
  v1::SearchRequest request;
  *request.mutable_create()->mutable_job() = *start.job;
  // Each task says its own.
  request.mutable_create()->mutable_job()->mutable_spec()->clear_tasks();
  MYCC_RETURN_IF_ERROR(Call(request).status());
  for (const auto& [kind, bytes] : start.models) {
    request.mutable_create()->Clear();
    (*request.mutable_create()->mutable_models())[kind] = bytes;
    MYCC_RETURN_IF_ERROR(Call(request).status());
  }
  for (size_t i = 0; i < start.tasks->size(); ++i) {
    const KeyText& key = (*start.tasks)[i].key;
    v1::SearchTask& task = *request.mutable_task();
    task.set_workload(key.workload);
    task.set_workload_hash(key.workload_hash);
    task.set_shape_erased_hash(key.shape_erased_hash);
    task.set_target(key.target);
    *task.mutable_stored() = (*start.stored_tasks)[i];
    MYCC_RETURN_IF_ERROR(Call(request).status());
  }
  for (const v1::Proposal& proposal : start.proposals) {
    *request.mutable_restore() = proposal;
    MYCC_RETURN_IF_ERROR(Call(request).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<SearchStep> SearchProcess::Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                               uint32_t window) {
  v1::SearchRequest request;
  v1::SearchRequest::Next& next = *request.mutable_next();
  next.set_elapsed_seconds(elapsed_seconds);
  next.set_window(window);
  std::optional<SearchCores::Lease> lease;
  if (options_.cores != nullptr)
    next.set_threads(static_cast<uint32_t>(lease.emplace(options_.cores.get()).count()));
  for (const auto& [task, of_task] : outcomes) {
    for (const Outcome& outcome : of_task) {
      v1::SearchOutcome& told = *next.add_outcomes();
      told.set_task(task);
      told.set_generation(outcome.generation);
      told.set_index(outcome.index);
      if (outcome.seconds) told.set_seconds(*outcome.seconds);
      told.set_failure(outcome.failure);
    }
  }
  MYCC_ASSIGN_OR_RETURN(v1::SearchReply reply, Call(request));
  if (reply.has_proposal()) return SearchStep{std::move(*reply.mutable_proposal()), std::nullopt};
  return SearchStep{std::nullopt, static_cast<StopReason>(reply.stop_reason())};
}

absl::StatusOr<ModelBytes> SearchProcess::Models() {
  ModelBytes models;
  v1::SearchRequest request;
  std::optional<SearchCores::Lease> lease;
  if (options_.cores != nullptr)
    request.mutable_models()->set_threads(static_cast<uint32_t>(lease.emplace(options_.cores.get()).count()));
  while (true) {
    request.mutable_models()->set_after(models.empty() ? "" : models.rbegin()->first);
    MYCC_ASSIGN_OR_RETURN(const v1::SearchReply reply, Call(request));
    if (reply.models().empty()) return models;
    models.insert(reply.models().begin(), reply.models().end());
  }
}

absl::StatusOr<v1::SearchReply> SearchProcess::Call(const v1::SearchRequest& request) {
  const int64_t memory_kills = MemoryKills();
  const Deadline deadline = After(options_.answer_seconds);
  absl::Status lost = child_.pid() == 0 ? absl::UnavailableError("it has ended")
                                        : child_.Write(request.SerializeAsString(), deadline);
  if (absl::IsInvalidArgument(lost)) return lost;  // too long to be sent
  if (lost.ok()) {
    const absl::StatusOr<std::string> answer = child_.Read(deadline);
    v1::SearchReply reply;
    if (answer.ok() && reply.ParseFromString(*answer)) {
      if (reply.code() == 0) return reply;
      return absl::Status(static_cast<absl::StatusCode>(reply.code()), reply.message());
    }
    lost = answer.ok() ? absl::DataLossError("its answer does not parse") : answer.status();
  }
  return Crashed(lost, memory_kills);
}

absl::Status SearchProcess::Crashed(const absl::Status& lost, int64_t memory_kills_before) {
  std::string how = std::string(lost.message());
  if (absl::IsDeadlineExceeded(lost)) {
    how = absl::StrCat("it did not answer within ", options_.answer_seconds, " s");
  } else if (const std::optional<int> status = child_.Reap(kEndSeconds)) {
    const std::string said = LastLine(child_.Output());
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == kExitOutOfMemory) {
      how = absl::StrCat("it ran out of its ", Gibibytes(memory_bytes_), " of memory");
    } else if (WIFEXITED(*status)) {
      how = absl::StrCat("exit status ", WEXITSTATUS(*status), said.empty() ? "" : ": ", said);
    } else if (WTERMSIG(*status) == SIGKILL && MemoryKills() > memory_kills_before) {
      how = "it was killed by the system, which had run out of memory";
    } else {
      how = absl::StrCat("signal ", WTERMSIG(*status), " (", strsignal(WTERMSIG(*status)), ")",
                         said.empty() ? "" : ": ", said);
    }
  }
  child_.Kill();
  return absl::AbortedError(absl::StrCat("the search crashed: ", how));
}

}  // namespace mycc
