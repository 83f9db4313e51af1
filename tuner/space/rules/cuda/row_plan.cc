#include "tuner/space/rules/cuda/row_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/joint_rows.h"

namespace mycc {
namespace {

const std::vector<Var>& AlongAxes(const Stage& stage) {
  return stage.reduce == ReduceOp::kNone ? stage.axes : stage.reduce_axes;
}

// The read is at the stage's row, and along the row at the stage's own place.
bool ReadsAlongRow(const Stage& stage, const ExprNode& load, size_t row_rank) {
  const std::vector<Var>& along = AlongAxes(stage);
  const size_t first = stage.reduce == ReduceOp::kNone ? row_rank : 0;
  if (along.size() != first + 1 || load.args.size() != row_rank + 1) return false;
  for (size_t d = 0; d < row_rank; ++d) {
    if (load.args[d]->op != Op::kVar || load.args[d]->var != stage.axes[d]) return false;
  }
  return load.args[row_rank]->op == Op::kVar && load.args[row_rank]->var == along[first];
}

// How many members read the buffer; 0 where some read is not along the row.
int ReadersAlongRow(const Anatomy& anatomy, const Group& group, const Buffer& buffer, size_t row_rank) {
  int readers = 0;
  for (int s : group.members) {
    bool reads = false;
    for (const ExprNode* load : LoadsOf(anatomy.stage(s).value)) {
      if (load->buffer != buffer) continue;
      if (!ReadsAlongRow(anatomy.stage(s), *load, row_rank)) return 0;
      reads = true;
    }
    const ReduceOp reduce = anatomy.stage(s).reduce;
    const bool twice = reduce == ReduceOp::kArgMax || reduce == ReduceOp::kArgMin;  // once split
    readers += !reads ? 0 : twice ? 2 : 1;
  }
  return readers;
}

RowMember Describe(const Anatomy& anatomy, const Group& group, int s, size_t row_rank) {
  const Stage& stage = anatomy.stage(s);
  RowMember m;
  m.name = anatomy.name(s);
  m.stage = s;
  m.is_reduction = stage.reduce != ReduceOp::kNone;
  m.is_arg = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
  m.bytes = DTypeBytes(stage.output->dtype);
  for (size_t a = 0; a < stage.axes.size(); ++a)
    (a < row_rank ? m.rows : m.along).push_back(anatomy.Loop(s, static_cast<int>(a)));
  for (size_t r = 0; r < stage.reduce_axes.size(); ++r)
    m.along.push_back(anatomy.ReduceLoop(s, static_cast<int>(r)));
  m.is_kept = !m.is_reduction && s != group.anchor && stage.axes.size() == row_rank + 1 &&
              ReadersAlongRow(anatomy, group, stage.output, row_rank) > 0;
  return m;
}

// The value that split_arg takes out of an argmax.
RowMember ValueOf(const RowMember& arg) {
  RowMember value = arg;
  value.is_arg = false;
  value.name = absl::StrCat(arg.name, ".best");
  const auto renamed = [&](std::string* loop) {
    *loop = absl::StrCat(value.name, loop->substr(arg.name.size()));
  };
  for (std::string& loop : value.rows) renamed(&loop);
  for (std::string& loop : value.along) renamed(&loop);
  return value;
}

// Tensors from outside the group that more than one member reads.
std::vector<RowInput> FindInputs(const Anatomy& anatomy, const Group& group, size_t row_rank) {
  std::vector<RowInput> inputs;
  for (int s : group.members) {
    for (const ExprNode* load : LoadsOf(anatomy.stage(s).value)) {
      const auto same = [&](const RowInput& input) { return input.buffer == load->buffer; };
      const int producer = anatomy.ProducerOf(load->buffer.get());
      if (std::ranges::any_of(inputs, same) || std::ranges::count(group.members, producer) > 0) continue;
      if (ReadersAlongRow(anatomy, group, load->buffer, row_rank) > 1) inputs.push_back({load->buffer});
    }
  }
  return inputs;
}

// The innermost axis of the rows that is long enough to give every thread group of a block a row, or else the
// longest.
int SplitAxis(const Stage& anchor, size_t row_rank) {
  constexpr int64_t kEnough = 32;
  int split = -1;
  for (size_t a = row_rank; a-- > 0;) {
    const int axis = static_cast<int>(a);
    if (split < 0 || anchor.axes[a]->extent > anchor.axes[split]->extent) split = axis;
    if (anchor.axes[split]->extent >= kEnough) break;
  }
  return split;
}

// Vectors along the row that memory allows; what stays between the members is in registers.
int64_t LanesAlong(const Anatomy& anatomy, const Group& group, const Stage& stage, const Var& along) {
  Stage in_memory = stage;
  in_memory.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
    const bool is_member =
        e->op == Op::kLoad && std::ranges::count(group.members, anatomy.ProducerOf(e->buffer.get())) > 0;
    if (!is_member) return nullptr;
    return IsFloat(e->dtype) ? FloatConst(0, e->dtype) : IntConst(0, e->dtype);
  });
  const bool is_inner = &stage != &anatomy.stage(group.anchor) && stage.reduce == ReduceOp::kNone;
  if (is_inner) in_memory.output = MakeBuffer("", DType::kI8, {}), in_memory.axes.clear();
  return LanesOf(in_memory, along);
}

}  // namespace

RowPlan MakeRowPlan(const Anatomy& anatomy, const Group& group) {
  const Stage& anchor = anatomy.stage(group.anchor);
  const size_t row_rank = RowRank(anatomy, group);
  RowPlan plan;
  plan.lanes = 16;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    const RowMember member = Describe(anatomy, group, s, row_rank);
    if (member.is_arg) plan.members.push_back(ValueOf(member));
    plan.members.push_back(member);
    const std::vector<Var>& along = AlongAxes(stage);
    int64_t length = 1;
    for (size_t a = stage.reduce == ReduceOp::kNone ? row_rank : 0; a < along.size(); ++a)
      length *= along[a]->extent;
    plan.length = std::max(plan.length, length);
    if (!plan.members.back().along.empty())
      plan.lanes = std::min(plan.lanes, LanesAlong(anatomy, group, stage, along.back()));
  }
  plan.inputs = FindInputs(anatomy, group, row_rank);
  plan.split = SplitAxis(anchor, row_rank);
  if (plan.split >= 0) {
    plan.rows = anchor.axes[plan.split]->extent;
    plan.rows_of_output = 1;
    for (size_t a = 0; a < row_rank; ++a) plan.rows_of_output *= anchor.axes[a]->extent;
  }
  return plan;
}

std::optional<RowPlan> JoinedRowPlan(const Anatomy& anatomy, const Group& group, const RowPlan& plan,
                                     const Target& target) {
  RowPlan joined = plan;
  joined.joint = FindJointRows(anatomy, group, target);
  if (!joined.joint) return std::nullopt;
  joined.members.clear();
  for (const std::string& block : joined.joint->blocks) {
    for (const RowMember& m : plan.members)
      if (m.name == block) joined.members.push_back(m);
  }
  // Rows between the two reductions are computed where they are used.
  for (RowMember& m : joined.members) m.is_kept = false;
  const size_t row_rank = RowRank(anatomy, group);
  std::erase_if(joined.inputs, [&](const RowInput& input) {
    Group readers{group.anchor, {}};
    for (int s : group.members) {
      const bool is_second = anatomy.name(s) == joined.joint->second;
      const bool is_left = IsAmong(joined.joint->blocks, anatomy.name(s)) ||
                           IsAmong(joined.joint->inlined, anatomy.name(s)) ||
                           anatomy.name(s) == joined.joint->first;
      if (is_left && !is_second) readers.members.push_back(s);
    }
    return ReadersAlongRow(anatomy, readers, input.buffer, row_rank) < 2;
  });
  return joined;
}

bool IsLongForFewBlocks(const RowPlan& plan, const Target& target) {
  constexpr int64_t kLong = 1 << 14;
  return plan.length >= kLong && 2 * plan.rows_of_output < std::max(target.sms, 1);
}

}  // namespace mycc
