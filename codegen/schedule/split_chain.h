// Splits a chain of stages along one axis (codegen/workload/stream_chain.h) into parts of the axis, and
// merges their results. Where there are few rows, such as one query with many keys, each part has a thread
// block of its own. For the split_chain primitive and the rules. Pure.
//
//   m[i] = max[j:J](s[i,j])
//   e[i,j] = exp(s[i,j] - m[i])
//   t[i,d] = sum[j:J](e[i,j] * v[j,d])
//
// becomes, with parts p of length L,
//
//   m.p[p,i] = max[j:L](s[p,i,j])                       s[p,i,j] is the score of key p*L + j
//   m.g[p,i] = m.p[p,i], or 0 for -inf
//   e[p,i,j] = exp(s[p,i,j] - m.g[p,i])
//   t.p[p,i,d] = sum[j:L](e[p,i,j] * v[p*L + j, d])
//   m[i] = max[p](m.p[p,i])                             from here on the merge
//   m.f[i,p] = exp(m.p[p,i] - m[i])
//   t[i,d] = sum[p](t.p[p,i,d] * m.f[i,p])
//
// Which sums are corrected, and how, follows from the algebra of correction.h. The merge of softmaxes is that
// of FlashDecoding (Dao et al., 2023). chain_values.h finds what each stage computes in a part, part_axes.h
// has the axes of the parts, and split_chain.cc makes the stages.
//
// The last part begins earlier when the length does not divide the axis. It leaves out the keys that the part
// before it has. So all reads stay inside their tensors.
//
// Other readers of m, such as a log-sum-exp, have merges of their own, so that they are one launch beside
// that of the sum. The sum's are then called m.m.
//
// Rows of several heads that have the same keys become the rows of one tile: with `heads` of 8 and 4 queries,
// row r is query r%4 of head r//4 of the group. Tiles are padded to `rows` rows, because instructions compute
// whole tiles. The queries of the padding are 0, and the chain's sum has no such rows.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/workload/stream_chain.h"

namespace mycc {

struct ChainParts {
  int64_t heads = 1;   // of a group, in one tile; 1: each has its own
  int64_t rows = 0;    // of a tile, at least as many as the heads have queries
  int64_t length = 0;  // of the axis, in a part; at most the whole axis
};

// How many heads in a row have the same keys and values: the largest number that `heads` may be.
int64_t HeadsWithSameKeys(const Workload& workload, const StreamChain& chain);

// The chain's tensors keep their names. Those of parts have the same name with .p, or one of .q (packed
// queries), .g (guarded results), .f (corrections) and .m (merges of the sum). FailedPrecondition, naming the
// sum or the stage, when the axis is shorter than a part, when heads of a group have different keys or more
// rows than a tile, or when a stage has no known correction.
absl::StatusOr<Workload> WithChainParts(const Workload& workload, const StreamChain& chain,
                                        const ChainParts& parts);

}  // namespace mycc
