// The CPU rule for sums and maxima over many rows of a tensor with few columns. Neighbouring rows lie side by
// side in the vector lanes, and threads share blocks of rows.
//
//   parallel blocks of rows v.0:
//     for steps: unrolled vectors over v.1 x columns:  t.rf[v, n] (op)= x[row, n]
//   t[n] = reduce(t.rf[v, n])
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Plan {
  std::string t;
  int64_t rows_of_vectors;  // the fewest rows that fill whole vectors
  int lanes, threads;
  bool in_registers;  // rows of a register tile are padded to vectors, so others would not be adjacent
};

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const std::string rf = absl::StrCat(plan.t, ".rf");
  const auto loop = [](const std::string& block, const char* axis) { return absl::StrCat(block, ".", axis); };
  const int64_t block = plan.rows_of_vectors * v.at("blocks");
  const int64_t threads = v.at("par") ? plan.threads : 1;
  b->RFactor(loop(plan.t, "r0"), threads * block);
  b->Pack(rf, {"1", "0"});
  b->Split(loop(rf, "v"), {block});
  b->Reorder({loop(rf, "v.0"), loop(rf, "r0"), loop(rf, "v.1"), loop(rf, "a0")});
  std::vector<std::string> suffixes = {""};
  if (plan.in_registers) {
    b->CacheWrite(rf, loop(rf, "v.0"));
    suffixes.insert(suffixes.end(), {".i", ".w"});
  }
  for (const std::string& suffix : suffixes) {
    const std::string part = absl::StrCat(rf, suffix);
    const std::string flat = b->Fuse({loop(part, "v.1"), loop(part, "a0")});
    b->Split(flat, {plan.lanes});
    b->Bind(absl::StrCat(flat, ".1"), "vector");
    b->Bind(absl::StrCat(flat, ".0"), "unroll");
  }
  if (v.at("par")) b->Bind(loop(rf, "v.0"), "parallel");
  b->Reorder({loop(plan.t, "v"), loop(plan.t, "a0")});
  b->Bind(loop(plan.t, "a0"), "vector");
}

// The rows follow each other in everything that is read.
bool IsDense(const Stage& stage) {
  const std::vector<const ExprNode*> loads = LoadsOf(stage.value);
  return !loads.empty() && std::ranges::all_of(loads, [&](const ExprNode* load) {
    return StrideOf(*load, stage.axes[0]) == 1 &&
           StrideOf(*load, stage.reduce_axes[0]) == stage.axes[0]->extent;
  });
}

}  // namespace

std::optional<Part> ColumnsPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  constexpr int64_t kFewestBlocks = 16;
  const Stage& stage = anatomy.stage(group.anchor);
  if (group.members.size() != 1 || stage.axes.size() != 1 || stage.reduce_axes.size() != 1 || !IsDense(stage))
    return std::nullopt;
  Plan plan;
  plan.t = anatomy.name(group.anchor);
  plan.lanes = VectorBytes(target) / std::max(DTypeBytes(stage.value->dtype), 1);
  plan.threads = std::max(target.threads, 1);
  const int64_t columns = stage.axes[0]->extent;
  plan.in_registers = columns % plan.lanes == 0 || plan.lanes % columns == 0;
  plan.rows_of_vectors = plan.lanes / std::gcd(columns, static_cast<int64_t>(plan.lanes));
  const int64_t vectors = plan.rows_of_vectors * columns / plan.lanes, most = VectorRegisters(target) - 4;
  std::vector<int64_t> blocks;
  for (int64_t count : {1, 2, 4, 8, 16}) {
    const int64_t rows = plan.rows_of_vectors * count;
    const bool enough = rows * plan.threads * kFewestBlocks <= stage.reduce_axes[0]->extent;
    if (rows > 1 && count * vectors <= most && enough) blocks.push_back(count);
  }
  if (blocks.empty()) return std::nullopt;
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "columns";
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  part.Decide("blocks", blocks, LargestAtMost(blocks, std::max<int64_t>(1, most / 2 / vectors)));
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
