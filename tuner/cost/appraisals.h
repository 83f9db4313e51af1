// Replays candidates' traces and computes their features and analytic times, with a memo of the latest
// results. Thread rule: functions are pure, classes thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/cost/features.h"
#include "tuner/cost/shared_replays.h"

namespace mycc {

struct Appraisal {
  Features features;
  double analytic_seconds = 0;
};
// FailedPrecondition when the trace does not replay, ResourceExhausted when a limit of the target is
// exceeded.
absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Trace& trace);
// The same with the figures of a machine of this target (tuner/cost/machine_constants.h).
absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Machine& machine,
                                   const Trace& trace);
// The same of the function that a trace replays to.
absl::StatusOr<Appraisal> AppraiseFunction(const Function& scheduled, const Machine& machine);

// A digest of the code that the trace is lowered to, whatever its loops are called: equal ones are equal
// code. FailedPrecondition when the trace does not replay or cannot be lowered.
absl::StatusOr<std::string> CodeDigest(const Workload& canonical, const Target& target, const Trace& trace);
absl::StatusOr<std::string> CodeDigestOfFunction(const Function& scheduled, const Target& target);
// The text of a function with its loops called by their order: equal texts are equal code.
std::string TextWithoutNames(const Function& function);

// The latest appraisals, one memo for all tasks of a job. An entry is some 2 KB. A generation looks at a few
// hundred candidates, and those that it looks at twice are the ones that a memo is for.
class AppraisalMemo {
 public:
  explicit AppraisalMemo(size_t capacity = 1024) : capacity_(capacity) {}

  // Null where it is not known, or not any more. Valid until the next Put.
  const absl::StatusOr<Appraisal>* Find(const std::string& key) const;
  void Put(const std::string& key, const absl::StatusOr<Appraisal>& appraisal);
  size_t size() const { return young_.size() + old_.size(); }  // at most the capacity

 private:
  using Appraisals = absl::flat_hash_map<std::string, absl::StatusOr<Appraisal>>;

  const size_t capacity_;
  // Half of the capacity each: when the young half is full it becomes the old one, which is forgotten.
  Appraisals young_, old_;
};

// Appraises the candidates of all tasks of a job, and knows the latest ones. A batch is divided over the
// threads of `parallel`: an appraisal is a function of its trace, so their number changes nothing.
class Appraiser {
 public:
  // `parallel` outlives the appraiser; null: one candidate after the other.
  explicit Appraiser(ParallelFor* parallel = nullptr)
      : parallel_(parallel == nullptr ? &in_turn_ : parallel) {}

  // One for each trace, in order; an error as Appraise has it. `task` is a name of the workload, the target
  // and the machine.
  std::vector<absl::StatusOr<Appraisal>> Appraise(const std::string& task, const Workload& canonical,
                                                  const Target& target, const Machine& machine,
                                                  const std::vector<const Trace*>& traces);
  // One for each trace, in order, as CodeDigest.
  std::vector<absl::StatusOr<std::string>> CodesOf(const std::string& task, const Workload& canonical,
                                                   const Target& target,
                                                   const std::vector<const Trace*>& traces);

 private:
  ParallelFor in_turn_;
  ParallelFor* const parallel_;
  AppraisalMemo memo_;
  SharedReplays replays_;
};

}  // namespace mycc
