// Moves statements at the root before the nest of a block, so that a block that is about to move into that
// nest finds its inputs computed. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"

namespace mycc {

// The function with every statement that computes an input of `consumer`, other than `producer`'s tensor,
// before the root statement that holds `producer`. FailedPrecondition when one needs what that statement
// computes.
absl::StatusOr<Function> WithInputsFirst(const Function& function, const Block& consumer,
                                         const Block& producer);

}  // namespace mycc
