#include "server/local_worker.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "worker/device.h"
#include "worker/grpc_link.h"

namespace mycc {
namespace {

// Enough to keep all builders busy, few enough that a death or a cancellation costs little.
constexpr int kBatchesABuilder = 2;
constexpr int kLeastBatch = 4;

std::string DefaultName() {
  char host[256] = "worker";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, "-", getpid());
}

}  // namespace

int UsableCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

absl::StatusOr<std::unique_ptr<LocalWorker>> LocalWorker::Create(const LocalWorkerOptions& options) {
  for (const std::string& device : options.devices) {
    if (device == "cpu") continue;
    return absl::InvalidArgumentError(absl::StrCat("no device ", device, " here; expected cpu"));
  }
  std::unique_ptr<LocalWorker> local(new LocalWorker());
  CpuMeasurerOptions measuring;
  measuring.builders = options.builders > 0 ? options.builders : UsableCpus();
  MYCC_ASSIGN_OR_RETURN(local->measurer_, CpuMeasurer::Create(measuring));
  MYCC_ASSIGN_OR_RETURN(local->link_, ConnectToServer(options.server));

  WorkerOptions worker;
  worker.name = options.name.empty() ? DefaultName() : options.name;
  worker.toolchain = CpuToolchain();
  worker.log = options.log;
  WorkerDevice device;
  device.offer.set_device("cpu");
  device.offer.set_target(PrintTarget(DetectHostTarget()));
  *device.offer.mutable_info() = DescribeCpu();
  device.offer.mutable_info()->set_worker(worker.name);
  device.batch = std::max(kLeastBatch, kBatchesABuilder * measuring.builders);
  device.measure = [measurer = local->measurer_.get()](const std::vector<v1::Assignment>& assignments,
                                                       const IsRevoked& is_revoked, const OnMeasured& done) {
    measurer->Measure(assignments, is_revoked, done);
  };
  local->worker_ = std::make_unique<Worker>(worker, local->link_.get(), std::vector<WorkerDevice>{device});
  return local;
}

absl::Status CheckRunsHere(const std::string& target_text) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(target_text));
  std::string why;
  if (IsMeasurableOn(target, DetectHostTarget(), &why)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this machine cannot run ", target_text, ": ", why));
}

absl::StatusOr<v1::MeasureResult> MeasureHere(CpuMeasurer* measurer, const v1::Assignment& assignment) {
  MYCC_RETURN_IF_ERROR(CheckRunsHere(assignment.target()));
  v1::MeasureResult measured;
  measurer->Measure(
      {assignment}, [](const v1::LeaseId&) { return false; },
      [&measured](const v1::Assignment&, v1::MeasureResult result) { measured = std::move(result); });
  return measured;
}

}  // namespace mycc
