#include "proto/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "base/mutex.h"

namespace mycc {
namespace {

Mutex mutex;
std::string first_error ABSL_GUARDED_BY(mutex);

void KeepFirst(gpr_log_func_args* args) {
  const MutexLock lock(&mutex);
  if (args->severity == GPR_LOG_SEVERITY_ERROR && first_error.empty()) first_error = args->message;
}

}  // namespace

void KeepGrpcErrors() {
  // Debian's libraries look for deadlocks of gRPC's own mutexes, under a lock that all of its threads share.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function(KeepFirst);
  const MutexLock lock(&mutex);
  first_error.clear();
}

std::string FirstGrpcError() {
  const MutexLock lock(&mutex);
  return first_error;
}

}  // namespace mycc
