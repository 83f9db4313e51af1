#include "codegen/driver/kernel_spec.h"

namespace mycc {

std::string ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kHit: return "hit";
    case Reason::kStale: return "stale";
    case Reason::kNear: return "near";
    case Reason::kPredicted: return "predicted";
    case Reason::kMiss: return "miss";
    case Reason::kTrace: return "trace";
  }
  return "unknown";
}

std::optional<Reason> ParseReason(const std::string& name) {
  for (const Reason reason :
       {Reason::kHit, Reason::kStale, Reason::kNear, Reason::kPredicted, Reason::kMiss, Reason::kTrace}) {
    if (ReasonName(reason) == name) return reason;
  }
  return std::nullopt;
}

}  // namespace mycc
