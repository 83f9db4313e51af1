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

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
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
    if (!StructurallyEqual(load.args, consumer.indices)) {
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
    // so (WithInputsFirst).
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

bool WritesOneOf(const Stmt& stmt, const BufferSet& buffers) {
  return AnyOf<Block>(stmt, [&](const Block& block) {
    return buffers.contains(block.out.get()) ||
           std::ranges::any_of(block.more, [&](const Accumulator& accumulator) {
             return buffers.contains(accumulator.buffer.get());
           });
  });
}

void AddReads(const Block& block, BufferSet* buffers) {
  const auto add = [&](const ExprNode& load) { buffers->insert(load.buffer.get()); };
  block.ForEachValue([&](const Expr& value) { ForEachLoad(value, add); });
  for (const Expr& index : block.indices) ForEachLoad(index, add);
}

// The function with every statement at the root that computes an input of `consumer`, other than `producer`'s
// tensor, before the one that holds `producer`: `consumer` is about to move into that nest, and finds its
// inputs computed. FailedPrecondition when one needs what that nest computes.
absl::StatusOr<Function> WithInputsFirst(const Function& function, const Block& consumer,
                                         const Block& producer) {
  const std::vector<Stmt> stmts = PartsOf(function.body);
  const auto holding = [&](const Block& block) {
    return std::ranges::find_if(stmts, [&](const Stmt& stmt) { return ContainsBlock(stmt, block.name); });
  };
  const auto nest = holding(producer), end = holding(consumer);
  if (nest == stmts.end() || end <= nest) return function;
  // From the consumer backwards: what computes an input, and the inputs of that.
  BufferSet needed;
  AddReads(consumer, &needed);
  needed.erase(producer.out.get());
  std::vector<Stmt> first, rest;
  for (auto stmt = end; --stmt != nest;) {
    const bool moves = WritesOneOf(*stmt, needed);
    (moves ? first : rest).push_back(*stmt);
    if (!moves) continue;
    for (const Block* block : BlocksUnder(*stmt)) AddReads(*block, &needed);
  }
  if (first.empty()) return function;
  if (WritesOneOf(*nest, needed)) {
    return Refusal("an input of ", consumer.name, " is computed from what the nest of ", producer.name,
                   " computes, and cannot be complete before it");
  }
  std::vector<Stmt> ordered(stmts.begin(), nest);
  ordered.insert(ordered.end(), first.rbegin(), first.rend());
  ordered.push_back(*nest);
  ordered.insert(ordered.end(), rest.rbegin(), rest.rend());
  ordered.insert(ordered.end(), end, stmts.end());
  return WithBody(function, WithParts(function.body, std::move(ordered)));
}

// Whether each index is an axis, or a combination of nested axes (see split_axis) that run along the
// dimension.
bool IsWholeDimension(const Expr& index, int64_t extent) {
  Linear linear = ToLinear(index);
  std::ranges::sort(linear.terms, [](const auto& a, const auto& b) { return a.second < b.second; });
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
      return e.op == Op::kVar &&
             std::ranges::none_of(block.iters, [&](const IterVar& iter) { return iter.var == e.var; });
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
    return IsLoadOf(e, producer.out) ? producer.value : nullptr;
  });
  return fused;
}

// A copy of the producer's own loops and block, with the consumer's name.
Stmt CloneNest(const Stmt& nest, const std::string& from, const std::string& to, const Block& replacement) {
  std::vector<LoopSpec> loops;
  VarMap renamed;
  Stmt inner;
  for (const For* loop : LoopsOfNest(nest, &inner)) {
    loops.push_back({MakeVar(RenamedLoop(loop->var->name, from, to), loop->var->extent)});
    renamed[loop->var.get()] = VarRef(loops.back().var);
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
  MYCC_ASSIGN_OR_RETURN(const Path at, FindBlock(result, producer_block.name));
  // The reduction loops of the accumulating block under the same loop as the producer's own nest.
  std::vector<const For*> partial = LoopsOn(at);
  partial.resize(partial.size() - NestOf(at).size());
  std::erase_if(partial, [](const For* loop) { return !IsReduceLoop(*loop); });
  if (partial.empty()) {
    return WithoutAlloc(WithBody(result, ReplaceAt(at, fused)), producer_block.out);
  }
  if (partial.size() > 1) return Refusal("several reduction loops are around the accumulator");
  const For& loop = *partial[0];
  MYCC_RETURN_IF_ERROR(CheckLastIterationRuns(loop, producer_block));
  auto unfinished = std::make_shared<Block>(producer_block);
  AddGuard(unfinished.get(), std::max<int64_t>(loop.var->extent - 1, 0), VarRef(loop.var));
  fused->name = consumer.name;
  AddGuard(fused.get(), 1, IntConst(loop.var->extent - 1) - VarRef(loop.var));
  const Path nest = NestPath(at);
  const Stmt epilogue = CloneNest(nest.target(), producer_block.name, consumer.name, *fused);
  const Stmt partials = RewriteEach<Block>(nest.target(), [&](const Block&) { return unfinished; });
  result.body = ReplaceAt(nest, MakeSeq({partials, epilogue}));
  return result;
}

}  // namespace mycc
