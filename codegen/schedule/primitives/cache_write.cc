// cache_write(B, l): under loop l, block B works on an accumulator tile, indexed by the loops inside l, that
// is copied to its tensor after B's nest.
//
//   for k.0:                            for k.0:
//     for l:                              for l:
//       for k.1:                            alloc B.acc[4]
//         for j in 4:                  ->   for j in 4: B.i: B.acc[j] = k.0 == 0 ? 0 : t2[l*4 + j]
//           B: t2[l*4 + j] += ..            for k.1: for j in 4: B: B.acc[j] += ..
//                                           for j in 4: B.w: t2[l*4 + j] = B.acc[j]
//
// Partial sums are read back only when a reduction loop is around l, or when B adds to an accumulator in
// memory; otherwise B.i stores the identity. The loops of B.i and B.w are named after those of B: t2.a0.1
// becomes t2.i.a0.1 and t2.w.a0.1, and for a second accumulator of B t2.i2.a0.1 and t2.w2.a0.1.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// A condition that is true in the first iteration of the enclosing reduction loops; null when there are none.
Expr FirstVisit(const Path& loop_path, const Block& block) {
  Expr first;
  for (const For* loop : LoopsOn(loop_path)) {
    if (!CarriesReduction(block, *loop)) continue;
    const Expr at_start = MakeBinary(Op::kEq, VarRef(loop->var), IntConst(0));
    first = first ? MakeBinary(Op::kAnd, first, at_start) : at_start;
  }
  return first;
}

Stmt MakeInit(const Block& block, const Buffer& acc, const std::vector<const For*>& tile,
              const Expr& first_visit, const std::string& name) {
  const TileCopy copy = MakeTileCopy(block, tile, name);
  const Expr identity = block.reduce.Identity(0, block.out->dtype);
  if (!first_visit && block.init) return MakeNest(copy.loops, MakeBlock(name, {}, acc, copy.local, identity));
  const Expr partial = Load(block.out, copy.global);
  const Expr value = block.init ? MakeSelect(first_visit, identity, partial) : partial;
  return MakeNest(copy.loops, MakeBlock(name, copy.iters, acc, copy.local, value));
}

// The body with these statements around the part that holds the block; `before` may be null.
Stmt Around(const Stmt& body, const std::string& block, const Stmt& before, const Stmt& after) {
  std::vector<Stmt> parts = PartsOf(body);
  for (Stmt& part : parts) {
    if (ContainsBlock(part, block)) part = MakeSeq({before, part, after});
  }
  return WithParts(body, std::move(parts));
}

absl::Status CheckLegal(const Path& loop_path, const Block& block) {
  const For& loop = loop_path.loop();
  if (!block.more.empty())
    return Refusal(block.name, " reduces tuples, which have accumulators of their own already");
  if (block.out->scope == Scope::kAccumulator) {
    return Refusal(block.name, " has an accumulator already");
  }
  if (block.reduce == ReduceOp::kNone && block.value->op == Op::kLoad) {
    return Refusal(block.name, " copies ", block.value->buffer->name, "; an accumulator would copy it twice");
  }
  for (const For* around : LoopsOn(loop_path)) {
    if (around->loop_kind != LoopKind::kThread || !CarriesReduction(block, *around)) continue;
    return Refusal("the thread loop ", around->var->name, " carries the reduction; accumulate outside of it");
  }
  bool is_after = false;
  for (const Stmt& part : PartsOf(loop.body)) {
    for (const Block* other : BlocksUnder(part)) {
      const bool reads = Reads(*other, block.out), writes = other->out == block.out;
      if (other != &block && (writes || (reads && !is_after))) {
        return Refusal(other->name, " uses ", block.out->name, " under the same loop");
      }
    }
    is_after |= ContainsBlock(part, block.name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> CacheWrite(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path block_path, FindBlock(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoopAround(function, args.Name(1), args.Name(0)));
  const Block& block = block_path.block();
  const For& loop = loop_path.loop();
  MYCC_RETURN_IF_ERROR(CheckLegal(loop_path, block));

  for (const For* around : LoopsOn(block_path)) MYCC_RETURN_IF_ERROR(CheckCarriesOneKind(block, *around));
  std::vector<const For*> tile = LoopsInside(block_path, loop);
  std::erase_if(tile, [&](const For* inner) { return CarriesReduction(block, *inner); });
  const std::shared_ptr<Block> update =
      WritingTile(block, tile, FreshName(function, absl::StrCat(block.name, ".acc")), Scope::kAccumulator);
  update->init = false;
  const Buffer& acc = update->out;
  const Stmt work = ReplaceStmt(loop.body, &block, update);
  // An accumulator of an accumulator in memory has names of its own.
  const bool is_second = block.reduce != ReduceOp::kNone && !block.init;
  const auto name = [&](const char* suffix) {
    return absl::StrCat(block.name, suffix, is_second ? "2" : "");
  };
  Stmt init;
  if (block.reduce != ReduceOp::kNone)
    init = MakeInit(block, acc, tile, FirstVisit(loop_path, block), name(".i"));
  const Stmt write = MakeWriteBack(block, acc, tile, name(".w"));
  return WithLoopBody(function, loop_path,
                      std::make_shared<Alloc>(acc, Around(work, block.name, init, write)));
}

}  // namespace mycc
