#include "worker/build_pool.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "process/fork_server.h"
#include "process/host_lock.h"
#include "proto/utf8.h"
#include "worker/confined_children.h"

namespace mycc {
namespace {

constexpr int kMostWarm = 12;  // a small budget's generation and its reference, which are built at once

// Nullopt when it was not wanted any more before its turn came.
std::optional<BuildOutcome> Build(ForkServer& fork_server, const BuildWork& work, const BuildLimits& limits) {
  v1::ForkRequest call;
  call.set_payload(work.request.SerializeAsString());
  call.set_wall_seconds(limits.wall_seconds);
  call.set_cpu_seconds(limits.wall_seconds);
  call.set_address_space_bytes(limits.address_space_bytes);
  call.set_file_bytes(limits.file_bytes);
  const HostLock quiet_for_others(HostLock::Mode::kWorking, kCpuLock,
                                  [&work] { return work.is_wanted != nullptr && !work.is_wanted(); });
  if (quiet_for_others.gave_up()) return std::nullopt;
  const absl::StatusOr<v1::ForkReply> reply = fork_server.Call(call);
  BuildOutcome outcome;
  if (!reply.ok()) {
    outcome.ending = EndingOf(Phase::kBuild, reply.status());
    return outcome;
  }
  outcome.seconds = reply->seconds();
  if (!reply->answered() || !outcome.built.ParseFromString(reply->payload())) {
    outcome.ending = EndingOf(Phase::kBuild, *reply, limits.wall_seconds);
  } else if (!outcome.built.error().empty()) {
    outcome.ending = {
        outcome.built.unfit() ? v1::MEASURE_STATUS_WORKER_UNFIT : v1::MEASURE_STATUS_BUILD_ERROR,
        outcome.built.error()};
  }
  return outcome;
}

// A builder that writes to these folders. The linker's own files go to the first.
std::unique_ptr<ForkServer> MakeBuilder(const Confinement& worker, const std::vector<std::string>& folders) {
  if (worker.mode == ConfinementMode::kOff || folders.empty())
    return std::make_unique<ForkServer>(kBuildCommand);
  return std::make_unique<ForkServer>(kBuildCommand,
                                      std::vector<std::string>{absl::StrCat("TMPDIR=", folders[0])},
                                      ForBuilder(worker, folders));
}

}  // namespace

BuildPool::BuildPool(int builders, BuildLimits limits, Confinement worker)
    : limits_(limits), worker_(std::move(worker)) {
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

void BuildPool::Start(BuildWork work, bool first) {
  const MutexLock lock(&mutex_);
  queue_.insert(first ? queue_.begin() : queue_.end(), std::move(work));
  changed_.NotifyAll();
}

void BuildPool::LetWriteTo(const std::string& folder) {
  const MutexLock lock(&mutex_);
  folders_.push_back(folder);
}

void BuildPool::WarmUp() {
  const MutexLock lock(&mutex_);
  to_warm_ = kMostWarm;
  changed_.NotifyAll();
}

std::optional<BuildWork> BuildPool::NextWork(bool is_cold, std::vector<std::string>* folders, bool* wanted) {
  const MutexLock lock(&mutex_);
  while (queue_.empty() && !stopping_ && !(is_cold && to_warm_ > 0)) changed_.Wait(&mutex_);
  *wanted = !stopping_;
  *folders = folders_;
  if (is_cold && to_warm_ > 0) --to_warm_;
  if (queue_.empty()) return std::nullopt;
  BuildWork work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

void BuildPool::RunBuilder() {
  std::unique_ptr<ForkServer> fork_server;
  std::vector<std::string> known_folders;
  while (true) {
    std::vector<std::string> folders;
    bool wanted = true;
    const std::optional<BuildWork> work = NextWork(fork_server == nullptr, &folders, &wanted);
    if (!work && !wanted) return;
    if (fork_server == nullptr || folders != known_folders) {
      fork_server = MakeBuilder(worker_, folders);
      known_folders = std::move(folders);
    }
    if (!work) {
      fork_server->WarmUp();
      continue;
    }
    wanted = wanted && (work->is_wanted == nullptr || work->is_wanted());
    std::optional<BuildOutcome> outcome;
    if (wanted) outcome = Build(*fork_server, *work, limits_);
    work->done(std::move(outcome));
  }
}

std::vector<BuildOutcome> BuildPool::BuildAll(const std::vector<v1::BuildRequest>& requests,
                                              const std::function<bool()>& is_wanted) {
  std::vector<BuildOutcome> outcomes(requests.size());
  Mutex mutex;
  CondVar built;
  size_t open = requests.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    Start({requests[i], is_wanted, [&, i](std::optional<BuildOutcome> outcome) {
             const MutexLock lock(&mutex);
             if (outcome) {
               outcomes[i] = *std::move(outcome);
             } else {
               outcomes[i].ending = {v1::MEASURE_STATUS_WORKER_UNFIT, "the build was not wanted any more"};
             }
             if (--open == 0) built.NotifyAll();
           }});
  }
  const MutexLock lock(&mutex);
  while (open > 0) built.Wait(&mutex);
  return outcomes;
}

}  // namespace mycc
