// A compiled kernel on its way to a library: what it computes, how, and its code. It is made once and passed
// on. Pure data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/workload.h"

namespace mycc {

// How the schedule of a kernel was found.
enum class Reason { kHit, kStale, kNear, kMiss, kTrace /* given on the command line */ };
std::string ReasonName(Reason reason);  // "hit"

struct KernelSpec {
  Workload workload;  // with its own names, for the header, the JSON and errors
  Trace trace;
  LoweredFunction lowered;
  CudaProgram program;  // for a GPU: the code, whose kernels the library names
  Reason reason = Reason::kMiss;
  std::optional<int64_t> record;  // id in the tuning log
  std::optional<double> expected_seconds;
};

}  // namespace mycc
