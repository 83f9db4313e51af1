// Emits warp-specialized roles, the barriers between them, and the groups of asynchronous copies.
//
// The role with the most threads comes first, so that its warpgroups are aligned. Copying roles give
// registers to computing roles (setmaxnreg), as in CUTLASS and FlashAttention-3.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/instructions.h"

namespace mycc {
namespace {

constexpr int64_t kWarpgroup = 128;

bool StoresInBulk(const Stmt& root) {
  bool stores = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    const Copy* copy = DynAs<Copy>(stmt);
    stores |= copy != nullptr && copy->engine == CopyEngine::kBulk && !copy->barrier;
    return copy == nullptr;
  });
  return stores;
}

bool TakesTurns(const Stmt& root) {
  bool takes = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    takes |= stmt->kind == StmtKind::kTurn;
    return !takes;
  });
  return takes;
}

// The threads that execute a role.
struct Team {
  const Roles::Role* role;
  int64_t threads;
  bool one_thread;
};

// Teams that compute come first.
std::vector<Team> TeamsOf(const Roles& roles) {
  std::vector<Team> teams;
  for (const Roles::Role& role : roles.roles)
    teams.push_back({&role, RoleThreads(role.body), IsForOneThread(role.body)});
  std::stable_sort(teams.begin(), teams.end(),
                   [](const Team& a, const Team& b) { return a.one_thread < b.one_thread; });
  return teams;
}

}  // namespace

std::string KernelEmitter::BarrierAddress(const Expr& index) {
  return absl::StrCat("barriers + ", Index(index).At(kProduct), " * 8");
}

// Barriers have 8 bytes each, and come after all tiles.
void KernelEmitter::SetUpBarriers(const Roles& roles) {
  Line("const unsigned barriers = ", prelude_.Use("shared_address"), "(shared + ", barriers_offset_, ");");
  Open("if (thread == 0)");
  for (size_t b = 0; b < roles.barrier_counts.size(); ++b)
    Line(prelude_.Use("barrier_init"), "(barriers + ", 8 * b, ", ", roles.barrier_counts[b], ");");
  Line(prelude_.Use("barrier_init_fence"), "();");
  Close();
}

void KernelEmitter::EmitRoles(const Roles& roles) {
  RoleState state;
  const std::vector<Team> teams = TeamsOf(roles);
  int64_t computing = 0;
  for (const Team& team : teams) computing += team.one_thread ? 0 : team.threads / kWarpgroup;
  const RegisterSplit registers = SplitRegisters(computing);
  SetUpBarriers(roles);
  // Other blocks of a cluster copy to this block and arrive here, so the cluster synchronizes after the
  // barriers' initialisation and before the end.
  const bool in_cluster = launch_.cluster > 1;
  Line(in_cluster ? prelude_.Use("cluster_sync") : "__syncthreads", "();");
  const std::string thread = thread_;
  const int64_t replication = replication_, team_before = team_;
  int64_t first = 0;
  for (size_t i = 0; i < teams.size(); ++i) {
    const Team& team = teams[i];
    // The roles are the arms of one if-else: ptxas honours setmaxnreg in no other form.
    if (i > 0) {
      text_.pop_back();
      absl::StrAppend(&text_, i + 1 == teams.size()
                                  ? " else {\n"
                                  : absl::StrCat(" else if (thread < ", first + team.threads, ") {\n"));
      ++depth_;
    } else {
      Open("if (thread < ", team.threads, ")");
    }
    Line("// ", team.role->name);
    if (registers.copy != 0) {
      Line(team.one_thread ? prelude_.Use("registers_dec") : prelude_.Use("registers_inc"), "<",
           team.one_thread ? registers.copy : registers.compute, ">();");
    }
    state.bulk_stores = StoresInBulk(team.role->body);
    state.one_thread = team.one_thread;
    state.number = static_cast<int>(i);
    roles_ = &state;
    thread_ = first == 0 ? "thread" : absl::StrCat("(thread - ", first, ")");
    team_ = replication_ = team.threads;
    if (team.one_thread) {
      Open("if (", thread_, " == 0)");
      replication_ = 1;
    }
    if (TakesTurns(team.role->body)) {
      Open("if (", thread_, " >= ", team.threads - kWarpgroup, ")");
      EmitTurn(Turn(TurnStep::kPass));
      Close();
    }
    Statement(team.role->body);
    if (team.one_thread) Close();
    Close();
    first += team.threads;
  }
  if (in_cluster) Line(prelude_.Use("cluster_leave"), "();");
  roles_ = nullptr;
  thread_ = thread;
  replication_ = replication;
  team_ = team_before;
}

// A barrier of the threads that execute this code.
void KernelEmitter::Sync() {
  if (roles_ == nullptr) return Line("__syncthreads();");
  if (!roles_->one_thread)
    Line(prelude_.Use("team_sync"), "(", NamedBarriers::kRoles + roles_->number, ", ", team_, ");");
}

// One thread arrives for each part of the role.
void KernelEmitter::EmitArrive(const Arrive& arrive) {
  const std::string barrier = BarrierAddress(arrive.barrier);
  if (roles_->one_thread) {
    const std::string bytes = arrive.expected_bytes > 0 ? absl::StrCat(", ", arrive.expected_bytes) : "";
    return Line(prelude_.Use(bytes.empty() ? "barrier_arrive" : "barrier_arrive_expect"), "(", barrier, bytes,
                ");");
  }
  if (arrive.expected_bytes > 0) return Fail("several threads expect the bytes of copies at a barrier");
  if (arrive.arrivals > 1 && team_ != arrive.arrivals * kWarpgroup)
    return Fail(absl::StrCat(arrive.arrivals, " warpgroups arrive at a barrier, in a role of ", team_,
                             " threads; expected ", arrive.arrivals * kWarpgroup));
  const std::string rank = absl::StrCat(thread_, " % ", team_ / arrive.arrivals);
  if (arrive.cluster) {
    return Line("if (", rank, " < ", launch_.cluster, ") ", prelude_.Use("barrier_arrive_in"), "(", barrier,
                ", ", rank, ");");
  }
  Line("if (", rank, " == 0) ", prelude_.Use("barrier_arrive"), "(", barrier, ");");
}

void KernelEmitter::EmitWait(const Wait& wait) {
  const std::string address = BarrierAddress(wait.barrier);
  Line(prelude_.Use("barrier_wait"), "(", address, ", ", Index(wait.phase).At(kBitAnd + 1), " & 1);");
}

void KernelEmitter::EmitCommitGroup() {
  if (roles_ == nullptr) return Line(prelude_.Use("cp_async_commit"), "();");
  Line("if (", thread_, " == 0) ", prelude_.Use("bulk_commit"), "();");
}

// After this the copied bytes are visible to all threads.
void KernelEmitter::EmitWaitGroup(const WaitGroup& wait) {
  if (roles_ != nullptr && roles_->bulk_stores) {
    Line("if (", thread_, " == 0) ", prelude_.Use("bulk_wait"), "<", wait.pending, ">();");
  } else {
    Line(prelude_.Use("cp_async_wait"), "<", wait.pending, ">();");
  }
  Sync();
}

// Barrier kTurns + w completes when the warpgroup before w has arrived, and w waits. The first warpgroup
// finds the arrival that EmitRoles makes in the last one's name.
void KernelEmitter::EmitTurn(const Turn& turn) {
  const int64_t groups = team_ / kWarpgroup;
  const std::string group = absl::StrCat(thread_, " / ", kWarpgroup);
  if (turn.step == TurnStep::kTake) {
    Line(prelude_.Use("team_sync"), "(", NamedBarriers::kTurns, " + ", group, ", ", 2 * kWarpgroup, ");");
  } else {
    Line(prelude_.Use("team_arrive"), "(", NamedBarriers::kTurns, " + (", group, " + 1) % ", groups, ", ",
         2 * kWarpgroup, ");");
  }
}

void KernelEmitter::EmitFence() { Line(prelude_.Use("async_fence"), "();"); }

// One thread releases and acquires for the role: a barrier orders it with the accesses of the role's other
// threads.
void KernelEmitter::EmitSignal(const Signal& signal) {
  Sync();
  Line("if (", thread_, " == 0) ", prelude_.Use("flag_raise"), "(", FlagAddress(signal.flags, signal.index),
       ");");
}

void KernelEmitter::EmitAwait(const Await& await) {
  Line("if (", thread_, " == 0) ", prelude_.Use("flag_await"), "(", FlagAddress(await.flags, await.index),
       ");");
  Sync();
}

std::string KernelEmitter::FlagAddress(const Buffer& flags, const Expr& index) {
  return absl::StrCat(PlaceOf(flags).name, " + ", Index(index).At(kProduct));
}

}  // namespace mycc
