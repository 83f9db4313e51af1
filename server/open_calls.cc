#include "server/open_calls.h"

#include <vector>

#include "base/status.h"

namespace mycc {

bool OpenCall::IsAlive() const {
  const MutexLock lock(&mutex_);
  return !claimed_ && !line_.is_cancelled();
}

bool OpenCall::IsClaimed() const {
  const MutexLock lock(&mutex_);
  return claimed_;
}

absl::Status OpenCall::Check() const {
  const MutexLock lock(&mutex_);
  if (claimed_) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const Caller now, line_.caller());
  if (now.name == caller_.name) return CheckRole(now, name_);
  return absl::UnauthenticatedError("the credential belongs to another caller now; expected another call");
}

bool OpenCall::Claim() {
  const MutexLock lock(&mutex_);
  return !std::exchange(claimed_, true);
}

absl::StatusOr<std::shared_ptr<OpenCall>> OpenCalls::Begin(const std::string& name, const Caller& caller,
                                                           int64_t bytes, CallLine line) {
  MYCC_RETURN_IF_ERROR(ledger_.Begin(caller.name, bytes));
  auto call = std::make_shared<OpenCall>(name, caller, bytes, std::move(line));
  const MutexLock lock(&mutex_);
  calls_[call.get()] = call;
  return call;
}

void OpenCalls::End(const OpenCall& call) {
  ledger_.End(call.caller().name, call.bytes());
  const MutexLock lock(&mutex_);
  calls_.erase(&call);
}

void OpenCalls::CheckAgain() {
  std::vector<std::shared_ptr<OpenCall>> calls;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [key, call] : calls_) {
      if (std::shared_ptr<OpenCall> open = call.lock(); open != nullptr) calls.push_back(std::move(open));
    }
  }
  for (const std::shared_ptr<OpenCall>& call : calls) {
    const absl::Status status = call->Check();
    if (status.ok() || !call->Claim()) continue;
    End(*call);
    call->Finish(status);
  }
}

}  // namespace mycc
