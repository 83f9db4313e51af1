#include "tuner/space/rewrites.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/padding.h"
#include "codegen/schedule/split_chain.h"
#include "codegen/schedule/stage_rewrites.h"
#include "codegen/schedule/stride_phases.h"
#include "codegen/target/instructions.h"
#include "codegen/workload/folded_stride.h"
#include "codegen/workload/joined_groups.h"
#include "codegen/workload/stage_links.h"
#include "tuner/space/cheap_stages.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"
#include "tuner/space/stream_chain.h"

namespace mycc {
namespace {

// Every stage that is put in the place of another one ends in one that writes its tensor.
using Replacement = std::vector<Stage>;

// `replace` gives the stages in the place of number s; none: it stays.
template <typename ReplaceFn>
Workload Replaced(const Workload& workload, const ReplaceFn& replace) {
  Workload result = workload;
  result.stages.clear();
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    Replacement stages = replace(s);
    if (stages.empty()) stages = {workload.stages[s]};
    result.stages.insert(result.stages.end(), stages.begin(), stages.end());
  }
  return result;
}

Workload WithPhases(const Workload& workload, TraceBuilder* steps) {
  return Replaced(workload, [&](int s) -> Replacement {
    Replacement phases = StridePhaseStages(workload.stages[s]);
    if (!phases.empty()) steps->SplitStridePhases(workload.stages[s].output->name);
    return phases;
  });
}

Workload WithFlippedSigns(const Workload& workload, const Target& target, TraceBuilder* steps) {
  const Anatomy anatomy(workload);
  return Replaced(workload, [&](int s) -> Replacement {
    const std::optional<Contraction>& contraction = anatomy.info(s).contraction;
    const Buffer changed = contraction ? SignToChange(*contraction, anatomy.product(s), target) : nullptr;
    if (changed == nullptr) return {};
    absl::StatusOr<std::vector<Stage>> stages = FlippedSignStages(workload.stages[s], changed);
    if (!stages.ok()) return {};
    steps->FlipSign(anatomy.name(s), changed->name);
    return *std::move(stages);
  });
}

// The stages for a factor that is computed from earlier ones.
Replacement OperandStagesOf(const Workload& workload, const Stage& stage, TraceBuilder* steps) {
  for (const int factor : {0, 1}) {
    if (!IsComputedFactor(stage, factor)) continue;
    const std::vector<const ExprNode*> loads = LoadsOf(stage.value->args[factor]);
    const bool is_computed = std::ranges::any_of(loads, [&](const ExprNode* load) {
      return std::ranges::any_of(workload.stages,
                                 [&](const Stage& other) { return other.output == load->buffer; });
    });
    absl::StatusOr<std::vector<Stage>> stages = OperandStages(stage, factor);
    if (!is_computed || !stages.ok()) continue;
    steps->OperandStage(stage.output->name, factor);
    return *std::move(stages);
  }
  return {};
}

// `wanted` says it of the workload in which one sum alone has such a stage, and of that sum.
Rewritten WithOperandStagesOf(const Rewritten& rewritten,
                              const std::function<bool(const Workload& with, int sum)>& wanted) {
  TraceBuilder steps;
  steps.steps = rewritten.steps;
  const Workload& workload = rewritten.workload;
  Workload result = Replaced(workload, [&](int s) -> Replacement {
    TraceBuilder own;
    Replacement stages = OperandStagesOf(workload, workload.stages[s], &own);
    if (stages.empty()) return {};
    const Workload with = Replaced(workload, [&](int other) { return other == s ? stages : Replacement(); });
    if (!wanted(with, s + 1)) return {};
    steps.steps.insert(steps.steps.end(), own.steps.begin(), own.steps.end());
    return stages;
  });
  return {std::move(result), std::move(steps.steps)};
}

}  // namespace

Rewritten WithAllOperandStages(const Rewritten& rewritten) {
  return WithOperandStagesOf(rewritten, [](const Workload&, int) { return true; });
}

Rewritten WithOperandStages(const Rewritten& rewritten) {
  return WithOperandStagesOf(rewritten, [](const Workload& with, int sum) {
    return FindStreamChain(with, StageLinks(with), sum).has_value();
  });
}

namespace {

// The sum's dimensions in the order of its only reader, which reads it element by element. Empty if there is
// no such reader, or nothing to reorder. Empty, too, if the last dimension would change: tiles of results are
// stored along it.
std::vector<int64_t> OrderOfReader(const Workload& workload, const StageLinks& links, int sum) {
  const Buffer& tensor = workload.stages[sum].output;
  if (links.ReadersOf(sum).size() != 1 || links.IsOutput(sum)) return {};
  const Stage& reader = workload.stages[links.ReadersOf(sum)[0]];
  const auto rank = static_cast<size_t>(tensor->rank());
  if (reader.reduce != ReduceOp::kNone || reader.axes.size() != rank) return {};
  std::vector<int64_t> order;
  for (const ExprNode* load : LoadsOf(reader.value)) {
    if (load->buffer != tensor) continue;
    std::vector<int64_t> of_load;
    for (const Var& axis : reader.axes) {
      const int dim = PlainDim(load->args, axis);
      if (dim < 0) return {};
      of_load.push_back(dim);
    }
    if (!order.empty() && of_load != order) return {};
    order = std::move(of_load);
  }
  const bool in_order = std::ranges::is_sorted(order);
  return in_order || order.back() + 1 != static_cast<int64_t>(rank) ? std::vector<int64_t>() : order;
}

// The reader of the stage's tensor reads that of stages[0] instead, which stages[1] is a copy of.
void ReadPermuted(const std::vector<Stage>& stages, Stage* reader) {
  VarMap at;
  reader->value = Rewrite(reader->value, [&](const Expr& e) -> Expr {
    if (e->op != Op::kLoad || e->buffer != stages[1].output) return nullptr;
    for (size_t d = 0; d < e->args.size(); ++d) at[stages[1].axes[d].get()] = e->args[d];
    return Substitute(stages[1].value, at);
  });
}

}  // namespace

Rewritten WithSumsAsRead(const Rewritten& rewritten) {
  Rewritten result = rewritten;
  const StageLinks links(rewritten.workload);
  TraceBuilder steps;
  for (int s = 0; s < static_cast<int>(rewritten.workload.stages.size()); ++s) {
    if (!FindStreamChain(rewritten.workload, links, s)) continue;
    const std::vector<int64_t> order = OrderOfReader(rewritten.workload, links, s);
    if (order.empty()) continue;
    const absl::StatusOr<std::vector<Stage>> stages = PermutedStages(rewritten.workload.stages[s], order);
    if (!stages.ok()) continue;
    steps.PermuteAxes(rewritten.workload.stages[s].output->name, order);
    steps.Inline(rewritten.workload.stages[s].output->name);
    result.workload.stages[s] = stages->front();
    ReadPermuted(*stages, &result.workload.stages[links.ReadersOf(s)[0]]);
  }
  result.steps.insert(result.steps.end(), steps.steps.begin(), steps.steps.end());
  return result;
}

namespace {

// The rows of tiles that hold this many: those of wgmma, and the fewest of mma.sync. None for more rows.
std::vector<int64_t> TilesFor(int64_t rows) {
  if (rows > 64) return {};
  int64_t fewest = 16;
  while (fewest < rows) fewest *= 2;
  return fewest < 64 ? std::vector<int64_t>{64, fewest} : std::vector<int64_t>{64};
}

// Thread blocks that have a tile of `rows` rows each, with `heads` heads in a tile.
int64_t TilesOfRows(const Workload& workload, const StreamChain& chain, int64_t heads) {
  const Stage& sum = workload.stages[chain.sum];
  int64_t tiles = 1;
  for (const std::vector<int>* axes : {&chain.batch_axes, &chain.row_axes}) {
    for (const int axis : *axes) tiles *= axis == chain.row_axes.back() ? 1 : sum.axes[axis]->extent;
  }
  return tiles / heads;
}

// The lengths of parts that fill the device once, twice and four times, in whole tiles.
std::vector<int64_t> LengthsOfParts(int64_t keys, int64_t tiles, const Target& target) {
  constexpr int64_t kShortest = 64;
  std::vector<int64_t> lengths;
  for (const int64_t waves : {1, 2, 4}) {
    const int64_t parts = std::max<int64_t>(target.sms * waves / tiles, 1);
    const int64_t length = std::min(RoundUp(CeilDiv(keys, parts), kShortest), keys);
    if (lengths.empty() || lengths.back() != length) lengths.push_back(length);
  }
  return lengths;
}

std::vector<ChainParts> PartsForGpu(const Workload& workload, const StreamChain& chain,
                                    const Target& target) {
  const Stage& sum = workload.stages[chain.sum];
  const int64_t keys = sum.reduce_axes[0]->extent, queries = sum.axes[chain.row_axes.back()]->extent;
  const int64_t heads = HeadsWithSameKeys(workload, chain);
  std::vector<ChainParts> ways;
  for (const int64_t tile : TilesFor(queries * heads)) {
    for (const int64_t length : LengthsOfParts(keys, TilesOfRows(workload, chain, heads), target))
      ways.push_back({.heads = heads, .rows = tile, .length = length});
  }
  return ways;
}

// Ways for few rows, which read keys in one pass (rules/streamed_dot.cc). Heads with the same keys share a
// tile, as many as fill it. The keys are cut into parts if the threads would have unequal shares of the
// tiles, or none.
std::vector<ChainParts> PartsForThreads(const Workload& workload, const StreamChain& chain,
                                        const Target& target) {
  constexpr int64_t kShortest = 256, kWhole = 16, kTilesThatBalance = 8;
  const Stage& sum = workload.stages[chain.sum];
  const int64_t keys = sum.reduce_axes[0]->extent, queries = sum.axes[chain.row_axes.back()]->extent;
  if (queries > kFewRows) return {};
  const int64_t same = HeadsWithSameKeys(workload, chain);
  int64_t heads = std::min(same, kFewRows / queries);
  while (same % heads != 0) --heads;
  const int64_t tiles = TilesOfRows(workload, chain, heads), threads = std::max<int64_t>(target.threads, 1);
  const int64_t equal = tiles < kTilesThatBalance * threads ? threads / std::gcd(tiles, threads) : 1;
  const int64_t most = std::max<int64_t>(keys / kShortest, 1);
  std::set<int64_t> counts = {std::min(equal, most)};
  if (equal > 1) counts.insert(std::min(2 * equal, most));
  std::vector<ChainParts> ways;
  for (const int64_t parts : counts) {
    const int64_t length = std::min(RoundUp(CeilDiv(keys, parts), kWhole), keys);
    if (parts > 1 || heads > 1) ways.push_back({.heads = heads, .rows = queries * heads, .length = length});
  }
  return ways;
}

}  // namespace

std::vector<Rewritten> WithPartsOfChains(const Rewritten& rewritten, const Target& target) {
  std::vector<Rewritten> all;
  const Workload& workload = rewritten.workload;
  const StageLinks links(workload);
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    const std::optional<StreamChain> chain = FindStreamChain(workload, links, s);
    if (!chain) continue;
    const std::vector<ChainParts> ways = target.kind == TargetKind::kCuda
                                             ? PartsForGpu(workload, *chain, target)
                                             : PartsForThreads(workload, *chain, target);
    for (const ChainParts& how : ways) {
      absl::StatusOr<Workload> split = WithChainParts(workload, *chain, how);
      if (!split.ok()) continue;
      TraceBuilder steps;
      steps.steps = rewritten.steps;
      steps.SplitChain(workload.stages[s].output->name, how.heads, how.rows, how.length);
      all.push_back({*std::move(split), std::move(steps.steps)});
    }
    return all;  // the first chain
  }
  return all;
}

namespace {

// Whether tiles of this type are products of the copy engine's and wgmma's.
bool HasWarpgroups(const Target& target, DType operand) {
  const std::vector<const Instruction*> rows = InstructionsOf(target);
  return std::ranges::any_of(
      rows, [&](const Instruction* row) { return row->of_warpgroups() && row->operand == operand; });
}

// Rows of these bytes fill a swizzle.
constexpr int64_t kJoinedBytes[] = {64, 128};

// The type of the weights' elements; nullopt where the stage is no sum in groups that are worth joining.
std::optional<DType> JoinedType(const Stage& stage, const std::optional<GroupedSum>& groups) {
  if (!groups || groups->channels != groups->kernels) return std::nullopt;
  return LoadOfFactor(stage.value->args[groups->input])->dtype;
}

}  // namespace

std::vector<Rewritten> WithJoinedGroups(const Rewritten& rewritten, const Target& target) {
  std::vector<Rewritten> all;
  if (target.direct_sums) return all;
  const Workload& workload = rewritten.workload;
  for (const int64_t bytes : kJoinedBytes) {
    TraceBuilder steps;
    steps.steps = rewritten.steps;
    Workload joined = Replaced(workload, [&](int s) -> Replacement {
      const Stage& stage = workload.stages[s];
      const std::optional<GroupedSum> groups = FindGroupedSum(stage);
      const std::optional<DType> dtype = JoinedType(stage, groups);
      if (!dtype || !HasWarpgroups(target, *dtype)) return {};
      const int64_t channels = bytes / DTypeBytes(*dtype), of_one = channels / groups->channels;
      // A group of one channel, or of as many as a row has, has better ways.
      if (groups->channels == 1 || of_one < 2 || channels % groups->channels != 0) return {};
      absl::StatusOr<std::vector<Stage>> stages = JoinedGroupsStages(stage, of_one);
      if (!stages.ok()) return {};
      steps.JoinGroups(stage.output->name, of_one);
      return *std::move(stages);
    });
    if (steps.steps.size() > rewritten.steps.size())
      all.push_back({std::move(joined), std::move(steps.steps)});
  }
  return all;
}

namespace {

// The stages that pad images which alone read them to be folded.
std::vector<int> PaddingOfFolded(const Workload& workload) {
  const StageLinks links(workload);
  std::vector<int> padding;
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    const std::vector<int>& readers = links.ReadersOf(s);
    const bool is_folded =
        readers.size() == 1 && absl::EndsWith(workload.stages[readers[0]].output->name, kFoldedImage);
    if (is_folded && !links.IsOutput(s) && workload.stages[s].reduce == ReduceOp::kNone &&
        IsElementInBox(workload.stages[s].value))
      padding.push_back(s);
  }
  return padding;
}

}  // namespace

std::vector<Rewritten> WithFoldedStrides(const Rewritten& rewritten, const Target& target) {
  // A pixel of one access of a thread is long enough; the folded ones fit a swizzle.
  constexpr int64_t kShortPixel = 16, kMostBytes = 128;
  if (target.direct_sums) return {};
  const Workload& workload = rewritten.workload;
  TraceBuilder steps;
  steps.steps = rewritten.steps;
  Workload folded = Replaced(workload, [&](int s) -> Replacement {
    const Stage& stage = workload.stages[s];
    const std::optional<FoldedStride> fold = FindFoldedStride(stage);
    if (!fold) return {};
    const DType dtype = LoadOfFactor(stage.value->args[fold->input])->dtype;
    const int64_t bytes = DTypeBytes(dtype);
    if (!HasWarpgroups(target, dtype) || fold->channels * bytes >= kShortPixel ||
        fold->folded() * bytes > kMostBytes)
      return {};
    absl::StatusOr<std::vector<Stage>> stages = FoldedStrideStages(stage);
    if (!stages.ok()) return {};
    steps.FoldStride(stage.output->name);
    return *std::move(stages);
  });
  if (steps.steps.size() == rewritten.steps.size()) return {};
  const std::vector<int> padding = PaddingOfFolded(folded);
  for (const int s : padding) steps.Inline(folded.stages[s].output->name);
  return {{WithoutStages(folded, padding), std::move(steps.steps)}};
}

namespace {

// The extents along the rows, the columns and the depth of a product of two tensors that tf32() rounds, each
// indexed by single axes; and how many of these elements have to be rounded in each call.
struct RoundedProduct {
  double products = 1;  // multiplications
  double rounded = 0;
};
std::optional<RoundedProduct> RoundedProductOf(const Workload& workload, const Stage& stage) {
  if (!SumsProducts(stage)) return std::nullopt;
  RoundedProduct product;
  for (const std::vector<Var>* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Var& axis : *axes) product.products *= static_cast<double>(axis->extent);
  }
  for (const Expr& factor : stage.value->args) {
    const ExprNode* load = factor->op == Op::kTF32 ? LoadOfFactor(factor) : nullptr;
    const bool is_plain =
        load != nullptr && load->dtype == DType::kF32 &&
        std::ranges::all_of(load->args, [](const Expr& index) { return index->op == Op::kVar; });
    if (!is_plain) return std::nullopt;
    const bool is_const = std::ranges::any_of(workload.inputs, [&](const Argument& input) {
      return input.is_const && input.tensor == load->buffer;
    });
    if (!is_const) product.rounded += static_cast<double>(load->buffer->num_elements());
  }
  return product;
}

}  // namespace

std::vector<Rewritten> WithRoundedOperands(const Rewritten& rewritten, const Target& target) {
  // Products for each element that is read, rounded and written: mma.sync takes longer than wgmma by about
  // that time.
  constexpr double kWorthwhile = 512;
  if (!HasWarpgroups(target, DType::kF32)) return {};
  const Workload& workload = rewritten.workload;
  TraceBuilder steps;
  steps.steps = rewritten.steps;
  Workload rounded = Replaced(workload, [&](int s) -> Replacement {
    const std::optional<RoundedProduct> product = RoundedProductOf(workload, workload.stages[s]);
    if (!product || product->products < kWorthwhile * product->rounded) return {};
    absl::StatusOr<std::vector<Stage>> left = OperandStages(workload.stages[s], 0);
    if (!left.ok()) return {};
    absl::StatusOr<std::vector<Stage>> right = OperandStages(left->back(), 1);
    if (!right.ok()) return {};
    for (const int64_t factor : {0, 1}) steps.OperandStage(workload.stages[s].output->name, factor);
    right->insert(right->begin(), left->front());
    return *std::move(right);
  });
  if (steps.steps.size() == rewritten.steps.size()) return {};
  return {{std::move(rounded), std::move(steps.steps)}};
}

Rewritten RewriteForCpu(const Workload& canonical, const Target& target) {
  if (target.kind != TargetKind::kCpu) return {canonical, {}};
  TraceBuilder steps;
  Workload workload = WithFlippedSigns(WithPhases(canonical, &steps), target, &steps);
  return {std::move(workload), std::move(steps.steps)};
}

Rewritten WithoutSingleTerms(const Rewritten& rewritten) {
  TraceBuilder steps;
  steps.steps = rewritten.steps;
  Workload workload = Replaced(rewritten.workload, [&](int s) -> Replacement {
    const Stage& stage = rewritten.workload.stages[s];
    if (!HasSingleTerm(stage)) return {};
    steps.ElideReduction(stage.output->name);
    return {SingleTermStage(stage)};
  });
  return {std::move(workload), std::move(steps.steps)};
}

}  // namespace mycc
