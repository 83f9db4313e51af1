// Rewrites a workload's stages before rules see them: into other stages that compute the same tensors, with
// the trace steps that do it. Pure.
#pragma once

#include <vector>

#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

struct Rewritten {
  Workload workload;
  std::vector<Step> steps;
};

// Transposed convolutions become convolutions of each phase (codegen/schedule/stride_phases.h), and sums of
// products of two i8 or two u8 become sums of u8 times i8 where the instruction for them multiplies nothing
// else (codegen/schedule/stage_rewrites.h).
Rewritten RewriteForCpu(const Workload& canonical, const Target& target);

// Reductions of one term become that term (codegen/schedule/stage_rewrites.h). Not for rules that stream
// chains, which know these by their reductions.
Rewritten WithoutSingleTerms(const Rewritten& rewritten);

// Computed factors of sums that end a chain along one axis (stream_chain.h) become stages of their own, for
// rules that stream the chain.
Rewritten WithOperandStages(const Rewritten& rewritten);
// The same of all sums, whether they end a chain or not.
Rewritten WithAllOperandStages(const Rewritten& rewritten);

// Sums that end a chain have their dimensions in the order of the stage that reads them, element by element
// (codegen/schedule/stage_rewrites.h), so that it is computed where the sum is.
Rewritten WithSumsAsRead(const Rewritten& rewritten);

// Chains with few rows, in parts of their axis that fill a GPU's multiprocessors, or give a CPU's threads
// equal shares (codegen/schedule/split_chain.h); the rows of heads with the same keys are together. One
// workload for each length of parts that is worth it, the longest first. None where there are rows enough.
std::vector<Rewritten> WithPartsOfChains(const Rewritten& rewritten, const Target& target);

// Sums in groups of few channels on a GPU whose copy engine fetches tiles: in groups as wide as its rows
// (codegen/workload/joined_groups.h), one workload for each width. None where there are no such sums.
std::vector<Rewritten> WithJoinedGroups(const Rewritten& rewritten, const Target& target);

// Convolutions with a stride over so few channels that a row of the copy engine has several pixels: with the
// pixels between as channels (codegen/workload/folded_stride.h). None where there are no such sums.
std::vector<Rewritten> WithFoldedStrides(const Rewritten& rewritten, const Target& target);

// Products of numbers that tf32() rounds, on a GPU whose wgmma cuts off what it should round: with stages
// that round the operands first. None where the passes over memory would take longer than wgmma saves.
std::vector<Rewritten> WithRoundedOperands(const Rewritten& rewritten, const Target& target);

}  // namespace mycc
