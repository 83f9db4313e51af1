// The confinement of each kind of child of a worker: which folders it sees and writes to. Thread rule:
// functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/confine.h"

namespace mycc {

// `worker`: the mode, and the files with the worker's credentials. A builder writes to `folders`, and sees
// this program's installation and CUDA's.
Confinement ForBuilder(const Confinement& worker, const std::vector<std::string>& folders);
// A CPU's runner writes test cases to `scratch`, and reads reference kernels.
Confinement ForRunner(const Confinement& worker, const std::string& scratch, const std::string& references);
// A GPU's runner reads what was built.
Confinement ForDevice(const Confinement& worker, const std::string& scratch);

// The measures that such a child goes without, in words; empty: none. FailedPrecondition when one is missing
// that is required.
absl::StatusOr<std::string> Unconfined(const Confinement& child);

}  // namespace mycc
