// Makes the shell line that reproduces a failed trial. A pure function.
#pragma once

#include <string>

#include "proto/worker.pb.h"

namespace mycc {

// For bash: builds, verifies and times the assignment's candidate again, in a process of its own.
std::string ReproductionOf(const v1::Assignment& assignment);

}  // namespace mycc
