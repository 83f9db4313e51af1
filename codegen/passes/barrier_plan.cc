#include "codegen/passes/barrier_plan.h"

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

namespace mycc {
namespace {

// An access of a statement: bytes of shared memory, or a whole tensor in global memory.
struct Region {
  const BufferNode* global;  // null for shared memory
  int64_t begin, end;
  bool one_thread;  // only thread 0 accesses it
  const StmtNode* by;

  bool Overlaps(const Region& other) const {
    return global == other.global && begin < other.end && other.begin < end &&
           !(one_thread && other.one_thread);
  }
  bool operator==(const Region&) const = default;
};

// A store in several iterations stores each element once, or stores the same value again, unless another
// statement reads in between.
bool Overwrites(const Region& a, const Region& b) { return a.Overlaps(b) && a.by != b.by; }

struct Touched {
  std::vector<Region> reads, writes;

  static void AddTo(std::vector<Region>* regions, const Region& region) {
    if (std::ranges::find(*regions, region) == regions->end()) regions->push_back(region);
  }
  void Add(const Touched& other) {
    for (const Region& region : other.reads) AddTo(&reads, region);
    for (const Region& region : other.writes) AddTo(&writes, region);
  }
  bool ConflictsWith(const Touched& later) const {
    const auto any = [](const std::vector<Region>& a, const std::vector<Region>& b, const auto& conflict) {
      return std::ranges::any_of(a, [&](const Region& region) {
        return std::ranges::any_of(b, [&](const Region& other) { return conflict(region, other); });
      });
    };
    const auto overlaps = [](const Region& a, const Region& b) { return a.Overlaps(b); };
    return any(writes, later.reads, overlaps) || any(writes, later.writes, Overwrites) ||
           any(reads, later.writes, overlaps);
  }
};

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
  void Walk(const Stmt& stmt, Touched* before) {
    // Asynchronous copies are ordered by groups and barriers, roles by barriers of their own.
    if (stmt->kind == StmtKind::kCopy) return;
    const bool is_barrier = stmt->kind == StmtKind::kWaitGroup || stmt->kind == StmtKind::kSignal ||
                            stmt->kind == StmtKind::kAwait || stmt->kind == StmtKind::kBarrier;
    if (is_barrier) {
      *before = Touched();
      return;
    }
    // An asynchronous product reads its operands until its warpgroup has waited for it.
    if (const Mma* mma = DynAs<Mma>(stmt); mma != nullptr && mma->is_async) running_.Add(TouchedBy(stmt));
    if (const WaitProducts* wait = DynAs<WaitProducts>(stmt)) {
      before->Add(running_);
      if (wait->pending == 0) running_ = Touched();
      return;
    }
    if (const Roles* roles = DynAs<Roles>(stmt)) {
      for (const Roles::Role& role : roles->roles) {
        Touched in_role;
        Walk(role.body, &in_role);
      }
      return;
    }
    if (IsThreadLoop(stmt) || Children(stmt).empty() || IsVector(stmt)) return Unit(stmt, before);
    if (stmt->kind == StmtKind::kFor) {
      // Accesses from before the loop need one barrier, before the loop.
      BarrierBefore(stmt, TouchedBy(stmt), before);
      // The next iteration follows the accesses of this one.
      Walk(As<For>(stmt).body, before);
      Walk(As<For>(stmt).body, before);
    } else if (stmt->kind == StmtKind::kIf) {
      Touched after;
      for (const Stmt& arm : Children(stmt)) {
        Touched in_arm = *before;
        Walk(arm, &in_arm);
        after.Add(in_arm);
      }
      before->Add(after);
    } else {
      for (const Stmt& child : Children(stmt)) Walk(child, before);
    }
  }

  std::unordered_set<const StmtNode*> Take() { return std::move(planned_); }

 private:
  void Unit(const Stmt& stmt, Touched* before) {
    const Touched now = TouchedBy(stmt);
    BarrierBefore(stmt, now, before);
    before->Add(now);
  }

  // Puts a barrier before the statement if it conflicts with earlier accesses of other threads.
  void BarrierBefore(const Stmt& stmt, const Touched& now, Touched* before) {
    if (planned_.count(stmt.get()) == 0 && !before->ConflictsWith(now)) return;
    planned_.insert(stmt.get());
    *before = Touched();
  }

  StoreTargets Targets(const Stmt& stmt) const {
    return TargetsOf(stmt, [&](const BufferNode& buffer) { return own_.count(&buffer) != 0; });
  }

  // Vectors are emitted without barriers between the lanes.
  bool IsVector(const Stmt& stmt) const {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->loop_kind != LoopKind::kVector) return false;
    const StoreTargets targets = Targets(loop->body);
    return targets == StoreTargets::kMemory || targets == StoreTargets::kRegisters;
  }

  Touched TouchedBy(const Stmt& root) const {
    // Outside of thread loops, every thread executes a store to registers, and one thread a store to memory.
    const bool one_thread = Targets(root) == StoreTargets::kMemory && !IsThreadLoop(root);
    Touched touched;
    const auto add = [&](const BufferNode& buffer, std::vector<Region>* regions) {
      if (own_.count(&buffer) != 0) return;
      const auto shared = offsets_.find(&buffer);
      if (shared == offsets_.end())
        return Touched::AddTo(regions, Region{&buffer, 0, 1, one_thread, root.get()});
      const int64_t end = shared->second + buffer.memory_bytes();
      Touched::AddTo(regions, Region{nullptr, shared->second, end, one_thread, root.get()});
    };
    VisitStmts(root, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kCopy) return false;
      ForEachLoad(stmt, [&](const ExprNode& load) { add(*load.buffer, &touched.reads); });
      if (const Store* store = DynAs<Store>(stmt)) add(*store->buffer, &touched.writes);
      if (const Mma* mma = DynAs<Mma>(stmt)) {
        add(*mma->a.buffer, &touched.reads);
        add(*mma->b.buffer, &touched.reads);
      }
      if (const Combine* combine = DynAs<Combine>(stmt)) {
        combine->ForEachBuffer([&](const Buffer& buffer) {
          add(*buffer, &touched.reads);
          add(*buffer, &touched.writes);
        });
      }
      return true;
    });
    return touched;
  }

  std::unordered_map<const BufferNode*, int64_t> offsets_;
  BufferSet own_;  // in registers
  std::unordered_set<const StmtNode*> planned_;
  Touched running_;  // by asynchronous products that may be incomplete
};

// The code with a Barrier before each of these statements.
Stmt WithBarriersBefore(const Stmt& root, const std::unordered_set<const StmtNode*>& statements) {
  const Stmt inside =
      MapChildren(root, [&statements](const Stmt& child) { return WithBarriersBefore(child, statements); });
  return statements.count(root.get()) != 0 ? MakeSeq({std::make_shared<Barrier>(), inside}) : inside;
}

// A barrier orders the threads of one block. Names the first statement that would need another.
absl::Status RefuseBarriers(const Stmt& inside, const std::unordered_set<const StmtNode*>& statements) {
  absl::Status status;
  VisitStmts(inside, [&](const Stmt& stmt) {
    if (statements.count(stmt.get()) != 0) {
      status.Update(Refusal("threads of a cluster_reduce would need a barrier across blocks before ",
                            StmtName(stmt), "; values that they share must be in registers"));
    }
    return status.ok();
  });
  return status;
}

}  // namespace

StoreTargets TargetsOf(const Stmt& stmt, const std::function<bool(const BufferNode&)>& in_registers) {
  bool registers = false, memory = false, other = false;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (const Store* store = DynAs<Store>(s)) {
      (in_registers(*store->buffer) ? registers : memory) = true;
    } else {
      const For* loop = DynAs<For>(s);
      const bool vector = s == stmt && loop != nullptr && loop->loop_kind == LoopKind::kVector;
      other |= !vector && s->kind != StmtKind::kSeq && s->kind != StmtKind::kIf;
    }
    return !other;
  });
  if (other) return StoreTargets::kOther;
  if (registers && memory) return StoreTargets::kBoth;
  return registers ? StoreTargets::kRegisters : StoreTargets::kMemory;
}

std::unordered_set<const StmtNode*> PlanBarriers(const Stmt& block) {
  BarrierPlanner planner(block);
  Touched touched;
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
