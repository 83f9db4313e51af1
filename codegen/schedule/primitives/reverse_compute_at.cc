// reverse_compute_at(C, l): moves a consumer under a loop of its producer, where it reads what the iteration
// has just written.
//
//   for l: for j in 4: P: t1[l*4 + j] = ..         for l:
//   for i in 64: C: t2[i] = g(t1[i])          ->     for j in 4: P: t1[l*4 + j] = ..
//                                                    for a in 4: C: t2[i] = g(t1[i]),  i = l*4 + a
//
// Under a reduction loop of the producer (split k) the consumer runs only in the last iteration.
#include <map>

#include "base/status.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

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
  absl::Status status;
  const auto slice_by = [&](const ExprNode& load) {
    if (load.op != Op::kLoad || !boxes.count(load.buffer.get()) || !status.ok()) return;
    const std::vector<DimRegion>& box = boxes.at(load.buffer.get());
    for (size_t d = 0; d < box.size(); ++d) {
      if (box[d].whole) continue;
      if (load.args[d]->op != Op::kVar) {
        status = Refusal(consumer.name, " reads ", load.buffer->name, " in dimension ", d,
                         " at something other than one of its own axes");
        return;
      }
      if (load.args[d]->var->extent > load.buffer->shape[d]) {
        status = Refusal(consumer.name, " has elements that read nothing of ", load.buffer->name,
                         "; no iteration would write them");
        return;
      }
      const auto [it, fresh] = slice.emplace(load.args[d]->var.get(), box[d]);
      if (!fresh &&
          !(StructurallyEqual(it->second.base, box[d].base) && it->second.extent == box[d].extent)) {
        status = Refusal(consumer.name, " needs two different slices of its axis ", load.args[d]->var->name);
      }
    }
  };
  consumer.ForEachValue([&](const Expr& value) { Visit(value, slice_by); });
  if (!status.ok()) return status;
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
    for (const Block* block : BlocksUnder(loop->body)) {
      if (CarriesReduction(*block, *loop) && CarriesAxis(*block, *loop)) {
        return Refusal("loop ", loop->var->name, " carries both a reduction and an axis of ", block->name);
      }
    }
    MYCC_RETURN_IF_ERROR(CheckLastIterationRuns(*loop, *consumer));
    AddGuard(consumer.get(), 1, IntConst(loop->var->extent - 1) - VarRef(loop->var));
  }

  Function result = WithBody(function, ReplaceAt(path, nullptr));
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoop(result, args.Name(1)));
  const For& loop = loop_path.loop();
  Stmt body = Append(loop.body, MakeNest(loops, std::move(consumer)));
  result.body = ReplaceAt(loop_path, loop.With({.body = std::move(body)}));
  return result;
}

}  // namespace mycc
