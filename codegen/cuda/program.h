// A function for a GPU: its CUDA C++ source, and the steps (launches) of a call. The emitter
// writes it, NVRTC compiles it, and artifacts contain it as constant tables. No IR types. Thread rule:
// values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expr/dtype.h"

namespace mycc {

// An address: `offset` bytes into an argument of the entry, or into the function's workspace. Arguments of a
// call: inputs (packed buffers instead of const ones), then outputs. Arguments of packing: const inputs, then
// packed buffers.
struct CudaOperand {
  static constexpr int kWorkspace = -1;
  static constexpr int kWeights = -2;  // the weights of a model
  int argument = kWorkspace;
  int64_t offset = 0;
};

// A TMA descriptor (cuTensorMapEncodeTiled) of an operand: the host makes it in each call and passes it by
// value. The innermost dimension is first. Elements out of range read as zero, and are not written.
struct CudaTensorMap {
  CudaOperand operand;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;             // elements; rank 1 to 5
  std::vector<int64_t> strides;          // bytes, from dimension 1 on: multiples of 16
  std::vector<int64_t> box;              // elements, each 1 to 256
  std::vector<int64_t> element_strides;  // each 1 to 8
  int swizzle_bytes = 0;                 // 0, 32, 64 or 128: at least the box's innermost bytes
};

// One launch of a kernel.
struct CudaStep {
  std::string kernel;
  std::array<int64_t, 3> grid = {1, 1, 1};  // thread blocks
  int64_t cluster = 1;                      // blocks of a cluster, along x
  int64_t threads = 1;                      // of a block
  int64_t shared_bytes = 0;                 // dynamic shared memory of a block
  // The kernel may be launched while the step before still runs, and itself waits for that step's end
  // (programmatic dependent launch, sm_90).
  bool waits = false;
  // The kernel's parameters: tensor maps first, then pointers.
  std::vector<CudaTensorMap> maps;
  std::vector<CudaOperand> pointers;
};

struct CudaProgram {
  std::string symbol;  // the prefix of the kernels' names
  std::string source;
  std::vector<CudaStep> call, pack;
  int64_t workspace_bytes = 0;
};

// The compiler's report about one kernel.
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
