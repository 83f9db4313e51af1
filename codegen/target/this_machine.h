// Reads the processor's cpuid answers and the threads that this process may use. Thread rule: pure
// functions.
#pragma once

#include "codegen/target/detect.h"

namespace mycc {

const CpuidSource& ThisProcessor();

// The number of processors that the process may use at the same time: by its affinity, and by its control
// group's limit.
int UsableThreads();

}  // namespace mycc
