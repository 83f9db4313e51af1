#include "tuner/space/rules/tiles.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace mycc {

std::vector<int64_t> TileCounts(int64_t tiles) {
  std::vector<int64_t> counts = {1, tiles};
  for (int64_t p = 2; p < tiles; p *= 2) {
    counts.push_back(p);
    if (p / 2 * 3 < tiles) counts.push_back(p / 2 * 3);
  }
  for (int64_t parts : {2, 3, 4, 8}) {
    if (tiles > parts) counts.push_back(CeilDiv(tiles, parts));
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

int64_t LargestAtMost(const std::vector<int64_t>& ascending, int64_t bound) {
  int64_t best = ascending.front();
  for (int64_t value : ascending) {
    if (value <= bound) best = value;
  }
  return best;
}

std::vector<int64_t> UpTo(std::vector<int64_t> choices, int64_t most) {
  std::erase_if(choices, [&](int64_t choice) { return choice > most && choice != choices.front(); });
  return choices;
}

bool PaysForThreads(const Anatomy& anatomy, const Group& group, const Target& target) {
  constexpr double kFewestOps = 1 << 17, kBytesOfAnOp = 4;
  double ops = 0, bytes = 0;
  std::set<const BufferNode*> counted;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    double iterations = static_cast<double>(stage.output->num_elements());
    for (const Var& axis : stage.reduce_axes) iterations *= static_cast<double>(axis->extent);
    ops += iterations * (1 + anatomy.info(s).ops_per_element);
    const auto count = [&](const Buffer& buffer) {
      const double most =
          iterations * DTypeBytes(buffer->dtype);  // of a table, only the elements that are looked up
      if (counted.insert(buffer.get()).second) bytes += std::min(static_cast<double>(buffer->bytes()), most);
    };
    count(stage.output);
    for (const ExprNode* load : LoadsOf(stage.value)) count(load->buffer);
  }
  return target.threads > 1 && std::max(ops, bytes / kBytesOfAnOp) >= kFewestOps;
}

void DecideThreads(const Anatomy& anatomy, const Group& group, const Target& target, bool can, Part* part) {
  can &= target.threads > 1;
  part->Decide("par", can ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
               can && PaysForThreads(anatomy, group, target), /*ordered=*/false);
}

void EmitEpilogue(const Anatomy& anatomy, const std::vector<int>& stages, TraceBuilder* b) {
  for (size_t i = 0; i + 1 < stages.size(); ++i) b->Inline(anatomy.name(stages[i]));
  if (!stages.empty()) b->ReverseInline(anatomy.name(stages.back()));
}

void DecideBypass(const Anatomy& anatomy, int stage, const Target& target, Part* part) {
  constexpr int64_t kLine = 64;
  const StageInfo& info = anatomy.info(stage);
  const BufferNode& output = *anatomy.stage(stage).output;
  const bool fits = output.bytes() / std::max(target.threads, 1) <= target.l2_bytes;
  const bool in_lines = output.rank() > 0 && output.shape.back() * DTypeBytes(output.dtype) % kLine == 0;
  const bool can = info.is_output && info.readers.empty() && in_lines && !fits;
  part->Decide("bypass", can ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, 0, /*ordered=*/false);
}

void EmitPlainStage(const Anatomy& anatomy, int stage, const Target& target, bool parallel, TraceBuilder* b) {
  const Stage& s = anatomy.stage(stage);
  if (s.axes.empty()) return;
  const int last = static_cast<int>(s.axes.size()) - 1;
  // No more loops than there are threads for: the iterations of several are taken apart by divisions.
  int64_t iterations = 1;
  const bool has_rows = s.output->num_elements() > s.axes[last]->extent;
  for (int a = 0; parallel && has_rows && a < last && iterations < 8 * target.threads; ++a) {
    b->Bind(anatomy.Loop(stage, a), "parallel");
    iterations *= s.axes[a]->extent;
  }
  const Var& lane = s.axes.back();
  int bytes = DTypeBytes(s.output->dtype);
  for (const ExprNode* load : LoadsOf(s.value)) {
    const auto stride = StrideOf(*load, lane);
    if (!stride || (*stride != 0 && *stride != 1)) return;
    bytes = std::max(bytes, DTypeBytes(load->dtype));
  }
  const std::string loop = anatomy.Loop(stage, last);
  b->Split(loop, {VectorBytes(target) / bytes});
  b->Bind(absl::StrCat(loop, ".1"), "vector");
}

}  // namespace mycc
