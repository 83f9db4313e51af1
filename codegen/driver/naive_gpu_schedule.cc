#include "codegen/driver/naive_gpu_schedule.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kThreads = 256;

// The loops of a block's axes, outermost first.
absl::StatusOr<std::vector<const For*>> AxesOf(const Schedule& schedule, const std::string& block) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(schedule.function(), block));
  std::vector<const For*> axes;
  for (const For* loop : LoopsOn(path)) {
    if (!IsReduceLoop(*loop)) axes.push_back(loop);
  }
  return axes;
}

absl::Status SpreadBlock(const std::string& block, Schedule* schedule) {
  MYCC_ASSIGN_OR_RETURN(std::vector<const For*> axes, AxesOf(*schedule, block));
  if (axes.empty()) return absl::OkStatus();
  if (axes.size() > 1) {
    StepArg::Names names;
    for (const For* axis : axes) names.push_back(axis->var->name);
    MYCC_RETURN_IF_ERROR(schedule->Apply({"fuse", {{names}}}));
    MYCC_ASSIGN_OR_RETURN(axes, AxesOf(*schedule, block));
  }
  const std::string axis = axes[0]->var->name;
  const int64_t threads = std::min(kThreads, axes[0]->var->extent);
  MYCC_RETURN_IF_ERROR(schedule->Apply({"split", {{axis}, {StepArg::Ints{threads}}}}));
  MYCC_ASSIGN_OR_RETURN(axes, AxesOf(*schedule, block));
  const std::string outer = axes[0]->var->name, inner = axes[1]->var->name;
  MYCC_RETURN_IF_ERROR(schedule->Apply({"bind", {{outer}, {std::string("block")}}}));
  return schedule->Apply({"bind", {{inner}, {std::string("thread")}}});
}

}  // namespace

absl::StatusOr<Schedule> NaiveGpuSchedule(Schedule naive) {
  std::vector<std::string> blocks;
  for (const Block* block : BlocksUnder(naive.function().body)) blocks.push_back(block->name);
  for (const std::string& block : blocks) MYCC_RETURN_IF_ERROR(SpreadBlock(block, &naive));
  return naive;
}

}  // namespace mycc
