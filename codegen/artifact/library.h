// Writes a compiled library in the artifact ABI from lowered kernels: NAME.so, NAME.h, NAME.json and
// dlpack.h. lld links inside the process, so the host needs no compiler and no linker.
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
