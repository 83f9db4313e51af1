#include "tuner/space/part.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// The name that FreshName (codegen/schedule/tree.h) gives where `taken` ones are taken.
std::string Numbered(const std::string& name, int64_t taken) {
  return taken == 0 ? name : absl::StrCat(name, taken + 1);
}

}  // namespace

int64_t TraceBuilder::StepsOn(const std::string& primitive, size_t arg, const std::string& buffer) const {
  return std::ranges::count_if(steps, [&](const Step& step) {
    return step.primitive == primitive && std::get<std::string>(step.args[arg].value) == buffer;
  });
}

void TraceBuilder::Add(std::string primitive, std::vector<StepArg> args) {
  steps.push_back(Step{std::move(primitive), std::move(args)});
}
std::string SubLoop(const std::string& loop, int part) { return absl::StrCat(loop, ".", part); }

void TraceBuilder::Split(const std::string& loop, std::vector<int64_t> factors) {
  Add("split", {{loop}, {std::move(factors)}});
}
void TraceBuilder::SplitAxis(const std::string& loop, int64_t factor) {
  Add("split_axis", {{loop}, {factor}});
}
void TraceBuilder::Reorder(std::vector<std::string> loops) {
  if (loops.size() > 1) Add("reorder", {{std::move(loops)}});
}
std::string TraceBuilder::Fuse(const std::vector<std::string>& loops) {
  if (loops.size() == 1) return loops[0];
  Add("fuse", {{loops}});
  std::string name = loops[0];
  for (size_t i = 1; i < loops.size(); ++i)
    absl::StrAppend(&name, "+", loops[i].substr(loops[i].find('.') + 1));
  return name;
}
void TraceBuilder::Bind(const std::string& loop, const std::string& kind) { Add("bind", {{loop}, {kind}}); }

void TraceBuilder::BindAll(const std::vector<std::string>& loops, const std::string& kind) {
  for (const std::string& loop : loops) Bind(loop, kind);
}
void TraceBuilder::SplitStridePhases(const std::string& block) { Add("split_stride_phases", {{block}}); }
void TraceBuilder::FlipSign(const std::string& block, const std::string& buffer) {
  Add("flip_sign", {{block}, {buffer}});
}
void TraceBuilder::ElideReduction(const std::string& block) { Add("elide_reduction", {{block}}); }
void TraceBuilder::OperandStage(const std::string& block, int64_t factor) {
  Add("operand_stage", {{block}, {factor}});
}
void TraceBuilder::FactorStage(const std::string& block) { Add("factor_stage", {{block}}); }
void TraceBuilder::PermuteAxes(const std::string& block, std::vector<int64_t> order) {
  Add("permute_axes", {{block}, {std::move(order)}});
}
void TraceBuilder::FoldStride(const std::string& block) { Add("fold_stride", {{block}}); }
void TraceBuilder::JoinGroups(const std::string& block, int64_t groups) {
  Add("join_groups", {{block}, {groups}});
}
void TraceBuilder::SplitChain(const std::string& sum, int64_t heads, int64_t rows, int64_t length) {
  Add("split_chain", {{sum}, {heads}, {rows}, {length}});
}
void TraceBuilder::Reverse(const std::string& loop) { Add("reverse", {{loop}}); }
void TraceBuilder::SkipMasked(const std::string& loop) { Add("skip_masked", {{loop}}); }
void TraceBuilder::SkipZeros(const std::string& block, const std::string& buffer, int64_t dim) {
  Add("skip_zeros", {{block}, {buffer}, {dim}});
}
void TraceBuilder::Inline(const std::string& block) { Add("inline", {{block}}); }
void TraceBuilder::ComputeAt(const std::string& block, const std::string& loop) {
  Add("compute_at", {{block}, {loop}});
}
void TraceBuilder::ReverseInline(const std::string& block) { Add("reverse_inline", {{block}}); }
void TraceBuilder::StreamReduction(const std::string& reduction, const std::string& loop) {
  Add("stream_reduction", {{reduction}, {loop}});
}
void TraceBuilder::Merge(const std::string& loop, const std::string& next) { Add("merge", {{loop}, {next}}); }
std::string TraceBuilder::NextCopy(const std::string& buffer) const {
  return Numbered(absl::StrCat(buffer, ".r"), StepsOn("cache_read", 0, buffer));
}
std::string TraceBuilder::NextTile(const std::string& buffer, int later) const {
  return Numbered(absl::StrCat(buffer, ".s"),
                  StepsOn("stage_shared", 1, buffer) + StepsOn("stage_window", 1, buffer) + later);
}
std::string TraceBuilder::CacheRead(const std::string& buffer, const std::string& block,
                                    const std::string& loop, const std::string& scope) {
  std::string name = NextCopy(buffer);
  Add("cache_read", {{buffer}, {block}, {loop}, {scope}});
  return name;
}
void TraceBuilder::CacheWrite(const std::string& block, const std::string& loop) {
  Add("cache_write", {{block}, {loop}});
}
void TraceBuilder::Pack(const std::string& buffer, std::vector<std::string> components) {
  Add("pack", {{buffer}, {std::move(components)}});
}
void TraceBuilder::RFactor(const std::string& loop, int64_t factor) { Add("rfactor", {{loop}, {factor}}); }
void TraceBuilder::RFactorRuns(const std::string& loop, int64_t length) {
  Add("rfactor_runs", {{loop}, {length}});
}
void TraceBuilder::Winograd(const std::string& block, int64_t m) { Add("winograd", {{block}, {m}}); }
void TraceBuilder::ReduceTogether(const std::string& first, const std::string& second) {
  Add("reduce_together", {{first}, {second}});
}
void TraceBuilder::SplitArg(const std::string& block) { Add("split_arg", {{block}}); }
void TraceBuilder::LanePredicate(const std::string& loop, int64_t group) {
  Add("lane_predicate", {{loop}, {group}});
}
void TraceBuilder::Layout(const std::string& buffer, int64_t row_pad, int64_t swizzle_bytes) {
  Add("layout", {{buffer}, {row_pad}, {swizzle_bytes}});
}
void TraceBuilder::SetScope(const std::string& buffer, const std::string& scope) {
  Add("set_scope", {{buffer}, {scope}});
}
void TraceBuilder::Tensorize(const std::string& loop, const std::string& instruction) {
  Add("tensorize", {{loop}, {instruction}});
}

void TraceBuilder::Vectorize(const std::string& loop, int64_t extent, int64_t lanes) {
  if (extent <= lanes) return Bind(loop, "vector");
  Split(loop, {lanes});
  Bind(SubLoop(loop, 0), "unroll");
  Bind(SubLoop(loop, 1), "vector");
}

void TraceBuilder::Prefetch(const std::string& loop, int64_t rows, int64_t lanes, bool sums) {
  Add("prefetch", {{loop}, {rows}, {lanes}, {int64_t{sums}}});
}

void TraceBuilder::FetchNext(const std::string& loop) { Add("fetch_next", {{loop}}); }
void TraceBuilder::Nontemporal(const std::string& loop) { Add("nontemporal", {{loop}}); }

void TraceBuilder::TensorizeTile(const std::string& loop, const std::string& instruction, int64_t row_warps,
                                 int64_t column_warps) {
  Add("tensorize_tile", {{loop}, {instruction}, {row_warps}, {column_warps}});
}
std::string TraceBuilder::StageShared(const std::string& block, const std::string& buffer,
                                      const std::string& loop, const std::string& scope) {
  std::string name = NextTile(buffer);
  Add("stage_shared", {{block}, {buffer}, {loop}, {scope}});
  return name;
}
void TraceBuilder::StageWindow(const std::string& block, const std::string& buffer, const std::string& loop,
                               const std::string& scope, const std::string& taps) {
  Add("stage_window", {{block}, {buffer}, {loop}, {scope}, {taps}});
}
void TraceBuilder::StageWrite(const std::string& block, const std::string& loop, const std::string& scope) {
  Add("stage_write", {{block}, {loop}, {scope}});
}
void TraceBuilder::Pipeline(const std::string& loop, const std::string& kind, int64_t stages) {
  Add("pipeline", {{loop}, {kind}, {stages}});
}
void TraceBuilder::Pad(const std::string& block, int64_t dim, int64_t extent) {
  Add("pad", {{block}, {dim}, {extent}});
}
void TraceBuilder::PadGroups(const std::string& block, int64_t dim, int64_t group, int64_t extent) {
  Add("pad_groups", {{block}, {dim}, {group}, {extent}});
}
void TraceBuilder::StreamK(const std::string& loop, int64_t blocks, const StreamKGroups& groups) {
  Add("stream_k", {{loop}, {blocks}, {groups.groups}, {groups.members}});
}
void TraceBuilder::Persist(const std::string& loop, int64_t blocks) { Add("persist", {{loop}, {blocks}}); }
void TraceBuilder::MinBlocksPerSm(const std::string& loop, int64_t blocks) {
  Add("min_blocks_per_sm", {{loop}, {blocks}});
}
void TraceBuilder::ClusterReduce(const std::string& loop, int64_t blocks) {
  Add("cluster_reduce", {{loop}, {blocks}});
}
void TraceBuilder::MulticastCluster(const std::string& loop) { Add("multicast_cluster", {{loop}}); }
void TraceBuilder::PadDomain(const std::string& block) { Add("pad_domain", {{block}}); }
void TraceBuilder::Pingpong(const std::string& loop, int64_t groups) { Add("pingpong", {{loop}, {groups}}); }

void Part::Decide(const std::string& name, std::vector<int64_t> choices, int64_t preferred, bool ordered) {
  if (ordered) std::ranges::sort(choices);
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  if (!std::ranges::count(choices, preferred)) preferred = choices.front();
  decisions.push_back(Decision{name, std::move(choices), ordered});
  defaults.push_back(preferred);
}

void Part::Start(const Values& values) {
  std::vector<int64_t> start = defaults;
  Values all;
  for (size_t d = 0; d < decisions.size(); ++d) {
    const std::string& name = decisions[d].name;
    const std::vector<int64_t>& choices = decisions[d].choices;
    if (values.contains(name)) start[d] = values.at(name);
    if (std::ranges::count(choices, start[d]) == 0) return;
    all.Add(name, start[d]);
  }
  const bool is_known = start == defaults || std::ranges::count(starts, start) > 0;
  if (!is_known && (!legal || legal(all))) starts.push_back(std::move(start));
}

int64_t Part::Default(const std::string& decision) const {
  for (size_t d = 0; d < decisions.size(); ++d) {
    if (decisions[d].name == decision) return defaults[d];
  }
  return 0;
}

size_t RowRank(const Anatomy& anatomy, const Group& group) {
  size_t rank = anatomy.stage(group.anchor).axes.size();
  for (int s : group.members) {
    if (anatomy.stage(s).reduce != ReduceOp::kNone) rank = std::min(rank, anatomy.stage(s).axes.size());
  }
  return rank;
}

}  // namespace mycc
