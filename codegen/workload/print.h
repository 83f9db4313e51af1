// Prints workloads in the language; ParseWorkload(PrintWorkload(w)) is w.
#pragma once

#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

std::string PrintWorkload(const Workload& workload);

}  // namespace mycc
