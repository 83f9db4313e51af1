// Rewrites sums of products in groups, such as grouped convolutions, as sums in fewer and wider groups:
// tensor cores multiply whole tiles, which a group of few channels does not fill. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The suffix of the weights' name, after the sum's own name.
inline constexpr char kWideWeights[] = ".wide";

// A sum of products in which each kernel, a place along an axis of the output, reads the channels of its own
// group: y[.., k] = sum[.., c:C](x[.., k//K*C + c, ..] * w[k, .., c, ..]).
struct GroupedSum {
  int axis = 0;                         // k, of the stage
  int reduce_axis = 0;                  // c
  int64_t kernels = 0;                  // K, of a group
  int64_t channels = 0;                 // C
  int64_t groups = 0;                   // in all
  int input = 0;                        // the factor that is x
  int input_dim = 0;                    // its dimension of channels
  int kernel_dim = 0, channel_dim = 0;  // of w
};
// nullopt where the stage is none, or reads w's dimensions of kernels and channels in other ways than whole.
std::optional<GroupedSum> FindGroupedSum(const Stage& stage);

// With `joined` groups in one:
//
//   y.wide[k, .., c] = c//C == k//K % joined ? w[k, .., c % C] : 0
//   y[.., k] = sum[.., c:joined*C](x[.., k//(joined*K)*(joined*C) + c] * y.wide[k, .., c])
//
// The added products are of zero: sums of finite numbers stay what they are. An infinity or NaN in a channel
// reaches all kernels of the wider group.
//
// FailedPrecondition, with the reason, unless the stage is such a sum with a multiple of `joined` groups.
absl::StatusOr<std::vector<Stage>> JoinedGroupsStages(const Stage& stage, int64_t joined);

}  // namespace mycc
