// reverse_inline(C): substitutes an elementwise consumer into the block that writes its input, as an epilogue
// in registers.
//
//   for k: B: acc[j] += ..                   for k: B: acc[j] += ..
//   for j: B.w: t2[j] = acc[j]          ->   for j: B.w: t3[j] = g(acc[j])
//   for i: C: t3[i] = g(t2[i])
//
// Under a reduction loop of B (split k), t2 holds partial sums: B.w writes them in every iteration except the
// last; in the last one a second block, named C, applies the epilogue.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/inputs_first.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// OK when the consumer reads `buffer` only at its own axes in order, and writes at the same axes.
absl::Status CheckElementwise(const Block& consumer, const Buffer& buffer) {
  if (consumer.reduce != ReduceOp::kNone) return Refusal(consumer.name, " is a reduction");
  absl::Status status;
  ForEachLoad(consumer.value, [&](const ExprNode& load) {
    if (load.buffer != buffer) return;
    bool same = load.args.size() == consumer.indices.size();
    for (size_t d = 0; same && d < load.args.size(); ++d)
      same = StructurallyEqual(load.args[d], consumer.indices[d]);
    if (!same) {
      status = Refusal(consumer.name, " does not read ", buffer->name, " at the element it writes");
    }
  });
  if (status.ok() && consumer.out->shape != buffer->shape) {
    return Refusal(consumer.out->name, " does not have the shape of ", buffer->name);
  }
  return status;
}

// The computed tensor that the consumer is substituted for, with its writer.
absl::StatusOr<const Block*> ProducerOf(const Function& function, const Block& consumer) {
  const Block *producer = nullptr, *last = nullptr;
  for (const Block* block : BlocksUnder(function.body)) {
    if (block == &consumer || !Reads(consumer, block->out)) continue;
    // If there are several inputs, the one computed last is chosen; the others are complete by then, or made
    // so (inputs_first.h).
    last = block;
    if (block->reduce == ReduceOp::kNone && CheckElementwise(consumer, block->out).ok()) producer = block;
  }
  if (producer == nullptr) producer = last;
  if (producer == nullptr) return Refusal(consumer.name, " reads no computed tensor");
  if (producer->reduce != ReduceOp::kNone) {
    return Refusal(producer->name, " is a reduction without an accumulator; cache_write it first");
  }
  return producer;
}

// Whether each index is an axis, or a combination of nested axes (see split_axis) that run along the
// dimension.
bool IsWholeDimension(const Expr& index, int64_t extent) {
  Linear linear = ToLinear(index);
  std::sort(linear.terms.begin(), linear.terms.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  int64_t covered = 1;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (atom->op != Op::kVar || coefficient != covered) return false;
    covered *= atom->var->extent;
  }
  return linear.constant == 0 && covered == extent;
}

bool WritesWholeTensor(const Block& block) {
  if (block.out->scope == Scope::kAccumulator) return false;
  for (int d = 0; d < block.out->rank(); ++d) {
    const bool is_own = !AnyExpr(block.indices[d], [&](const ExprNode& e) {
      return e.op == Op::kVar && std::none_of(block.iters.begin(), block.iters.end(),
                                              [&](const IterVar& iter) { return iter.var == e.var; });
    });
    if (!is_own || !IsWholeDimension(block.indices[d], block.out->shape[d])) return false;
  }
  return static_cast<int>(block.indices.size()) == block.out->rank();
}

absl::Status CheckOnlyReader(const Function& function, const Block& consumer, const Block& producer) {
  if (IsParam(function, producer.out)) return Refusal(producer.out->name, " is an output");
  if (!WritesWholeTensor(producer)) return Refusal(producer.out->name, " was moved or packed");
  const std::string init = producer.name.substr(0, producer.name.rfind('.')) + ".i";
  for (const Block* block : BlocksUnder(function.body)) {
    if (block != &consumer && block->name != init && Reads(*block, producer.out)) {
      return Refusal(block->name, " reads ", producer.out->name, " too");
    }
  }
  return absl::OkStatus();
}

// The consumer in the producer's place: `fused` writes the consumer's tensor from the producer's value.
std::shared_ptr<Block> Fused(const Block& producer, const Block& consumer) {
  VarMap axes;
  for (size_t d = 0; d < consumer.indices.size(); ++d)
    axes[consumer.indices[d]->var.get()] = producer.indices[d];
  auto fused = std::make_shared<Block>(producer);
  fused->out = consumer.out;
  fused->value = Rewrite(Substitute(consumer.value, axes), [&](const Expr& e) -> Expr {
    return e->op == Op::kLoad && e->buffer == producer.out ? producer.value : nullptr;
  });
  return fused;
}

IterVar Guard(const Block& block, int64_t extent, Expr binding) {
  return IterVar{MakeVar(absl::StrCat("g", block.iters.size()), extent), false, std::move(binding)};
}

// A copy of the producer's own loops and block, with the consumer's name.
Stmt CloneNest(const Stmt& nest, const std::string& from, const std::string& to, const Block& replacement) {
  std::vector<LoopSpec> loops;
  VarMap renamed;
  Stmt inner = nest;
  while (const For* loop = DynAs<For>(inner)) {
    loops.push_back({MakeVar(RenamedLoop(loop->var->name, from, to), loop->var->extent)});
    renamed[loop->var.get()] = VarRef(loops.back().var);
    inner = loop->body;
  }
  return SubstituteVars(MakeNest(loops, std::make_shared<Block>(replacement)), renamed);
}

}  // namespace

absl::StatusOr<Function> ReverseInline(const Function& as_given, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path given, FindBlock(as_given, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckNaive(given));
  MYCC_ASSIGN_OR_RETURN(const Block* given_producer, ProducerOf(as_given, given.block()));
  MYCC_ASSIGN_OR_RETURN(const Function function, WithInputsFirst(as_given, given.block(), *given_producer));
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& consumer = path.block();
  MYCC_ASSIGN_OR_RETURN(const Block* producer, ProducerOf(function, consumer));
  MYCC_RETURN_IF_ERROR(CheckOnlyReader(function, consumer, *producer));
  MYCC_RETURN_IF_ERROR(CheckElementwise(consumer, producer->out));
  MYCC_ASSIGN_OR_RETURN(const Path producer_path, FindBlock(function, producer->name));
  MYCC_RETURN_IF_ERROR(CheckCanMove(function, path, producer_path));
  const Block producer_block = *producer;
  const auto fused = Fused(producer_block, consumer);

  Function result = WithBody(function, ReplaceAt(path, nullptr));
  MYCC_ASSIGN_OR_RETURN(Path at, FindBlock(result, producer_block.name));
  // The reduction loops of the accumulating block under the same loop as the producer's own nest.
  std::vector<const For*> partial;
  size_t nest_root = at.nodes.size() - 1;
  while (nest_root > 0 && at.nodes[nest_root - 1]->kind == StmtKind::kFor) --nest_root;
  for (size_t i = 0; i < nest_root; ++i) {
    if (at.nodes[i]->kind == StmtKind::kFor && IsReduceLoop(As<For>(at.nodes[i])))
      partial.push_back(&As<For>(at.nodes[i]));
  }
  if (partial.empty()) {
    return WithoutAlloc(WithBody(result, ReplaceAt(at, fused)), producer_block.out);
  }
  if (partial.size() > 1) return Refusal("several reduction loops are around the accumulator");
  const For& loop = *partial[0];
  MYCC_RETURN_IF_ERROR(CheckLastIterationRuns(loop, producer_block));
  auto unfinished = std::make_shared<Block>(producer_block);
  unfinished->iters.push_back(
      Guard(producer_block, std::max<int64_t>(loop.var->extent - 1, 0), VarRef(loop.var)));
  fused->name = consumer.name;
  fused->iters.push_back(Guard(producer_block, 1, IntConst(loop.var->extent - 1) - VarRef(loop.var)));
  const Stmt nest = at.nodes[nest_root];
  const Stmt epilogue = CloneNest(nest, producer_block.name, consumer.name, *fused);
  const Stmt partials = RewriteStmts(
      nest, [&](const Stmt& s) -> Stmt { return s->kind == StmtKind::kBlock ? Stmt(unfinished) : nullptr; });
  at.nodes.resize(nest_root + 1);
  result.body = ReplaceAt(at, MakeSeq({partials, epilogue}));
  return result;
}

}  // namespace mycc
