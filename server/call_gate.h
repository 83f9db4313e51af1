// Stands before every call: says who calls, refuses what the caller may not do or sends too much of, and ends
// a call that waits when its caller's access is revoked meanwhile. A call is either admitted, and then
// answered once by whoever handles it, or refused here.
//
//   call -> caller (access_files.h, peer_listener.h) -> role (access.h) -> limits (call_limits.h,
//   call_ledger.h)
//        -> handler
//
// Thread rule: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "proto/certificates.h"
#include "proto/grpc_status.h"
#include "server/access.h"
#include "server/access_files.h"
#include "server/open_calls.h"
#include "server/peer_listener.h"
#include "server/reply.h"

namespace mycc {

class CallGate {
 public:
  struct Options {
    // Nobody is asked for anything.
    bool open = false;
    CallBounds bounds;
  };
  // `listener` knows the users behind connections; null where none does. All must outlive the calls.
  CallGate(Options options, const AccessFiles* files, const PeerListener* listener);

  // Admits the call `name` ("Lease") and starts it, or refuses it. `start` gets a function that answers.
  template <typename Response>
  grpc::ServerUnaryReactor* Answer(
      const std::string& name, grpc::CallbackServerContext* context, const google::protobuf::Message& request,
      Response* response,
      const std::function<void(const std::shared_ptr<OpenCall>&, Reply<Response>)>& start) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    absl::StatusOr<std::shared_ptr<OpenCall>> call = Enter(name, context, reactor, request);
    if (!call.ok()) {
      reactor->Finish(ToGrpc(call.status()));
      return reactor;
    }
    if (*call == nullptr) return reactor;  // ended already
    start(*call, [this, call = *call, response](absl::StatusOr<Response> answer) {
      if (!call->Claim()) return;  // it was ended when its caller's access was
      const absl::Status status = answer.status();
      if (status.ok()) *response = *std::move(answer);
      calls_.End(*call);
      call->Finish(status);
    });
    return reactor;
  }

  // Looks at all calls under way again, after the files have changed.
  void CheckAgain() { calls_.CheckAgain(); }

  // The caller and its role for something that is no call of ours.
  absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context) const;

  CallLedger& ledger() { return calls_.ledger(); }

 private:
  // A client's certificate, and whether the authority of now has signed it.
  struct Verified {
    CertificateFacts facts;
    absl::Status status;
    uint64_t version = 0;  // of the texts of TLS
    double at_seconds = 0;
  };

  // Null: the call was admitted, and ended because its caller's access was, in the same moment.
  absl::StatusOr<std::shared_ptr<OpenCall>> Enter(const std::string& name,
                                                  grpc::CallbackServerContext* context,
                                                  grpc::ServerUnaryReactor* reactor,
                                                  const google::protobuf::Message& request);
  absl::StatusOr<Shown> ShownBy(const grpc::ServerContextBase& context) const;
  absl::Status ReadClientCertificate(const grpc::AuthContext& peer, Shown* shown) const;

  const Options options_;
  const AccessFiles* const files_;
  const PeerListener* const listener_;
  OpenCalls calls_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Verified> certificates_ ABSL_GUARDED_BY(mutex_);  // by their chains in PEM
};

}  // namespace mycc
