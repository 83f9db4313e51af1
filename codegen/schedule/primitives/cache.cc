// cache_read(t0, B, l, local): under loop l, block B reads a copy of the box of t0 that it needs. The copy is
// made at the start of each iteration. With `root` as the loop, the whole tensor is copied once; the copy may
// then be `global`, for all thread blocks to read, or, for a const input, `packed`, made ahead of time. With
// `all` as the block, every reader under the loop reads the copy; the tensor must then be complete before the
// loop's nest.
//
//   for l:                              for l:
//     for j: B: .. t0[l*4 + j] ..   ->    alloc t0.r[4]
//                                         for a in 4: t0.r: t0.r[i - l*4] = t0[i],  i = l*4 + a
//                                         for j: B: .. t0.r[j] ..
//
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
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// Conditions, constant inside the loop, under which the reader is executed at all: from its guards and, with
// `of_axes`, from its other iteration variables.
std::vector<IterVar> OuterGuards(const Block& reader, const VarSet& inner, bool of_axes) {
  std::vector<IterVar> guards;
  for (const IterVar& iter : reader.iters) {
    const bool varies = UsesAnyOf(iter.binding, inner);
    const std::optional<Interval> range = RangeOf(iter.binding);
    const bool refuses = !range || range->min < 0 || range->max >= iter.var->extent;
    if (varies || !(IsGuard(reader, iter) || (of_axes && refuses))) continue;
    guards.push_back({MakeVar(absl::StrCat("g", reader.iters.size() + guards.size()), iter.var->extent),
                      false, iter.binding});
  }
  return guards;
}

Stmt MakeCopy(const std::string& name, const Buffer& from, const Buffer& to,
              const std::vector<DimRegion>& box, const std::vector<IterVar>& guards) {
  BoxCopy copy = MakeBoxCopy(name, box, from->shape);
  copy.iters.insert(copy.iters.end(), guards.begin(), guards.end());
  return MakeNest(copy.loops,
                  MakeBlock(name, copy.iters, to, Localize(copy.indices, box), Load(from, copy.indices)));
}

// A copy with loops named like those of MakeCopy; its block writes every element of the box.
Stmt MakeWholeCopy(const std::string& name, const Buffer& from, const Buffer& to,
                   const std::vector<DimRegion>& box) {
  std::vector<DimRegion> places;  // in the box
  places.reserve(box.size());
  for (const DimRegion& dim : box) places.push_back({IntConst(0), dim.extent, true});
  const BoxCopy copy = MakeBoxCopy(name, places, ExtentsOf(box));
  std::vector<Expr> source;
  Expr inside = BoolConst(true);
  for (size_t d = 0; d < box.size(); ++d) {
    source.push_back(box[d].At(copy.indices[d]));
    inside = MakeBinary(Op::kAnd, inside, Within(source.back(), from->shape[d]));
  }
  const Expr value = MakeSelect(inside, Load(from, source), ZeroOf(from->dtype));
  return MakeNest(copy.loops, MakeBlock(name, copy.iters, to, copy.indices, value));
}

absl::Status CheckScope(const Function& function, const Target& target, const Buffer& buffer, Scope scope,
                        bool at_root) {
  if (scope == Scope::kLocal) return absl::OkStatus();
  if (scope == Scope::kGlobal) {
    if (at_root) return absl::OkStatus();
    return Refusal("scope global is for copies at root; this one is in a loop");
  }
  if (scope == Scope::kShared) {
    if (target.kind != TargetKind::kCuda)
      return Refusal("scope shared is for GPUs; expected local or packed");
    if (!at_root) return absl::OkStatus();
    return Refusal("scope shared is for copies in a loop; this one is at root");
  }
  if (scope != Scope::kPacked) {
    return Refusal("a copy in scope ", ScopeName(scope), "; expected local, global, packed or shared");
  }
  if (at_root && IsParam(function, buffer, ParamKind::kConst)) return absl::OkStatus();
  return Refusal("scope packed is for a const input copied at root; ", buffer->name,
                 at_root ? " is not const" : " is copied in a loop");
}

absl::Status CheckOutsideThreads(const Path& at) {
  for (const For* loop : LoopsOn(at)) {
    if (loop->loop_kind != LoopKind::kThread) continue;
    return Refusal("a copy in scope shared is made outside of thread loops; ", loop->var->name, " is one");
  }
  return absl::OkStatus();
}

// Refuses packed layouts with padding: it is never written, but a copy would read it.
bool IsPacked(const Block& writer) {
  const auto divides = [](const ExprNode& e) { return e.op == Op::kFloorDiv || e.op == Op::kMod; };
  return std::ranges::any_of(writer.indices, [&](const Expr& index) { return AnyExpr(index, divides); });
}

// Elements of a box beyond the tensor's edge are never written.
bool IsCopyOfBox(const Block& writer) {
  return writer.reduce == ReduceOp::kNone && writer.value->op == Op::kLoad && !WritesAtItsAxes(writer);
}

// No loop around the copy may produce the tensor in several iterations: a loop around the writer must also be
// around the tensor's Alloc.
absl::Status CheckWrittenAtOnce(const Function& function, const Block& writer,
                                const std::vector<const For*>& around, const For* loop) {
  const absl::StatusOr<Path> alloc = FindAlloc(function, writer.out);
  for (const For* outer : around) {
    if (loop == nullptr || !ContainsBlock(outer->body, writer.name)) break;
    if (alloc.ok() && std::ranges::count(LoopsOn(*alloc), outer) > 0) continue;
    return Refusal(writer.name, " writes a part of ", writer.out->name, " in each iteration of loop ",
                   outer->var->name);
  }
  return absl::OkStatus();
}

// OK when the tensor is complete at the copy's place: the start of an iteration of `loop`, or the root for
// null.
absl::Status CheckComplete(const Function& function, const Buffer& buffer, const Path& reader,
                           const For* loop) {
  const std::vector<const For*> around = LoopsOn(reader);
  const Stmt nest = loop != nullptr  ? loop->body
                    : around.empty() ? Stmt(reader.target())
                                     : around.front()->body;
  for (const Block* block : BlocksUnder(function.body)) {
    if (block->out != buffer) continue;
    if (IsPacked(*block)) {
      return Refusal(buffer->name, " has been packed; copy it before");
    }
    if (ContainsBlock(nest, block->name)) {
      const std::string where = loop ? "under the same loop" : "in the same nest as " + reader.block().name;
      return Refusal(block->name, " writes ", buffer->name, " ", where);
    }
    if (IsCopyOfBox(*block)) {
      return Refusal(buffer->name, " is a copy of a box; copy the tensor");
    }
    MYCC_RETURN_IF_ERROR(CheckWrittenAtOnce(function, *block, around, loop));
  }
  return absl::OkStatus();
}

// The blocks that will read the copy: the named one, or with `all` every reader under the loop.
absl::StatusOr<std::vector<const Block*>> FindReaders(const Function& function, const Buffer& buffer,
                                                      const std::string& name, const Path& at) {
  if (name != "all") {
    MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, name));
    if (!Reads(path.block(), buffer)) return Refusal(name, " does not read ", buffer->name);
    if (at.target()->kind == StmtKind::kFor && !ContainsBlock(at.target(), name))
      return Refusal(name, " is not under loop ", at.loop().var->name);
    return std::vector<const Block*>{&path.block()};
  }
  if (at.target()->kind != StmtKind::kFor)
    return Refusal("`all` is for copies in a loop; this one is at root");
  for (const Block* block : BlocksUnder(LoopsOn(at)[0]->body)) {
    if (block->out == buffer)
      return Refusal("`all` needs a tensor that is complete before its readers' nest; ", block->name,
                     " writes it inside");
  }
  std::vector<const Block*> readers = BlocksUnder(at.target());
  std::erase_if(readers, [&](const Block* block) { return !Reads(*block, buffer); });
  if (readers.empty()) return Refusal("nothing under loop ", at.loop().var->name, " reads ", buffer->name);
  return readers;
}

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

absl::StatusOr<Function> CacheRead(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindBuffer(function, args.Name(0)));
  Scope scope;
  if (!ParseScope(args.Name(3), &scope)) return Refusal(args.Name(3), " is not a scope");
  const bool at_root = args.Name(2) == "root";
  MYCC_RETURN_IF_ERROR(CheckScope(function, target, buffer, scope, at_root));
  if (buffer->scope == Scope::kAccumulator)
    return Refusal(buffer->name, " is an accumulator; copy the tensor that it is stored to");
  Path at{{function.body}};
  if (!at_root) {
    MYCC_ASSIGN_OR_RETURN(at, FindLoop(function, args.Name(2)));
    if (scope == Scope::kShared) MYCC_RETURN_IF_ERROR(CheckOutsideThreads(at));
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<const Block*> readers,
                        FindReaders(function, buffer, args.Name(1), at));
  MYCC_ASSIGN_OR_RETURN(const Path reader_path, FindBlock(function, readers[0]->name));
  MYCC_RETURN_IF_ERROR(CheckComplete(function, buffer, reader_path, at_root ? nullptr : &at.loop()));

  const Stmt body = at_root ? function.body : at.loop().body;
  // The copy replaces the tensor in the one reader, or in everything under the loop.
  const Stmt reading = readers.size() == 1 ? reader_path.target() : body;
  const std::vector<DimRegion> box =
      CoveringBox(ReadsUnder(reading, buffer), LoopVarsUnder(body), buffer->shape);
  const std::string name = FreshName(function, absl::StrCat(buffer->name, ".r"));
  const Buffer copy = MakeBuffer(name, buffer->dtype, ExtentsOf(box), scope);
  const auto localized = [&](const std::vector<Expr>& index) { return Localize(index, box); };
  Stmt inside = ReplaceStmt(body, reading.get(), ReplaceBuffer(reading, buffer, copy, localized));
  std::vector<IterVar> guards;
  if (readers.size() == 1) {
    // In iterations in which the reader is not executed, a computed tensor may be incomplete.
    const bool of_axes = WriterOf(function, buffer) != nullptr;
    guards = OuterGuards(*readers[0], LoopVarsUnder(body), of_axes);
  }
  const Stmt copying = scope == Scope::kShared ? MakeWholeCopy(name, buffer, copy, box)
                                               : MakeCopy(name, buffer, copy, box, guards);
  inside = InsertBeforeReader(inside, {copy}, copying);
  inside = std::make_shared<Alloc>(copy, std::move(inside));
  if (at_root) return WithBody(function, std::move(inside));
  return WithLoopBody(function, at, std::move(inside));
}

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
