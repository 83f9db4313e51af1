// Emitted programs on the CPU: compiled with the host's compiler over host_cuda.h, and run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/workload/reference.h"

namespace mycc {

// A lowered function and what EmitCuda made of it, with a symbol that no other program of the library has.
struct HostUnit {
  LoweredFunction lowered;
  CudaProgram program;
};

// Several programs, compiled together because the compiler's start is most of its time.
class HostLibrary {
 public:
  static absl::StatusOr<std::unique_ptr<HostLibrary>> Compile(std::vector<HostUnit> units);
  ~HostLibrary();

  // Packs, then calls; inputs in declared order. Outputs and the workspace start poisoned.
  std::vector<NDArray> Run(size_t unit, const std::vector<NDArray>& inputs) const;

 private:
  HostLibrary() = default;

  std::vector<HostUnit> units_;
  void* library_ = nullptr;
};

}  // namespace mycc
