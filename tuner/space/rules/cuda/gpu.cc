#include "tuner/space/rules/cuda/gpu.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

int64_t LowestBit(int64_t value) { return value & -value; }

int64_t AlignedLanes(const BufferNode& buffer, const std::vector<Expr>& index, const Var& lane) {
  constexpr int64_t kMost = 16;
  int64_t step = 0, others = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t stride = buffer.stride(static_cast<int>(d));
    const Linear linear = ToLinear(index[d]);
    others = std::gcd(others, linear.constant * stride);
    for (const auto& [atom, coefficient] : linear.terms) {
      if (atom->op == Op::kVar && atom->var == lane) {
        step += coefficient * stride;
      } else if (UsesVar(atom, lane.get())) {
        return 1;
      } else {
        others = std::gcd(others, coefficient * stride);
      }
    }
  }
  if (step != 1) return 1;
  return others == 0 ? kMost : std::min(kMost, LowestBit(std::abs(others)));
}

int64_t LanesOf(const Stage& stage, const Var& lane) {
  int64_t lanes = 16, narrowest = 0;
  const auto limit = [&](const BufferNode& buffer, const std::vector<Expr>& index) {
    const int64_t bytes = std::max(DTypeBytes(buffer.dtype), 1);
    narrowest = narrowest == 0 ? bytes : std::min(narrowest, bytes);
    lanes = std::min(lanes, AlignedLanes(buffer, index, lane));
  };
  std::vector<Expr> own;
  for (const Var& axis : stage.axes) own.push_back(VarRef(axis));
  if (std::ranges::find(stage.axes, lane) != stage.axes.end()) limit(*stage.output, own);
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (StrideOf(*load, lane) == 1) limit(*load->buffer, load->args);
  }
  return narrowest == 0 ? lanes : std::min(lanes, kAccessBytes / narrowest);
}

std::vector<int64_t> PowersOfTwo(int64_t from, int64_t most) {
  std::vector<int64_t> powers = {from};
  while (powers.back() * 2 <= most) powers.push_back(powers.back() * 2);
  return powers;
}

int64_t PowerAtMost(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

int64_t PowerAtLeast(int64_t value) {
  int64_t power = 1;
  while (power < value) power *= 2;
  return power;
}

void MakeDefaultsLegal(Part* part) {
  const size_t count = part->decisions.size();
  std::vector<size_t> point(count, 0), preferred(count, 0), best;
  for (size_t d = 0; d < count; ++d) {
    const std::vector<int64_t>& choices = part->decisions[d].choices;
    preferred[d] = static_cast<size_t>(std::ranges::find(choices, part->defaults[d]) - choices.begin());
  }
  size_t nearest = std::numeric_limits<size_t>::max();
  const auto visit = [&] {
    size_t steps = 0;
    for (size_t d = 0; d < count; ++d)
      steps += point[d] > preferred[d] ? point[d] - preferred[d] : preferred[d] - point[d];
    if (steps >= nearest) return;
    Values v;
    for (size_t d = 0; d < count; ++d) v.Add(part->decisions[d].name, part->decisions[d].choices[point[d]]);
    if (!part->legal(v)) return;
    nearest = steps;
    best = point;
  };
  point = preferred;
  visit();
  point.assign(count, 0);
  while (nearest > 0) {
    visit();
    size_t d = 0;
    while (d < count && ++point[d] == part->decisions[d].choices.size()) point[d++] = 0;
    if (d == count) break;
  }
  for (size_t d = 0; d < best.size(); ++d) part->defaults[d] = part->decisions[d].choices[best[d]];
}

int64_t VectorsPerThread(int64_t elements, int64_t lanes, int64_t threads, int64_t most,
                         const Target& target) {
  constexpr int64_t kBlocksPerSm = 8;
  int64_t vectors = most;
  while (vectors > 1 && elements / (lanes * threads * vectors) < kBlocksPerSm * std::max(target.sms, 1))
    vectors /= 2;
  return vectors;
}

void EmitGroups(const Anatomy& anatomy, int stage, const std::string& block, TraceBuilder* b) {
  const std::optional<GroupedAxis>& groups = anatomy.info(stage).contraction->groups;
  if (!groups) return;
  b->SplitAxis(absl::StrCat(block, ".", anatomy.stage(stage).axes[groups->axis]->name), groups->extent);
}

void EmitFlat(const std::vector<std::string>& loops, int64_t unroll, int64_t threads, int64_t lanes,
              TraceBuilder* b) {
  const std::string flat = b->Fuse(loops);
  b->Split(flat, {unroll, threads, lanes});
  b->Reorder({SubLoop(flat, 2), SubLoop(flat, 1)});
  b->Bind(SubLoop(flat, 0), "block");
  b->Bind(SubLoop(flat, 2), "thread");
  b->Bind(SubLoop(flat, 1), "unroll");
  b->Bind(SubLoop(flat, 3), "vector");
}

}  // namespace mycc
