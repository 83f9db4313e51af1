// A compiled function for a GPU: its CUDA C++ source, and the steps (launches, copies) of a call. The emitter
// writes it, NVRTC compiles it, and artifacts carry it as constant tables. No IR types. Thread rule: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expr/dtype.h"

namespace mycc {

// An address: `offset` bytes into an argument of the entry (call: inputs, packed buffers in place of const
// ones, then outputs; pack: const inputs, then packed buffers), or into the function's workspace.
struct CudaOperand {
  static constexpr int kWorkspace = -1;
  int argument = kWorkspace;
  int64_t offset = 0;
};

// A TMA descriptor (cuTensorMapEncodeTiled) over an operand: made on the host in each call and passed by
// value. Innermost dimension first, as the hardware has it; out-of-range elements read as zero and are not
// written.
struct CudaTensorMap {
  CudaOperand operand;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;             // elements; rank 1 to 5
  std::vector<int64_t> strides;          // bytes, of dimensions 1 and on: multiples of 16
  std::vector<int64_t> box;              // elements, each 1 to 256
  std::vector<int64_t> element_strides;  // each 1 to 8
  int swizzle_bytes = 0;                 // 0, 32, 64 or 128: at least the box's innermost bytes
};

// One launch of a kernel, or (with an empty kernel name) bytes set to zero.
struct CudaStep {
  std::string kernel;
  std::array<int64_t, 3> grid = {1, 1, 1};  // thread blocks
  int64_t cluster = 1;                      // blocks of a cluster, along x
  int64_t threads = 1;                      // of a block
  int64_t shared_bytes = 0;                 // dynamic shared memory of a block
  // It may be launched while the step before still runs: the kernel waits for that one's end by itself
  // (programmatic dependent launch, sm_90).
  bool waits = false;
  // The kernel's parameters: tensor maps first, then pointers.
  std::vector<CudaTensorMap> maps;
  std::vector<CudaOperand> pointers;
  // A memset's.
  CudaOperand zeroed;
  int64_t zeroed_bytes = 0;
};

struct CudaProgram {
  std::string symbol;  // with which the kernels' names begin
  std::string source;
  std::vector<CudaStep> call, pack;
  int64_t workspace_bytes = 0;
};

// The compiler's word about one kernel.
struct CudaKernelResources {
  std::string kernel;
  int64_t registers = 0;     // of a thread
  int64_t spill_bytes = 0;   // of a thread, stored to local memory
  int64_t stack_bytes = 0;   // of a thread's local memory
  int64_t shared_bytes = 0;  // static
};

struct CudaImage {
  std::string cubin;
  std::string log;                  // warnings, among them those that make a kernel slow
  bool serialized_wgmma = false;    // C7510 and its like: tensor-core operations wait for each other
  bool ignored_setmaxnreg = false;  // C7508: warps keep the registers that they began with
  std::vector<CudaKernelResources> kernels;
};

}  // namespace mycc
