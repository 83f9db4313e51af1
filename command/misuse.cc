#include "command/misuse.h"

#include "absl/strings/cord.h"

namespace mycc {
namespace {

constexpr char kMisuse[] = "mycc/misuse", kInterrupted[] = "mycc/interrupted", kListing[] = "mycc/listing";

}  // namespace

absl::Status Misuse(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kMisuse, absl::Cord());
  return status;
}

absl::Status WithListing(absl::Status status, const std::string& listing) {
  status.SetPayload(kListing, absl::Cord(listing));
  return status;
}

std::string ListingOf(const absl::Status& status) {
  const auto listing = status.GetPayload(kListing);
  return listing ? std::string(*listing) : "";
}

absl::Status Interrupted(const std::string& message) {
  absl::Status status = absl::CancelledError(message);
  status.SetPayload(kInterrupted, absl::Cord());
  return status;
}

int ExitStatus(const absl::Status& status) {
  if (status.ok()) return 0;
  if (status.GetPayload(kInterrupted)) return kInterruptedExitStatus;
  return status.GetPayload(kMisuse) ? kMisuseExitStatus : 1;
}

}  // namespace mycc
