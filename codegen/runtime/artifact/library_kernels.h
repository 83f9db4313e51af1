// The library kernels of compiled models, and their calling convention. Plain C over libc, compiled into
// every CPU artifact and into mycc itself. Thread rule: every function may be called from several threads at
// once.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One tensor of a call: compact and row-major. `dtype` is the number of the type in codegen/expr/dtype.h.
struct MyccTensor {
  void* data;
  int64_t dtype, element_bytes;
  int64_t ndim;
  const int64_t* shape;
};

// `tensors` are the inputs, then the outputs. `workspace` has the bytes that the kernel's workspace function
// asks for, aligned to 8 bytes.
typedef void MyccLibraryKernel(const int64_t* attributes, const struct MyccTensor* tensors,
                               uint8_t* workspace);

// output = input, of the same size.
MyccLibraryKernel MyccCopy;

#ifdef __cplusplus
}
#endif
