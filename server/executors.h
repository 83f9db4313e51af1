// Interfaces to the threads beside the deciding thread, which do its slow work (log, search) and call back
// when it is done. Tests decide when that is. Thread rule: called on the deciding thread, and calls back on
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "db/log_readers.h"
#include "db/log_writer.h"
#include "server/job_search.h"

namespace mycc {

// Runs `work` of a job's search, elsewhere or at once, and then `done`. A job has one work at a time; those
// of different jobs may run concurrently.
using SearchExecutor = std::function<void(std::function<void()> work, std::function<void()> done)>;

// Errors that may be over later: the log is busy or full, or cannot be read or written now.
inline bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status) || absl::IsInternal(status);
}

struct Executors {
  WriteExecutor write;
  ReadExecutor read;
  SearchExecutor search;
  StartSearch start_search;  // within search work
};

// Runs `look` on the log, and calls `done` with its result.
template <typename Look, typename Done>
void ReadLog(const ReadExecutor& read, Look look, Done done) {
  using Found = std::invoke_result_t<Look, TuningLog*>;
  auto found = std::make_shared<std::optional<Found>>();
  read([found, look = std::move(look)](TuningLog* log) { found->emplace(look(log)); },
       [found, done = std::move(done)] { done(*std::move(*found)); });
}

}  // namespace mycc
