#include "worker/result_book.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr size_t kRememberedDigests = 20000, kRememberedBaselines = 64;

int64_t UnixMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

v1::MeasureStatus StatusWithout(const absl::Status& reference) {
  switch (reference.code()) {
    case absl::StatusCode::kNotFound: return v1::MEASURE_STATUS_DEVICE_LOST;
    case absl::StatusCode::kUnavailable: return v1::MEASURE_STATUS_WORKER_LOST;
    case absl::StatusCode::kResourceExhausted: return v1::MEASURE_STATUS_OUT_OF_MEMORY;
    case absl::StatusCode::kDeadlineExceeded: return v1::MEASURE_STATUS_RUN_TIMEOUT;
    default: return v1::MEASURE_STATUS_RUN_ERROR;
  }
}

}  // namespace

v1::MeasureResult ResultBook::Make(const v1::Assignment& assignment, const BuildOutcome& build,
                                   const std::function<void(v1::MeasureResult*)>& run) {
  v1::MeasureResult result;
  result.set_started_unix_micros(UnixMicros());
  const std::string known_as = absl::StrCat(build.built.code_digest(), " ", assignment.protocol());
  const auto known = build.built.code_digest().empty() ? by_digest_.end() : by_digest_.find(known_as);
  if (known != by_digest_.end()) {
    result = known->second;
    result.set_started_unix_micros(UnixMicros());
    result.mutable_timing()->set_run_seconds(0);
  } else if (!build.ok()) {
    Fail(build.ending.status, build.ending.error, &result);
  } else {
    const auto start = std::chrono::steady_clock::now();
    run(&result);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result.mutable_timing()->set_run_seconds(seconds.count());
    if (!IsInfrastructureFailure(result.status())) {
      if (by_digest_.size() >= kRememberedDigests) by_digest_.clear();
      by_digest_[known_as] = result;
    }
  }
  result.mutable_timing()->set_protocol(assignment.protocol());
  result.mutable_timing()->set_build_seconds(build.seconds);
  result.set_code_digest(build.built.code_digest());
  if (build.built.has_resources()) *result.mutable_resources() = build.built.resources();
  *result.mutable_toolchain() = toolchain_;
  if (result.status() != v1::MEASURE_STATUS_OK) {
    result.set_reproduction(ReproductionOf(assignment));
  }
  result.set_finished_unix_micros(UnixMicros());
  return result;
}

void BaselineHistory::Add(double seconds) {
  if (seconds > 0) latest_.push_back(seconds);
  if (latest_.size() > kRememberedBaselines) latest_.pop_front();
}

double BaselineHistory::Usual() const {
  if (latest_.empty()) return 0;
  std::vector<double> sorted(latest_.begin(), latest_.end());
  const size_t quartile = sorted.size() / 4;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(quartile), sorted.end());
  return sorted[quartile];
}

void Fail(v1::MeasureStatus status, const std::string& error, v1::MeasureResult* result) {
  result->set_status(status);
  result->set_error(ToUtf8(error));
}

absl::Status ErrorOf(const Ending& ending) {
  switch (ending.status) {
    case v1::MEASURE_STATUS_OUT_OF_MEMORY: return absl::ResourceExhaustedError(ending.error);
    case v1::MEASURE_STATUS_RUN_TIMEOUT: return absl::DeadlineExceededError(ending.error);
    case v1::MEASURE_STATUS_DEVICE_LOST: return absl::NotFoundError(ending.error);
    case v1::MEASURE_STATUS_WORKER_LOST: return absl::UnavailableError(ending.error);
    default: return absl::AbortedError(ending.error);
  }
}

void FailWithout(const absl::Status& reference, v1::MeasureResult* result) {
  // Without a reference nothing can be verified, whoever's fault it is; the text says whose.
  Fail(StatusWithout(reference), absl::StrCat("no reference to verify against: ", reference.message()),
       result);
}

void TakeResponse(const v1::RunnerResponse& response, v1::MeasureResult* result) {
  result->set_status(response.status());
  result->set_error(ToUtf8(response.error()));
  if (response.has_timing()) *result->mutable_timing() = response.timing();
  if (response.has_verification()) *result->mutable_verification() = response.verification();
}

}  // namespace mycc
