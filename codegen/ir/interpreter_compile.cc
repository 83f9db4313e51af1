// Compiles a function to the interpreter's code, statement by statement, in one walk. It is one class in one
// file, because all statements share one program and its registers.
#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/interpreter_assembler.h"
#include "codegen/ir/interpreter_memory.h"
#include "codegen/ir/interpreter_program.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc::interpreter {
namespace {

class Compiler : Assembler {
 public:
  absl::StatusOr<Program> Run(const Function& function) {
    // Scheduled IR has thread loops, but does not yet say which tensors are in registers.
    program_.has_threads = AnyStmt(function.body, IsThreadLoop) && !Contains(function.body, StmtKind::kBlock);
    for (const Param& param : function.params) AddMemory(param.buffer, param.kind != ParamKind::kOutput);
    Statement(function.body);
    Emit({.code = Code::kEnd});
    if (!status_.ok()) return status_;
    return std::move(program_);
  }

 private:
  void Statement(const Stmt& stmt) {
    const int outer_site = site_;
    program_.sites.push_back(Site{stmt, loops_in_scope_});
    site_ = static_cast<int>(program_.sites.size()) - 1;
    switch (stmt->kind) {
      case StmtKind::kSeq:
        for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
        break;
      case StmtKind::kFor: ForStatement(As<For>(stmt)); break;
      case StmtKind::kIf: IfStatement(As<If>(stmt)); break;
      case StmtKind::kLet: LetStatement(As<Let>(stmt)); break;
      case StmtKind::kAlloc: AllocStatement(As<Alloc>(stmt)); break;
      case StmtKind::kLaunch: LaunchStatement(As<Launch>(stmt)); break;
      case StmtKind::kBlock: BlockStatement(As<Block>(stmt)); break;
      case StmtKind::kStore: StoreStatement(As<Store>(stmt)); break;
      case StmtKind::kCombine: CombineStatement(As<Combine>(stmt)); break;
      case StmtKind::kMma: MmaStatement(As<Mma>(stmt)); break;
      case StmtKind::kCopy: CopyStatement(As<Copy>(stmt)); break;
      case StmtKind::kVectors: VectorsStatement(As<Vectors>(stmt)); break;
      // Caches and tile registers change no values.
      case StmtKind::kBypass:
      case StmtKind::kTileMove:
      case StmtKind::kTileRegion:
        for (const Stmt& child : Children(stmt)) Statement(child);
        break;
      case StmtKind::kRoles: RolesStatement(As<Roles>(stmt)); break;
      case StmtKind::kArrive: {
        const Arrive& arrive = As<Arrive>(stmt);
        const int group = GroupOf("arrive"), barrier = Expression(*arrive.barrier);
        const int32_t bytes = static_cast<int32_t>(arrive.expected_bytes);
        Emit({.code = Code::kArrive, .a = barrier, .b = arrive.arrivals, .c = bytes, .imm = group});
        break;
      }
      case StmtKind::kWait: {
        const int group = GroupOf("wait"), barrier = Expression(*As<Wait>(stmt).barrier);
        Emit({.code = Code::kWait, .a = barrier, .b = Expression(*As<Wait>(stmt).phase), .imm = group});
        break;
      }
      case StmtKind::kCommitProducts: Emit({.code = Code::kCommitProducts}); break;
      case StmtKind::kWaitProducts:
        Emit({.code = Code::kWaitProducts, .imm = As<WaitProducts>(stmt).pending});
        break;
      case StmtKind::kCommitGroup: Emit({.code = Code::kCommitGroup}); break;
      case StmtKind::kWaitGroup:
        Emit({.code = Code::kWaitGroup, .imm = As<WaitGroup>(stmt).pending});
        EmitBarrier();
        break;
      case StmtKind::kFence: Emit({.code = Code::kFence}); break;
      case StmtKind::kTurn: break;  // only delays
      case StmtKind::kBarrier: EmitBarrier(); break;
      case StmtKind::kSignal:
      case StmtKind::kAwait: Fail("a flag between thread blocks that do not run side by side"); break;
    }
    site_ = outer_site;
  }

  void LaunchStatement(const Launch& launch) {
    Emit({.code = Code::kLaunch, .imm = launch.shape.threads * launch.shape.cluster_reduce});
    in_launch_ = true;
    ++launches_;
    Statement(launch.body);
    in_launch_ = false;
  }

  void EmitBarrier() {
    if (in_launch_) Emit({.code = Code::kBarrier});
  }

  int GroupOf(const char* what) {
    return group_ ? *group_ : Fail(absl::StrCat(what, " of a barrier outside roles"));
  }

  void ForStatement(const For& loop) {
    const int extent = Expression(*loop.extent), variable = NewRegister();
    const int index = static_cast<int>(program_.loops.size());
    const bool is_grid = loop.loop_kind == LoopKind::kGrid, of_threads = loop.loop_kind == LoopKind::kThread;
    const bool parallel = is_grid || loop.loop_kind == LoopKind::kParallel, is_nest = of_threads && !in_nest_;
    // The first instance of a block initialises the accumulator, so its iterations run in order.
    const bool any_order = parallel || (of_threads && !IsReduceLoop(loop));
    const bool is_launch = loops_in_scope_.empty() && !group_ && (is_grid || of_threads);
    program_.loops.push_back({.name = loop.var->name,
                              .variable = variable,
                              .extent = extent,
                              .max_extent = loop.var->extent,
                              .parallel = parallel,
                              .any_order = any_order,
                              .is_launch = is_launch,
                              .is_grid = is_grid,
                              .threads = of_threads ? ThreadsUnder(loop.body) : 0,
                              .is_nest = is_nest,
                              .is_direct = parallel && direct_ == &loop});
    in_nest_ = in_nest_ || of_threads;
    if (parallel) direct_ = loop.body.get();
    if (group_ && loop.loop_kind == LoopKind::kParallel) Fail("a parallel loop inside roles");
    const int64_t enter = Emit({.code = Code::kLoopEnter, .a = index});
    const int64_t body = Here();
    InScope("loop", loop.var, variable, loop.body);
    Emit({.code = Code::kLoopNext, .a = index, .imm = body});
    Land(enter);
    if (is_nest) in_nest_ = false;
  }

  void IfStatement(const If& branch) {
    const int64_t to_else = Emit({.code = Code::kJumpIfZero, .a = Expression(*branch.condition)});
    Statement(branch.then);
    if (!branch.otherwise) return Land(to_else);
    const int64_t to_end = Emit({.code = Code::kJump});
    Land(to_else);
    Statement(branch.otherwise);
    Land(to_end);
  }

  void LetStatement(const Let& let) {
    const int variable = NewRegister();
    Emit({.code = Code::kMove, .dst = variable, .a = Expression(*let.value)});
    Emit({.code = Code::kCheckRange, .a = variable, .imm = let.var->extent});
    InScope("variable", let.var, variable, let.body);
  }

  // Compiles a statement in which the variable, called `what` in an error, is in the register.
  void InScope(const char* what, const Var& var, int variable, const Stmt& body) {
    if (!variables_.emplace(var.get(), variable).second)
      Fail(absl::StrCat(what, " ", var->name, " is inside itself"));
    loops_in_scope_.emplace_back(var->name, variable);
    Statement(body);
    loops_in_scope_.pop_back();
    variables_.erase(var.get());
  }

  void AllocStatement(const Alloc& alloc) {
    if (HasMemory(alloc.buffer))
      Fail(absl::StrCat("buffer ", alloc.buffer->name, " is allocated inside itself"));
    if (direct_ == &alloc) direct_ = alloc.body.get();
    Emit({.code = Code::kAlloc, .a = AddMemory(alloc.buffer, /*read_only=*/false)});
    if (alloc.offset != Alloc::kNoOffset) {
      MemorySlot& slot = program_.memories.back();
      slot.launch = launches_;
      slot.begin = alloc.offset;
      slot.end = alloc.offset + alloc.buffer->bytes();
    }
    Statement(alloc.body);
    EndMemory(alloc.buffer);
  }

  void StoreStatement(const Store& store) {
    const int memory = MemoryOf(store.buffer, /*write=*/true);
    const Threads around = readers_;
    if (program_.memories[memory].is_shared && around == Threads::kAll) readers_ = Threads::kFirst;
    const int indices = List(Expressions(store.indices));
    const int value = copy_ ? CopiedValue(store.value) : Expression(*store.value);
    if (copy_) {
      Emit({.code = Code::kCopyStore, .a = memory, .b = indices, .c = value, .imm = *copy_});
    } else {
      StoreTo(memory, indices, value, around == Threads::kSome ? around : Threads::kFirst);
    }
    readers_ = around;
  }

  void CombineStatement(const Combine& combine) {
    if (combine.groups.empty()) return Merge(ReducedBy(combine), Threads::kTogether, 0, combine.condition);
    program_.combines.push_back(combine.groups);
    Merge(ReducedBy(combine), Threads::kFirst, static_cast<int>(program_.combines.size()), combine.condition);
  }

  // Jumps taken when bindings of the block are outside their domains: those that guard terms of its sum, or
  // the others.
  std::vector<int64_t> UnlessInside(const Block& block, const std::vector<int>& bindings, bool of_terms) {
    std::vector<int64_t> jumps;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const IterVar& iter = block.iters[i];
      if ((iter.reduce || GuardsTerms(block, iter)) != of_terms) continue;
      if (iter.binding->op == Op::kVar && iter.binding->var->extent <= iter.var->extent) continue;
      const int extent = NewRegister({.i = iter.var->extent});
      jumps.push_back(Emit({.code = Code::kJumpIfOutside, .a = bindings[i], .b = extent}));
    }
    return jumps;
  }

  // Computes the bindings, then executes the instance; jumps over it when a binding is outside its domain.
  void BlockStatement(const Block& block) {
    std::vector<int> bindings, reduce;
    for (const IterVar& iter : block.iters) {
      bindings.push_back(Expression(*iter.binding));
      if (iter.reduce) reduce.push_back(bindings.back());
    }
    const std::vector<int64_t> exits = UnlessInside(block, bindings, /*of_terms=*/false);
    for (size_t i = 0; i < bindings.size(); ++i) variables_[block.iters[i].var.get()] = bindings[i];
    const bool initialises = block.reduce != ReduceOp::kNone && block.init;
    const std::vector<int> loops = initialises ? LoopsOfReduction(block) : std::vector<int>();
    if (!loops.empty()) Initialisation(block, loops);
    const std::vector<int64_t> skips = UnlessInside(block, bindings, /*of_terms=*/true);
    if (initialises && loops.empty()) Initialisation(block, reduce);
    PlainInstance(block);
    for (const IterVar& iter : block.iters) variables_.erase(iter.var.get());
    Land(skips);
    Land(exits);
  }

  // Registers of the loops that carry the reduction: in its first iteration all of them are 0, even if that
  // term is guarded. Empty when one of the loops carries an axis too.
  std::vector<int> LoopsOfReduction(const Block& block) const {
    std::set<const VarNode*> loops, of_axes;
    for (const IterVar& iter : block.iters) {
      if (!iter.reduce && IsGuard(block, iter)) continue;
      Visit(iter.binding, [&](const ExprNode& e) {
        if (e.op == Op::kVar) (iter.reduce ? loops : of_axes).insert(e.var.get());
      });
    }
    std::vector<int> registers;
    for (const VarNode* loop : loops) {
      if (of_axes.contains(loop)) return {};
      registers.push_back(variables_.at(loop));
    }
    return registers;
  }

  // Stores the identities where all these registers are 0.
  void Initialisation(const Block& block, const std::vector<int>& zeros) {
    std::vector<int64_t> later;
    later.reserve(zeros.size());
    for (const int reg : zeros) later.push_back(Emit({.code = Code::kJumpIfNonZero, .a = reg}));
    const ReducedTuple reduced = ReducedBy(block);
    const int indices = List(Expressions(block.indices));
    for (size_t i = 0; i < reduced.buffers.size(); ++i) {
      const Buffer& buffer = reduced.buffers[i];
      const int identity = NewRegister(block.reduce.Identity(static_cast<int>(i), buffer->dtype)->value);
      StoreTo(MemoryOf(buffer, /*write=*/true), indices, identity, Threads::kFirst);
    }
    Land(later);
  }

  void PlainInstance(const Block& block) {
    if (block.reduce != ReduceOp::kNone) return Merge(ReducedBy(block), Threads::kFirst);
    const int memory = MemoryOf(block.out, /*write=*/true);
    const int indices = List(Expressions(block.indices));
    StoreTo(memory, indices, Expression(*block.value), Threads::kFirst);
  }

  void StoreTo(int memory, int indices, int value, Threads threads, int combine = 0) {
    Emit({.code = Code::kStore,
          .dst = combine,
          .a = memory,
          .b = indices,
          .c = value,
          .imm = static_cast<int64_t>(threads)});
  }

  // Merges values into accumulators, where the condition holds. All parts of a tuple are read before any is
  // stored. `combine` is one more than the number of the combine, 0 where its threads are not known.
  void Merge(const ReducedTuple& reduced, Threads threads, int combine = 0, const Expr& condition = nullptr) {
    std::vector<int> memories;
    for (const Buffer& buffer : reduced.buffers) memories.push_back(MemoryOf(buffer, /*write=*/true));
    const int indices = List(Expressions(reduced.indices));
    const std::vector<int> values = Expressions(reduced.values);
    std::vector<int64_t> past;
    if (condition) past.push_back(Emit({.code = Code::kJumpIfZero, .a = Expression(*condition)}));
    const TupleFunction* tuple = reduced.reduce.tuple();
    if (tuple == nullptr) {
      Emit({.code = Code::kReduce,
            .dtype = reduced.buffers[0]->dtype,
            .dst = combine,
            .a = memories[0],
            .b = indices,
            .c = values[0],
            .imm = static_cast<int64_t>(reduced.reduce.op())});
      return Land(past);
    }
    for (size_t i = 0; i < memories.size(); ++i) {
      const int before = NewRegister();
      Emit({.code = Code::kLoad,
            .dst = before,
            .a = memories[i],
            .b = indices,
            .c = static_cast<int32_t>(threads),
            .imm = combine});
      parts_[tuple->parts[i].a.get()] = before;
      parts_[tuple->parts[i].b.get()] = values[i];
    }
    std::vector<int> merged;
    for (const TupleFunction::Part& part : tuple->parts) merged.push_back(Expression(*part.combined));
    for (size_t i = 0; i < memories.size(); ++i) StoreTo(memories[i], indices, merged[i], threads, combine);
    parts_.clear();
    Land(past);
  }

  View ViewOf(const TileView& view, bool write) {
    return View{MemoryOf(view.buffer, write), List(Expressions(view.indices)), view};
  }

  void MmaStatement(const Mma& mma) {
    const View acc = ViewOf(mma.acc, /*write=*/true), a = ViewOf(mma.a, false), b = ViewOf(mma.b, false);
    program_.tiles.push_back(Tile{.views = {acc, a, b},
                                  .m = mma.m,
                                  .n = mma.n,
                                  .k = mma.k,
                                  .group = mma.group,
                                  .tf32 = mma.rounds_to_tf32(),
                                  .first = mma.first,
                                  .is_async = mma.is_async});
    program_.concurrent = program_.concurrent || mma.is_async;
    Emit({.code = Code::kMma, .a = static_cast<int32_t>(program_.tiles.size()) - 1});
  }

  void VectorsStatement(const Vectors& vectors) {
    readers_ = vectors.by_one ? Threads::kFirst : Threads::kAll;
    for (const auto* moves : {&vectors.loads, &vectors.stores}) {
      for (const VectorMove& move : *moves)
        Emit({.code = Code::kAlloc, .a = AddMemory(move.lanes, /*read_only=*/false)});
    }
    for (const VectorMove& load : vectors.loads) {
      std::vector<int64_t> past;
      for (const Expr& condition : load.conditions)
        past.push_back(Emit({.code = Code::kJumpIfZero, .a = Expression(*condition)}));
      MoveVector(load, Code::kVectorLoad);
      Land(past);
    }
    Statement(vectors.loop);
    for (const VectorMove& store : vectors.stores) MoveVector(store, Code::kVectorStore);
    for (const auto* moves : {&vectors.loads, &vectors.stores}) {
      for (const VectorMove& move : *moves) EndMemory(move.lanes);
    }
    readers_ = Threads::kAll;
  }

  void MoveVector(const VectorMove& move, Code code) {
    const int tensor = MemoryOf(move.tensor, /*write=*/code == Code::kVectorStore);
    Emit({.code = code,
          .dst = MemoryOf(move.lanes, /*write=*/true),
          .a = tensor,
          .b = List(Expressions(move.indices)),
          .c = static_cast<int32_t>(move.count),
          .imm = static_cast<int64_t>(readers_)});
  }

  // Each store of the body becomes a kCopyLoad and a kCopyStore.
  void CopyStatement(const Copy& copy) {
    if (copy_) Fail("a copy inside a copy");
    if (copy.engine == CopyEngine::kRegisters) {
      readers_ = Threads::kSome;
      Statement(copy.body);
      readers_ = Threads::kAll;
      return;
    }
    CopySignal signal;
    if (copy.barrier) {
      signal.group = GroupOf("signal");
      signal.barrier = Expression(*copy.barrier);
    }
    signal.by_threads = copy.engine == CopyEngine::kThreads;
    program_.concurrent = true;
    program_.copies.push_back(signal);
    // One thread issues the copy, after all threads have filled the tile.
    if (copy.engine == CopyEngine::kBulk && !copy.barrier) EmitBarrier();
    copy_ = static_cast<int>(program_.copies.size()) - 1;
    Statement(copy.body);
    copy_.reset();
  }

  // The element that a copy stores: loaded by the copy itself, or zero when the condition is false.
  int CopiedValue(const Expr& value) {
    const int dst = NewRegister();
    int64_t to_zero = -1;
    const Expr* load = &value;
    if (value->op == Op::kSelect && value->args[2]->op == Op::kConst) {
      to_zero = Emit({.code = Code::kJumpIfZero, .a = Expression(*value->args[0])});
      load = &value->args[1];
    }
    if ((*load)->op != Op::kLoad) return Fail("a copy computes its value");
    const int indices = List(Expressions((*load)->args));
    const int memory = MemoryOf((*load)->buffer, /*write=*/false);
    Emit({.code = Code::kCopyLoad, .dst = dst, .a = memory, .b = indices, .imm = *copy_});
    if (to_zero < 0) return dst;
    const int64_t to_end = Emit({.code = Code::kJump});
    Land(to_zero);
    Emit({.code = Code::kMove, .dst = dst, .a = Expression(*value->args[2])});
    Land(to_end);
    return dst;
  }

  void RolesStatement(const Roles& roles) {
    if (group_) Fail("roles inside roles");
    group_ = static_cast<int>(program_.groups.size());
    program_.groups.push_back(RoleGroup{{}, roles.barrier_counts, program_.num_barriers});
    program_.num_barriers += static_cast<int>(roles.barrier_counts.size());
    program_.num_agents = std::max(program_.num_agents, 1 + static_cast<int>(roles.roles.size()));
    program_.concurrent = true;
    Emit({.code = Code::kRoles, .a = *group_});
    const int64_t past_roles = Emit({.code = Code::kJump});
    for (const Roles::Role& role : roles.roles) {
      const int64_t threads = role.by_one || IsForOneThread(role.body) ? 1 : RoleThreads(role.body);
      program_.groups[*group_].roles.push_back(RoleGroup::Role{role.name, Here(), threads});
      Statement(role.body);
      Emit({.code = Code::kEnd});
    }
    Land(past_roles);
    group_.reset();
  }

  std::optional<int> copy_;           // the enclosing copy
  int launches_ = 0;                  // so far
  const StmtNode* direct_ = nullptr;  // the statement directly inside a parallel loop, apart from Allocs
};

}  // namespace

absl::StatusOr<Program> Compile(const Function& function) { return Compiler().Run(function); }

std::string DescribeSite(const Program& program, int64_t pc, const std::vector<Scalar>& registers) {
  if (program.site_of[pc] < 0) return "the function";
  const Site& site = program.sites[program.site_of[pc]];
  std::string text = StmtName(site.stmt);
  const char* separator = " at ";
  for (const auto& [name, reg] : site.variables) {
    absl::StrAppend(&text, separator, name, "=", registers[reg].i);
    separator = ", ";
  }
  return text;
}

}  // namespace mycc::interpreter
