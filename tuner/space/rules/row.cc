// Reductions along the contiguous axis and what stands around them: softmax, layer and RMS norm, row sums and
// maxima, argmax.
//
//   parallel rows:
//     partial[v] (op)= f(row)        v: several vectors of independent partial results
//     result = reduce(partial)       across the lanes, once a row
//     ... the elementwise stages between, on a row that stays in the cache ...
//     output row
//
// All stages of the group are computed under the row loop of the last one. Cheap elementwise stages are
// inlined before a rule sees them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Member {
  std::string name;
  bool reduction = false;
  bool arg = false;
  int64_t row_length = 1;  // extent of the axis along the row
  std::string along;       // loop of that axis: t.r0 or t.a1; empty for a stage of rows alone
};

struct Plan {
  std::vector<Member> members;  // in order, the anchor last
  std::vector<std::string> row_loops;
  int lanes;
};

// Number of partial results for a row of this length, from the decided count of vectors; 0: none, the row is
// too short.
int64_t Partials(const Member& m, int64_t vectors, int lanes) {
  if (m.arg) return 0;
  int64_t partials = vectors * lanes;
  while (partials > m.row_length) partials /= 2;
  return partials >= 4 ? partials : 0;
}

void EmitReduction(const Member& m, int64_t partials, int lanes, TraceBuilder* b) {
  if (partials == 0) return;
  std::string lane = absl::StrCat(m.name, ".rf.v");
  if (partials > lanes) {
    b->Split(lane, {lanes});
    b->Bind(absl::StrCat(lane, ".0"), "unroll");
    absl::StrAppend(&lane, ".1");
  }
  b->Bind(lane, "vector");
  b->Bind(absl::StrCat(m.name, ".v"), "vector");
}

void EmitAlong(const Member& m, int64_t unroll, int lanes, TraceBuilder* b) {
  if (m.along.empty()) return;
  b->Split(m.along, {unroll, lanes});
  b->Bind(absl::StrCat(m.along, ".2"), "vector");
  b->Bind(absl::StrCat(m.along, ".1"), "unroll");
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const auto partials = [&](const Member& m) {
    return m.reduction ? Partials(m, v.at("vectors"), plan.lanes) : 0;
  };
  for (const Member& m : plan.members) {
    if (partials(m) > 0) b->RFactor(m.along, partials(m));
  }
  // The anchor's row loops become one; everything else moves under it, last first.
  const Member& anchor = plan.members.back();
  std::string row;
  if (!plan.row_loops.empty()) {
    row = b->Fuse(plan.row_loops);
    for (auto m = plan.members.rbegin(); m != plan.members.rend(); ++m) {
      if (m->name != anchor.name) b->ComputeAt(m->name, row);
      if (partials(*m) > 0) b->ComputeAt(absl::StrCat(m->name, ".rf"), row);
    }
    if (v.at("par")) b->Bind(row, "parallel");
  }
  for (const Member& m : plan.members) {
    if (m.reduction) {
      EmitReduction(m, partials(m), plan.lanes, b);
    } else {
      EmitAlong(m, v.at("unroll"), plan.lanes, b);
    }
  }
}

Member Describe(const Anatomy& anatomy, int s, size_t row_rank) {
  const Stage& stage = anatomy.stage(s);
  Member m;
  m.name = anatomy.name(s);
  m.reduction = stage.reduce != ReduceOp::kNone;
  m.arg = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
  if (m.reduction) {
    const int last = static_cast<int>(stage.reduce_axes.size()) - 1;
    m.along = anatomy.ReduceLoop(s, last);
    m.row_length = stage.reduce_axes[last]->extent;
  } else if (stage.axes.size() > row_rank) {
    const int last = static_cast<int>(stage.axes.size()) - 1;
    m.along = anatomy.Loop(s, last);
    m.row_length = stage.axes[last]->extent;
  }
  return m;
}

}  // namespace

Part RowRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& anchor = anatomy.stage(group.anchor);
  const size_t row_rank = RowRank(anatomy, group);
  Plan plan;
  plan.lanes = VectorBytes(target) / std::max(DTypeBytes(anchor.value->dtype), 1);
  for (int s : group.members) plan.members.push_back(Describe(anatomy, s, row_rank));
  int64_t rows = 1;
  for (size_t a = 0; a < row_rank; ++a) {
    plan.row_loops.push_back(anatomy.Loop(group.anchor, static_cast<int>(a)));
    rows *= anchor.axes[a]->extent;
  }
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "row";
  const bool can_parallel = target.threads > 1 && rows > 1;
  part.Decide("par", can_parallel ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
              can_parallel && PaysForThreads(anatomy, group, target), false);
  part.Decide("vectors", {1, 2, 4, 8}, 4);
  part.Decide("unroll", {1, 2, 4}, 2);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
