// The table of primitives.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "codegen/schedule/primitives/annotate.h"

namespace mycc {
namespace {

constexpr PrimitiveInfo kPrimitives[] = {
    {"nI", "split(loop, [inner factors])", Split},
    {"ni", "split_axis(loop, factor)", SplitAxis},
    {"N", "reorder([loops, outermost first])", Reorder},
    {"N", "fuse([loops, outermost first])", Fuse},
    {"nn", "bind(loop, serial|parallel|vector|unroll|block|thread)", Bind},
    {"n", "inline(block)", Inline},
    {"nn", "compute_at(block, loop)", ComputeAt},
    {"nn", "reverse_compute_at(block, loop)", ReverseComputeAt},
    {"nn", "stream_reduction(reduction, loop over parts of its axis)", StreamReduction},
    {"nn", "merge(loop, the loop after it)", Merge},
    {"n", "reverse_inline(block)", ReverseInline},
    {"nnnn", "cache_read(buffer, block|all, loop|root, local|packed|shared)", CacheRead},
    {"nn", "cache_write(block, loop)", CacheWrite},
    {"nii", "layout(buffer, row pad, swizzle)", SetLayout},
    {"nn", "set_scope(buffer, local|shared)", SetScope},
    {"nnnn", "stage_shared(block, buffer, loop, shared)", StageShared},
    {"nnnnn", "stage_window(block, buffer, loop, shared, loop of taps)", StageShared},
    {"nnn", "stage_write(block, loop, shared)", StageWrite},
    {"nni", "pipeline(loop, threads|bulk, stages)", Annotate<kPipelineMark>},
    {"ni", "persist(block loop, thread blocks)", Annotate<kPersistMark>},
    {"ni", "min_blocks_per_sm(block loop, thread blocks of an SM)", Annotate<kMinBlocksPerSmMark>},
    {"ni", "cluster_reduce(block loop, thread blocks on each iteration)", Annotate<kClusterReduceMark>},
    {"n", "multicast_cluster(outermost block loop)", Annotate<kMulticastClusterMark>},
    {"niii", "stream_k(block loop, thread blocks, groups, members of a group)", Annotate<kStreamKMark>},
    {"ni", "pingpong(persistent loop, groups of warps)", Annotate<kPingpongMark>},
    {"nii", "pad(block, dimension, extent)", Pad},
    {"niii", "pad_groups(block, dimension, group, extent)", Pad},
    {"n", "pad_domain(block)", PadDomain},
    {"n", "split_stride_phases(block)", SplitStridePhases},
    {"nn", "flip_sign(block, buffer whose sign is changed)", FlipSign},
    {"n", "elide_reduction(reduction of one term)", ElideReduction},
    {"ni", "operand_stage(sum of products, factor 0|1)", OperandStage},
    {"n", "factor_stage(block with a positive factor)", FactorStage},
    {"nI", "permute_axes(block, the order of its dimensions)", PermuteAxes},
    {"n", "fold_stride(sum of products with a stride)", FoldStride},
    {"ni", "join_groups(sum of products in groups, groups that become one)", JoinGroups},
    {"niii", "split_chain(sum that ends a chain, heads and rows of a tile, length of a part)", SplitChain},
    {"n", "reverse(loop)", Reverse},
    {"n", "skip_masked(loop over parts of an axis)", SkipMasked},
    {"nni", "skip_zeros(block, padded buffer, dimension)", SkipZeros},
    {"nN", "pack(buffer, [components d, d/a, d%b, d/a%b])", Pack},
    {"ni", "rfactor(loop, factor)", RFactor},
    {"ni", "rfactor_runs(loop, length)", RFactorRuns},
    {"ni", "winograd(block, rows and columns of an output tile: 2 or 4)", Winograd},
    {"n", "split_arg(block)", SplitArg},
    {"nn", "reduce_together(reduction, sum that uses its result)", ReduceTogether},
    {"ni", "lane_predicate(loop, group)", LanePredicate},
    {"nn", "tensorize(loop, instruction)", Annotate<kTensorizeMark>},
    {"niii", "prefetch(tensorized loop, iterations for rows, for lanes, sums 0|1)", Annotate<kPrefetchMark>},
    {"n", "fetch_next(loop inside another)", Annotate<kFetchNextMark>},
    {"n", "nontemporal(loop around stores of outputs)", Annotate<kNontemporalMark>},
    {"nnii", "tensorize_tile(loop, instruction, warps along rows, along columns)",
     Annotate<kTensorizeTileMark>},
};

}  // namespace

const PrimitiveInfo* FindPrimitive(std::string_view name) {
  const auto info = std::ranges::find(kPrimitives, name, &PrimitiveInfo::name);
  return info == std::end(kPrimitives) ? nullptr : info;
}

std::string UnknownPrimitive(const std::string& name) {
  std::vector<std::string> names;
  for (const PrimitiveInfo& info : kPrimitives) names.emplace_back(info.name());
  return absl::StrCat("unknown primitive ", name, "; expected one of ", absl::StrJoin(names, ", "),
                      DidYouMean(name, names));
}

}  // namespace mycc
