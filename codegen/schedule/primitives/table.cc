#include "codegen/schedule/primitives/table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "codegen/schedule/primitives/annotate.h"

namespace mycc {
namespace {

constexpr PrimitiveInfo kPrimitives[] = {
    {"split", "nI", "split(loop, [inner factors])", Split},
    {"split_axis", "ni", "split_axis(loop, factor)", SplitAxis},
    {"reorder", "N", "reorder([loops, outermost first])", Reorder},
    {"fuse", "N", "fuse([loops, outermost first])", Fuse},
    {"bind", "nn", "bind(loop, serial|parallel|vector|unroll|block|thread)", Bind},
    {"inline", "n", "inline(block)", Inline},
    {"compute_at", "nn", "compute_at(block, loop)", ComputeAt},
    {"reverse_compute_at", "nn", "reverse_compute_at(block, loop)", ReverseComputeAt},
    {"stream_reduction", "nn", "stream_reduction(reduction, loop over parts of its axis)", StreamReduction},
    {"merge", "nn", "merge(loop, the loop after it)", Merge},
    {"reverse_inline", "n", "reverse_inline(block)", ReverseInline},
    {"cache_read", "nnnn", "cache_read(buffer, block|all, loop|root, local|packed|shared)", CacheRead},
    {"cache_write", "nn", "cache_write(block, loop)", CacheWrite},
    {"layout", "nii", "layout(buffer, row pad, swizzle)", SetLayout},
    {"set_scope", "nn", "set_scope(buffer, local|shared)", SetScope},
    {"stage_shared", "nnnn", "stage_shared(block, buffer, loop, shared)", StageShared},
    {"stage_window", "nnnnn", "stage_window(block, buffer, loop, shared, loop of taps)", StageWindow},
    {"stage_write", "nnn", "stage_write(block, loop, shared)", StageWrite},
    {"pipeline", "nni", "pipeline(loop, threads|bulk, stages)", Annotate<kPipelineMark>},
    {"persist", "ni", "persist(block loop, thread blocks)", Annotate<kPersistMark>},
    {"min_blocks_per_sm", "ni", "min_blocks_per_sm(block loop, thread blocks of an SM)",
     Annotate<kMinBlocksPerSmMark>},
    {"cluster_reduce", "ni", "cluster_reduce(block loop, thread blocks on each iteration)",
     Annotate<kClusterReduceMark>},
    {"multicast_cluster", "n", "multicast_cluster(outermost block loop)", Annotate<kMulticastClusterMark>},
    {"stream_k", "niii", "stream_k(block loop, thread blocks, groups, members of a group)",
     Annotate<kStreamKMark>},
    {"pingpong", "ni", "pingpong(persistent loop, groups of warps)", Annotate<kPingpongMark>},
    {"pad", "nii", "pad(block, dimension, extent)", Pad},
    {"pad_groups", "niii", "pad_groups(block, dimension, group, extent)", PadGroups},
    {"pad_domain", "n", "pad_domain(block)", PadDomain},
    {"split_stride_phases", "n", "split_stride_phases(block)", SplitStridePhases},
    {"flip_sign", "nn", "flip_sign(block, buffer whose sign is changed)", FlipSign},
    {"elide_reduction", "n", "elide_reduction(reduction of one term)", ElideReduction},
    {"operand_stage", "ni", "operand_stage(sum of products, factor 0|1)", OperandStage},
    {"factor_stage", "n", "factor_stage(block with a positive factor)", FactorStage},
    {"permute_axes", "nI", "permute_axes(block, the order of its dimensions)", PermuteAxes},
    {"fold_stride", "n", "fold_stride(sum of products with a stride)", FoldStride},
    {"join_groups", "ni", "join_groups(sum of products in groups, groups that become one)", JoinGroups},
    {"split_chain", "niii", "split_chain(sum that ends a chain, heads and rows of a tile, length of a part)",
     SplitChain},
    {"reverse", "n", "reverse(loop)", Reverse},
    {"skip_masked", "n", "skip_masked(loop over parts of an axis)", SkipMasked},
    {"skip_zeros", "nni", "skip_zeros(block, padded buffer, dimension)", SkipZeros},
    {"pack", "nN", "pack(buffer, [components d, d/a, d%b, d/a%b])", Pack},
    {"rfactor", "ni", "rfactor(loop, factor)", RFactor},
    {"rfactor_runs", "ni", "rfactor_runs(loop, length)", RFactorRuns},
    {"winograd", "ni", "winograd(block, rows and columns of an output tile: 2 or 4)", Winograd},
    {"split_arg", "n", "split_arg(block)", SplitArg},
    {"reduce_together", "nn", "reduce_together(reduction, sum that uses its result)", ReduceTogether},
    {"lane_predicate", "ni", "lane_predicate(loop, group)", LanePredicate},
    {"tensorize", "nn", "tensorize(loop, instruction)", Annotate<kTensorizeMark>},
    {"prefetch", "niii", "prefetch(tensorized loop, iterations for rows, for lanes, sums 0|1)",
     Annotate<kPrefetchMark>},
    {"fetch_next", "n", "fetch_next(loop inside another)", Annotate<kFetchNextMark>},
    {"nontemporal", "n", "nontemporal(loop around stores of outputs)", Annotate<kNontemporalMark>},
    {"tensorize_tile", "nnii", "tensorize_tile(loop, instruction, warps along rows, along columns)",
     Annotate<kTensorizeTileMark>},
};

}  // namespace

const PrimitiveInfo* FindPrimitive(std::string_view name) {
  for (const PrimitiveInfo& info : kPrimitives) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string UnknownPrimitive(const std::string& name) {
  std::vector<std::string> names;
  for (const PrimitiveInfo& info : kPrimitives) names.emplace_back(info.name);
  return absl::StrCat("unknown primitive ", name, "; expected one of ", absl::StrJoin(names, ", "),
                      DidYouMean(name, names));
}

}  // namespace mycc
