// stage_shared(B, t0, l, shared): under loop l, block B reads its operand t0 from a tile in shared memory.
// The tile has a dimension for each loop inside l that the operand depends on, in their order.
//
//   for l:                                for l:
//     for i in 64: for j: for k in 32:      alloc t0.s[64,32]
//       B: acc[i,j] += t0[f(l,i,k)] * ..    for i in 64: for k in 32:
//                                             t0.s: t0.s[i,k] = inside ? t0[f(l,i,k)] : 0
//                                           for i: for j: for k: B: acc[i,j] += t0.s[i,k] * ..
//
// cache_read copies a box of the tensor; this primitive copies the elements that the iterations read, so that
// strided, dilated and padded convolutions become matrices in shared memory. When a block reads the tensor
// several times (a Gram matrix), the first read from the left that is not staged yet is staged. Iterations
// outside the tensor or the reduction get zero: the tile is complete, and adds nothing to a sum.
//
// stage_window(B, t0, l, shared, r): the same, where loop r runs over the taps of a window. The tile has the
// elements of all of them, each once: a pixel's taps lie in the pixels after it.
//
//   for l:                                  for l:
//     for r in 3: for i in 8: for k:          alloc t0.s[10,..]
//       B: acc[i,j] += t0[i+r,k] * ..   ->    for i in 10: for k: t0.s: t0.s[i,k] = t0[f(l,i,k)]
//                                             for r in 3: for i in 8: for k: B: acc[i,j] += t0.s[i+r,k] * ..
//
// stage_write(B, l, shared): under loop l, block B writes such a tile, and a block after it copies the tile
// to the tensor.
//
//   for l:                                for l:
//     for i: for j: B: t3[g(l,i,j)] = ..    alloc B.s[..]
//                                           for i: for j: B: B.s[i,j] = ..
//                                           for i: for j: B.o: t3[g(l,i,j)] = B.s[i,j]
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

absl::Status CheckPlain(const std::vector<const For*>& loops) {
  for (const For* loop : loops) {
    if (loop->loop_kind != LoopKind::kSerial || !loop->marks.instruction.empty()) {
      return Refusal("loop ", loop->var->name, " is ", LoopKindName(loop->loop_kind),
                     loop->marks.instruction.empty() ? "" : " and tensorized",
                     "; a tile is staged before its loops are bound");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Scope> StageScope(const std::string& name, const Target& target) {
  if (target.kind == TargetKind::kCuda && name == "shared") return Scope::kShared;
  return Refusal("a tile in scope ", name, "; expected shared, on a GPU");
}

// The operand in the block's value: the first load of the buffer, with the select around it that gives zero
// where the load is not allowed. Null when there is none.
Expr OperandOf(const Block& block, const Buffer& buffer) {
  const auto find = [&](const Expr& e, const auto& self) -> Expr {
    if (IsLoadOf(e, buffer) || (e->op == Op::kSelect && IsLoadOf(e->args[1], buffer) && IsZero(e->args[2])))
      return e;
    for (const Expr& arg : e->args) {
      if (Expr found = self(arg, self)) return found;
    }
    return nullptr;
  };
  Expr operand;
  block.ForEachValue([&](const Expr& value) {
    if (Expr found = find(value, find)) operand = found;
  });
  return operand;
}

// The number of elements, with the zeros stored after them (see pad), of groups of `extent` elements along
// dimension d; 0 without such zeros.
int64_t PaddedExtent(const Block* writer, size_t d, int64_t extent) {
  if (writer == nullptr || writer->value->op != Op::kSelect || writer->indices.size() <= d) return 0;
  const Expr &condition = writer->value->args[0], &zero = writer->value->args[2], &index = writer->indices[d];
  if (condition->op != Op::kLt || !IsConstInt(condition->args[1], extent) || !IsZero(zero)) return 0;
  const Expr& place = condition->args[0];
  if (StructurallyEqual(place, index)) return writer->out->shape[d];
  int64_t padded = 0;
  const bool of_group = place->op == Op::kMod && StructurallyEqual(place->args[0], index) &&
                        IsConstInt(place->args[1], &padded);
  return of_group ? padded : 0;
}

// The extent of a group with the zeros after it, for an iteration variable that runs along the group; 0
// without such zeros.
int64_t ZerosUpTo(const Expr& index, const IterVar& iter, const Block* writer, size_t d) {
  const auto linear = SplitLinear(index, iter.var.get());
  if (!linear || linear->coefficient != 1) return 0;
  const int64_t padded = PaddedExtent(writer, d, iter.var->extent);
  const bool begins_group = padded > 0 && IsConstInt(Simplify(Mod(linear->rest, padded)), int64_t{0});
  return begins_group ? padded : 0;
}

// Whether iterations of the tile's loops share elements along a dimension: several loops step along it, or
// one that is of two axes (taps and channels).
bool AreShared(const Expr& index, const std::vector<const For*>& loops) {
  const auto steps = [&](const For* loop) { return UsesVar(index, loop->var.get()); };
  const auto is_of_two = [&](const For* loop) { return steps(loop) && !SplitLinear(index, loop->var.get()); };
  return std::ranges::count_if(loops, steps) > 1 || std::ranges::any_of(loops, is_of_two);
}

// The tile's value at an iteration: the tensor's element, or zero. Where iterations share elements, the tile
// is zero for iterations outside of the block, not for elements outside of the tensor: the copy engine has an
// edge there.
Expr StagedValue(const Block& block, const Expr& operand, const VarMap& bindings, const Block* writer,
                 const std::vector<const For*>& loops) {
  const bool padded = operand->op == Op::kSelect;
  const Expr& element = padded ? operand->args[1] : operand;
  const Expr load = Substitute(element, bindings);
  std::vector<Expr> conditions;
  if (padded) SplitConjunction(Simplify(Substitute(operand->args[0], bindings)), &conditions);
  std::vector<Expr> shared;  // indices of elements that are also other iterations'
  for (size_t d = 0; d < load->args.size(); ++d) {
    if (AreShared(load->args[d], loops)) {
      shared.push_back(element->args[d]);
    } else {
      SplitConjunction(Within(Simplify(load->args[d]), load->buffer->shape[d]), &conditions);
    }
  }
  for (const IterVar& iter : block.iters) {
    const bool of_terms = iter.reduce || GuardsTerms(block, iter) || UsesVar(shared, iter.var.get());
    if (!of_terms || !UsesVar(operand, iter.var.get())) continue;
    int64_t extent = iter.var->extent;
    for (size_t d = 0; d < load->args.size(); ++d) {
      extent = std::max(extent, ZerosUpTo(element->args[d], iter, writer, d));
    }
    SplitConjunction(Within(Simplify(bindings.at(iter.var.get())), extent), &conditions);
  }
  return MakeSelect(JoinConjunction(conditions), load, ZeroOf(load->dtype));
}

// The loop over a window's taps. With it, another loop's tile has `reach` more elements than iterations: the
// taps of the last one.
struct Window {
  const For* taps = nullptr;
  const For* pixels = nullptr;
  int64_t dilation = 1, reach = 0;

  Expr At(const Expr& pixel, const Expr& tap) const { return pixel + tap * dilation; }
};

// Finds the loop whose iterations the taps shift: at all places in `operand` the taps come as pixel +
// dilation * tap.
absl::StatusOr<Window> WindowOf(const Expr& operand, const std::vector<const For*>& around, const For& taps) {
  const auto steps = [](const Expr& index, const For& loop) {
    const auto linear = SplitLinear(index, loop.var.get());
    return linear ? linear->coefficient : 0;
  };
  const Expr load = operand->op == Op::kSelect ? operand->args[1] : operand;
  for (const Expr& index : load->args) {
    for (const For* pixels : around) {
      const int64_t tap = steps(index, taps), pixel = pixels == &taps ? 0 : steps(index, *pixels);
      if (tap <= 0 || pixel <= 0 || tap % pixel != 0) continue;
      const Window window{&taps, pixels, tap / pixel, tap / pixel * (taps.var->extent - 1)};
      const Expr shifted = VarRef(pixels->var) - VarRef(taps.var) * window.dilation;
      const Expr at_first = Simplify(Substitute(operand, VarMap{{pixels->var.get(), shifted}}));
      if (!UsesVar(at_first, taps.var.get())) return window;
    }
  }
  return Refusal("loop ", taps.var->name, " does not run over the taps of a window of ", load->buffer->name,
                 " whose pixels are inside");
}

// The tile's dimensions, its own loops, which are those of `loops` named after `name`, and the iteration
// variables of a block over all its elements.
struct Tile {
  std::vector<LoopSpec> loops;
  std::vector<IterVar> iters;
  std::vector<int64_t> shape;
  std::vector<Expr> inside;  // the tile's index over the loops of the block
  VarMap renamed;            // the loops of the block, to the iteration variables
};

Tile MakeTile(const std::vector<const For*>& loops, const std::string& block, const std::string& name,
              const Window& window) {
  Tile tile;
  if (window.taps != nullptr) tile.renamed[window.taps->var.get()] = IntConst(0);
  for (const For* loop : loops) {
    const bool has_taps = loop == window.pixels;
    const int64_t extent = loop->var->extent + (has_taps ? window.reach : 0);
    const Var iter = MakeVar(absl::StrCat("a", tile.shape.size()), extent);
    tile.loops.push_back({MakeVar(RenamedLoop(loop->var->name, block, name), extent)});
    tile.iters.push_back({iter, false, VarRef(tile.loops.back().var)});
    tile.shape.push_back(extent);
    tile.inside.push_back(has_taps ? window.At(VarRef(loop->var), VarRef(window.taps->var))
                                   : VarRef(loop->var));
    tile.renamed[loop->var.get()] = VarRef(iter);
  }
  return tile;
}

}  // namespace

absl::StatusOr<Function> StageShared(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path block_path, FindBlock(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindBuffer(function, args.Name(1)));
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoopAround(function, args.Name(2), args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Scope scope, StageScope(args.Name(3), target));
  const Block& block = block_path.block();
  const For& loop = loop_path.loop();
  const Expr operand = OperandOf(block, buffer);
  if (!operand) return Refusal(block.name, " does not read ", buffer->name);
  const Block* writer = WriterOf(function, buffer);
  if (writer != nullptr && ContainsBlock(loop.body, writer->name))
    return Refusal(writer->name, " writes ", buffer->name, " under the same loop");
  const VarMap bindings = BindingsOf(block);
  const Expr bound = Substitute(operand, bindings);
  std::vector<const For*> around;
  for (const For* inner : LoopsInside(block_path, loop)) {
    if (UsesVar(bound, inner->var.get())) around.push_back(inner);
  }
  MYCC_RETURN_IF_ERROR(CheckPlain(around));
  Window window;
  if (args.size() > 4) {  // of stage_window
    const std::string& taps = args.Name(4);
    MYCC_ASSIGN_OR_RETURN(const Path taps_path, FindLoopAround(function, taps, block.name));
    if (std::ranges::count(around, &taps_path.loop()) == 0)
      return Refusal("loop ", taps, " is not inside ", args.Name(2), ", or ", buffer->name,
                     " does not step with it");
    MYCC_ASSIGN_OR_RETURN(window, WindowOf(bound, around, taps_path.loop()));
    for (const IterVar& iter : block.iters) {
      const Expr tap = Simplify(bindings.at(iter.var.get()));
      if (iter.reduce && UsesVar(tap, window.taps->var.get()) &&
          !IsConstInt(Within(tap, iter.var->extent), int64_t{1}))
        return Refusal("loop ", taps, " runs beyond the taps of ", block.name);
    }
  }

  // The window's taps are no loop of the tile.
  std::vector<const For*> own = around;
  std::erase(own, window.taps);
  const std::string name = FreshName(function, absl::StrCat(buffer->name, ".s"));
  const Tile tile = MakeTile(own, block.name, name, window);
  const Buffer staged = MakeBuffer(name, buffer->dtype, tile.shape, scope);
  std::vector<Expr> indices;
  for (const IterVar& iter : tile.iters) indices.push_back(VarRef(iter.var));
  const Expr value = StagedValue(block, operand, bindings, writer, own);
  const auto copy = MakeBlock(name, tile.iters, staged, indices, Substitute(value, tile.renamed));

  auto reader = std::make_shared<Block>(block);
  reader->MapValues([&](const Expr& value) {
    return Rewrite(value, [&](const Expr& e) -> Expr {
      return StructurallyEqual(e, operand) ? Load(staged, tile.inside) : nullptr;
    });
  });
  Stmt body = ReplaceStmt(loop.body, &block, reader);
  body = InsertBeforeReader(body, {staged}, MakeNest(tile.loops, copy));
  return WithLoopBody(function, loop_path, std::make_shared<Alloc>(staged, std::move(body)));
}

absl::StatusOr<Function> StageWrite(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path block_path, FindBlock(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoopAround(function, args.Name(1), args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Scope scope, StageScope(args.Name(2), target));
  const Block& block = block_path.block();
  const For& loop = loop_path.loop();
  if (block.reduce != ReduceOp::kNone)
    return Refusal(block.name, " is a reduction; stage what writes its result");
  for (const Block* other : BlocksUnder(loop.body)) {
    if (other != &block && (other->Writes(block.out) || Reads(*other, block.out))) {
      return Refusal(other->name, " uses ", block.out->name, " under the same loop");
    }
  }
  const std::vector<const For*> around = LoopsInside(block_path, loop);
  MYCC_RETURN_IF_ERROR(CheckPlain(around));

  const std::string name = FreshName(function, absl::StrCat(block.name, ".o"));
  const std::shared_ptr<Block> writer =
      WritingTile(block, around, FreshName(function, absl::StrCat(block.name, ".s")), scope);
  const Buffer& staged = writer->out;
  Stmt body = ReplaceStmt(loop.body, &block, writer);
  // The copy has the block's iteration variables, so that elements outside of the tensor are not copied.
  body = Append(body, MakeWriteBack(block, staged, around, name));
  return WithLoopBody(function, loop_path, std::make_shared<Alloc>(staged, std::move(body)));
}

}  // namespace mycc
