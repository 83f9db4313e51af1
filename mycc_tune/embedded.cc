#include "mycc_tune/embedded.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "mycc_tune/thread_probe.h"
#include "process/host_lock.h"

namespace mycc {
namespace {

constexpr char kEmbeddedWorker[] = "embedded";
constexpr double kReadySeconds = 10;  // to register, and to measure the device's constants
// The longest that a search keeps this host from timing.
constexpr double kQuietSeconds = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Serving>> Serving::Start(const ServingOptions& options) {
  MYCC_RETURN_IF_ERROR(ProbeThreads());
  // Before a log is made for nothing.
  MYCC_RETURN_IF_ERROR(GrpcServer::Check(options.listen));
  if (!options.http.empty()) MYCC_RETURN_IF_ERROR(WebServer::Check(options.http, options.listen));
  std::unique_ptr<Serving> serving(new Serving());
  MYCC_ASSIGN_OR_RETURN(serving->log_, TuningLog::Open(options.log, OpenMode::kServe));
  ServerLoopOptions loop;
  loop.coordinator = options.coordinator;
  SearchProcessOptions of_search = options.search;
  if (of_search.cores == nullptr) of_search.cores = std::make_shared<SearchCores>();
  loop.start_search = [search = of_search](const SearchStart& start) {
    return SearchProcess::Start(search, start);
  };
  // A worker on this host may be timing something.
  loop.around_search = [](const std::function<void()>& search) { WorkQuietly(search, kQuietSeconds); };
  serving->loop_ = std::make_unique<ServerLoop>(loop, serving->log_.get(), &SystemTime());
  MYCC_RETURN_IF_ERROR(serving->loop_->Start());
  const absl::Status listening = serving->Listen(options);
  if (listening.ok()) return serving;
  serving->Stop();
  serving->log_->Abandon();
  return listening;
}

absl::Status Serving::Listen(const ServingOptions& options) {
  MYCC_ASSIGN_OR_RETURN(grpc_, GrpcServer::Start(options.listen, loop_.get()));
  if (options.http.empty()) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(
      web_, WebServer::Start(options.http, options.listen, &grpc_->access(), options.log, loop_.get()));
  return absl::OkStatus();
}

void Serving::Stop() {
  if (web_ != nullptr) web_->Stop();
  if (loop_ != nullptr) loop_->Stop();
  web_.reset();
  grpc_.reset();
  loop_.reset();
}

Serving::~Serving() {
  Stop();
  // The next start recovers a log that is not closed cleanly.
  if (log_ != nullptr) (void)log_->Close();
}

absl::StatusOr<std::unique_ptr<EmbeddedServer>> EmbeddedServer::Start(const std::string& log,
                                                                      std::vector<std::string> devices,
                                                                      bool measures_constants) {
  // Wherever TMPDIR is: the path of a socket must be short.
  MYCC_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::CreateIn("/tmp"));
  std::unique_ptr<EmbeddedServer> embedded(new EmbeddedServer(std::move(folder)));
  ServingOptions serving;
  serving.log = log;
  serving.listen.address = absl::StrCat("unix:", embedded->folder_.path(), "/server");
  serving.coordinator.jobs.admission.resume_all = false;
  serving.coordinator.dispatch.workers_return = false;  // the socket is a new one
  MYCC_ASSIGN_OR_RETURN(embedded->serving_, Serving::Start(serving));
  embedded->address_.address = embedded->serving_->address();
  LocalWorkerOptions worker;
  // Always the same name: leases that an embedded worker held when it was killed are given out again at once.
  worker.name = kEmbeddedWorker;
  worker.is_alone = true;
  worker.devices = std::move(devices);
  worker.measures_constants = measures_constants;
  worker.server = embedded->address_;
  MYCC_ASSIGN_OR_RETURN(embedded->worker_, LocalWorker::Create(worker));
  embedded->worker_thread_ = std::thread([worker = embedded->worker_.get()] { (void)worker->Run(); });
  // A job takes the constants that the log has when it begins. And a message that the job waits for a worker
  // is not needed: it will be there soon.
  (void)embedded->worker_->WaitUntilReady(kReadySeconds);
  return embedded;
}

void EmbeddedServer::StopWorker() {
  if (worker_ != nullptr) worker_->Stop();
  if (worker_thread_.joinable()) worker_thread_.join();
}

EmbeddedServer::~EmbeddedServer() { StopWorker(); }

}  // namespace mycc
