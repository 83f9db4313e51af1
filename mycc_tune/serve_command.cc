// `mycc-tune serve` and `worker`: run until SIGINT or SIGTERM.
#include <cstdlib>
#include <future>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/thread_probe.h"

namespace mycc {

absl::Status ServeCommand(const ServeOptions& options, std::ostream& out) {
  ServingOptions serving;
  serving.log = options.log;
  serving.listen = options.listen;
  serving.coordinator.dispatch.lease_seconds = options.lease_seconds;
  serving.coordinator.jobs.most_searches = options.most_searches;
  serving.search.memory_bytes = static_cast<int64_t>(options.search_memory_gib * (int64_t{1} << 30));
  Mutex mutex;  // of `out`
  const auto say = [&mutex, &out](const std::string& line) {
    const MutexLock lock(&mutex);
    out << line << std::endl;
  };
  serving.coordinator.dispatch.log = say;
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Serving> server, Serving::Start(serving));
  say(absl::StrCat("serving ", options.log, " on ", server->address()));
  std::promise<void> interrupted;
  const InterruptWatch watch([&interrupted](int nth) {
    if (nth == 1) interrupted.set_value();
  });
  interrupted.get_future().wait();
  say("stopping; unfinished jobs continue with the next start");
  return absl::OkStatus();
}

absl::Status WorkerCommand(LocalWorkerOptions options, std::ostream& out) {
  options.log = [&out](const std::string& line) { out << line << std::endl; };
  MYCC_RETURN_IF_ERROR(ProbeThreads());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<LocalWorker> worker, LocalWorker::Create(options));
  const InterruptWatch watch([&worker, &out](int nth) {
    if (nth > 1) std::_Exit(1);
    out << "finishing the candidate that is being measured; another interrupt stops at once" << std::endl;
    worker->Stop();
  });
  return worker->Run();
}

}  // namespace mycc
