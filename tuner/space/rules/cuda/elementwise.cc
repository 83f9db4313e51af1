// The GPU rule for stages without a reduction: chains, broadcasts, casts, gathers, concatenations.
// Transposes, whose input is contiguous along another axis than their output, are in transpose.cc.
//
//   block, thread: unroll u: vector
//
// All axes are fused into one. Each thread has a few vectors of 16 bytes, and a block's vectors are adjacent.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/cuda/transpose.h"

namespace mycc {
namespace {

// Vectors of a flat stage are aligned everywhere; a tail is less than one vector, at the very end.
int64_t FlatLanes(const Stage& stage) {
  int64_t narrowest = std::max(DTypeBytes(stage.output->dtype), 1);
  for (const ExprNode* load : LoadsOf(stage.value))
    narrowest = std::min<int64_t>(narrowest, std::max(DTypeBytes(load->buffer->dtype), 1));
  return kAccessBytes / narrowest;
}

int LargeReads(const Stage& stage) {
  int reads = 0;
  for (const ExprNode* load : LoadsOf(stage.value))
    reads += 2 * load->buffer->num_elements() > stage.output->num_elements();
  return reads;
}

}  // namespace

Part GpuElementwiseRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "elementwise";
  if (stage.axes.empty()) {
    part.emit = [](const Values&, TraceBuilder*) {};
    return part;
  }
  if (FindTransposedRead(stage).axis >= 0) return TransposePart(anatomy, group, target);
  std::vector<std::string> loops;
  loops.reserve(stage.axes.size());
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a)
    loops.push_back(anatomy.Loop(group.anchor, a));
  const int64_t lanes = IsFlat(stage) ? FlatLanes(stage) : LanesOf(stage, stage.axes.back());
  const int64_t elements = stage.output->num_elements();
  const int64_t threads = elements <= 128 * lanes ? 128 : 256;
  part.Decide("lanes", PowersOfTwo(1, lanes), lanes);
  part.Decide("threads", {128, 256, 512, 1024}, threads);
  part.Decide("unroll", {1, 2, 4, 8},
              VectorsPerThread(elements, lanes, threads, LargeReads(stage) > 1 ? 2 : 4, target));
  part.emit = [loops](const Values& v, TraceBuilder* b) {
    EmitFlat(loops, v.at("unroll"), v.at("threads"), v.at("lanes"), b);
  };
  return part;
}

}  // namespace mycc
