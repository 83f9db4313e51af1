// Rewrites a convolution that moves by a stride over few channels: the pixels that it steps over become
// channels, which are enough for tensor cores then. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Suffixes of the new tensors' names, after the sum's own name.
inline constexpr char kFoldedImage[] = ".folded";
inline constexpr char kFoldedTaps[] = ".taps";

// y[i, k] = sum[r:R, c:C](x[i*f + r, c] * w[k, r, c]), along each dimension that has a stride f, becomes
//
//   y.folded[j, u*C + c] = x[j*f + u, c], or 0 beyond its end
//   y.taps[k, r, u*C + c] = r*f + u < R ? w[k, r*f + u, c] : 0
//   y[i, k] = sum[r:ceil(R/f), q:f*C](y.folded[i + r, q] * y.taps[k, r, q])
//
// The added products are of zero: sums of finite numbers stay what they are. An infinity or NaN may reach the
// outputs whose window ends within f - 1 elements of it.
struct FoldedStride {
  int input = 0;                       // the factor that is x
  std::vector<int> dims;               // of x that have strides
  std::vector<int64_t> strides;        // of each
  std::vector<int> axes, reduce_axes;  // i and r of each
  int channel_axis = 0;                // c: a reduction axis
  int channel_dim = 0;                 // of x
  int64_t channels = 0;                // C
  int64_t folded() const;              // f*C, for all dimensions together
};
// nullopt when the stage is not of that form.
std::optional<FoldedStride> FindFoldedStride(const Stage& stage);

// The image, the taps, and the sum. FailedPrecondition when the stage is not of that form.
absl::StatusOr<std::vector<Stage>> FoldedStrideStages(const Stage& stage);

}  // namespace mycc
