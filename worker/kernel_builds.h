// Builds GPU candidates for other hosts, several at a time. It needs NVRTC and no GPU. Thread rule: Build may
// be called by several threads at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/confine.h"
#include "worker/build_pool.h"
#include "worker/measure.h"
#include "worker/scratch.h"

namespace mycc {

class KernelBuilds {
 public:
  // Called with what was built, before its result is.
  using OnBuilt = std::function<void(const v1::LeaseId& lease, std::string artifact)>;

  // FailedPrecondition or NotFound, in words, when kernels cannot be compiled here.
  // `worker`: how builders are confined; FailedPrecondition too where that is required and cannot be had.
  static absl::StatusOr<std::unique_ptr<KernelBuilds>> Create(int builders, const Confinement& worker,
                                                              OnBuilt on_built);
  // The measures that builders go without, in words (confined_children.h).
  const std::string& unconfined() const { return unconfined_; }

  // The results have the status of the build, and the report about its code.
  void Build(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
             const OnMeasured& done);

 private:
  KernelBuilds(int builders, const Confinement& worker, OnBuilt on_built, ScratchFolder scratch)
      : on_built_(std::move(on_built)),
        scratch_(std::move(scratch)),
        folder_(scratch_.path() + "/kernels"),
        pool_(builders, BuildLimits(), worker) {}

  v1::MeasureResult ResultOf(const v1::Assignment& assignment, const BuildOutcome& outcome);

  const OnBuilt on_built_;
  const ScratchFolder scratch_;
  const std::string folder_;  // has what was built lately: an equal kernel is not compiled again
  std::string unconfined_;
  BuildPool pool_;
};

}  // namespace mycc
