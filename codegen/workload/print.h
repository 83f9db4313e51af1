// Prints workloads in the tensor language; ParseWorkload(PrintWorkload(w)) is w. Pure.
#pragma once

#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

std::string PrintWorkload(const Workload& workload);

}  // namespace mycc
