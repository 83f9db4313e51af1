// The part of confinement that is a filter of system calls. Thread rule: single-threaded.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

// A filter as the kernel takes it. A call that it does not permit fails; it does not end the process.
using CallFilter = std::vector<sock_filter>;

// Refuses what no candidate needs. `has_device`: sockets of this host, and files in memory, are left to a
// driver.
absl::StatusOr<CallFilter> CommonFilter(bool has_device);
// The further filter of the process of a request: it makes no processes, only threads, and runs no programs.
// With `only_reads`, it also opens no file for writing and changes no folder.
absl::StatusOr<CallFilter> RequestFilter(bool only_reads);

// From now on in this process and its children. REQUIRES: it may gain no privileges.
absl::Status Install(const CallFilter& filter);

}  // namespace mycc
