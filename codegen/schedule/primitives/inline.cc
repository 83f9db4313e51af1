// inline(B): substitutes the value of a block without a reduction into its readers. Selects that the readers'
// guards decide disappear.
//
//   for i: B: t1[i] = f(i)
//   for i: C: t2[i] = g(t1[i + 1])      ->      for i: C: t2[i] = g(f(i + 1))
//
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
#include <unordered_set>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/guards.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// The block with a value in terms of the indices of its elements, and of loops around its nest. The indices
// are iteration variables, and the value may have loops: the write-back of an accumulator reads it at loops.
// Or the indices are loops, and the value has iteration variables: the block computes an accumulator.
Block OverElements(const Path& path) {
  Block block = path.block();
  const std::optional<VarMap> elements = ItersAt(block, block.indices);
  if (!elements) return block;
  VarMap loops, bindings;
  for (const IterVar& iter : block.iters) {
    if (!elements->contains(iter.var.get())) {
      bindings[iter.var.get()] = iter.binding;
      continue;
    }
    for (const For* loop : NestOf(path)) {
      const VarNode* var = loop->var.get();
      const auto linear = SplitLinear(iter.binding, var);
      if (IsGuard(block, iter) || !UsesVar(iter.binding, var) || !linear || linear->coefficient != 1)
        continue;
      loops[var] = VarRef(iter.var) - linear->rest;
    }
  }
  // A loop of one iteration, such as that of a depth in one padded part, is in no binding.
  for (const For* loop : NestOf(path)) {
    if (loop->var->extent == 1) loops.try_emplace(loop->var.get(), IntConst(0));
  }
  block.value = Substitute(Substitute(block.value, loops), bindings);
  return block;
}

// Whether the comparison is true wherever the block's guards hold.
bool IsImplied(const Guards& guards, const VarMap& bindings, const Expr& comparison) {
  if (comparison->op == Op::kAnd) {
    return std::ranges::all_of(comparison->args,
                               [&](const Expr& part) { return IsImplied(guards, bindings, part); });
  }
  const Expr margin = MarginOf(comparison);
  return margin != nullptr && guards.ProvablyAtLeastZero(Simplify(Substitute(margin, bindings)));
}

// A value of the block, simplified by its guards.
Expr DecidedValue(const Block& block, const Expr& value) {
  Guards guards;
  for (const IterVar& iter : block.iters) {
    if (IsGuard(block, iter)) guards.AssumeWithin(iter.binding, IntConst(iter.var->extent));
  }
  const VarMap bindings = BindingsOf(block);
  return Rewrite(value, [&](const Expr& e) -> Expr {
    return e->op == Op::kSelect && IsImplied(guards, bindings, e->args[0]) ? e->args[1] : nullptr;
  });
}

// OK when every buffer that the value reads exists at the place of `reader`.
absl::Status CheckBuffersReach(const Function& function, const Block& block, const Block& reader) {
  for (const ExprNode* load : LoadsOf(block)) {
    const absl::StatusOr<Path> alloc = FindAlloc(function, load->buffer);
    if (!alloc.ok() || ContainsBlock(alloc->target(), reader.name)) continue;
    return Refusal("its value reads ", load->buffer->name, ", which does not exist where ", reader.name,
                   " stands");
  }
  return absl::OkStatus();
}

// OK when the value has no loop of the block's nest that its element does not name.
absl::Status CheckElementsDetermine(const Path& path, const Block& block) {
  const VarMap elements = *ItersAt(block, block.indices);
  for (const For* loop : NestOf(path)) {
    const VarNode* var = loop->var.get();
    if (!UsesVar(block.value, var) || elements.contains(var)) continue;
    return Refusal("its value depends on loop ", var->name, ", which its elements do not determine");
  }
  return absl::OkStatus();
}

absl::Status CheckInlinable(const Function& function, const Path& path, const Block& block) {
  if (block.reduce != ReduceOp::kNone) return Refusal("the block is a reduction");
  if (IsParam(function, block.out)) return Refusal(block.out->name, " is an output");
  if (!ItersAt(block, block.indices)) {
    return Refusal(block.out->name, " was packed or made an accumulator: its elements are not plain ",
                   "iteration variables any more");
  }
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, block));
  MYCC_RETURN_IF_ERROR(CheckElementsDetermine(path, block));
  const auto outer_vars = LoopVarsUnder(path.nodes.front());
  std::vector<const VarNode*> used;
  Visit(block.value, [&](const ExprNode& e) {
    if (e.op == Op::kVar && outer_vars.count(e.var.get())) used.push_back(e.var.get());
  });
  bool before = true;
  for (const Block* reader : BlocksUnder(function.body)) {
    before &= reader != &path.block();
    if (!Reads(*reader, block.out)) continue;
    if (before) {
      return Refusal(reader->name, " reads ", block.out->name, " before it is written again",
                     " (partial sums of an outer reduction loop)");
    }
    MYCC_RETURN_IF_ERROR(CheckBuffersReach(function, block, *reader));
    MYCC_ASSIGN_OR_RETURN(const Path reader_path, FindBlock(function, reader->name));
    const VarSet around = LoopVarsOn(reader_path);
    for (const VarNode* var : used) {
      if (around.contains(var)) continue;
      return Refusal("its value depends on loop ", var->name, ", and the reader ", reader->name,
                     " is outside of it");
    }
  }
  return absl::OkStatus();
}

// OK when the consumer reads `buffer` only at its own axes in order, and writes at the same axes.
absl::Status CheckElementwise(const Block& consumer, const Buffer& buffer) {
  if (consumer.reduce != ReduceOp::kNone) return Refusal(consumer.name, " is a reduction");
  for (const ExprNode* load : LoadsOf(consumer)) {
    if (load->buffer == buffer && !StructurallyEqual(load->args, consumer.indices))
      return Refusal(consumer.name, " does not read ", buffer->name, " at the element it writes");
  }
  if (consumer.out->shape == buffer->shape) return absl::OkStatus();
  return Refusal(consumer.out->name, " does not have the shape of ", buffer->name);
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
    return std::ranges::any_of(ReducedBy(block).buffers,
                               [&](const Buffer& buffer) { return buffers.contains(buffer.get()); });
  });
}

void AddReads(const Block& block, BufferSet* buffers) {
  for (const ExprNode* load : LoadsOf(block)) buffers->insert(load->buffer.get());
}

// The function with every statement at the root that computes an input of `consumer`, other than `producer`'s
// tensor, before the one that holds `producer`: `consumer` is about to move into that nest, and finds its
// inputs computed. FailedPrecondition when one needs what that nest computes.
absl::StatusOr<Function> WithInputsFirst(const Function& function, const Block& consumer,
                                         const Block& producer) {
  std::vector<Stmt> stmts = PartsOf(function.body);
  const auto holding = [&](const Block& block) {
    return std::ranges::find_if(stmts, [&](const Stmt& stmt) { return ContainsBlock(stmt, block.name); });
  };
  const auto nest = holding(producer), end = holding(consumer);
  if (nest == stmts.end() || end <= nest) return function;
  // From the consumer backwards: what computes an input, and the inputs of that.
  BufferSet needed;
  AddReads(consumer, &needed);
  needed.erase(producer.out.get());
  std::unordered_set<Stmt> inputs;
  for (auto stmt = end; --stmt != nest;) {
    if (!WritesOneOf(*stmt, needed)) continue;
    inputs.insert(*stmt);
    for (const Block* block : BlocksUnder(*stmt)) AddReads(*block, &needed);
  }
  if (inputs.empty()) return function;
  if (WritesOneOf(*nest, needed)) {
    return Refusal("an input of ", consumer.name, " is computed from what the nest of ", producer.name,
                   " computes, and cannot be complete before it");
  }
  const auto is_input = [&](const Stmt& stmt) { return inputs.contains(stmt); };
  std::rotate(nest, nest + 1, std::stable_partition(nest + 1, end, is_input));
  return WithBody(function, WithParts(function.body, std::move(stmts)));
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
      return e.op == Op::kVar && std::ranges::count(block.iters, e.var, &IterVar::var) == 0;
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

absl::StatusOr<Function> Inline(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block block = OverElements(path);
  MYCC_RETURN_IF_ERROR(CheckInlinable(function, path, block));
  MYCC_ASSIGN_OR_RETURN(Function result,
                        WithoutAlloc(WithBody(function, ReplaceAt(path, nullptr)), block.out));
  result.body = RewriteEach<Block>(result.body, [&](const Block& old) -> Stmt {
    if (!Reads(old, block.out)) return nullptr;
    return Changed(old, [&](Block* reader) {
      reader->MapValues([&](const Expr& value) {
        const Expr inlined = Rewrite(value, [&](const Expr& e) -> Expr {
          return IsLoadOf(e, block.out) ? Substitute(block.value, *ItersAt(block, e->args)) : nullptr;
        });
        return DecidedValue(old, inlined);
      });
    });
  });
  return result;
}

absl::StatusOr<Function> ReverseInline(const Function& as_given, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(Path path, FindBlock(as_given, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  const Block& consumer = path.block();
  MYCC_ASSIGN_OR_RETURN(const Block* producer, ProducerOf(as_given, consumer));
  MYCC_ASSIGN_OR_RETURN(const Function function, WithInputsFirst(as_given, consumer, *producer));
  MYCC_ASSIGN_OR_RETURN(path, FindBlock(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckOnlyReader(function, consumer, *producer));
  MYCC_RETURN_IF_ERROR(CheckElementwise(consumer, producer->out));
  MYCC_ASSIGN_OR_RETURN(const Path producer_path, FindBlock(function, producer->name));
  MYCC_RETURN_IF_ERROR(CheckCanMove(function, path, producer_path));
  const auto fused = Fused(*producer, consumer);

  const Function result = WithBody(function, ReplaceAt(path, nullptr));
  MYCC_ASSIGN_OR_RETURN(const Path at, FindBlock(result, producer->name));
  // The reduction loops of the accumulating block under the same loop as the producer's own nest.
  std::vector<const For*> partial = LoopsOn(at);
  partial.resize(partial.size() - NestOf(at).size());
  std::erase_if(partial, [](const For* loop) { return !IsReduceLoop(*loop); });
  if (partial.empty()) return WithoutAlloc(WithBody(result, ReplaceAt(at, fused)), producer->out);
  if (partial.size() > 1) return Refusal("several reduction loops are around the accumulator");
  const For& loop = *partial[0];
  MYCC_RETURN_IF_ERROR(CheckLastIterationRuns(loop, *producer));
  auto unfinished = std::make_shared<Block>(*producer);
  AddGuard(unfinished.get(), std::max<int64_t>(loop.var->extent - 1, 0), VarRef(loop.var));
  fused->name = consumer.name;
  AddGuard(fused.get(), 1, IntConst(loop.var->extent - 1) - VarRef(loop.var));
  const Path nest = NestPath(at);
  const Stmt epilogue = CloneNest(nest.target(), producer->name, consumer.name, *fused);
  const Stmt partials = RewriteEach<Block>(nest.target(), [&](const Block&) { return unfinished; });
  return WithBody(result, ReplaceAt(nest, MakeSeq({partials, epilogue})));
}

}  // namespace mycc
