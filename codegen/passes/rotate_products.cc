// Rotates a consumer's loop with two products, as in FlashAttention-3: the next turn's first product is
// issued before this turn's second one. The second product then runs beside the arithmetic between the two.
//
//   for j in n:                       if n > 0: first[0]; arithmetic[0]
//     first[j]                        for j in n - 1:
//     arithmetic[j]            ->       first[j + 1]
//     second[j]                         second[j]
//     arrive empty[j]                   arithmetic[j + 1]      (overlap_products: second[j] still runs)
//                                       arrive empty[j]
//                                     second[n - 1]; arrive empty[n - 1]
//
// Several warpgroups take turns in issuing the two products (ir/pipeline_stmts.h), so that the tensor cores
// multiply for one while the others compute.
//
// `first` and `second` include the waits for their operands; an arrival after `first` that releases only its
// tiles belongs to `arithmetic`. The statements keep their order, but for first[j + 1], which passes
// second[j]: neither may access what the other writes. The consumer has two slots of the ring at a time,
// which every ring has.
#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/expr/affine.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The parts of the loop's body.
struct TurnParts {
  std::vector<Buffer> buffers;  // allocated in it, in registers
  Stmt first, arithmetic, second, arrivals;
};

// The statements of a body in order, without the Allocs and Lets around them; false when something else than
// registers is allocated.
bool Flatten(const Stmt& stmt, std::vector<Buffer>* buffers, std::vector<Stmt>* stmts) {
  if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
    buffers->push_back(alloc->buffer);
    return IsInRegisters(*alloc->buffer) && Flatten(alloc->body, buffers, stmts);
  }
  if (const Let* let = DynAs<Let>(stmt))
    return Flatten(SubstituteSimplified(let->body, VarMap{{let->var.get(), let->value}}), buffers, stmts);
  if (const Seq* seq = DynAs<Seq>(stmt)) {
    return std::ranges::all_of(seq->stmts, [&](const Stmt& part) { return Flatten(part, buffers, stmts); });
  }
  stmts->push_back(stmt);
  return true;
}

std::optional<TurnParts> TurnPartsOf(const For& loop) {
  TurnParts parts;
  std::vector<Stmt> stmts;
  if (loop.loop_kind != LoopKind::kSerial || !Flatten(loop.body, &parts.buffers, &stmts)) return std::nullopt;
  auto arrivals = stmts.end();
  while (arrivals != stmts.begin() && (*(arrivals - 1))->kind == StmtKind::kArrive) --arrivals;
  const auto first = std::find_if(stmts.begin(), arrivals, CanRunAsync);
  if (std::count_if(stmts.begin(), arrivals, CanRunAsync) != 2 || !CanRunAsync(*(arrivals - 1)))
    return std::nullopt;
  auto second = arrivals - 1;
  while (second - 1 > first && (*(second - 1))->kind == StmtKind::kWait) --second;
  if (arrivals == stmts.end() || second == first + 1) return std::nullopt;
  parts.first = MakeSeq({stmts.begin(), first + 1});
  parts.arithmetic = MakeSeq({first + 1, second});
  parts.second = MakeSeq({second, arrivals});
  parts.arrivals = MakeSeq({arrivals, stmts.end()});
  const bool overlap = Intersect(WrittenUnder(parts.first), BuffersUnder(parts.second)) ||
                       Intersect(WrittenUnder(parts.second), BuffersUnder(parts.first));
  return overlap ? std::nullopt : std::optional(parts);
}

// The part in turn `number`.
Stmt At(const For& loop, const Stmt& part, const Expr& number) {
  return SubstituteSimplified(part, VarMap{{loop.var.get(), number}});
}

Stmt Rotated(const For& loop, const TurnParts& parts, bool in_turns) {
  const Expr count = loop.extent, rest = Simplify(count - 1);
  const Var var = MakeVar(loop.var->name, loop.var->extent - 1);
  const Expr now = VarRef(var), next = now + 1;
  std::vector<Stmt> first = StmtsOf(parts.first);
  if (in_turns) first.insert(first.end() - 1, std::make_shared<Turn>(TurnStep::kTake));
  const Stmt pass = in_turns ? std::make_shared<Turn>(TurnStep::kPass) : nullptr;
  const Stmt body = MakeSeq({At(loop, MakeSeq(std::move(first)), next), At(loop, parts.second, now), pass,
                             At(loop, parts.arithmetic, next), At(loop, parts.arrivals, now)});
  const Stmt begin = At(loop, MakeSeq({parts.first, parts.arithmetic}), IntConst(0)),
             end = At(loop, MakeSeq({parts.second, parts.arrivals}), rest);
  Stmt all = MakeSeq({CopyWithSuffix(begin, ".begin"), loop.With({.var = var, .extent = rest, .body = body}),
                      CopyWithSuffix(end, ".end")});
  all = InAllocs(parts.buffers, std::move(all));
  if (IsConstInt(count)) return all;
  return std::make_shared<If>(MakeBinary(Op::kLt, IntConst(0), count), std::move(all));
}

// Tiles in shared memory that the statement's threads write.
BufferSet SharedWrittenBy(const Stmt& root) {
  BufferSet written = WrittenUnder(root);
  std::erase_if(written, [](const BufferNode* buffer) { return buffer->scope != Scope::kShared; });
  return written;
}

// Whether no product in a turn waits for a barrier of all threads, because threads wrote what it reads: the
// warpgroups would wait for each other. The first product of the first turn is in no turn.
bool MayTakeTurns(const Stmt& role, const For& loop, const TurnParts& parts) {
  return !Intersect(SharedWrittenBy(role), BuffersUnder(parts.second)) &&
         !Intersect(SharedWrittenBy(loop.body), BuffersUnder(parts.first));
}

// Loops of roles: others have no asynchronous copies that release their operands.
Stmt RotateIn(const Stmt& role, bool in_turns) {
  return RewriteEach<For>(role, [&](const For& loop) -> Stmt {
    if (loop.var->extent < 2 || IsConstInt(loop.extent, 1)) return nullptr;
    const std::optional<TurnParts> parts = TurnPartsOf(loop);
    return parts ? Rotated(loop, *parts, in_turns && MayTakeTurns(role, loop, *parts)) : nullptr;
  });
}

}  // namespace

Stmt RotateProducts(const Stmt& body) {
  return RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
    const Roles* roles = DynAs<Roles>(stmt);
    if (roles == nullptr) return nullptr;
    // One role copies. Several that compute have their own order (pingpong).
    const bool is_alone = roles->roles.size() == 2;
    return MapChildren(
        stmt, [&](const Stmt& role) { return RotateIn(role, is_alone && WarpgroupsUnder(role) > 1); });
  });
}

}  // namespace mycc
