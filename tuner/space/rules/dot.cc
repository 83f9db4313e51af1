// The CPU rule for products whose operands are both contiguous along the depth, x[i,k] * w[j,k], and not
// packed ahead of time: in tiles of dot_tile.h.
//
// The operands are read in place, in one stream for each row and column of the tile. Each load serves the
// whole tile, so a few rows read a matrix of weights once.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/dot_tile.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kRowsInTile[] = {1, 2, 3, 4, 6, 8}, kColumnsInTile[] = {1, 2, 3, 4, 6, 8};

struct Plan {
  const Anatomy anatomy;
  int stage;
  std::string t, m, n;             // m empty: there is one row
  std::vector<std::string> outer;  // the other axes
  std::vector<int> prologue, epilogue;
  Target target;
  int lanes, registers;
  int64_t rows = 1, columns = 1;
};

DotTile TileOf(const Plan& plan, const Values& v) {
  DotTile tile{.block = plan.t, .m = plan.m, .n = plan.n, .outer = plan.outer, .lanes = plan.lanes};
  for (size_t r = 0; r < plan.anatomy.stage(plan.stage).reduce_axes.size(); ++r)
    tile.depths.push_back(plan.anatomy.ReduceLoop(plan.stage, static_cast<int>(r)));
  tile.mr = v.at("mr"), tile.nr = v.at("nr"), tile.vectors = v.at("vectors");
  return tile;
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  for (int s : plan.prologue) EmitPlainStage(plan.anatomy, s, plan.target, v.at("par") != 0, b);
  const DotTile tile = TileOf(plan, v);
  FactorDotTile(tile, b);
  const std::vector<std::string> blocks = CutDotTile(tile, b);
  if (v.at("par")) b->BindAll(blocks, "parallel");
  EmitDotPartials(tile, blocks, b);
  EmitEpilogue(plan.anatomy, plan.epilogue, b);
  BindDotTile(tile, b);
}

Plan MakePlan(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  const Contraction& c = *anatomy.info(group.anchor).contraction;
  Plan plan{anatomy, group.anchor, anatomy.name(group.anchor)};
  for (int s : group.members) {
    if (s != group.anchor) (s < group.anchor ? plan.prologue : plan.epilogue).push_back(s);
  }
  plan.target = target;
  plan.lanes = VectorBytes(target) / DTypeBytes(stage.value->dtype);
  plan.registers = VectorRegisters(target);
  const auto add = [&](const std::vector<int>& axes, std::string* tiled, int64_t* extent) {
    for (int a : axes) {
      if (tiled == nullptr || a != axes.back()) plan.outer.push_back(anatomy.Loop(group.anchor, a));
    }
    if (tiled == nullptr || axes.empty()) return;
    *tiled = anatomy.Loop(group.anchor, axes.back());
    *extent = stage.axes[axes.back()]->extent;
  };
  add(c.batch, nullptr, nullptr);
  add(c.rows, &plan.m, &plan.rows);
  add(c.cols, &plan.n, &plan.columns);
  return plan;
}

// A square of sums, as far as there are rows; where these are so few that sums would wait for each other,
// several vectors. A single row uses what it reads once: then one stream is fetched ahead better than several
// that share pages, unless the row is widened for each.
Values DefaultTile(const Plan& plan, bool widened, int64_t column_bytes) {
  const int64_t fewest = widened ? 2048 : 4 * 4096;
  if (plan.rows == 1 && column_bytes < fewest) return {{"mr", 1}, {"nr", 1}, {"vectors", 4}};
  const int64_t mr = plan.registers == 32 ? 4 : 2;
  return {{"mr", mr}, {"nr", 4}, {"vectors", std::min(mr, plan.rows) >= 2 ? 1 : 2}};
}

}  // namespace

std::optional<Part> DotPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<Contraction>& c = anatomy.info(group.anchor).contraction;
  if (!c || !LiesAlongDepth(*c, anatomy.stage(group.anchor))) return std::nullopt;
  const Plan plan = MakePlan(anatomy, group, target);
  const int64_t depth = anatomy.stage(group.anchor).reduce_axes.back()->extent;
  const Values tile = DefaultTile(plan, HasCast(*c), depth * DTypeBytes(c->vector.buffer->dtype));
  std::vector<int64_t> mrs, nrs, vectors;
  for (int64_t mr : kRowsInTile) {
    if (mr <= plan.rows) mrs.push_back(mr);
  }
  for (int64_t nr : kColumnsInTile) {
    if (nr <= plan.columns) nrs.push_back(nr);
  }
  for (int64_t count : {1, 2, 4}) {
    if (count * plan.lanes <= depth) vectors.push_back(count);
  }
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "dot";
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  part.Decide("mr", mrs, LargestAtMost(mrs, tile.at("mr")));
  part.Decide("nr", nrs, LargestAtMost(nrs, tile.at("nr")));
  part.Decide("vectors", vectors, LargestAtMost(vectors, tile.at("vectors")));
  part.legal = [plan](const Values& v) {
    return FitsDotRegisters(v.at("mr"), v.at("nr"), v.at("vectors"), plan.registers);
  };
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
