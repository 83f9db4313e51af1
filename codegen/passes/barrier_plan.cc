// Places the barriers of thread blocks. A barrier precedes each statement that accesses data which other
// threads have written, or writes data which they have read, since the last barrier.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// An access of a statement: bytes of shared memory, or a whole tensor in global memory.
struct Region {
  const BufferNode* global;  // null for shared memory
  int64_t begin, end;
  bool is_write;
  bool one_thread;  // only thread 0 accesses it
  const StmtNode* by;

  // Whether a barrier must stand between the two, this one first. A store in several iterations stores each
  // element once, or stores the same value again, unless another statement reads in between.
  bool ConflictsWith(const Region& later) const {
    return global == later.global && begin < later.end && later.begin < end &&
           !(one_thread && later.one_thread) && (is_write || later.is_write) &&
           !(is_write && later.is_write && by == later.by);
  }
  bool operator==(const Region&) const = default;
};
using Regions = std::vector<Region>;

void Add(const Regions& regions, Regions* to) {
  for (const Region& region : regions) {
    if (std::ranges::find(*to, region) == to->end()) to->push_back(region);
  }
}

bool Conflict(const Regions& before, const Regions& now) {
  return std::ranges::any_of(before, [&](const Region& earlier) {
    return std::ranges::any_of(now, [&](const Region& later) { return earlier.ConflictsWith(later); });
  });
}

class BarrierPlanner {
 public:
  explicit BarrierPlanner(const Stmt& block) {
    VisitEach<Alloc>(block, [&](const Alloc& alloc) {
      if (alloc.buffer->scope == Scope::kShared) {
        offsets_[alloc.buffer.get()] = alloc.offset;
      } else {
        own_.insert(alloc.buffer.get());
      }
    });
  }

  // `before` has the accesses since the last barrier; those of `stmt` are added.
  void Walk(const Stmt& stmt, Regions* before) {
    // Asynchronous copies are ordered by groups and barriers, roles by barriers of their own.
    if (stmt->kind == StmtKind::kCopy) return;
    const bool is_barrier = stmt->kind == StmtKind::kWaitGroup || stmt->kind == StmtKind::kSignal ||
                            stmt->kind == StmtKind::kAwait || stmt->kind == StmtKind::kBarrier;
    if (is_barrier) return before->clear();
    // An asynchronous product reads its operands until its warpgroup has waited for it.
    if (const Mma* mma = DynAs<Mma>(stmt); mma != nullptr && mma->is_async) Add(TouchedBy(stmt), &running_);
    if (const WaitProducts* wait = DynAs<WaitProducts>(stmt)) {
      Add(running_, before);
      if (wait->pending == 0) running_.clear();
      return;
    }
    if (const Roles* roles = DynAs<Roles>(stmt)) {
      for (const Roles::Role& role : roles->roles) {
        Regions in_role;
        Walk(role.body, &in_role);
      }
      return;
    }
    if (IsThreadLoop(stmt) || Children(stmt).empty() || IsVector(stmt)) {
      const Regions now = TouchedBy(stmt);
      BarrierBefore(stmt, now, before);
      Add(now, before);
    } else if (stmt->kind == StmtKind::kFor) {
      // Accesses from before the loop need one barrier, before the loop.
      BarrierBefore(stmt, TouchedBy(stmt), before);
      // The next iteration follows the accesses of this one.
      Walk(As<For>(stmt).body, before);
      Walk(As<For>(stmt).body, before);
    } else if (stmt->kind == StmtKind::kIf) {
      Regions after;
      for (const Stmt& arm : Children(stmt)) {
        Regions in_arm = *before;
        Walk(arm, &in_arm);
        Add(in_arm, &after);
      }
      Add(after, before);
    } else {
      for (const Stmt& child : Children(stmt)) Walk(child, before);
    }
  }

  std::unordered_set<const StmtNode*> Take() { return std::move(planned_); }

 private:
  // Puts a barrier before the statement if it conflicts with earlier accesses of other threads.
  void BarrierBefore(const Stmt& stmt, const Regions& now, Regions* before) {
    if (planned_.count(stmt.get()) == 0 && !Conflict(*before, now)) return;
    planned_.insert(stmt.get());
    before->clear();
  }

  StoreTargets Targets(const Stmt& stmt) const {
    return TargetsOf(stmt, [&](const BufferNode& buffer) { return own_.count(&buffer) != 0; });
  }

  // Vectors are emitted without barriers between the lanes.
  bool IsVector(const Stmt& stmt) const {
    if (!IsLoopOfKind(stmt, LoopKind::kVector)) return false;
    const StoreTargets targets = Targets(As<For>(stmt).body);
    return targets == StoreTargets::kMemory || targets == StoreTargets::kRegisters;
  }

  Regions TouchedBy(const Stmt& root) const {
    // Outside of thread loops, every thread executes a store to registers, and one thread a store to memory.
    const bool one_thread = Targets(root) == StoreTargets::kMemory && !IsThreadLoop(root);
    Regions touched;
    const auto add = [&](const BufferNode& buffer, bool is_write) {
      if (own_.count(&buffer) != 0) return;
      Region region{&buffer, 0, 1, is_write, one_thread, root.get()};
      if (const auto shared = offsets_.find(&buffer); shared != offsets_.end()) {
        region.global = nullptr;
        region.begin = shared->second;
        region.end = shared->second + buffer.memory_bytes();
      }
      Add({region}, &touched);
    };
    VisitStmts(root, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kCopy) return false;
      ForEachLoad(stmt, [&](const ExprNode& load) { add(*load.buffer, /*is_write=*/false); });
      ForEachWritten(stmt, [&](const BufferNode* buffer) { add(*buffer, /*is_write=*/true); });
      if (const Mma* mma = DynAs<Mma>(stmt)) {
        add(*mma->a.buffer, /*is_write=*/false);
        add(*mma->b.buffer, /*is_write=*/false);
      }
      if (const Combine* combine = DynAs<Combine>(stmt))
        combine->ForEachBuffer([&](const Buffer& buffer) { add(*buffer, /*is_write=*/false); });
      return true;
    });
    return touched;
  }

  std::unordered_map<const BufferNode*, int64_t> offsets_;
  BufferSet own_;  // in registers
  std::unordered_set<const StmtNode*> planned_;
  Regions running_;  // of asynchronous products that may be incomplete
};

// The code with a Barrier before each of these statements.
Stmt WithBarriersBefore(const Stmt& root, const std::unordered_set<const StmtNode*>& statements) {
  const Stmt inside =
      MapChildren(root, [&statements](const Stmt& child) { return WithBarriersBefore(child, statements); });
  return statements.count(root.get()) != 0 ? MakeSeq({std::make_shared<Barrier>(), inside}) : inside;
}

// A barrier orders the threads of one block. Names the first statement that would need another.
absl::Status RefuseBarriers(const Stmt& inside, const std::unordered_set<const StmtNode*>& statements) {
  const std::vector<Stmt> path =
      PathTo(inside, [&](const Stmt& stmt) { return statements.contains(stmt.get()); });
  if (path.empty()) return absl::OkStatus();
  return Refusal("threads of a cluster_reduce would need a barrier across blocks before ",
                 StmtName(path.back()), "; values that they share must be in registers");
}

}  // namespace

std::unordered_set<const StmtNode*> PlanBarriers(const Stmt& block) {
  BarrierPlanner planner(block);
  Regions touched;
  planner.Walk(block, &touched);
  return planner.Take();
}

absl::StatusOr<Stmt> PlaceBarriers(const Stmt& body) {
  return TryRewriteEach<Launch>(body, [](const Launch& launch) -> absl::StatusOr<Stmt> {
    Stmt inside;
    GridLoopsOf(launch.body, &inside);
    const std::unordered_set<const StmtNode*> statements = PlanBarriers(inside);
    if (launch.shape.cluster_reduce > 1) MYCC_RETURN_IF_ERROR(RefuseBarriers(inside, statements));
    if (statements.empty()) return nullptr;
    return std::make_shared<Launch>(launch.shape, WithBarriersBefore(launch.body, statements));
  });
}

}  // namespace mycc
