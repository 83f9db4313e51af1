// Runs a job's search in a process of its own, so that a failed check, a signal, exhausted memory or an
// endless loop there costs that job its search and affects nothing else.
//
//   server: SearchProcess --request--> child: this program's hidden command (search_child.h)
//                         <---reply---
//
// Thread rule: thread-compatible; the thread that starts one outlives it, since the child dies with that
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "process/child.h"
#include "proto/search.pb.h"
#include "server/job_search.h"
#include "server/search_cores.h"

namespace mycc {

struct SearchProcessOptions {
  // The address space beyond what the program takes by itself: for the job, and for each of its tasks. A
  // task's space and its population take some megabytes, and each of its trials some kilobytes.
  int64_t memory_bytes = int64_t{2} << 30;
  int64_t task_memory_bytes = int64_t{64} << 20;
  double answer_seconds = 600;  // for any one request
  // The processors of all searches together; null: each search has one.
  std::shared_ptr<SearchCores> cores = nullptr;
};

class SearchProcess final : public JobSearch {
 public:
  // See StartSearch.
  static absl::StatusOr<std::unique_ptr<JobSearch>> Start(const SearchProcessOptions& options,
                                                          const SearchStart& start);

  absl::StatusOr<SearchStep> Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                  uint32_t window) override;
  absl::StatusOr<ModelBytes> Models() override;

 private:
  SearchProcess(const SearchProcessOptions& options, size_t tasks);
  absl::Status Begin(const SearchStart& start);
  absl::StatusOr<v1::SearchReply> Call(const v1::SearchRequest& request);
  // Ends the child if it still runs, and says how it ended.
  absl::Status Crashed(const absl::Status& lost, int64_t memory_kills_before);

  const SearchProcessOptions options_;
  const int64_t memory_bytes_;
  Child child_;
};

}  // namespace mycc
