// Replays a candidate's trace and computes its features and analytic time, with a memo of the latest results.
// Thread rule: Appraise is pure, the memo thread-compatible.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/cost/features.h"

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

// A digest of the code that the trace is lowered to, whatever its loops are called: equal ones are equal
// code. FailedPrecondition when the trace does not replay or cannot be lowered.
absl::StatusOr<std::string> CodeDigest(const Workload& canonical, const Target& target, const Trace& trace);
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

}  // namespace mycc
