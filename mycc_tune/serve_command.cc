// `mycc-tune serve` and `worker`: run until SIGINT or SIGTERM.
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/file_limit.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/thread_probe.h"

namespace mycc {

namespace {

// A folder of one caller, or a path that is mistyped, is noticed here: the files' own errors do not say what
// kind of folder was expected.
absl::Status FillFrom(const std::string& credentials, ListenOptions* listen) {
  if (credentials.empty()) return absl::OkStatus();
  if (access(absl::StrCat(credentials, "/access.json").c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("--credentials: `", credentials,
                                            "` has no access.json; expected a folder that `mycc-tune auth "
                                            "init` made"));
  }
  const auto fill = [&credentials](std::string* file, const char* name) {
    if (file->empty()) *file = absl::StrCat(credentials, "/", name);
  };
  fill(&listen->tls_cert_file, "server/cert.pem");
  fill(&listen->tls_key_file, "server/key.pem");
  fill(&listen->tls_client_ca_file, "ca.pem");
  fill(&listen->access_file, "access.json");
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeCommand(const ServeOptions& options, std::ostream& out) {
  BlockInterrupts();
  RaiseFileLimit();
  ServingOptions serving;
  serving.log = options.log;
  serving.listen = options.listen;
  MYCC_RETURN_IF_ERROR(FillFrom(options.credentials, &serving.listen));
  serving.http = options.http;
  serving.coordinator.dispatch.lease_seconds = options.lease_seconds;
  serving.coordinator.jobs.most_searches = options.most_searches;
  serving.search.memory_bytes = static_cast<int64_t>(options.search_memory_gib * (int64_t{1} << 30));
  EventWriter writer(options.log_format, &out);
  const EventLog say = [&writer](const Event& event) { writer.Write(event); };
  serving.coordinator.dispatch.log = say;
  serving.coordinator.jobs.owners = {.quotas_file = options.quotas, .log = say};
  serving.listen.log = say;
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Serving> server, Serving::Start(serving));
  say(Event("server.started", absl::StrCat("serving ", options.log, " on ", server->address())));
  if (!server->url().empty()) say(Event("server.started", absl::StrCat("web page at ", server->url())));
  std::promise<void> interrupted;
  const InterruptWatch watch([&interrupted](int nth) {
    if (nth == 1) interrupted.set_value();
  });
  interrupted.get_future().wait();
  say(Event("server.stopping", "stopping; unfinished jobs continue with the next start"));
  return absl::OkStatus();
}

absl::Status WorkerCommand(LocalWorkerOptions options, LogFormat log_format, std::ostream& out) {
  BlockInterrupts();
  EventWriter writer(log_format, &out);
  options.log = [&writer](const Event& event) { writer.Write(event); };
  MYCC_RETURN_IF_ERROR(ProbeThreads());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<LocalWorker> worker, LocalWorker::Create(options));
  const InterruptWatch watch([&worker, &writer](int nth) {
    if (nth > 1) std::_Exit(1);
    writer.Write(Event("worker.stopping",
                       "finishing the candidate that is being measured; another interrupt stops at once"));
    worker->Stop();
  });
  return worker->Run();
}

}  // namespace mycc
