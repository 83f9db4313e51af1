// The answer to a call of the job board that is not waited for.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/tuning.pb.h"
#include "server/job_admission.h"

namespace mycc {

struct Answered {
  std::shared_ptr<absl::StatusOr<v1::JobProgress>> progress =
      std::make_shared<absl::StatusOr<v1::JobProgress>>(absl::UnknownError("no answer yet"));
  JobReply reply() const {
    return [kept = progress](absl::StatusOr<v1::JobProgress> given) { *kept = std::move(given); };
  }
};

}  // namespace mycc
