#include "worker/build_pool.h"

#include "proto/utf8.h"
#include "worker/host_lock.h"
#include "worker/internal_commands.h"
#include "worker/nursery.h"

namespace mycc {
namespace {

BuildOutcome Build(Nursery& nursery, const v1::BuildRequest& request, const BuildLimits& limits) {
  v1::NurseryRequest call;
  call.set_payload(request.SerializeAsString());
  call.set_wall_seconds(limits.wall_seconds);
  call.set_cpu_seconds(limits.wall_seconds);
  call.set_address_space_bytes(limits.address_space_bytes);
  call.set_file_bytes(limits.file_bytes);
  const HostLock quiet_for_others(HostLock::Mode::kWorking);
  const absl::StatusOr<v1::NurseryReply> reply = nursery.Call(call);
  BuildOutcome outcome;
  if (!reply.ok()) {
    outcome.ending = EndingOf(Phase::kBuild, reply.status());
    return outcome;
  }
  outcome.seconds = reply->seconds();
  if (!reply->answered() || !outcome.built.ParseFromString(reply->payload())) {
    outcome.ending = EndingOf(Phase::kBuild, *reply, limits.wall_seconds);
  } else if (!outcome.built.error().empty()) {
    outcome.ending = {v1::MEASURE_STATUS_BUILD_ERROR, outcome.built.error()};
  }
  return outcome;
}

}  // namespace

BuildPool::BuildPool(int builders, BuildLimits limits) : limits_(limits) {
  for (int i = 0; i < builders; ++i) builders_.emplace_back([this] { RunBuilder(); });
}

BuildPool::~BuildPool() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& builder : builders_) builder.join();
}

void BuildPool::RunBuilder() {
  Nursery nursery(kBuildCommand);
  mutex_.Lock();
  while (true) {
    while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
    if (queue_.empty()) break;
    const Work work = queue_.front();
    queue_.pop_front();
    mutex_.Unlock();
    BuildOutcome outcome = Build(nursery, *work.request, limits_);
    mutex_.Lock();
    *work.outcome = std::move(outcome);
    if (--*work.open == 0) changed_.NotifyAll();
  }
  mutex_.Unlock();
}

std::vector<BuildOutcome> BuildPool::BuildAll(const std::vector<v1::BuildRequest>& requests) {
  std::vector<BuildOutcome> outcomes(requests.size());
  int open = static_cast<int>(requests.size());
  const MutexLock lock(&mutex_);
  for (size_t i = 0; i < requests.size(); ++i) queue_.push_back({&requests[i], &outcomes[i], &open});
  changed_.NotifyAll();
  while (open > 0) changed_.Wait(&mutex_);
  return outcomes;
}

}  // namespace mycc
