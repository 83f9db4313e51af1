// The source of the kernels that a GPU's runner measures with: worker/measuring_kernels.cu as text, for
// NVRTC. Thread rule: a constant.
#pragma once

namespace mycc {

extern const char kMeasuringKernels[];

}  // namespace mycc
