#include "worker/result_book.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "proto/proof.h"
#include "proto/reproduction.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr size_t kRememberedDigests = 20000, kRememberedBaselines = 64;
// A server refuses a message with a text that is much longer, and the results beside it would be lost.
constexpr size_t kMostErrorBytes = 64 << 10;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

v1::MeasureStatus StatusWithout(const absl::Status& reference) {
  switch (reference.code()) {
    case absl::StatusCode::kNotFound: return v1::MEASURE_STATUS_DEVICE_LOST;
    case absl::StatusCode::kUnavailable: return v1::MEASURE_STATUS_WORKER_LOST;
    case absl::StatusCode::kFailedPrecondition: return v1::MEASURE_STATUS_WORKER_UNFIT;
    case absl::StatusCode::kResourceExhausted: return v1::MEASURE_STATUS_OUT_OF_MEMORY;
    case absl::StatusCode::kDeadlineExceeded: return v1::MEASURE_STATUS_RUN_TIMEOUT;
    default: return v1::MEASURE_STATUS_RUN_ERROR;
  }
}

// The keys under which proofs and results are remembered for equal binaries.
std::string ProofKey(const v1::Assignment& assignment, const BuildOutcome& build) {
  return absl::StrCat(build.built.code_digest(), " ", assignment.workload());
}
std::string ResultKey(const v1::Assignment& assignment, const BuildOutcome& build) {
  return absl::StrCat(ProofKey(assignment, build), " ", assignment.protocol());
}

}  // namespace

std::vector<std::string> TracesOf(const v1::Assignment& assignment) {
  std::vector<std::string> traces = {assignment.trace()};
  traces.insert(traces.end(), assignment.rivals().begin(), assignment.rivals().end());
  return traces;
}

std::vector<v1::MeasureResult> ResultBook::Make(const v1::Assignment& assignment,
                                                const std::vector<BuildOutcome>& builds, const Lane& lane) {
  if (!assignment.rivals().empty()) return MakeRound(assignment, builds, lane);
  v1::MeasureResult result = Measure(assignment, builds[0], lane);
  if (OwesProof(assignment.best_seconds(), result)) Prove(assignment, builds[0], lane, &result);
  return {std::move(result)};
}

v1::MeasureResult ResultBook::Measure(const v1::Assignment& assignment, const BuildOutcome& build,
                                      const Lane& lane) {
  v1::MeasureResult result;
  result.set_started_unix_micros(SystemUnixMicros());
  const auto known = by_digest_.find(ResultKey(assignment, build));
  if (known != by_digest_.end() && !OwesProof(assignment.best_seconds(), known->second)) {
    result = known->second;
    result.set_started_unix_micros(SystemUnixMicros());
    result.mutable_timing()->set_run_seconds(0);
  } else if (!build.ok()) {
    Fail(build.ending.status, build.ending.error, &result);
  } else {
    const auto start = std::chrono::steady_clock::now();
    if (const auto response = lane.run({build.built.library()}, &result)) TakeResponse(*response, &result);
    result.mutable_timing()->set_run_seconds(SecondsSince(start));
    Remember(assignment, build, result);
  }
  Describe(assignment, build, &result);
  return result;
}

bool ResultBook::OwesProof(double best_seconds, const v1::MeasureResult& result) {
  return result.status() == v1::MEASURE_STATUS_OK && !IsProven(result.verification()) &&
         (best_seconds == 0 || result.timing().seconds() <= best_seconds);
}

void ResultBook::Prove(const v1::Assignment& assignment, const BuildOutcome& build, const Lane& lane,
                       v1::MeasureResult* result) {
  const auto start = std::chrono::steady_clock::now();
  const double measured_in = result->timing().run_seconds();
  if (!TakeKnownProof(assignment, build, result)) ProveNow(assignment, build, lane, result);
  result->mutable_timing()->set_run_seconds(measured_in + SecondsSince(start));
  Remember(assignment, build, *result);
  Describe(assignment, build, result);
}

void ResultBook::Remember(const v1::Assignment& assignment, const BuildOutcome& build,
                          const v1::MeasureResult& result) {
  if (build.built.code_digest().empty() || IsInfrastructureFailure(result.status())) return;
  if (by_digest_.size() >= kRememberedDigests) by_digest_.clear();
  by_digest_[ResultKey(assignment, build)] = result;
}

std::vector<v1::MeasureResult> ResultBook::MakeRound(const v1::Assignment& assignment,
                                                     const std::vector<BuildOutcome>& builds,
                                                     const Lane& lane) {
  std::vector<v1::MeasureResult> results(builds.size());
  std::vector<std::string> libraries;
  std::vector<size_t> runners;  // the candidates whose libraries run
  for (size_t i = 0; i < builds.size(); ++i) {
    results[i].set_started_unix_micros(SystemUnixMicros());
    if (builds[i].ok()) {
      libraries.push_back(builds[i].built.library());
      runners.push_back(i);
    } else {
      Fail(builds[i].ending.status, builds[i].ending.error, &results[i]);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  v1::MeasureResult failure;
  const std::optional<v1::RunnerResponse> response =
      libraries.empty() ? v1::RunnerResponse() : lane.run(libraries, &failure);
  const bool held = response && response->rivals_size() + 1 == static_cast<int>(libraries.size());
  if (!libraries.empty() && !held) {
    if (response) TakeResponse(*response, &failure);
    Describe(assignment, builds[0], &failure);
    return {failure};
  }
  for (size_t i = 0; i < runners.size(); ++i)
    TakeResponse(i == 0 ? *response : response->rivals(static_cast<int>(i) - 1), &results[runners[i]]);
  ProveTies(assignment, builds, lane, &results);
  for (const size_t runner : runners) {
    results[runner].mutable_timing()->set_run_seconds(SecondsSince(start) /
                                                      static_cast<double>(runners.size()));
  }
  v1::Assignment own = assignment;  // of each candidate by itself, to reproduce it
  own.clear_rivals();
  for (size_t i = 0; i < builds.size(); ++i) {
    if (i > 0) own.set_trace(assignment.rivals(static_cast<int>(i) - 1));
    Describe(own, builds[i], &results[i]);
  }
  return results;
}

void ResultBook::ProveTies(const v1::Assignment& assignment, const std::vector<BuildOutcome>& builds,
                           const Lane& lane, std::vector<v1::MeasureResult>* results) {
  const auto is_ok = [](const v1::MeasureResult& result) { return result.status() == v1::MEASURE_STATUS_OK; };
  const auto take_known_proofs = [&] {
    for (size_t i = 0; i < results->size(); ++i) {
      if (is_ok((*results)[i])) TakeKnownProof(assignment, builds[i], &(*results)[i]);
    }
  };
  take_known_proofs();
  for (bool all_hold = false; !all_hold;) {
    all_hold = true;
    std::optional<v1::Timing> fastest;  // a copy: a failed proof clears the result's timing
    for (const v1::MeasureResult& result : *results) {
      if (is_ok(result) && (!fastest || result.timing().seconds() < fastest->seconds()))
        fastest = result.timing();
    }
    for (size_t i = 0; i < results->size(); ++i) {
      v1::MeasureResult& result = (*results)[i];
      if (!is_ok(result) || IsProven(result.verification()) || !TiesWith(result.timing(), *fastest)) continue;
      ProveNow(assignment, builds[i], lane, &result);
      take_known_proofs();  // of equal binaries
      all_hold = all_hold && is_ok(result);
    }
  }
}

bool ResultBook::TakeKnownProof(const v1::Assignment& assignment, const BuildOutcome& build,
                                v1::MeasureResult* result) {
  const auto proof = proofs_.find(ProofKey(assignment, build));
  if (proof == proofs_.end()) return false;
  *result->mutable_verification() = proof->second;
  return true;
}

void ResultBook::ProveNow(const v1::Assignment& assignment, const BuildOutcome& build, const Lane& lane,
                          v1::MeasureResult* result) {
  v1::MeasureResult proven;
  const std::optional<v1::RunnerResponse> response =
      lane.prove(build.built.library(), result->timing().seconds(), &proven);
  if (response) TakeResponse(*response, &proven);
  if (proven.status() != v1::MEASURE_STATUS_OK) {
    result->clear_timing();
    result->clear_verification();
    result->MergeFrom(proven);
    return;
  }
  *result->mutable_verification() = proven.verification();
  if (build.built.code_digest().empty()) return;
  if (proofs_.size() >= kRememberedDigests) proofs_.clear();
  proofs_[ProofKey(assignment, build)] = proven.verification();
}

void ResultBook::Describe(const v1::Assignment& assignment, const BuildOutcome& build,
                          v1::MeasureResult* result) const {
  result->mutable_timing()->set_protocol(assignment.protocol());
  result->mutable_timing()->set_build_seconds(build.seconds);
  result->set_code_digest(build.built.code_digest());
  if (build.built.has_resources()) *result->mutable_resources() = build.built.resources();
  *result->mutable_toolchain() = toolchain_;
  if (!build.built.compiler().empty()) result->mutable_toolchain()->set_nvrtc(build.built.compiler());
  if (result->status() != v1::MEASURE_STATUS_OK) result->set_reproduction(ReproductionOf(assignment));
  result->set_finished_unix_micros(SystemUnixMicros());
}

void BaselineMedian::Add(double seconds) {
  if (seconds > 0) latest_.push_back(seconds);
  if (latest_.size() > kRememberedBaselines) latest_.pop_front();
}

double BaselineMedian::Usual() const {
  if (latest_.empty()) return 0;
  std::vector<double> sorted(latest_.begin(), latest_.end());
  const size_t quartile = sorted.size() / 4;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(quartile), sorted.end());
  return sorted[quartile];
}

void Fail(v1::MeasureStatus status, const std::string& error, v1::MeasureResult* result) {
  result->set_status(status);
  result->set_error(ToUtf8(error.substr(0, kMostErrorBytes)));
}

absl::Status ErrorOf(const Ending& ending) {
  switch (ending.status) {
    case v1::MEASURE_STATUS_OUT_OF_MEMORY: return absl::ResourceExhaustedError(ending.error);
    case v1::MEASURE_STATUS_RUN_TIMEOUT: return absl::DeadlineExceededError(ending.error);
    case v1::MEASURE_STATUS_DEVICE_LOST: return absl::NotFoundError(ending.error);
    case v1::MEASURE_STATUS_WORKER_LOST: return absl::UnavailableError(ending.error);
    case v1::MEASURE_STATUS_WORKER_UNFIT: return absl::FailedPreconditionError(ending.error);
    default: return absl::AbortedError(ending.error);
  }
}

bool IsPassingFailure(const absl::Status& reference) {
  return IsInfrastructureFailure(StatusWithout(reference));
}

void FailWithout(const absl::Status& reference, v1::MeasureResult* result) {
  // Without a reference nothing can be verified; the text says why there is none.
  Fail(StatusWithout(reference), absl::StrCat("no reference to verify against: ", reference.message()),
       result);
}

void TakeResponse(const v1::RunnerResponse& response, v1::MeasureResult* result) {
  result->set_status(response.status());
  result->set_error(ToUtf8(response.error().substr(0, kMostErrorBytes)));
  if (response.has_timing()) *result->mutable_timing() = response.timing();
  if (response.has_verification()) *result->mutable_verification() = response.verification();
}

}  // namespace mycc
