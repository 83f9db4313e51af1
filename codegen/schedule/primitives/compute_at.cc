// compute_at(P, l): moves a producer under a loop of its readers, where it computes only what one iteration
// needs.
//
//   for i in 64: P: t1[i] = f(i)              for l in 16:
//   for l in 16:                                alloc t1[6]
//     for j in 4:                        ->     for a in 6: P: t1[i - l*4] = f(i),  i = l*4 + a
//       C: t2[l*4 + j] = t1[.. + 0..2]          for j in 4: C: t2[l*4 + j] = t1[j + 0..2]
//
// The box is the smallest that covers every read under the loop; elements outside the tensor are not
// computed.
//
// reverse_compute_at(C, l): moves a consumer under a loop of its producer, where it reads what the iteration
// has just written.
//
//   for l: for j in 4: P: t1[l*4 + j] = ..         for l:
//   for i in 64: C: t2[i] = g(t1[i])          ->     for j in 4: P: t1[l*4 + j] = ..
//                                                    for a in 4: C: t2[i] = g(t1[i]),  i = l*4 + a
//
// Under a reduction loop of the producer (split k) the consumer runs only in the last iteration.
#include <algorithm>
#include <map>

#include "base/status.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

absl::Status CheckReadersInside(const Function& function, const std::vector<Buffer>& buffers,
                                const Stmt& loop) {
  bool any = false;
  for (const Block* block : BlocksUnder(function.body)) {
    const auto read =
        std::ranges::find_if(buffers, [&](const Buffer& buffer) { return Reads(*block, buffer); });
    if (read == buffers.end()) continue;
    any = true;
    if (!ContainsBlock(loop, block->name)) {
      return Refusal(block->name, " reads ", (*read)->name, " outside of loop ", As<For>(loop).var->name);
    }
  }
  return any ? absl::OkStatus() : Refusal("no block reads ", buffers[0]->name);
}

// OK when all loops that the block's value and guards depend on, except its own, are around its new place.
absl::Status CheckLoopsReach(const Block& block, const Path& from, const Path& to) {
  const std::vector<const For*> here = LoopsOn(from);
  VarSet reached = LoopVarsOn(to);
  for (const For* own : NestOf(from)) reached.insert(own->var.get());
  std::vector<Expr> exprs = ReducedBy(block).values;
  for (const IterVar& iter : block.iters) exprs.push_back(iter.binding);
  for (const Expr& expr : exprs) {
    for (const For* loop : here) {
      if (!UsesVar(expr, loop->var.get()) || reached.contains(loop->var.get())) continue;
      return Refusal(block.name, " depends on loop ", loop->var->name, ", which is not around its new place");
    }
  }
  return absl::OkStatus();
}

// The producer with spatial loops over the box, and unchanged reduction loops.
Stmt MakeProducer(const Block& old, const std::vector<DimRegion>& box, const std::vector<Buffer>& local) {
  auto block = std::make_shared<Block>(old);
  std::vector<LoopSpec> loops;
  VarMap moved;  // the old loops' values, for guards
  for (IterVar& iter : block->iters) {
    if (IsGuard(old, iter)) continue;
    const Var old_loop = iter.binding->var;
    loops.push_back(LoopOver(iter.reduce ? nullptr : &box[DimOf(old, iter)], old.name, &iter));
    moved[old_loop.get()] = iter.binding;
  }
  for (IterVar& iter : block->iters) {
    if (IsGuard(old, iter)) iter.binding = Substitute(iter.binding, moved);
  }
  block->out = local[0];
  for (size_t i = 0; i < block->more.size(); ++i) block->more[i].buffer = local[i + 1];
  block->indices = Localize(old.indices, box);
  return MakeNest(loops, std::move(block));
}

using Boxes = std::map<const BufferNode*, std::vector<DimRegion>>;

// The box of each buffer that blocks under the loop write and the consumer reads. FailedPrecondition when one
// is not filled.
absl::StatusOr<Boxes> BoxesRead(const Stmt& body, const Block& consumer) {
  Boxes boxes;
  const auto inner = LoopVarsUnder(body);
  for (const Block* writer : BlocksUnder(body)) {
    if (!Reads(consumer, writer->out)) continue;
    MYCC_ASSIGN_OR_RETURN(boxes[writer->out.get()], FilledBox(*writer, inner));
  }
  return boxes;
}

// The part of each iteration variable's domain inside the boxes; variables that no read uses keep their whole
// domain.
absl::StatusOr<std::map<const VarNode*, DimRegion>> SliceOf(const Block& consumer, const Boxes& boxes) {
  std::map<const VarNode*, DimRegion> slice;
  for (const ExprNode* load : LoadsOf(consumer)) {
    const auto box = boxes.find(load->buffer.get());
    if (box == boxes.end()) continue;
    for (size_t d = 0; d < load->args.size(); ++d) {
      const DimRegion& part = box->second[d];
      const Expr& axis = load->args[d];
      if (part.whole) continue;
      if (axis->op != Op::kVar) {
        return Refusal(consumer.name, " reads ", load->buffer->name, " in dimension ", d,
                       " at something other than one of its own axes");
      }
      if (axis->var->extent > load->buffer->shape[d]) {
        return Refusal(consumer.name, " has elements that read nothing of ", load->buffer->name,
                       "; no iteration would write them");
      }
      const auto [it, fresh] = slice.emplace(axis->var.get(), part);
      if (!fresh && !it->second.IsSame(part))
        return Refusal(consumer.name, " needs two different slices of its axis ", axis->var->name);
    }
  }
  return slice;
}

// Everything else the consumer reads must be complete before the loop's nest starts.
absl::Status CheckOtherInputs(const Function& function, const Path& loop, const Block& consumer) {
  bool reached_nest = false;
  const Block* first_inside = BlocksUnder(LoopsOn(loop).front()->body).front();
  for (const Block* block : BlocksUnder(function.body)) {
    reached_nest |= block == first_inside;
    if (reached_nest && Reads(consumer, block->out) && !ContainsBlock(loop.loop().body, block->name)) {
      return Refusal(consumer.name, " also reads ", block->out->name, ", which ", block->name,
                     " has not finished at loop ", loop.loop().var->name);
    }
  }
  return absl::OkStatus();
}

// In iterations of outer loops beyond an uneven split no block writes, so the consumer must not run.
void AddGuardsOfWriters(const Stmt& body, Block* consumer) {
  for (const Block* writer : BlocksUnder(body)) {
    if (!Reads(*consumer, writer->out)) continue;
    for (const IterVar& iter : writer->iters) {
      if (IsGuard(*writer, iter) && !GuardsTerms(*writer, iter))
        AddGuard(consumer, iter.var->extent, iter.binding);
    }
  }
}

}  // namespace

absl::StatusOr<Function> ComputeAt(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& producer = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path, /*guards_allowed=*/true));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, producer));
  const std::vector<Buffer> buffers = ReducedBy(producer).buffers;
  MYCC_ASSIGN_OR_RETURN(Path loop_path, FindLoop(function, args.Name(1)));
  MYCC_RETURN_IF_ERROR(CheckReadersInside(function, buffers, loop_path.target()));
  Function result = WithBody(function, ReplaceAt(path, nullptr));
  // New Allocs are inside the loop.
  for (const Buffer& buffer : buffers) {
    MYCC_ASSIGN_OR_RETURN(result, WithoutAlloc(result, buffer));
  }

  MYCC_ASSIGN_OR_RETURN(loop_path, FindLoop(result, args.Name(1)));
  const For& loop = loop_path.loop();
  MYCC_RETURN_IF_ERROR(CheckLoopsReach(producer, path, loop_path));
  std::vector<Access> reads;
  for (const Buffer& buffer : buffers) {
    const std::vector<Access> more = ReadsUnder(loop.body, buffer);
    reads.insert(reads.end(), more.begin(), more.end());
  }
  const std::vector<DimRegion> box = CoveringBox(reads, LoopVarsUnder(loop.body), producer.out->shape);
  std::vector<Buffer> local;
  Stmt body = loop.body;
  for (const Buffer& buffer : buffers) {
    local.push_back(MakeBuffer(buffer->name, buffer->dtype, ExtentsOf(box), Scope::kLocal));
    body = ReplaceBuffer(body, buffer, local.back(),
                         [&](const std::vector<Expr>& index) { return Localize(index, box); });
  }
  body = InsertBeforeReader(body, local, MakeProducer(producer, box, local));
  return WithLoopBody(result, loop_path, InAllocs(local, std::move(body)));
}

absl::StatusOr<Function> ReverseComputeAt(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& old = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_ASSIGN_OR_RETURN(const Path before, FindLoop(function, args.Name(1)));
  if (ContainsBlock(before.target(), old.name)) {
    return Refusal(old.name, " is already under loop ", args.Name(1));
  }
  MYCC_RETURN_IF_ERROR(CheckCanMove(function, path, before));
  MYCC_ASSIGN_OR_RETURN(const Boxes boxes, BoxesRead(before.loop().body, old));
  if (boxes.empty()) {
    return Refusal(old.name, " reads nothing that is written under loop ", args.Name(1));
  }
  MYCC_RETURN_IF_ERROR(CheckOtherInputs(function, before, old));
  MYCC_ASSIGN_OR_RETURN(const auto slice, SliceOf(old, boxes));

  auto consumer = std::make_shared<Block>(old);
  std::vector<LoopSpec> loops;
  for (IterVar& iter : consumer->iters) {
    const auto part = slice.find(iter.var.get());
    if (part != slice.end() && iter.reduce) {
      return Refusal(old.name, " reduces over axis ", iter.var->name,
                     ", but one iteration of the loop computes only a part of it");
    }
    loops.push_back(LoopOver(part == slice.end() ? nullptr : &part->second, old.name, &iter));
  }
  AddGuardsOfWriters(before.loop().body, consumer.get());
  for (const For* loop : LoopsOn(before)) {
    if (!IsReduceLoop(*loop)) continue;
    for (const Block* block : BlocksUnder(loop->body))
      MYCC_RETURN_IF_ERROR(CheckCarriesOneKind(*block, *loop));
    MYCC_RETURN_IF_ERROR(CheckLastIterationRuns(*loop, *consumer));
    AddGuard(consumer.get(), 1, IntConst(loop->var->extent - 1) - VarRef(loop->var));
  }

  const Function result = WithBody(function, ReplaceAt(path, nullptr));
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoop(result, args.Name(1)));
  return WithLoopBody(result, loop_path, Append(loop_path.loop().body, MakeNest(loops, std::move(consumer))));
}

}  // namespace mycc
