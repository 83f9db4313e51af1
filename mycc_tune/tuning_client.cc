#include "mycc_tune/tuning_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "mycc_tune/thread_probe.h"
#include "proto/server_facts.h"
#include "proto/tuning.grpc.pb.h"

namespace mycc {
namespace {

constexpr double kCallSeconds = 30;

}  // namespace

std::string ServerWords(const ServerAddress& address) {
  std::string words = absl::StrCat(" --server ", address.address);
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&words, " ", option, " ", value);
  };
  add("--credentials", address.credentials);
  add("--tls-ca", address.tls_ca_file);
  add("--token-file", address.token_file);
  add("--tls-cert", address.tls_cert_file);
  add("--tls-key", address.tls_key_file);
  return words;
}

struct TuningClient::Impl {
  explicit Impl(ServerChannel opened)
      : channel(std::move(opened)), stub(v1::TuningService::NewStub(channel.channel())) {}

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::TuningService::Stub::*method)(grpc::ClientContext*,
                                                                                const Request&, Response*),
                                const Request& request, double wait_seconds = 0) {
    grpc::ClientContext context;
    channel.Prepare(&context, wait_seconds + kCallSeconds);
    Response response;
    const absl::Status status = channel.StatusOf(((*stub).*method)(&context, request, &response));
    KeepCaller(context);
    if (status.ok()) return response;
    if (!absl::IsUnavailable(status)) return status;
    return absl::UnavailableError(
        absl::StrCat("no server answers at ", channel.address(), ": ", status.message()));
  }

  void KeepCaller(const grpc::ClientContext& context) {
    const auto& facts = context.GetServerInitialMetadata();
    const auto named = facts.find(kCallerMetadata);
    if (named == facts.end()) return;
    const MutexLock lock(&mutex);
    caller.assign(named->second.data(), named->second.size());
  }

  const ServerChannel channel;
  const std::unique_ptr<v1::TuningService::Stub> stub;
  Mutex mutex;
  std::string caller ABSL_GUARDED_BY(mutex);
};

TuningClient::TuningClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TuningClient::~TuningClient() = default;

absl::StatusOr<std::unique_ptr<TuningClient>> TuningClient::Connect(const ServerAddress& address) {
  MYCC_RETURN_IF_ERROR(ProbeThreads());
  MYCC_ASSIGN_OR_RETURN(ServerChannel channel, ServerChannel::Open(address));
  return std::unique_ptr<TuningClient>(new TuningClient(std::make_unique<Impl>(std::move(channel))));
}

absl::StatusOr<v1::JobProgress> TuningClient::Submit(const v1::SubmitJobRequest& request) {
  MYCC_ASSIGN_OR_RETURN(v1::SubmitJobResponse response,
                        impl_->Call(&v1::TuningService::Stub::SubmitJob, request));
  return std::move(*response.mutable_progress());
}

absl::StatusOr<std::vector<v1::JobProgress>> TuningClient::ListJobs(uint32_t limit) {
  v1::ListJobsRequest request;
  request.set_limit(limit);
  MYCC_ASSIGN_OR_RETURN(const v1::ListJobsResponse response,
                        impl_->Call(&v1::TuningService::Stub::ListJobs, request));
  return std::vector<v1::JobProgress>(response.jobs().begin(), response.jobs().end());
}

absl::StatusOr<v1::JobProgress> TuningClient::Watch(const std::string& job, uint64_t seen_revision,
                                                    double wait_seconds, const std::string& client) {
  v1::WatchJobRequest request;
  request.set_job(job);
  request.set_seen_revision(seen_revision);
  request.set_wait_seconds(wait_seconds);
  request.set_client(client);
  MYCC_ASSIGN_OR_RETURN(v1::WatchJobResponse response,
                        impl_->Call(&v1::TuningService::Stub::WatchJob, request, wait_seconds));
  return std::move(*response.mutable_progress());
}

absl::StatusOr<v1::JobProgress> TuningClient::Leave(const std::string& job, const std::string& client) {
  v1::LeaveJobRequest request;
  request.set_job(job);
  request.set_client(client);
  MYCC_ASSIGN_OR_RETURN(v1::LeaveJobResponse response,
                        impl_->Call(&v1::TuningService::Stub::LeaveJob, request));
  return std::move(*response.mutable_progress());
}

absl::StatusOr<v1::JobProgress> TuningClient::Cancel(const std::string& job, const std::string& by) {
  v1::CancelJobRequest request;
  request.set_job(job);
  request.set_by(by);
  MYCC_ASSIGN_OR_RETURN(v1::CancelJobResponse response,
                        impl_->Call(&v1::TuningService::Stub::CancelJob, request));
  return std::move(*response.mutable_progress());
}

absl::StatusOr<v1::JobProgress> TuningClient::Update(const v1::UpdateJobRequest& request) {
  MYCC_ASSIGN_OR_RETURN(v1::UpdateJobResponse response,
                        impl_->Call(&v1::TuningService::Stub::UpdateJob, request));
  return std::move(*response.mutable_progress());
}

absl::StatusOr<std::vector<v1::OwnerStatus>> TuningClient::ListOwners() {
  MYCC_ASSIGN_OR_RETURN(const v1::ListOwnersResponse response,
                        impl_->Call(&v1::TuningService::Stub::ListOwners, v1::ListOwnersRequest()));
  return std::vector<v1::OwnerStatus>(response.owners().begin(), response.owners().end());
}

absl::StatusOr<std::vector<v1::DeviceStatus>> TuningClient::ListDevices() {
  MYCC_ASSIGN_OR_RETURN(const v1::ListDevicesResponse response,
                        impl_->Call(&v1::TuningService::Stub::ListDevices, v1::ListDevicesRequest()));
  return std::vector<v1::DeviceStatus>(response.devices().begin(), response.devices().end());
}

std::string TuningClient::caller() const {
  const MutexLock lock(&impl_->mutex);
  return impl_->caller;
}

absl::StatusOr<v1::BestResponse> TuningClient::Best(const v1::BestRequest& request) {
  return impl_->Call(&v1::TuningService::Stub::Best, request);
}

}  // namespace mycc
