// The calls of clients. A job is its owner's to end and to change, or an admin's.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/version.h"
#include "proto/server_facts.h"
#include "proto/tuning.grpc.pb.h"
#include "server/services.h"

namespace mycc {
namespace {

using ClientCall = std::shared_ptr<OpenCall>;

// For `mycc-tune doctor`.
void TellFacts(grpc::CallbackServerContext* context) {
  context->AddInitialMetadata(kVersionMetadata, ProgramVersion());
  context->AddInitialMetadata(kTimeMetadata, absl::StrCat(SystemUnixMicros()));
}

// For `mycc-tune jobs --mine`: a caller need not have the name of the user who runs the program.
void TellCaller(const ClientCall& call, grpc::CallbackServerContext* context) {
  if (!call->caller().name.empty()) context->AddInitialMetadata(kCallerMetadata, call->caller().name);
}

IsAlive AliveWhile(const ClientCall& call) {
  return [call] { return call->IsAlive(); };
}

class TuningServiceImpl final : public v1::TuningService::CallbackService {
 public:
  TuningServiceImpl(ServerLoop* loop, CallGate* gate) : loop_(loop), gate_(gate) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override {
    return gate_->Answer<v1::SubmitJobResponse>("SubmitJob", context, *request, response,
                                                [&](const ClientCall& call, auto reply) {
                                                  v1::SubmitJobRequest owned = *request;
                                                  if (!call->caller().name.empty())
                                                    owned.set_owner(call->caller().name);
                                                  loop_->SubmitJob(std::move(owned), reply);
                                                });
  }
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return gate_->Answer<v1::ListJobsResponse>("ListJobs", context, *request, response,
                                               [&](const ClientCall& call, auto reply) {
                                                 TellCaller(call, context);
                                                 loop_->ListJobs(*request, reply);
                                               });
  }
  grpc::ServerUnaryReactor* WatchJob(grpc::CallbackServerContext* context, const v1::WatchJobRequest* request,
                                     v1::WatchJobResponse* response) override {
    return gate_->Answer<v1::WatchJobResponse>(
        "WatchJob", context, *request, response,
        [&](const ClientCall& call, Reply<v1::WatchJobResponse> reply) {
          // One who waits for a job keeps it running.
          const absl::Status may_wait = request->client().empty()
                                            ? absl::OkStatus()
                                            : CheckRole(call->caller(), "waiting for a job", Role::kSubmit);
          if (!may_wait.ok()) return reply(may_wait);
          loop_->WatchJob(*request, AliveWhile(call), reply);
        });
  }
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override {
    return gate_->Answer<v1::CancelJobResponse>(
        "CancelJob", context, *request, response,
        [&](const ClientCall& call, Reply<v1::CancelJobResponse> reply) {
          v1::CancelJobRequest named = *request;
          if (!call->caller().name.empty()) named.set_by(call->caller().name);
          ForOwner<v1::CancelJobResponse>(call, request->job(), "cancelling", reply,
                                          [this, named, reply] { loop_->CancelJob(named, reply); });
        });
  }
  grpc::ServerUnaryReactor* LeaveJob(grpc::CallbackServerContext* context, const v1::LeaveJobRequest* request,
                                     v1::LeaveJobResponse* response) override {
    return gate_->Answer<v1::LeaveJobResponse>(
        "LeaveJob", context, *request, response,
        [&](const ClientCall& call, Reply<v1::LeaveJobResponse> reply) { Leave(call, *request, reply); });
  }
  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* context,
                                      const v1::UpdateJobRequest* request,
                                      v1::UpdateJobResponse* response) override {
    return gate_->Answer<v1::UpdateJobResponse>(
        "UpdateJob", context, *request, response,
        [&](const ClientCall& call, Reply<v1::UpdateJobResponse> reply) {
          ForOwner<v1::UpdateJobResponse>(
              call, request->job(), "changing", reply,
              [this, request = *request, reply] { loop_->UpdateJob(request, reply); });
        });
  }
  grpc::ServerUnaryReactor* ListOwners(grpc::CallbackServerContext* context,
                                       const v1::ListOwnersRequest* request,
                                       v1::ListOwnersResponse* response) override {
    return gate_->Answer<v1::ListOwnersResponse>("ListOwners", context, *request, response,
                                                 [&](const ClientCall& call, auto reply) {
                                                   TellCaller(call, context);
                                                   loop_->ListOwners(*request, reply);
                                                 });
  }
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesResponse* response) override {
    return gate_->Answer<v1::ListDevicesResponse>(
        "ListDevices", context, *request, response,
        [&](const ClientCall&, Reply<v1::ListDevicesResponse> reply) {
          TellFacts(context);
          loop_->ListDevices(*request, [this, reply](absl::StatusOr<v1::ListDevicesResponse> answer) {
            if (!answer.ok()) return reply(std::move(answer));
            for (v1::DeviceStatus& device : *answer->mutable_devices())
              device.set_owner(gate_->ledger().OwnerOf(device.worker()));
            reply(std::move(answer));
          });
        });
  }
  grpc::ServerUnaryReactor* Best(grpc::CallbackServerContext* context, const v1::BestRequest* request,
                                 v1::BestResponse* response) override {
    return gate_->Answer<v1::BestResponse>(
        "Best", context, *request, response,
        [&](const ClientCall&, auto reply) { loop_->Best(*request, reply); });
  }

 private:
  // An admin changes any job, a submitter their own.
  template <typename Response>
  void ForOwner(const ClientCall& call, const std::string& job, const std::string& doing,
                const Reply<Response>& reply, const std::function<void()>& change) {
    if (call->caller().roles.Allow(Role::kAdmin)) return change();
    v1::WatchJobRequest look;
    look.set_job(job);
    loop_->WatchJob(
        std::move(look), AliveWhile(call),
        [call, job, doing, reply, change](absl::StatusOr<v1::WatchJobResponse> found) {
          if (!found.ok()) return reply(found.status());
          const std::string& owner = found->progress().owner();
          if (!owner.empty() && owner == call->caller().name) return change();
          reply(absl::PermissionDeniedError(absl::StrCat(
              doing, " job ", job, " is for ", owner.empty() ? "an admin" : owner + " or an admin", "; ",
              call->caller().name, " has ", call->caller().roles.Words())));
        });
  }

  // The last one to leave a job cancels it, where it is their own. Another's goes on: nobody ends a job by
  // waiting for it for a moment.
  void Leave(const ClientCall& call, const v1::LeaveJobRequest& request,
             const Reply<v1::LeaveJobResponse>& reply) {
    if (call->caller().roles.Allow(Role::kAdmin)) return loop_->LeaveJob(request, reply);
    v1::WatchJobRequest look;
    look.set_job(request.job());
    loop_->WatchJob(std::move(look), AliveWhile(call),
                    [this, call, request, reply](absl::StatusOr<v1::WatchJobResponse> found) {
                      if (!found.ok()) return reply(found.status());
                      if (found->progress().owner() == call->caller().name)
                        return loop_->LeaveJob(request, reply);
                      v1::LeaveJobResponse response;
                      *response.mutable_progress() = std::move(*found->mutable_progress());
                      reply(std::move(response));
                    });
  }

  ServerLoop* const loop_;
  CallGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTuningService(ServerLoop* loop, CallGate* gate) {
  return std::make_unique<TuningServiceImpl>(loop, gate);
}

}  // namespace mycc
