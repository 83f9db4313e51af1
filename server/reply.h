// The type of a reply: a function that is called later, perhaps after the caller has gone.
#pragma once

#include <functional>

#include "absl/status/statusor.h"

namespace mycc {

// Called once, with the answer to one call; it must not block.
template <typename Response>
using Reply = std::function<void(absl::StatusOr<Response>)>;
// Whether anybody still waits for a reply.
using IsAlive = std::function<bool()>;

}  // namespace mycc
