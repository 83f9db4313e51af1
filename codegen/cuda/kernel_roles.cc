// Emits warp-specialized roles, the barriers between them, and the groups of asynchronous copies.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

bool StoresInBulk(const Stmt& root) {
  return AnyOf<Copy>(root,
                     [](const Copy& copy) { return copy.engine == CopyEngine::kBulk && !copy.barrier; });
}

bool LoadsFromMemory(const Expr& number) {
  return AnyExpr(number,
                 [](const ExprNode& e) { return e.op == Op::kLoad && e.buffer->scope == Scope::kGlobal; });
}

bool HasLengthsInMemory(const Stmt& root) {
  return AnyOf<For>(root, [](const For& loop) { return LoadsFromMemory(loop.extent); }) ||
         AnyOf<Let>(root, [](const Let& let) { return LoadsFromMemory(let.value); });
}

}  // namespace

std::string KernelEmitter::BarrierAddress(const Expr& index) {
  return absl::StrCat("barriers + ", Index(index).At(kProduct), " * 8");
}

// Barriers have 8 bytes each, and come after all tiles.
void KernelEmitter::SetUpBarriers(const std::vector<int>& counts) {
  Line("const unsigned barriers = ",
       Call("shared_address", absl::StrCat("shared + ", launch_.barriers_offset)), ";");
  Open("if (", ThreadOfBlock(), " == 0)");
  for (size_t b = 0; b < counts.size(); ++b)
    Line(Call("barrier_init", absl::StrCat("barriers + ", 8 * b), counts[b]), ";");
  Line(Call("barrier_init_fence"), ";");
  Close();
}

void KernelEmitter::EmitRoles(const Roles& roles) {
  SetUpBarriers(roles.barrier_counts);
  // Other blocks of a cluster copy to this block and arrive here, so the cluster synchronizes after the
  // barriers' initialisation and before the end.
  const bool in_cluster = launch_.cluster > 1;
  Line(in_cluster ? Call("cluster_sync") : "__syncthreads()", ";");
  const int64_t replication = replication_, team_before = team_;
  int64_t first = 0;
  for (size_t i = 0; i < roles.roles.size(); ++i) {
    const Roles::Role& role = roles.roles[i];
    // The roles are the arms of one if-else: ptxas honours setmaxnreg in no other form.
    const std::string is_of_role = absl::StrCat("if (thread < ", first + role.threads, ")");
    if (i == 0) {
      Open(is_of_role);
    } else {
      CloseAndOpen("else", i + 1 == roles.roles.size() ? "" : " " + is_of_role);
    }
    Line("// ", role.name);
    if (role.registers != 0)
      Line(prelude_.Use(role.by_one ? "registers_dec" : "registers_inc"), "<", role.registers, ">();");
    roles_ = RoleState{.number = static_cast<int>(i),
                       .count = static_cast<int>(roles.roles.size()),
                       .one_thread = role.by_one,
                       .bulk_stores = StoresInBulk(role.body),
                       .lengths_in_memory = !role.by_one && HasLengthsInMemory(role.body)};
    thread_ = first == 0 ? "thread" : absl::StrCat("(thread - ", first, ")");
    team_ = replication_ = role.threads;
    if (role.by_one) {
      Open("if (", thread_, " == 0)");
      replication_ = 1;
    }
    const bool of_groups =
        !role.by_one && role.threads > kThreadsOfWarpgroup && Contains(role.body, StmtKind::kMma);
    if (of_groups) {
      // A shuffle's result is the same in all lanes, so that what is computed from it needs no register of a
      // thread.
      group_ =
          Define("int", "group", "__shfl_sync(0xffffffffu, ", thread_, " / ", kThreadsOfWarpgroup, ", 0)");
    }
    if (Contains(role.body, StmtKind::kTurn)) {
      Open("if (", thread_, " >= ", role.threads - kThreadsOfWarpgroup, ")");
      EmitTurn(Turn(TurnStep::kPass));
      Close();
    }
    Statement(role.body);
    group_.clear();
    if (role.by_one) Close();
    first += role.threads;
  }
  Close();
  if (in_cluster) Line(Call("cluster_leave"), ";");
  roles_.reset();
  thread_ = "thread";
  replication_ = replication;
  team_ = team_before;
}

std::string KernelEmitter::Warpgroup() const {
  return group_.empty() ? absl::StrCat(thread_, " / ", kThreadsOfWarpgroup) : group_;
}

// A barrier of the threads that execute this code.
void KernelEmitter::Sync() {
  if (!roles_) return Line("__syncthreads();");
  if (!roles_->one_thread) Line(Call("team_sync", NamedBarriers::kRoles + roles_->number, team_), ";");
}

// A barrier of the threads of each of the role's equal parts.
void KernelEmitter::SyncParts(int parts) {
  if (parts == 1) return Sync();
  // The barriers are numbered within a role: another one of several parts would use the same.
  if (roles_->count > 2) return Fail("parts of a role synchronize beside several roles that compute");
  const std::string barrier = absl::StrCat(NamedBarriers::kParts, " + ", Warpgroup());
  Line(Call("team_sync", barrier, kThreadsOfWarpgroup), ";");
}

// One thread arrives for each part of the role.
void KernelEmitter::EmitArrive(const Arrive& arrive) {
  const std::string barrier = BarrierAddress(arrive.barrier);
  if (arrive.expected_bytes > 0 && !roles_->one_thread)
    return Fail("several threads expect the bytes of copies at a barrier");
  if (arrive.expected_bytes > 0)
    return Line(Call("barrier_arrive_expect", barrier, arrive.expected_bytes), ";");
  if (roles_->one_thread) return Line(Call("barrier_arrive", barrier), ";");
  if (arrive.arrivals > 1 && team_ != arrive.arrivals * kThreadsOfWarpgroup)
    return Fail(arrive.arrivals, " warpgroups arrive at a barrier, in a role of ", team_,
                " threads; expected ", arrive.arrivals * kThreadsOfWarpgroup);
  if (arrive.gathers) SyncParts(arrive.arrivals);
  const std::string rank = absl::StrCat(thread_, " % ", team_ / arrive.arrivals);
  if (arrive.cluster)
    return Line("if (", rank, " < ", launch_.cluster, ") ", Call("barrier_arrive_in", barrier, rank), ";");
  Line("if (", rank, " == 0) ", Call("barrier_arrive", barrier), ";");
}

void KernelEmitter::EmitWait(const Wait& wait) {
  const std::string parity = Index(wait.phase).At(kBitAnd + 1) + " & 1";
  Line(Call("barrier_wait", BarrierAddress(wait.barrier), parity), ";");
}

void KernelEmitter::EmitCommitGroup() {
  if (!roles_) return Line(Call("cp_async_commit"), ";");
  Line("if (", thread_, " == 0) ", Call("bulk_commit"), ";");
}

// After this the copied bytes are visible to all threads.
void KernelEmitter::EmitWaitGroup(const WaitGroup& wait) {
  const bool in_bulk = roles_ && roles_->bulk_stores;
  Line(in_bulk ? absl::StrCat("if (", thread_, " == 0) ") : "",
       prelude_.Use(in_bulk ? "bulk_wait" : "cp_async_wait"), "<", wait.pending, ">();");
  Sync();
}

// Barrier kTurns + w completes when the warpgroup before w has arrived, and w waits. The first warpgroup
// finds the arrival that EmitRoles makes in the last one's name.
void KernelEmitter::EmitTurn(const Turn& turn) {
  const bool takes = turn.step == TurnStep::kTake;
  const std::string next = absl::StrCat("(", Warpgroup(), " + 1) % ", team_ / kThreadsOfWarpgroup);
  const std::string barrier = absl::StrCat(NamedBarriers::kTurns, " + ", takes ? Warpgroup() : next);
  Line(Call(takes ? "team_sync" : "team_arrive", barrier, 2 * kThreadsOfWarpgroup), ";");
}

// One thread releases and acquires for the role: a barrier orders it with the accesses of the role's other
// threads.
void KernelEmitter::EmitSignal(const Signal& signal) {
  Sync();
  Line("if (", thread_, " == 0) ", Call("flag_raise", FlagAddress(signal.flags, signal.index)), ";");
}

void KernelEmitter::EmitAwait(const Await& await) {
  Line("if (", thread_, " == 0) ", Call("flag_await", FlagAddress(await.flags, await.index)), ";");
  Sync();
}

std::string KernelEmitter::FlagAddress(const Buffer& flags, const Expr& index) {
  return absl::StrCat(PlaceOf(flags).name, " + ", Index(index).At(kProduct));
}

}  // namespace mycc
