// Rewrites a transposed convolution by the phases of its stride. With stride 2, the outputs of one phase (i %
// 2) use every second tap, and no product is with an inserted zero. Pure.
#pragma once

#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

// y[i] = sum[r](select((i + p - r) % f == 0 && .., x[(i + p - r) // f], 0.0) * w[r]) becomes, along each
// dimension of that form,
//
//   x.in[u] = select(.., x[u + first], 0.0)
//   y[i] = sum[r: taps / f](x.in[i // f - r + (i % f + p) // f - first] * w[f * r + (i % f + p) % f])
//
// The omitted products are 0 for every finite weight. The stages are the padded input x.in, whose name is the
// sum's with ".in", and the sum with the same output and axes, and shorter reductions. None when the stage is
// not of that form, or a stride does not divide both the axis and the taps.
std::vector<Stage> StridePhaseStages(const Stage& stage);

}  // namespace mycc
