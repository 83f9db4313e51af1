#include "worker/gpu_runners.h"

#include <sys/wait.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "process/limits.h"

namespace mycc {
namespace {

constexpr double kStartSeconds = 60;  // for a context, also on a host with many GPUs and a busy driver
constexpr double kReapSeconds = 2;    // for a process that has closed its channel to end

// How a process that gave no answer ended, in a fork server's words.
v1::ForkReply ReplyOf(std::optional<int> status, bool timed_out, bool out_of_memory) {
  v1::ForkReply reply;
  reply.set_timed_out(timed_out);
  if (status && WIFSIGNALED(*status)) reply.set_signal(WTERMSIG(*status));
  if (status && WIFEXITED(*status)) reply.set_exit_code(WEXITSTATUS(*status));
  reply.set_out_of_memory(out_of_memory || reply.exit_code() == kExitOutOfMemory);
  return reply;
}

}  // namespace

GpuRunners::GpuRunners(ChildCommand command, v1::StartRequest start)
    : command_(std::move(command)), start_(std::move(start)) {}

GpuRunners::~GpuRunners() {
  for (Runner* runner : {&current_, &spare_}) {
    if (runner->child != nullptr) runner->child->Signal();
  }
}

GpuRunners::Runner GpuRunners::Begin() const {
  Runner runner{std::make_unique<Child>(command_)};
  v1::RunnerRequest request;
  *request.mutable_start() = start_;
  // A failure here is heard when the runner is waited for.
  if (runner.child->Start().ok()) (void)runner.child->Write(request.SerializeAsString());
  return runner;
}

absl::Status GpuRunners::AwaitReady(Runner* runner) const {
  if (runner->ready) return absl::OkStatus();
  if (runner->child->pid() == 0) return absl::ResourceExhaustedError("its process cannot be started");
  MYCC_ASSIGN_OR_RETURN(const std::string bytes, runner->child->Read(After(kStartSeconds)));
  v1::RunnerResponse response;
  if (!response.ParseFromString(bytes)) return absl::DataLossError("its answer does not parse");
  runner->ready = response.status() == v1::MEASURE_STATUS_OK;
  return runner->ready ? absl::OkStatus() : absl::UnavailableError(response.error());
}

void GpuRunners::BeginMissing() {
  if (current_.child == nullptr) current_ = Begin();
  if (spare_.child == nullptr) spare_ = Begin();
}

// A failure is heard when a runner is needed.
void GpuRunners::WarmUp() {
  current_ = Begin();
  if (!AwaitReady(&current_).ok()) return;
  spare_ = Begin();
  is_warming_up_ = true;
}

void GpuRunners::FinishWarmUp() {
  if (std::exchange(is_warming_up_, false) && spare_.child != nullptr) (void)AwaitReady(&spare_);
}

void GpuRunners::Replace() {
  current_.child.reset();  // waits until the driver has taken back what it held
  current_ = std::exchange(spare_, {});
  BeginMissing();
}

absl::Status GpuRunners::EnsureReady() {
  BeginMissing();
  const absl::Status ready = AwaitReady(&current_);
  if (ready.ok()) return ready;
  Replace();  // the spare one may have started in a better moment, and a fresh one in a better one still
  if (AwaitReady(&current_).ok()) return absl::OkStatus();
  Replace();
  return AwaitReady(&current_);
}

absl::StatusOr<v1::RunnerResponse> GpuRunners::Call(const v1::RunnerRequest& request, double seconds,
                                                    Ending* ending) {
  if (const absl::Status ready = EnsureReady(); !ready.ok()) {
    current_ = {};
    spare_ = {};
    const bool host_lacks = absl::IsResourceExhausted(ready);  // memory or descriptors for a process
    *ending = {host_lacks ? v1::MEASURE_STATUS_WORKER_UNFIT : v1::MEASURE_STATUS_DEVICE_LOST,
               absl::StrCat("the device cannot be used: ", ready.message())};
    return absl::UnavailableError(ending->error);
  }
  const int64_t memory_kills = MemoryKills();
  absl::Status lost = current_.child->Write(request.SerializeAsString());
  if (lost.ok()) {
    const absl::StatusOr<std::string> bytes = current_.child->Read(After(seconds));
    v1::RunnerResponse response;
    if (bytes.ok() && response.ParseFromString(*bytes)) {
      if (response.spent()) Replace();
      return response;
    }
    lost = bytes.status();
  }
  const bool timed_out = absl::IsDeadlineExceeded(lost);
  const std::optional<int> status = timed_out ? std::nullopt : current_.child->Reap(kReapSeconds);
  *ending = EndingOf(Phase::kRun, ReplyOf(status, timed_out, MemoryKills() > memory_kills), seconds);
  Replace();
  return absl::AbortedError(ending->error);
}

}  // namespace mycc
