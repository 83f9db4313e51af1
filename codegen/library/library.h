// A compiled library in the artifact ABI: NAME.so, NAME.h, NAME.json and dlpack.h from lowered kernels.
// Linking is done by lld inside the process; no compiler or linker is needed on the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// How the schedule of a kernel was found.
enum class Reason { kHit, kStale, kNear, kMiss, kTrace /* given on the command line */ };
std::string ReasonName(Reason reason);  // "hit"

struct KernelSpec {
  Workload workload;  // with its own names, for the header, the JSON and errors
  Trace trace;
  LoweredFunction lowered;
  Reason reason = Reason::kMiss;
  std::optional<int64_t> record;  // id in the tuning log
  std::optional<double> expected_seconds;
};

struct LibrarySpec {
  std::string module;  // a C identifier; every exported symbol starts with it
  Target target;
  std::vector<KernelSpec> kernels;
};

// The compiler's report about a library's kernels, all of them together. All zero for a CPU.
struct BuildReport {
  int64_t registers = 0;            // of a thread, the most
  int64_t spill_bytes = 0;          // of a thread, the most
  int64_t shared_bytes = 0;         // of a block, the most: static and dynamic
  bool serialized_wgmma = false;    // tensor-core operations wait for each other
  bool ignored_setmaxnreg = false;  // warps keep the registers that they began with
  std::string log;                  // what makes kernels slow, a line each
};

// Writes DIR/MODULE.{so,h,json} and DIR/dlpack.h: all of them appear or none does, so that an earlier library
// is replaced whole or stays.
absl::StatusOr<BuildReport> BuildLibrary(const LibrarySpec& spec, const std::string& dir);
// The .so alone, at `path`: what a tuning trial needs.
absl::StatusOr<BuildReport> BuildSharedObject(const LibrarySpec& spec, const std::string& path);

}  // namespace mycc
