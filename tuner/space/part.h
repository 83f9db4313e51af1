// A part: one rule's contribution to a sketch, for one group of stages. The sketch of a workload joins the
// parts of its groups. TraceBuilder writes the steps of a part.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "tuner/space/anatomy.h"
#include "tuner/space/space.h"
#include "tuner/space/values.h"

namespace mycc {

// A loop of a split one: "t1.a0", 2 -> "t1.a0.2".
std::string SubLoop(const std::string& loop, int part);

// Writes the steps of a trace.
class TraceBuilder {
 public:
  void Split(const std::string& loop, std::vector<int64_t> factors);
  void SplitAxis(const std::string& loop, int64_t factor);
  void Reorder(std::vector<std::string> loops);             // one loop alone needs no step
  std::string Fuse(const std::vector<std::string>& loops);  // the fused loop's name; a single loop is itself
  void Bind(const std::string& loop, const std::string& kind);
  void BindAll(const std::vector<std::string>& loops, const std::string& kind);
  // `loop` of `extent` iterations in vectors; several of them unrolled.
  void Vectorize(const std::string& loop, int64_t extent, int64_t lanes);
  void SplitStridePhases(const std::string& block);
  void FlipSign(const std::string& block, const std::string& buffer);
  void OperandStage(const std::string& block, int64_t factor);
  void FactorStage(const std::string& block);
  void ElideReduction(const std::string& block);
  void PermuteAxes(const std::string& block, std::vector<int64_t> order);
  void FoldStride(const std::string& block);
  void JoinGroups(const std::string& block, int64_t groups);
  void SplitChain(const std::string& sum, int64_t heads, int64_t rows, int64_t length);
  void Reverse(const std::string& loop);
  void SkipMasked(const std::string& loop);
  void SkipZeros(const std::string& block, const std::string& buffer, int64_t dim);
  void Inline(const std::string& block);
  void ComputeAt(const std::string& block, const std::string& loop);
  void ReverseInline(const std::string& block);
  void StreamReduction(const std::string& reduction, const std::string& loop);
  void Merge(const std::string& loop, const std::string& next);
  // The names that copies of a buffer by cache_read and stage_shared get: the first one's has no number, also
  // if it is of another part's. `later` 1: not the next copy, but the one after it.
  std::string NextCopy(const std::string& buffer) const;
  std::string NextTile(const std::string& buffer, int later = 0) const;
  // Returns the copy's name.
  std::string CacheRead(const std::string& buffer, const std::string& block, const std::string& loop,
                        const std::string& scope);
  void CacheWrite(const std::string& block, const std::string& loop);
  void Pack(const std::string& buffer, std::vector<std::string> components);
  void RFactor(const std::string& loop, int64_t factor);
  void RFactorRuns(const std::string& loop, int64_t length);
  void SplitArg(const std::string& block);
  void ReduceTogether(const std::string& first, const std::string& second);
  void Winograd(const std::string& block, int64_t m);
  void LanePredicate(const std::string& loop, int64_t group);
  void Layout(const std::string& buffer, int64_t row_pad, int64_t swizzle_bytes);
  void SetScope(const std::string& buffer, const std::string& scope);
  void Tensorize(const std::string& loop, const std::string& instruction);
  void Prefetch(const std::string& loop, int64_t rows, int64_t lanes, bool sums);
  void FetchNext(const std::string& loop);
  void Nontemporal(const std::string& loop);
  void TensorizeTile(const std::string& loop, const std::string& instruction, int64_t row_warps,
                     int64_t column_warps);
  std::string StageShared(const std::string& block, const std::string& buffer, const std::string& loop,
                          const std::string& scope);
  void StageWindow(const std::string& block, const std::string& buffer, const std::string& loop,
                   const std::string& scope, const std::string& taps);
  void StageWrite(const std::string& block, const std::string& loop, const std::string& scope);
  void Pipeline(const std::string& loop, const std::string& kind, int64_t stages);
  void Persist(const std::string& loop, int64_t blocks);
  void StreamK(const std::string& loop, int64_t blocks, const StreamKGroups& groups);
  void MinBlocksPerSm(const std::string& loop, int64_t blocks);
  void ClusterReduce(const std::string& loop, int64_t blocks);
  void MulticastCluster(const std::string& loop);
  void Pad(const std::string& block, int64_t dim, int64_t extent);
  void PadGroups(const std::string& block, int64_t dim, int64_t group, int64_t extent);
  void PadDomain(const std::string& block);
  void Pingpong(const std::string& loop, int64_t groups);

  std::vector<Step> steps;

 private:
  void Add(std::string primitive, std::vector<StepArg> args);
  // The steps so far that have the buffer as this argument.
  int64_t StepsOn(const std::string& primitive, size_t arg, const std::string& buffer) const;
};

struct Part {
  std::string prefix;  // "t4.": goes before the decisions' names
  std::string rule;
  std::vector<Decision> decisions;
  std::vector<int64_t> defaults;  // a value for each decision, legal together
  // Other points that are often the best, such as tiles that libraries use: tried first, beside the defaults.
  std::vector<std::vector<int64_t>> starts;
  // Both take the values by their names without the prefix.
  std::function<bool(const Values&)> legal;  // null: all legal
  std::function<void(const Values&, TraceBuilder*)> emit;

  // A decision with one choice is left out of the space but not out of the values.
  void Decide(const std::string& name, std::vector<int64_t> choices, int64_t preferred, bool ordered = true);
  // Adds a start: the defaults with these values in their places. Nothing where a value is no choice, or
  // where the point is not legal or known. REQUIRES: all is decided, and `legal` set.
  void Start(const Values& values);
  // 0 when it decides nothing of that name.
  int64_t Default(const std::string& decision) const;
};

// The rules, one file each in rules/ and, for GPUs, rules/cuda/. Each makes the part for a group: `anchor` is
// the stage whose loops carry the group, `members` every stage of the group (anchor included), in order.
struct Group {
  int anchor;
  std::vector<int> members;
};
using Rule = Part(const Anatomy& anatomy, const Group& group, const Target& target);
Rule TileRule;         // other reductions with contiguous outputs: pooling, depthwise, column sums
Rule ElementwiseRule;  // no reduction: chains, transposes, gathers

// GEMM, batched, convolution on a CPU: register tiles, packing, split k, fused epilogue. A part for each
// instruction worth it, with lanes along the output's last axis, or crosswise; the most promising first.
std::vector<Part> ContractionParts(const Anatomy& anatomy, const Group& group, const Target& target);
// A product on a CPU with lanes along the depth; nullopt where the operands do not both lie along it, or are
// packed ahead of time.
std::optional<Part> DotPart(const Anatomy& anatomy, const Group& group, const Target& target);
// A convolution by Winograd on a CPU, the largest tiles first; none where that is not possible, cannot pay or
// is not wanted.
std::vector<Part> WinogradParts(const Anatomy& anatomy, const Group& group, const Target& target);

// A chain of stages along one axis in one pass, on a CPU. FailedPrecondition says what of its operands does
// not allow it, for users (WhyNotStreamed in space.h); here and in the next two.
absl::StatusOr<Part> StreamedPart(const Anatomy& anatomy, const Group& group, const Target& target);

// The same for 16-bit elements, where an instruction multiplies pairs of them.
absl::StatusOr<Part> StreamedPairsPart(const Anatomy& anatomy, const Group& group, const Target& target);

// The same for few rows, in place and in any of the float types: keys and values are read once, as they lie.
// NotFound for more rows, which the others are for.
absl::StatusOr<Part> StreamedDotPart(const Anatomy& anatomy, const Group& group, const Target& target);

// And on a GPU's tensor cores, at least one, the most promising first.
absl::StatusOr<std::vector<Part>> GpuStreamedParts(const Anatomy& anatomy, const Group& group,
                                                   const Target& target);

// Reductions along the contiguous axis and what is around them, on a CPU: softmax, norms, sums, argmax. The
// most promising first.
std::vector<Part> RowParts(const Anatomy& anatomy, const Group& group, const Target& target);

// Few columns of many rows, on a CPU; nullopt for others.
std::optional<Part> ColumnsPart(const Anatomy& anatomy, const Group& group, const Target& target);

// By tensor cores; nullopt where the types, the target or the operands do not allow it.
std::optional<Part> WarpSpecializedPart(const Anatomy& anatomy, const Group& group, const Target& target);
std::optional<Part> MultistagePart(const Anatomy& anatomy, const Group& group, const Target& target);
// Rows on a GPU, several ways where rows are few and long; the most promising first.
std::vector<Part> GpuRowParts(const Anatomy& anatomy, const Group& group, const Target& target);
Rule GpuSimtRule;     // contractions on the ordinary cores
Rule GpuWindowRule;   // reductions over few terms across the contiguous axis
Rule GpuColumnsRule;  // over many
Rule GpuElementwiseRule;
Rule GpuMergeRule;  // the results of a chain's parts (codegen/schedule/split_chain.h)

// For rules of rows: how many of the anchor's axes number them, those that the group's reductions leave.
size_t RowRank(const Anatomy& anatomy, const Group& group);

}  // namespace mycc
