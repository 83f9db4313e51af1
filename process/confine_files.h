// The part of confinement that is a view of files: a mount namespace in which nothing can be written but some
// folders, and folders with others' secrets are empty. Thread rule: single-threaded.
#pragma once

#include "absl/status/statusor.h"
#include "process/confine.h"

namespace mycc {

// REQUIRES: this process has a mount namespace of its own, and may mount. Returns a descriptor of /proc by
// which it can still be written to. `proc_trouble`: why /proc lists the processes of others, too.
absl::StatusOr<int> ConfineFiles(const Confinement& confinement, std::string* proc_trouble);

// Whether `path` is `folder` or lies below it.
bool LiesIn(const std::string& path, const std::string& folder);

}  // namespace mycc
