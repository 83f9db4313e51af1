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
#include <algorithm>

#include "base/status.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

absl::Status CheckReadersInside(const Function& function, const Block& producer, const Stmt& loop) {
  bool any = false;
  for (const Block* block : BlocksUnder(function.body)) {
    const std::vector<Buffer> buffers = ReducedBy(producer).buffers;
    const auto read = std::find_if(buffers.begin(), buffers.end(),
                                   [&](const Buffer& buffer) { return Reads(*block, buffer); });
    if (read == buffers.end()) continue;
    any = true;
    if (!ContainsBlock(loop, block->name)) {
      return Refusal(block->name, " reads ", (*read)->name, " outside of loop ", As<For>(loop).var->name);
    }
  }
  return any ? absl::OkStatus() : Refusal("no block reads ", producer.out->name);
}

// OK when all loops that the block's value and guards depend on, except its own, are around its new place.
absl::Status CheckLoopsReach(const Block& block, const Path& from, const Path& to) {
  const std::vector<const For*> here = LoopsOn(from);
  VarSet reached = LoopVarsOn(to);
  for (const For* own : NestOf(from)) reached.insert(own->var.get());
  absl::Status status;
  const auto check = [&](const Expr& expr) {
    for (const For* loop : here) {
      if (!UsesVar(expr, loop->var.get()) || reached.contains(loop->var.get())) continue;
      status.Update(
          Refusal(block.name, " depends on loop ", loop->var->name, ", which is not around its new place"));
    }
  };
  block.ForEachValue(check);
  for (const IterVar& iter : block.iters) check(iter.binding);
  return status;
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

}  // namespace

absl::StatusOr<Function> ComputeAt(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& producer = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path, /*guards_allowed=*/true));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, producer));
  {
    MYCC_ASSIGN_OR_RETURN(const Path loop, FindLoop(function, args.Name(1)));
    MYCC_RETURN_IF_ERROR(CheckReadersInside(function, producer, loop.target()));
  }
  Function result = WithBody(function, ReplaceAt(path, nullptr));
  // New Allocs are inside the loop.
  const std::vector<Buffer> buffers = ReducedBy(producer).buffers;
  for (const Buffer& buffer : buffers) {
    MYCC_ASSIGN_OR_RETURN(result, WithoutAlloc(result, buffer));
  }

  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoop(result, args.Name(1)));
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
  result.body = ReplaceAt(loop_path, loop.With({.body = InAllocs(local, std::move(body))}));
  return result;
}

}  // namespace mycc
