// The main function of the process that searches for a job, the other side of search_process.h. Thread rule:
// called first in main, before any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "proto/search.pb.h"
#include "server/job_plan.h"
#include "server/local_search.h"

namespace mycc {

inline constexpr char kSearchCommand[] = "internal-search";

// A search that is built and asked by messages.
class SearchAnswerer {
 public:
  v1::SearchReply Answer(const v1::SearchRequest& request);

 private:
  absl::Status AddTask(const v1::SearchTask& task);
  // REQUIRES: there is a search.
  absl::StatusOr<v1::SearchReply> AnswerModels(const v1::SearchRequest::Models& asked);
  // Built when the tasks are all there: before the first proposal.
  absl::StatusOr<LocalSearch*> Search();

  v1::StoredJob job_;
  ModelBytes models_;  // those of earlier jobs until the search is built, then its own
  std::vector<PlannedTask> tasks_;
  std::vector<v1::StoredTask> stored_;
  std::unique_ptr<LocalSearch> search_;
};

// Runs the hidden command, if `argv` names it, until the server ends it, and returns the program's exit code.
// Nullopt: it names another. `answer` is a SearchAnswerer's, unless a test has its own.
using AnswerSearch = std::function<v1::SearchReply(const v1::SearchRequest&)>;
std::optional<int> RunSearchChild(int argc, char** argv, AnswerSearch answer = nullptr);

}  // namespace mycc
