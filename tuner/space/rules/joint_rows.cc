#include "tuner/space/rules/joint_rows.h"

#include <algorithm>
#include <utility>

#include "codegen/schedule/schedule.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Elementwise members, except the anchor, that one block reads.
std::vector<std::string> ReadOnce(const Anatomy& anatomy, const Group& group, const Function& function) {
  std::vector<std::string> once;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    if (s == group.anchor || stage.reduce != ReduceOp::kNone || anatomy.info(s).is_output) continue;
    int readers = 0;
    for (const Block* block : BlocksUnder(function.body)) readers += Reads(*block, stage.output) ? 1 : 0;
    if (readers == 1) once.push_back(anatomy.name(s));
  }
  return once;
}

}  // namespace

bool IsAmong(const std::vector<std::string>& blocks, const std::string& block) {
  return std::ranges::find(blocks, block) != blocks.end();
}

std::optional<JointRows> FindJointRows(const Anatomy& anatomy, const Group& group, const Target& target) {
  for (int first : group.members) {
    for (int second : group.members) {
      const bool sums = anatomy.stage(second).reduce == ReduceOp::kSum;
      // The group's tensors, except the anchor's, are computed for some rows at a time; outputs exist whole.
      const bool moves =
          second == group.anchor || (!anatomy.info(first).is_output && !anatomy.info(second).is_output);
      if (first >= second || !sums || anatomy.stage(first).reduce == ReduceOp::kNone || !moves) continue;
      Schedule schedule = Schedule::Create(anatomy.workload(), target);
      JointRows joint{anatomy.name(first), anatomy.name(second), {}, {}};
      TraceBuilder together;
      together.ReduceTogether(joint.first, joint.second);
      if (!schedule.Apply(together.steps[0]).ok()) continue;
      joint.inlined = ReadOnce(anatomy, group, schedule.function());
      for (const Block* block : BlocksUnder(schedule.function().body)) {
        if (!IsAmong(joint.inlined, block->name)) joint.blocks.push_back(block->name);
      }
      return joint;
    }
  }
  return std::nullopt;
}

void EmitJoint(const JointRows& joint, TraceBuilder* b) {
  b->ReduceTogether(joint.first, joint.second);
  for (const std::string& block : joint.inlined) b->Inline(block);
}

}  // namespace mycc
