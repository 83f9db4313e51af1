// The CPU rule for reductions along the contiguous axis and the stages around them: softmax, layer and RMS
// norm, row sums and maxima, argmax.
//
//   parallel rows:
//     partial[v] (op)= f(row)        v: several vectors of independent partial results
//     result = reduce(partial)       across the lanes, once a row
//     ... the elementwise stages between, on a row that stays in the cache ...
//     output row
//
// All stages of the group are computed under the row loop of the last one, for one row or for several at
// once: adding up the lanes of one row takes as long as adding up a short row. A reduction that reads only an
// elementwise stage shares its loop. Cheap elementwise stages were inlined before.
//
// With fewer rows than threads, the threads share each row instead:
//
//   parallel rows, runs: partial[run] = reduce(run of the row), in lanes
//   result = reduce(partial)
//
// A reduction and a sum that uses its result may also be one pass over the row (joint_rows.h). The tuner has
// it as a part of its own: it pays where a row does not stay in a cache between two passes.
//
// An argmax is a maximum and the first position where it occurs; across rows, each lane computes its own.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/joint_rows.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// Shorter rows are done before another thread has begun.
constexpr int64_t kFewestToSpread = 8192;

struct Member {
  std::string name;
  bool reduction = false;
  bool scalar = false;              // an argmax that stays one
  bool is_joint = false;            // two reductions in one, of tuples
  int64_t cut_length = 1;           // of the outermost of its loops
  int64_t row_length = 1;           // extent of the axis along the row
  std::vector<std::string> reduce;  // loops of a reduction, that along the row the last
  bool direct = false;              // elementwise, with the rows' axes and the one along them alone
  std::string along;                // loop of that axis: t.r0 or t.a1; empty for a stage of rows alone
  bool reads_rows = false;          // of tensors that no member computes
  double ops = 0;                   // for each element
  std::string fed_by;  // member whose elements, in order, are all that the reduction reads of the group
};

struct Plan {
  std::vector<Member> members;  // in order, the anchor last
  std::vector<std::string> row_loops;
  std::optional<JointRows> joint;
  std::vector<std::string> split_args;  // stages that become a member's best value and its place
  int lanes;
  int threads;
  std::vector<size_t> passes;  // members that read rows from memory, in order
  bool across = false;         // only an argmax over an axis that is not contiguous
};

// The loops over rows of a member of this name.
std::vector<std::string> RowLoops(const std::string& name, size_t rank) {
  std::vector<std::string> loops;
  for (size_t a = 0; a < rank; ++a) loops.push_back(absl::StrCat(name, ".a", a));
  return loops;
}

// Number of partial results for a row of this length, from the decided count of vectors; 0: none, the row is
// too short.
int64_t Partials(const Member& m, int64_t vectors, int lanes) {
  if (m.scalar) return 0;
  int64_t partials = vectors * lanes;
  while (partials > m.row_length) partials /= 2;
  return partials >= 4 ? partials : 0;
}

void EmitReduction(const Member& m, int64_t partials, int lanes, TraceBuilder* b) {
  if (partials == 0) return;
  b->Vectorize(absl::StrCat(m.name, ".rf.v"), partials, lanes);
  // A merge of tuples is no operation of vectors' hardware across lanes.
  if (!m.is_joint) b->Bind(absl::StrCat(m.name, ".v"), "vector");
}

void EmitAlong(const Member& m, int64_t unroll, int lanes, TraceBuilder* b) {
  if (m.along.empty()) return;
  b->Split(m.along, {unroll, lanes});
  b->Bind(absl::StrCat(m.along, ".2"), "vector");
  b->Bind(absl::StrCat(m.along, ".1"), "unroll");
}

// The loop under which everything is computed: the anchor's rows, or blocks of them.
std::string EmitRowLoop(const Plan& plan, int64_t rows, TraceBuilder* b) {
  const std::string row = b->Fuse(plan.row_loops);
  if (rows == 1) return row;
  b->Split(row, {rows});
  return absl::StrCat(row, ".0");
}

// Loops over the rows of a block become code for each row, whose partial results are in registers then. The
// output's loops over rows stand inside its loop along the row: elements that all rows read there are read
// once.
void UnrollRows(const Plan& plan, const Member& m, bool has_partials, TraceBuilder* b) {
  const bool anchor = m.name == plan.members.back().name;
  const std::string rows = anchor ? absl::StrCat(plan.row_loops[0], ".1") : absl::StrCat(m.name, ".a0");
  if (anchor && !m.reduction && !m.along.empty()) b->Reorder({absl::StrCat(m.along, ".0"), rows});
  b->Bind(rows, "unroll");
  if (has_partials) b->Bind(absl::StrCat(m.name, ".rf.a0"), "unroll");
}

// The reduction's partial results grow as the elements are computed: one loop for both.
void EmitMerged(const Plan& plan, const Member& m, TraceBuilder* b) {
  const Member& source =
      *std::ranges::find_if(plan.members, [&](const Member& other) { return other.name == m.fed_by; });
  const size_t rank = plan.row_loops.size();
  const std::string partial = absl::StrCat(m.name, ".rf");
  const std::vector<std::string> rows = RowLoops(source.name, rank), others = RowLoops(partial, rank);
  for (size_t a = 0; a < rank; ++a) b->Merge(rows[a], others[a]);
  b->Merge(absl::StrCat(source.along, ".0"), absl::StrCat(partial, m.along.substr(m.name.size())));
}

// A reduction in as many runs as there are threads: of the outermost of its loops, or of vectors.
void EmitRuns(const Plan& plan, const Member& m, int64_t vectors, TraceBuilder* b) {
  const int64_t step = vectors * plan.lanes;
  const int64_t length = RoundUp(CeilDiv(m.cut_length, plan.threads), m.reduce.size() == 1 ? step : 1);
  if (m.scalar || length < 2 || length >= m.cut_length) return;
  b->RFactorRuns(m.reduce.front(), length);
  const std::string partial = absl::StrCat(m.name, ".rf");
  const auto of_partial = [&](const std::string& loop) {
    return absl::StrCat(partial, loop.substr(m.name.size()));
  };
  std::vector<std::string> order = RowLoops(partial, plan.row_loops.size());
  order.push_back(absl::StrCat(partial, ".v"));
  const std::vector<std::string> shared = order;
  for (const std::string& loop : m.reduce) order.push_back(of_partial(loop));
  b->Reorder(order);
  b->BindAll(shared, "parallel");
  b->Split(of_partial(m.along), {step});
  b->Bind(absl::StrCat(of_partial(m.along), ".1"), "vector");
}

// While this pass over a row runs, the next row comes into the cache. A reduction that has no loop of its own
// for that, for it is short or shares another's, fetches nothing.
void EmitFetch(const Member& m, bool has_own_loop, TraceBuilder* b) {
  if (!m.reduction) return b->FetchNext(absl::StrCat(m.along, ".0"));
  if (has_own_loop) b->FetchNext(absl::StrCat(m.name, ".rf", m.along.substr(m.name.size())));
}

// Every stage over all threads.
void EmitSpread(const Plan& plan, const Values& v, TraceBuilder* b) {
  for (const Member& m : plan.members) {
    if (m.reduction) {
      EmitRuns(plan, m, v.at("vectors"), b);
      continue;
    }
    EmitAlong(m, v.at("unroll"), plan.lanes, b);
    std::vector<std::string> loops = RowLoops(m.name, plan.row_loops.size());
    if (!m.along.empty()) loops.push_back(absl::StrCat(m.along, ".0"));
    if (m.direct) b->BindAll(loops, "parallel");
  }
}

// An argmax over rows, in each lane for one of the columns.
void EmitAcross(const Plan& plan, const Member& m, bool parallel, TraceBuilder* b) {
  std::vector<std::string> order(plan.row_loops.begin(), plan.row_loops.end() - 1);
  const std::string& columns = plan.row_loops.back();
  b->Split(columns, {plan.lanes});
  order.push_back(absl::StrCat(columns, ".0"));
  const std::vector<std::string> blocks = order;
  order.insert(order.end(), m.reduce.begin(), m.reduce.end());
  order.push_back(absl::StrCat(columns, ".1"));
  b->Reorder(order);
  if (parallel) b->BindAll(blocks, "parallel");
  b->Bind(absl::StrCat(columns, ".1"), "vector");
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  if (plan.joint) EmitJoint(*plan.joint, b);
  for (const std::string& stage : plan.split_args) b->SplitArg(stage);
  if (v.at("spread")) return EmitSpread(plan, v, b);
  if (plan.across) return EmitAcross(plan, plan.members.back(), v.at("par") != 0, b);
  const auto partials = [&](const Member& m) {
    return m.reduction ? Partials(m, v.at("vectors"), plan.lanes) : 0;
  };
  const auto merged = [&](const Member& m) {
    return v.at("merge") == 1 && !m.fed_by.empty() && partials(m) == v.at("vectors") * plan.lanes;
  };
  for (const Member& m : plan.members) {
    if (partials(m) > 0) b->RFactor(m.along, partials(m));
  }
  // The anchor's row loops become one; everything else moves under it, last first.
  const Member& anchor = plan.members.back();
  if (!plan.row_loops.empty()) {
    const std::string row = EmitRowLoop(plan, v.at("rows"), b);
    for (auto m = plan.members.rbegin(); m != plan.members.rend(); ++m) {
      if (m->name != anchor.name) b->ComputeAt(m->name, row);
      if (partials(*m) > 0) b->ComputeAt(absl::StrCat(m->name, ".rf"), row);
    }
    if (v.at("bypass")) b->Nontemporal(row);
    if (v.at("par")) b->Bind(row, "parallel");
  }
  std::set<std::string> feeding;
  for (const Member& m : plan.members) {
    if (merged(m)) feeding.insert(m.fed_by);
  }
  for (const Member& m : plan.members) {
    if (m.reduction && merged(m)) EmitMerged(plan, m, b);
    if (m.reduction) {
      EmitReduction(m, partials(m), plan.lanes, b);
    } else {
      EmitAlong(m, v.at(feeding.count(m.name) ? "vectors" : "unroll"), plan.lanes, b);
    }
  }
  if (const int64_t pass = v.at("ahead"); pass > 0) {
    const Member& m = plan.members[plan.passes[pass - 1]];
    EmitFetch(m, partials(m) > 0 && !merged(m), b);
  }
  for (const Member& m : plan.members) {
    if (v.at("rows") > 1) UnrollRows(plan, m, partials(m) > 0 && !merged(m), b);
  }
}

Member Describe(const Anatomy& anatomy, int s, size_t row_rank) {
  const Stage& stage = anatomy.stage(s);
  Member m;
  m.name = anatomy.name(s);
  m.reduction = stage.reduce != ReduceOp::kNone;
  if (m.reduction) {
    const int last = static_cast<int>(stage.reduce_axes.size()) - 1;
    for (int r = 0; r <= last; ++r) m.reduce.push_back(anatomy.ReduceLoop(s, r));
    m.along = m.reduce.back();
    m.row_length = stage.reduce_axes[last]->extent;
    m.cut_length = stage.reduce_axes[0]->extent;
  } else if (stage.axes.size() > row_rank) {
    const int last = static_cast<int>(stage.axes.size()) - 1;
    m.along = anatomy.Loop(s, last);
    m.row_length = stage.axes[last]->extent;
    m.direct = stage.axes.size() == row_rank + 1;
  }
  m.ops = anatomy.info(s).ops_per_element;
  return m;
}

bool IsArg(const Stage& stage) {
  return stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
}

bool AllContiguous(const Stage& stage, const Var& axis) {
  const std::vector<const ExprNode*> loads = LoadsOf(stage.value);
  return std::ranges::all_of(loads, [&](const ExprNode* load) { return StrideOf(*load, axis) == 1; });
}

// The member that feeds reduction `s` alone: another one's elements would have to be computed before the loop
// that the two share.
std::string FedBy(const Anatomy& anatomy, const Group& group, int s, size_t row_rank) {
  const Stage& stage = anatomy.stage(s);
  int only = -1;
  for (int producer : anatomy.info(s).producers) {
    if (!std::ranges::count(group.members, producer)) continue;
    if (only >= 0 || anatomy.stage(producer).reduce != ReduceOp::kNone) return "";
    only = producer;
  }
  if (only < 0 || stage.reduce_axes.size() != 1) return "";
  const Stage& source = anatomy.stage(only);
  if (source.axes.size() != row_rank + 1) return "";
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (load->buffer != source.output) continue;
    for (size_t d = 0; d <= row_rank; ++d) {
      const Var& axis = d < row_rank ? stage.axes[d] : stage.reduce_axes[0];
      if (load->args[d]->op != Op::kVar || load->args[d]->var != axis) return "";
    }
  }
  return anatomy.name(only);
}

// Whether the stage reads, along the row, what the loop over rows moves and no member of the group computes.
bool ReadsRows(const Anatomy& anatomy, const Group& group, const Stage& stage, size_t row_rank) {
  const bool reduces = stage.reduce != ReduceOp::kNone;
  if (row_rank == 0 || (!reduces && stage.axes.size() <= row_rank)) return false;
  const Var& along = reduces ? stage.reduce_axes.back() : stage.axes.back();
  const std::vector<const ExprNode*> loads = LoadsOf(stage.value);
  return std::ranges::any_of(loads, [&](const ExprNode* load) {
    const bool own =
        std::ranges::any_of(group.members, [&](int s) { return anatomy.stage(s).output == load->buffer; });
    return !own && StrideOf(*load, along) == 1 && StrideOf(*load, stage.axes[row_rank - 1]).value_or(0) != 0;
  });
}

// The members of the group; an argmax along a row long enough for lanes is two of them.
void AddMember(const Anatomy& anatomy, const Group& group, int s, size_t row_rank, Plan* plan) {
  constexpr int64_t kFewest = 8;
  const Stage& stage = anatomy.stage(s);
  Member m = Describe(anatomy, s, row_rank);
  if (IsArg(stage) && m.row_length >= kFewest && AllContiguous(stage, stage.reduce_axes.back())) {
    Member best = m;
    best.name = absl::StrCat(m.name, ".best");
    for (std::string& loop : best.reduce) loop = absl::StrCat(best.name, loop.substr(m.name.size()));
    best.along = best.reduce.back();
    plan->split_args.push_back(m.name);
    plan->members.push_back(best);
  } else if (IsArg(stage)) {
    m.scalar = true;
    plan->across =
        group.members.size() == 1 && !stage.axes.empty() && AllContiguous(stage, stage.axes.back());
  } else if (m.reduction) {
    m.fed_by = FedBy(anatomy, group, s, row_rank);
  }
  m.reads_rows = ReadsRows(anatomy, group, stage, row_rank);
  plan->members.push_back(m);
}

// The decision `ahead`: during which of the passes over a row the next one is fetched, 0: none. By default
// during the one that computes most, for rows that come from beyond the first cache; the first pass waits for
// memory itself, and the output's own stores occupy the last.
void DecideAhead(Plan* plan, int64_t rows, int64_t row_bytes, const Target& target, Part* part) {
  for (size_t i = 0; i < plan->members.size(); ++i) {
    const Member& m = plan->members[i];
    if (m.reads_rows && !m.scalar) plan->passes.push_back(i);
  }
  std::vector<int64_t> choices = {0};
  const std::vector<size_t>& passes = plan->passes;
  if (passes.size() < 2 || rows < 2 || row_bytes > target.l1d_bytes / 4)
    return part->Decide("ahead", choices, 0);
  size_t most = 1;
  for (size_t p = 0; p < passes.size(); ++p) {
    choices.push_back(static_cast<int64_t>(p) + 1);
    const bool last = passes[p] + 1 == plan->members.size();
    if (p > 1 && !last && plan->members[passes[p]].ops > plan->members[passes[most]].ops) most = p;
  }
  const bool far = rows * row_bytes / plan->threads > target.l1d_bytes;
  part->Decide("ahead", choices, far ? static_cast<int64_t>(most) + 1 : 0, /*ordered=*/false);
}

// Blocks of rows that fill half of L1 with one tensor at most.
std::vector<int64_t> RowBlocks(const Plan& plan, int64_t rows, int64_t row_bytes, const Target& target) {
  std::vector<int64_t> blocks = {1};
  if (plan.row_loops.size() != 1) return blocks;
  for (int64_t block : {2, 4, 8}) {
    if (block <= rows / std::max(target.threads, 1) && block * row_bytes <= target.l1d_bytes / 2)
      blocks.push_back(block);
  }
  return blocks;
}

// The plan's members in the order of the joined blocks; those that are gone or inlined are left out.
void JoinMembers(const JointRows& joint, Plan* plan) {
  plan->joint = joint;
  std::vector<Member> members;
  for (const std::string& block : joint.blocks) {
    for (Member& m : plan->members) {
      if (m.name != block) continue;
      m.is_joint = m.name == joint.second;
      m.reads_rows |= m.is_joint;
      m.fed_by.clear();
      members.push_back(m);
    }
  }
  plan->members = std::move(members);
}

Part RowPart(const Anatomy& anatomy, const Group& group, const std::optional<JointRows>& joint,
             const Target& target) {
  const Stage& anchor = anatomy.stage(group.anchor);
  const size_t row_rank = RowRank(anatomy, group);
  Plan plan;
  plan.lanes = VectorBytes(target) / std::max(DTypeBytes(anchor.value->dtype), 1);
  int64_t rows = 1, row_length = 1, terms = 1;
  bool can_merge = false;
  plan.threads = std::max(target.threads, 1);
  for (int s : group.members) AddMember(anatomy, group, s, row_rank, &plan);
  if (joint) JoinMembers(*joint, &plan);
  for (const Member& m : plan.members) {
    can_merge |= !m.fed_by.empty();
    row_length = std::max(row_length, m.row_length);
    terms = std::max(terms, m.reduce.size() > 1 ? m.cut_length * m.row_length : m.row_length);
  }
  for (size_t a = 0; a < row_rank; ++a) {
    plan.row_loops.push_back(anatomy.Loop(group.anchor, static_cast<int>(a)));
    rows *= anchor.axes[a]->extent;
  }
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = joint ? "row_joint" : "row";
  const bool pays = PaysForThreads(anatomy, group, target);
  DecideThreads(anatomy, group, target, /*can=*/rows > 1, &part);
  const bool can_spread =
      !joint && target.threads > 1 && rows < 2 * target.threads && terms >= kFewestToSpread;
  part.Decide("spread", can_spread ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
              can_spread && pays && rows < target.threads, false);
  part.Decide("vectors", {1, 2, 4, 8}, 4);
  part.Decide("unroll", {1, 2, 4}, 2);
  part.Decide("merge", can_merge ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, 1, false);
  const int64_t row_bytes = row_length * std::max(DTypeBytes(anchor.value->dtype), 1);
  const std::vector<int64_t> blocks = RowBlocks(plan, rows, row_bytes, target);
  part.Decide("rows", blocks, 1);
  DecideAhead(&plan, rows, row_bytes, target, &part);
  DecideBypass(anatomy, group.anchor, target, &part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

// Rows that a core's caches do not keep until the second pass.
bool IsLongRow(const Anatomy& anatomy, const Group& group, const Target& target) {
  int64_t bytes = 0;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    if (stage.reduce == ReduceOp::kNone) continue;
    const int64_t terms = PointsOf(stage.reduce_axes);
    bytes = std::max(bytes, terms * DTypeBytes(stage.value->dtype));
  }
  return bytes > target.l2_bytes / 2;
}

}  // namespace

std::vector<Part> RowParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  std::vector<Part> parts = {RowPart(anatomy, group, std::nullopt, target)};
  if (!IsLongRow(anatomy, group, target)) return parts;
  if (const std::optional<JointRows> joint = FindJointRows(anatomy, group, target))
    parts.push_back(RowPart(anatomy, group, joint, target));
  return parts;
}

}  // namespace mycc
