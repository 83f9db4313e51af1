// Decides how threads combine values: which threads are a group, and how they exchange values. The memory in
// which they do is placed afterwards (place_shared).
//
//   thread i in 8: thread j in 64:              thread i in 8: thread j in 64:
//     if c: combine y[i] += x[i, j]       ->      combine y[i] += x[i, j] over 32 lanes, 2 warps if c
//
// A Combine synchronizes threads, so those whose condition is false take part in it too. An unrolled loop
// over elements in registers has one barrier for all elements. Tuples have one for each: they would need
// scratch for each part of every element.
#include <algorithm>
#include <bit>
#include <vector>

#include "base/status.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {
namespace {

constexpr int64_t kMostTogether = 32;

bool IsPower(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

// The thread loops that the element does not depend on: one group for those that are next to each other, the
// innermost first.
std::vector<CombineGroup> GroupsOf(const Combine& combine, const ExecutingThreads& threads) {
  const auto own = threads.registers.find(combine.buffer.get());
  std::vector<ThreadDigit> digits;
  for (const auto& [var, digit] : threads.loops) {
    if (own != threads.registers.end() && own->second.contains(var)) continue;
    if (!UsesVar(combine.indices, var)) digits.push_back(digit);
  }
  if (digits.empty()) return {CombineGroup{1, 1, {}}};
  std::ranges::sort(digits, {}, &ThreadDigit::stride);
  std::vector<CombineGroup> groups;
  for (const ThreadDigit& digit : digits) {
    if (!groups.empty() && digit.stride == groups.back().stride * groups.back().extent) {
      groups.back().extent *= digit.extent;
    } else {
      groups.push_back({digit.stride, digit.extent, {}});
    }
  }
  return groups;
}

// The Combines of one launch.
class CombinePlan {
 public:
  explicit CombinePlan(const LaunchShape& shape) : shape_(shape), joined_(shape.cluster_reduce > 1) {}

  Stmt Place(const Stmt& stmt, const ExecutingThreads& threads) {
    if (const Combine* combine = DynAs<Combine>(stmt)) return Planned(*combine, nullptr, threads);
    const If* branch = DynAs<If>(stmt);
    if (branch != nullptr && !branch->otherwise && branch->then->kind == StmtKind::kCombine)
      return Planned(As<Combine>(branch->then), branch->condition, threads);
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->body->kind != StmtKind::kCombine || IsThreadLoop(stmt)) return nullptr;
    const std::shared_ptr<Combine> combine = Planned(As<Combine>(loop->body), nullptr, threads);
    combine->together = IsTogether(*loop, *combine, threads);
    return loop->With({.body = combine});
  }

  const absl::Status& status() const { return status_; }

 private:
  std::shared_ptr<Combine> Planned(const Combine& combine, const Expr& condition,
                                   const ExecutingThreads& threads) {
    auto planned = std::make_shared<Combine>(combine);
    planned->condition = condition;
    planned->groups = GroupsOf(combine, threads);
    if (joined_ && planned->groups.size() > 1) {
      status_.Update(Refusal("a thread loop that indexes ", combine.buffer->name,
                             " is between two that reduce it; in a cluster_reduce, expected the reducing ",
                             "thread loops next to each other"));
    }
    for (CombineGroup& group : planned->groups) {
      group.exchanges = ExchangesOf(group.stride, group.extent);
      status_.Update(Check(combine, group, threads));
    }
    return planned;
  }

  bool OfBlocks(int64_t stride, int64_t extent) const {
    return joined_ && stride == 1 && extent > shape_.threads && extent % shape_.threads == 0;
  }

  std::vector<Exchange> ExchangesOf(int64_t stride, int64_t extent) const {
    if (extent == 1) return {};
    if (OfBlocks(stride, extent)) {
      std::vector<Exchange> exchanges = ExchangesOf(1, shape_.threads);
      exchanges.push_back({ExchangeKind::kBlocks, 1, extent / shape_.threads});
      return exchanges;
    }
    if (IsPower(stride) && IsPower(extent) && stride * extent <= kThreadsOfWarp)
      return {{ExchangeKind::kLanes, stride, extent}};
    if (stride == 1 && extent % kThreadsOfWarp == 0)
      return {{ExchangeKind::kLanes, 1, kThreadsOfWarp}, {ExchangeKind::kWarps, 1, extent / kThreadsOfWarp}};
    return {
        {shape_.threads == kThreadsOfWarp ? ExchangeKind::kWarp : ExchangeKind::kThreads, stride, extent}};
  }

  absl::Status Check(const Combine& combine, const CombineGroup& group,
                     const ExecutingThreads& threads) const {
    const int64_t size = group.stride * group.extent;
    const bool of_blocks = OfBlocks(group.stride, group.extent);
    if (of_blocks && threads.nest != threads.team) {
      return Refusal(threads.nest, " threads of ", size / shape_.threads, " blocks combine ",
                     combine.buffer->name, "; expected all ", threads.team, " of the cluster");
    }
    if (joined_ && !of_blocks && shape_.threads % size != 0) {
      return Refusal(group.extent, " threads, ", group.stride, " apart, combine ", combine.buffer->name,
                     "; in a cluster_reduce over blocks of ", shape_.threads,
                     " threads, expected whole blocks or an equal part of one");
    }
    if (!CrossesWarps(group) || threads.nest == 0 || threads.nest == threads.team) return absl::OkStatus();
    if (joined_) {
      return Refusal(threads.nest, " threads combine in a cluster_reduce with ", threads.team,
                     " threads in all its blocks; expected all of them");
    }
    // Threads of different warps wait for each other: all threads of the nest.
    if (threads.nest % kThreadsOfWarp == 0) return absl::OkStatus();
    return Refusal("threads combine across warps in a nest of ", threads.nest,
                   ", which are not whole warps; the team has ", threads.team);
  }

  bool IsTogether(const For& loop, const Combine& combine, const ExecutingThreads& threads) const {
    const int64_t count = loop.var->extent;
    return loop.loop_kind == LoopKind::kUnroll && IsConstInt(loop.extent, count) && count <= kMostTogether &&
           threads.registers.contains(combine.buffer.get()) && !joined_ && combine.more.empty() &&
           combine.groups.size() == 1 && combine.groups[0].exchanges.size() == 2;
  }

  const LaunchShape& shape_;
  const bool joined_;  // a reducing cluster
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> PlaceCombines(const Stmt& body) {
  return TryRewriteEach<Launch>(body, [](const Launch& launch) -> absl::StatusOr<Stmt> {
    CombinePlan plan(launch.shape);
    Stmt placed = RewriteInThreads(
        launch, [&](const Stmt& stmt, const ExecutingThreads& threads) { return plan.Place(stmt, threads); });
    MYCC_RETURN_IF_ERROR(plan.status());
    return placed;
  });
}

}  // namespace mycc
