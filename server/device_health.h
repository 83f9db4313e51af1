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
#include "server/baseline_watch.h"

namespace mycc {

class DeviceHealth {
 public:
  // `usual_baseline_seconds`: of the device when it was last healthy; 0: unknown.
  explicit DeviceHealth(double usual_baseline_seconds = 0) : baseline_(usual_baseline_seconds) {}

  // A trial ended here, with a time or without. `has_rival`: another healthy device can run its target; one
  // that is slow, or fails, is better than none.
  void OnResult(const v1::MeasureResult& result, bool has_rival, double now);
  // The report said nothing about the candidate: it was lost, is unfit, or its result cannot be.
  void OnLoss(const std::string& error, double now);
  // A trial that failed here was tried elsewhere, and failed there too, or did not.
  void OnConfirmed();
  void OnRefuted(const std::string& evidence, double now);
  // Others' trials succeed where its fail.
  void OnOutlier(const std::string& evidence, double now);

  bool is_believed() const { return credit_ > 0; }
  bool is_slow() const { return baseline_.failing(); }
  // Why it gets no more work; empty: it does.
  const std::string& drain() const { return drain_; }
  // How much of `wanted` it may lease now. A drained device gets one trial now and then, which shows whether
  // it has recovered.
  int Allowance(int wanted, double now);

  int64_t trials() const { return trials_; }
  const BaselineWatch& baseline() const { return baseline_; }
  // Candidates that failed since one succeeded, and the last one's error.
  int failures_in_a_row() const { return failures_in_a_row_; }
  const std::string& last_failure() const { return last_failure_; }

 private:
  void Drain(std::string reason, double now);
  void Recover() { drain_.clear(); }

  BaselineWatch baseline_;
  int64_t trials_ = 0;
  int lost_in_a_row_ = 0;
  int failures_in_a_row_ = 0;
  int refuted_in_a_row_ = 0;  // since a trial succeeded
  int credit_ = 0;            // candidates that may fail before the device's word is doubted
  std::string last_failure_;
  std::string drain_;
  bool is_probed_ = false;  // a drained device has been given a trial
  double retry_at_ = 0;
};

}  // namespace mycc
