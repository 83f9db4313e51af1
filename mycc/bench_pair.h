// `mycc bench A.so B.so`: times the functions that two libraries have in common in turn, on the same inputs,
// and compares what they compute.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/runtime/library.h"
#include "mycc/commands.h"

namespace mycc {

// `functions` are of `library`; each is paired with the function of `other` that has the same workload. The
// report names those that have no partner. FailedPrecondition when there is none, and, after the table, when
// outputs differ by more than both libraries' tolerances. The libraries are closed, and loaded anew for each
// function and placement (placed_turns.h); a GPU's stay open.
absl::Status BenchPair(std::unique_ptr<Library> library, std::unique_ptr<Library> other,
                       const std::vector<std::string>& functions, const BenchOptions& options,
                       std::ostream& out);

}  // namespace mycc
