// Writes a compiled library in the artifact ABI from lowered kernels: NAME.so, NAME.h, NAME.json and
// dlpack.h. lld links inside the process, so the host needs no compiler and no linker. Thread rule: functions
// are re-entrant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/target/target.h"

namespace mycc {

struct LibrarySpec {
  std::string module;  // a C identifier; every exported symbol starts with it
  Target target;
  std::vector<KernelSpec> kernels;
};

// The compiler's report about all kernels of a library together. All zero for a CPU.
struct BuildReport {
  int64_t registers = 0;            // for a thread, the maximum over the kernels
  int64_t spill_bytes = 0;          // for a thread, the maximum
  int64_t shared_bytes = 0;         // for a block, static and dynamic, the maximum
  bool serialized_wgmma = false;    // a kernel's tensor-core operations wait for each other
  bool ignored_setmaxnreg = false;  // a kernel's warps keep the registers that they began with
  std::string log;                  // warnings about slow code, one line each
};

// Writes DIR/MODULE.{so,h,json} and DIR/dlpack.h. Either all appear or none does, so that an earlier library
// is replaced as a whole or stays.
absl::StatusOr<BuildReport> BuildLibrary(const LibrarySpec& spec, const std::string& dir);
// Writes only the .so, at `path`, for a tuning trial.
absl::StatusOr<BuildReport> BuildSharedObject(const LibrarySpec& spec, const std::string& path);

}  // namespace mycc
