// Reads the processor's cpuid answers and the threads that this process may use. Thread rule: pure
// functions.
#pragma once

#include "codegen/target/detect.h"

namespace mycc {

const CpuidSource& ThisProcessor();

// The processors that the process may run on at a time: its affinity, less its control group's limit.
int UsableThreads();

}  // namespace mycc
