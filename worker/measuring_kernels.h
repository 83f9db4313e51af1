// The source text of worker/measuring_kernels.cu, for NVRTC, as a constant of this program. Thread rule: a
// constant.
#pragma once

namespace mycc {

extern const char kMeasuringKernels[];

}  // namespace mycc
