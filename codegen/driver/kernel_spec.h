// A compiled kernel, ready to be put in a library: workload, trace and code. Thread rule: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The origin of a kernel's schedule.
enum class Reason {
  kHit,
  kStale,
  kNear,
  kPredicted,  // by a model alone
  kMiss,
  kTrace,  // given on the command line
};
std::string ReasonName(Reason reason);  // "hit"
std::optional<Reason> ParseReason(const std::string& name);

struct KernelSpec {
  Workload workload;  // with its own names, for the header, the JSON and errors
  Trace trace;
  LoweredFunction lowered;
  CudaProgram program;  // for a GPU: the code
  Reason reason = Reason::kMiss;
  std::optional<int64_t> record;            // id in the tuning log
  std::optional<double> expected_seconds;   // as its record measured them
  std::optional<double> predicted_seconds;  // by the model that chose it, where nothing was measured
};

}  // namespace mycc
