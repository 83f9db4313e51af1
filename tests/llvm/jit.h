// Runs compiled kernels inside the test: EmitModule's object through LLVM's own linker, called as the
// artifact runtime would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/llvm/emit.h"
#include "codegen/workload/reference.h"

namespace mycc {

// The place of a call's tensors: each begins at an odd multiple of its element or at a cache line, or ends
// with the last byte that this process may read.
enum class Placement { kOdd, kLine, kLastByte };

class JitKernel {
 public:
  static absl::StatusOr<std::unique_ptr<JitKernel>> Compile(const LoweredFunction& lowered,
                                                            const Target& target);
  ~JitKernel();

  // Inputs in declared order (const ones are packed by the kernel's own packer); outputs start poisoned.
  std::vector<NDArray> Run(const std::vector<NDArray>& inputs, Placement placement = Placement::kOdd) const;

  // For timing: the tensors of a body are bound once, then it is called again and again.
  void Bind(const std::vector<NDArray>& inputs, Placement placement = Placement::kOdd);
  void Call() const;
  std::vector<NDArray> Outputs() const;

 private:
  struct Impl;
  explicit JitKernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mycc
