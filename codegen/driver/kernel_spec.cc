#include "codegen/driver/kernel_spec.h"

namespace mycc {

std::string ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kHit: return "hit";
    case Reason::kStale: return "stale";
    case Reason::kNear: return "near";
    case Reason::kMiss: return "miss";
    case Reason::kTrace: return "trace";
  }
  return "unknown";
}

}  // namespace mycc
