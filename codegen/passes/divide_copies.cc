// Divides copies by threads into chunks of 4 to 16 bytes, which are one access at the source and, by
// cp.async, at the destination. Elements that are too small for that, or adjacent at the source but not at
// the destination (a transposed tile), move through registers.
//
// In the loop of a pipeline, registers are loaded before the step's work and stored after it, in slots that
// are not read before the next barrier:
//
//   for step: wait group; copy: tile[next] = x; work   ->   for step: wait group; copy: moved = x; work
//                                                                     copy: tile[next] = moved
//
// A loop that waits at its end, with operands ahead (threads_pipeline.cc), stores what the step before has
// loaded. The assembler puts loads off until shortly before their use, but not past the end of a step, so
// that they have arrived in the next one. They follow the wait for groups, since hardware may count both
// together, and a wait before them would be one for them:
//
//   for step: work                                     ->   copy: moved = x[0]
//             copy: tile[next] = x[step]                    for step: work
//             work; wait group; work                                  copy: tile[next] = moved
//                                                                     work; wait group
//                                                                     copy: moved = x[step + 1]
//                                                                     work
//
// Neighbouring copies through registers all load before the first of them stores. A thread keeps what they
// have loaded in at most kRegistersOfCopies registers:
//
//   copy: a.s = a; copy: b.s = b   ->   copy: a.moved = a; copy: b.moved = b
//                                       copy: a.s = a.moved; copy: b.s = b.moved
//
// A launch whose copies all go through registers has no groups of cp.async: their commits go, and a wait for
// one becomes a barrier.
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {
namespace {

constexpr int64_t kMostRegisters = 8;  // of a thread, for one copy, during a step
constexpr int64_t kAccessBytes = 16, kLeastAsyncBytes = 4;

// The number of elements of one access: contiguous along the last loop and aligned, at the source and (with
// `store`) at the destination, and all inside or all outside of the tensor.
int64_t ChunkOf(const ThreadCopyNest& nest, const Store* store) {
  const VarNode* last = nest.loops.back()->var.get();
  int64_t chunk = std::gcd(kAccessBytes / DTypeBytes(nest.load->dtype), last->extent);
  if (store != nullptr) chunk = ConsecutiveElements(store->buffer->layout, store->indices, last, chunk);
  chunk = ConsecutiveElements(nest.load->buffer->layout, nest.load->args, last, chunk);
  if (!nest.condition) return chunk;
  for (const Expr& part : SplitConjunction(nest.condition)) {
    if (!UsesVar(part, last)) continue;
    while (chunk > 1 && !LanesAgree(part, last, chunk)) chunk /= 2;
  }
  return chunk;
}

Stmt Divided(const Copy& copy, const ThreadCopyNest& nest) {
  const For& last = *nest.loops.back();
  const int64_t element = DTypeBytes(nest.store->buffer->dtype);
  // A schedule with thread loops determines the elements that a thread copies at a time.
  const bool by_element =
      last.loop_kind != LoopKind::kVector &&
      std::ranges::any_of(nest.loops, [](const For* loop) { return loop->loop_kind == LoopKind::kThread; });
  const int64_t both = by_element ? 1 : ChunkOf(nest, nest.store),
                from = by_element ? 1 : ChunkOf(nest, nullptr);
  const bool in_registers =
      both * element < kLeastAsyncBytes || (both * element < kAccessBytes && from * element == kAccessBytes);
  auto divided = std::make_shared<Copy>(copy);
  divided->body = InLoops(nest.loops, std::make_shared<Store>(*nest.store));
  divided->engine = in_registers ? CopyEngine::kRegisters : CopyEngine::kThreads;
  divided->chunk = in_registers ? from : both;
  return divided;
}

// A copy that loads registers, and one that stores them.
struct CopyInParts {
  Buffer moved;
  Stmt load, store;
};
CopyInParts InParts(const Copy& copy) {
  const ThreadCopyNest nest = *ThreadCopyNestOf(copy);
  const Expr element = IterationNumber(nest.loops);
  CopyInParts parts;
  parts.moved = MakeBuffer(nest.store->buffer->name + ".moved", nest.load->dtype, {nest.chunks(), copy.chunk},
                           Scope::kFragment);
  const std::vector<Expr> place = {Simplify(FloorDiv(element, copy.chunk)),
                                   Simplify(Mod(element, copy.chunk))};
  const auto part = [&](Stmt store) {
    return Changed(copy, [&](Copy* changed) { changed->body = InLoops(nest.loops, std::move(store)); });
  };
  parts.load = part(std::make_shared<Store>(parts.moved, place, nest.store->value));
  parts.store =
      part(std::make_shared<Store>(nest.store->buffer, nest.store->indices, Load(parts.moved, place)));
  return parts;
}

// The registers of a thread that holds all that it copies, as one of the team.
int64_t RegistersOf(const Copy& copy, int64_t team) {
  const ThreadCopyNest nest = *ThreadCopyNestOf(copy);
  return CeilDiv(nest.chunks(), team) * nest.registers();
}

// Whether the copy has both its parts.
bool IsWholeThroughRegisters(const Copy& copy) {
  if (copy.engine != CopyEngine::kRegisters) return false;
  const ThreadCopyNest nest = *ThreadCopyNestOf(copy);
  return nest.load->buffer->scope != Scope::kFragment && nest.store->buffer->scope != Scope::kFragment;
}

Stmt LoadsFirst(const std::vector<Stmt>& copies) {
  std::vector<Buffer> moved;
  std::vector<Stmt> stmts, stores;
  for (const Stmt& copy : copies) {
    CopyInParts parts = InParts(As<Copy>(copy));
    moved.push_back(std::move(parts.moved));
    stmts.push_back(std::move(parts.load));
    stores.push_back(std::move(parts.store));
  }
  stmts.insert(stmts.end(), stores.begin(), stores.end());
  return InAllocs(moved, MakeSeq(std::move(stmts)));
}

Stmt CopiesTogether(const Seq& seq, int64_t team) {
  std::vector<Stmt> stmts;
  for (auto first = seq.stmts.begin(); first != seq.stmts.end();) {
    int64_t registers = 0;
    // The copies, from `first` on, that a thread can load before it stores one.
    const auto end = std::find_if_not(first, seq.stmts.end(), [&](const Stmt& stmt) {
      const Copy* copy = DynAs<Copy>(stmt);
      if (copy == nullptr || !IsWholeThroughRegisters(*copy)) return false;
      registers += RegistersOf(*copy, team);
      return registers <= kRegistersOfCopies;
    });
    const bool are_several = end - first > 1;
    stmts.push_back(are_several ? LoadsFirst({first, end}) : *first);
    first = are_several ? end : first + 1;
  }
  return stmts.size() == seq.stmts.size() ? nullptr : MakeSeq(std::move(stmts));
}

// The loop over the steps of a pipeline by threads: it waits at its beginning, or at its end.
enum class StepLoop { kNone, kWaitsFirst, kWaitsLast };
StepLoop StepLoopOf(const Stmt& stmt) {
  const For* loop = DynAs<For>(stmt);
  const Seq* body = loop == nullptr ? nullptr : DynAs<Seq>(loop->body);
  if (body == nullptr) return StepLoop::kNone;
  const auto wait = std::ranges::find(body->stmts, StmtKind::kWaitGroup, &StmtNode::kind);
  if (wait == body->stmts.end()) return StepLoop::kNone;
  return wait == body->stmts.begin() ? StepLoop::kWaitsFirst : StepLoop::kWaitsLast;
}

// x < 8 for x + 1 < 9: threads_pipeline.cc says why.
Expr WithVarAlone(const Expr& expr) {
  return Rewrite(expr, [](const Expr& e) -> Expr {
    int64_t bound = 0, added = 0;
    const bool is_shifted = e->op == Op::kLt && IsConstInt(e->args[1], &bound) &&
                            e->args[0]->op == Op::kAdd && IsConstInt(e->args[0]->args[1], &added);
    return is_shifted ? MakeBinary(Op::kLt, e->args[0]->args[0], IntConst(bound - added)) : nullptr;
  });
}

// A step whose copies through registers end after its work, under the conditions around them.
class Step {
 public:
  explicit Step(int64_t team) : team_(team) {}

  Stmt Apart(const For& loop) {
    std::vector<Stmt> stmts = {Loads(loop.body, {})};
    stmts.insert(stmts.end(), stores_.begin(), stores_.end());
    return loop.With({.body = InAllocs(moved_, MakeSeq(std::move(stmts)))});
  }

  // For a loop that waits last.
  Stmt OneAhead(const For& loop) {
    const VarNode* step = loop.var.get();
    std::vector<Stmt> first, next;
    const Stmt body = RewriteEach<Copy>(loop.body, [&](const Copy& copy) -> Stmt {
      if (!IsKept(copy)) return nullptr;
      const CopyInParts parts = InParts(copy);
      moved_.push_back(parts.moved);
      first.push_back(CopyWithSuffix(SubstituteSimplified(parts.load, {{step, IntConst(0)}}), ".begin"));
      const Stmt of_next = SubstituteSimplified(parts.load, {{step, VarRef(loop.var) + 1}});
      next.push_back(CopyWithSuffix(MapAllExprs(of_next, WithVarAlone), ".ahead"));
      return parts.store;
    });
    std::vector<Stmt> stmts;
    for (const Stmt& stmt : As<Seq>(body).stmts) {
      stmts.push_back(stmt);
      if (stmt->kind == StmtKind::kWaitGroup) stmts.insert(stmts.end(), next.begin(), next.end());
    }
    first.push_back(loop.With({.body = MakeSeq(std::move(stmts))}));
    return InAllocs(moved_, MakeSeq(std::move(first)));
  }

 private:
  Stmt Loads(const Stmt& stmt, std::vector<Expr> conditions) {
    if (const Copy* copy = DynAs<Copy>(stmt); copy != nullptr && IsKept(*copy)) {
      CopyInParts parts = InParts(*copy);
      moved_.push_back(parts.moved);
      for (size_t c = conditions.size(); c-- > 0;)
        parts.store = std::make_shared<If>(conditions[c], std::move(parts.store));
      stores_.push_back(std::move(parts.store));
      return parts.load;
    }
    if (const If* branch = DynAs<If>(stmt)) {
      if (branch->otherwise) return stmt;
      conditions.push_back(branch->condition);
    }
    return MapChildren(stmt, [&](const Stmt& child) { return Loads(child, conditions); });
  }

  bool IsKept(const Copy& copy) const {
    return copy.engine == CopyEngine::kRegisters && RegistersOf(copy, team_) <= kMostRegisters;
  }

  const int64_t team_;
  std::vector<Buffer> moved_;
  std::vector<Stmt> stores_;
};

// A launch whose copies all go through registers commits empty groups, and a wait for one is a barrier alone.
// Any other copy keeps the groups: stores by the copy engine have groups, too.
Stmt WithoutEmptyGroups(const Stmt& launch) {
  const auto has_copies = [&](bool through_registers) {
    return AnyOf<Copy>(launch, [&](const Copy& copy) {
      return (copy.engine == CopyEngine::kRegisters) == through_registers;
    });
  };
  if (!has_copies(true) || has_copies(false)) return launch;
  return RewriteStmts(launch, [](const Stmt& stmt) -> Stmt {
    if (stmt->kind == StmtKind::kCommitGroup) return MakeSeq({});
    return stmt->kind == StmtKind::kWaitGroup ? std::make_shared<Barrier>() : nullptr;
  });
}

}  // namespace

absl::StatusOr<Stmt> DivideCopies(const Stmt& body) {
  const auto divide = [](const Copy& copy) -> absl::StatusOr<Stmt> {
    if (copy.engine != CopyEngine::kThreads) return nullptr;
    const std::optional<ThreadCopyNest> nest = ThreadCopyNestOf(copy);
    if (!nest) return Refusal("a copy by threads under a condition cannot be emitted");
    return Divided(copy, *nest);
  };
  MYCC_ASSIGN_OR_RETURN(const Stmt divided, TryRewriteEach<Copy>(body, divide));
  return RewriteEach<Launch>(divided, [](const Launch& launch) {
    const Stmt apart =
        RewriteInThreads(launch, [](const Stmt& stmt, const ExecutingThreads& threads) -> Stmt {
          const StepLoop kind = threads.in_role ? StepLoop::kNone : StepLoopOf(stmt);
          if (kind == StepLoop::kNone) return nullptr;
          Step step(threads.team);
          return kind == StepLoop::kWaitsFirst ? step.Apart(As<For>(stmt)) : step.OneAhead(As<For>(stmt));
        });
    // Roles have no copies by threads, so that the block is the team.
    return WithoutEmptyGroups(
        RewriteEach<Seq>(apart, [&](const Seq& seq) { return CopiesTogether(seq, launch.shape.threads); }));
  });
}

}  // namespace mycc
