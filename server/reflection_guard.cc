#include "server/reflection_guard.h"

#include "absl/strings/match.h"

namespace mycc {
namespace {

class CancelsStrangers final : public grpc::experimental::Interceptor {
 public:
  CancelsStrangers(const CallGate* gate, grpc::ServerContextBase* context) : gate_(gate), context_(context) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      const absl::StatusOr<Caller> caller = gate_->CallerOf(*context_);
      // An interceptor cannot give a call a status of its own.
      if (!caller.ok() || !CheckRole(*caller, "reflection", Role::kRead).ok()) context_->TryCancel();
    }
    methods->Proceed();
  }

 private:
  const CallGate* const gate_;
  grpc::ServerContextBase* const context_;
};

class GuardFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit GuardFactory(const CallGate* gate) : gate_(gate) {}

  // None for other calls.
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    if (!absl::StartsWith(info->method(), "/grpc.reflection.")) return nullptr;
    return new CancelsStrangers(gate_, info->server_context());
  }

 private:
  const CallGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionGuard(const CallGate* gate) {
  return std::make_unique<GuardFactory>(gate);
}

}  // namespace mycc
