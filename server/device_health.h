// Judges a device by its trials' results: whether it gets work, and whether its failures count against
// candidates. Pure bookkeeping. Thread rule: thread-compatible. Time is an argument.
//
// A failure counts against the candidate when the device has shown that it can measure (a recent trial
// succeeded there, or failed elsewhere too) and other devices fail now and then (server/failure_watch.h).
// Otherwise another worker, if there is one, tries the candidate, and its result decides.
#pragma once

#include <cstdint>
#include <string>

#include "proto/records.pb.h"
#include "server/slowdown_watch.h"

namespace mycc {

class DeviceHealth {
 public:
  // `usual_baseline_seconds`: the baseline time when the device was last healthy; 0: unknown.
  explicit DeviceHealth(double usual_baseline_seconds = 0) : baseline_(usual_baseline_seconds) {}

  // A trial ended on this device, with a time or a failure. `has_rival`: another healthy device can run its
  // target; without one, a slow or failing device is better than none.
  void OnResult(const v1::MeasureResult& result, bool has_rival, double now);
  // The report is no verdict on the candidate: a loss, an unfit worker, or an impossible result.
  void OnLoss(const std::string& error, double now);
  // A trial that failed here was tried elsewhere, and failed there too, or did not.
  void OnConfirmed();
  void OnRefuted(const std::string& evidence, double now);
  // Trials that fail on this device succeed on others.
  void OnOutlier(const std::string& evidence, double now);

  bool is_believed() const { return credit_ > 0; }
  bool is_slow() const { return baseline_.failing(); }
  // The reason why it gets no work; empty: it gets work.
  const std::string& drain() const { return drain_; }
  // The part of `wanted` that it may lease now. A drained device gets one trial now and then, to show whether
  // it has recovered.
  int Allowance(int wanted, double now);

  int64_t trials() const { return trials_; }
  const SlowdownWatch& baseline() const { return baseline_; }
  // Candidates that failed since one succeeded, and the last one's error.
  int failures_in_a_row() const { return failures_in_a_row_; }
  const std::string& last_failure() const { return last_failure_; }

 private:
  void Drain(std::string reason, double now);
  void Recover() { drain_.clear(); }

  SlowdownWatch baseline_;
  int64_t trials_ = 0;
  int lost_in_a_row_ = 0;
  int failures_in_a_row_ = 0;
  int refuted_in_a_row_ = 0;  // since a trial succeeded
  int credit_ = 0;            // candidates that may fail before the device is doubted
  std::string last_failure_;
  std::string drain_;
  bool is_probed_ = false;  // a drained device has been given a trial
  double retry_at_ = 0;
};

}  // namespace mycc
