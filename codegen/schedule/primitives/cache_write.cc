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
#include <algorithm>

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

// The parts of a copy between tile and tensor: the block's loops inside l with new names, and its spatial
// iteration variables bound to them.
struct TileLoops {
  std::vector<LoopSpec> loops;
  std::vector<IterVar> iters;  // spatial variables, and guards of elements
  std::vector<Expr> local;     // index into the tile
  std::vector<Expr> global;    // index into the tensor
};

TileLoops MakeTileLoops(const Block& block, const std::vector<const For*>& tile, const std::string& suffix) {
  TileLoops result;
  VarMap renamed;
  const std::string name = absl::StrCat(block.name, suffix);
  for (const For* loop : tile) {
    const Var var = MakeVar(RenamedLoop(loop->var->name, block.name, name), loop->var->extent);
    renamed[loop->var.get()] = VarRef(var);
    result.loops.push_back({var});
    result.local.push_back(VarRef(var));
  }
  VarMap fresh = renamed;
  for (const IterVar& iter : block.iters) {
    if (iter.reduce || GuardsTerms(block, iter)) continue;
    const Var var = MakeVar(iter.var->name, iter.var->extent);
    fresh[iter.var.get()] = VarRef(var);
    result.iters.push_back({var, false, Substitute(iter.binding, renamed)});
  }
  for (const Expr& index : block.indices) result.global.push_back(Substitute(index, fresh));
  return result;
}

Stmt MakeInit(const Block& block, const Buffer& acc, const std::vector<const For*>& tile,
              const Expr& first_visit, const std::string& suffix) {
  TileLoops loops = MakeTileLoops(block, tile, suffix);
  auto init = std::make_shared<Block>();
  init->name = absl::StrCat(block.name, suffix);
  init->out = acc;
  init->indices = loops.local;
  init->value = block.reduce.Identity(0, block.out->dtype);
  if (first_visit || !block.init) {
    init->iters = loops.iters;
    const Expr partial = Load(block.out, loops.global);
    init->value = block.init ? MakeSelect(first_visit, init->value, partial) : partial;
  }
  return MakeNest(loops.loops, std::move(init));
}

Stmt MakeWriteBack(const Block& block, const Buffer& acc, const std::vector<const For*>& tile,
                   const std::string& suffix) {
  TileLoops loops = MakeTileLoops(block, tile, suffix);
  auto write = std::make_shared<Block>();
  write->name = absl::StrCat(block.name, suffix);
  write->iters = loops.iters;
  write->out = block.out;
  write->indices = loops.global;
  write->value = Load(acc, loops.local);
  return MakeNest(loops.loops, std::move(write));
}

// The statements in order, inside Allocs.
std::vector<Stmt> PartsOf(const Stmt& body) {
  if (const Alloc* alloc = DynAs<Alloc>(body)) return PartsOf(alloc->body);
  return body->kind == StmtKind::kSeq ? As<Seq>(body).stmts : std::vector<Stmt>{body};
}

// The body with these statements around the part that holds the block, inside Allocs.
Stmt Around(const Stmt& body, const std::string& block, const Stmt& before, const Stmt& after) {
  if (const Alloc* alloc = DynAs<Alloc>(body))
    return std::make_shared<Alloc>(alloc->buffer, Around(alloc->body, block, before, after));
  std::vector<Stmt> parts;
  for (const Stmt& part : PartsOf(body)) {
    const bool holds = ContainsBlock(part, block);
    if (holds && before) parts.push_back(before);
    parts.push_back(part);
    if (holds) parts.push_back(after);
  }
  return MakeSeq(std::move(parts));
}

absl::Status CheckLegal(const Path& loop_path, const Block& block) {
  const For& loop = loop_path.loop();
  if (!ContainsBlock(loop.body, block.name)) {
    return Refusal(block.name, " is not under loop ", loop.var->name);
  }
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
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoop(function, args.Name(1)));
  const Block& block = block_path.block();
  const For& loop = loop_path.loop();
  MYCC_RETURN_IF_ERROR(CheckLegal(loop_path, block));

  std::vector<const For*> tile;
  std::vector<int64_t> shape;
  bool inside = false;
  for (const For* around : LoopsOn(block_path)) {
    const bool reduction = CarriesReduction(block, *around);
    if (reduction && CarriesAxis(block, *around)) {
      return Refusal("loop ", around->var->name, " carries both a reduction and an axis of ", block.name);
    }
    if (inside && !reduction) {
      tile.push_back(around);
      shape.push_back(around->var->extent);
    }
    inside |= around == &loop;
  }
  const Buffer acc = MakeBuffer(FreshName(function, absl::StrCat(block.name, ".acc")), block.out->dtype,
                                shape, Scope::kAccumulator);
  auto update = std::make_shared<Block>(block);
  update->init = false;
  update->out = acc;
  update->indices.clear();
  for (const For* dim : tile) update->indices.push_back(VarRef(dim->var));
  const Stmt work = ReplaceStmt(loop.body, &block, update);
  // An accumulator of an accumulator in memory has names of its own.
  const bool is_second = block.reduce != ReduceOp::kNone && !block.init;
  Stmt init;
  if (block.reduce != ReduceOp::kNone)
    init = MakeInit(block, acc, tile, FirstVisit(loop_path, block), is_second ? ".i2" : ".i");
  const Stmt write = MakeWriteBack(block, acc, tile, is_second ? ".w2" : ".w");
  const Stmt body = std::make_shared<Alloc>(acc, Around(work, block.name, init, write));
  return WithBody(function, ReplaceAt(loop_path, loop.With({.body = body})));
}

}  // namespace mycc
