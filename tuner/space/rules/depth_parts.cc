#include "tuner/space/rules/depth_parts.h"

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

int64_t PartDepth(int64_t depth, int64_t split, int64_t step) { return RoundUp(CeilDiv(depth, split), step); }

int64_t PartsOf(int64_t depth, int64_t split, int64_t step) {
  return CeilDiv(depth, PartDepth(depth, split, step));
}

std::string EmitParts(const Anatomy& anatomy, int stage, int reduce_axis, int64_t length, TraceBuilder* b) {
  b->RFactorRuns(anatomy.ReduceLoop(stage, reduce_axis), length);
  const std::string parts = absl::StrCat(anatomy.name(stage), ".rf");
  const size_t rank = anatomy.stage(stage).axes.size();
  std::vector<std::string> layout = {absl::StrCat(rank)};
  for (size_t d = 0; d < rank; ++d) layout.push_back(absl::StrCat(d));
  b->Pack(parts, layout);
  return parts;
}

}  // namespace mycc
