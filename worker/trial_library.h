// Loads the library to which a candidate was built. Thread rule: re-entrant.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Opens a library that holds one function, with the workload's arguments. FailedPrecondition: this host
// cannot load a library that was just built, which says nothing about the candidate in it.
absl::StatusOr<std::unique_ptr<Library>> OpenTrial(const std::string& path, const Workload& workload);

}  // namespace mycc
