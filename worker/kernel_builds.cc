#include "worker/kernel_builds.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "codegen/cuda/portable.h"
#include "worker/confined_children.h"
#include "worker/gpu_device.h"
#include "worker/result_book.h"

namespace mycc {
namespace {

constexpr int64_t kMostCachedBytes = int64_t{256} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<KernelBuilds>> KernelBuilds::Create(int builders, const Confinement& worker,
                                                                   OnBuilt on_built) {
  MYCC_RETURN_IF_ERROR(GpuToolchain().status());
  MYCC_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create());
  if (worker.mode != ConfinementMode::kOff) GiveToChildren(scratch.path());
  std::unique_ptr<KernelBuilds> builds(
      new KernelBuilds(builders, worker, std::move(on_built), std::move(scratch)));
  MYCC_ASSIGN_OR_RETURN(builds->unconfined_, Unconfined(ForBuilder(worker, {builds->scratch_.path()})));
  MYCC_RETURN_IF_ERROR(MakeFolder(builds->folder_));
  builds->pool_.LetWriteTo(builds->scratch_.path());
  return builds;
}

v1::MeasureResult KernelBuilds::ResultOf(const v1::Assignment& assignment, const BuildOutcome& outcome) {
  v1::MeasureResult result;
  result.set_status(outcome.ending.status);
  if (!outcome.ok()) Fail(outcome.ending.status, outcome.ending.error, &result);
  result.set_code_digest(outcome.built.code_digest());
  if (outcome.built.has_resources()) *result.mutable_resources() = outcome.built.resources();
  result.mutable_timing()->set_build_seconds(outcome.seconds);
  if (!outcome.ok()) return result;
  absl::StatusOr<std::string> bytes = ReadFile(outcome.built.library(), kMostPortableBytes);
  if (bytes.ok()) {
    MarkUsed(outcome.built.library());
    on_built_(assignment.lease(), *std::move(bytes));
  } else {
    Fail(v1::MEASURE_STATUS_WORKER_UNFIT, std::string(bytes.status().message()), &result);
  }
  return result;
}

void KernelBuilds::Build(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
                         const OnMeasured& done) {
  Mutex mutex;
  CondVar built;
  size_t open = assignments.size();
  for (const v1::Assignment& assignment : assignments) {
    v1::BuildRequest request;
    request.set_workload(assignment.workload());
    request.set_target(assignment.target());
    request.set_trace(assignment.trace());
    request.set_directory(folder_);
    request.set_portable(true);
    pool_.Start({std::move(request), [&] { return !is_revoked(assignment.lease()); },
                 [&](std::optional<BuildOutcome> outcome) {
                   if (outcome) done(assignment, {ResultOf(assignment, *outcome)});
                   const MutexLock lock(&mutex);
                   if (--open == 0) built.NotifyAll();
                 }});
  }
  {
    const MutexLock lock(&mutex);
    while (open > 0) built.Wait(&mutex);
  }
  TrimCache(folder_, kMostCachedBytes);
}

}  // namespace mycc
