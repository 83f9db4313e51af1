#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/interpreter_program.h"
#include "codegen/ir/threads.h"

namespace mycc::interpreter {
namespace {

constexpr int64_t kWarp = 32;

bool HasThreadLoops(const Stmt& root) {
  bool has = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    has |= IsThreadLoop(stmt);
    return !has;
  });
  return has;
}

class Compiler {
 public:
  explicit Compiler(Meetings meetings) : meets_where_said_(meetings == Meetings::kWhereSaid) {}

  absl::StatusOr<Program> Run(const Function& function) {
    // A schedule says which loops are the threads', not yet what is in registers.
    program_.has_threads = HasThreadLoops(function.body) && !Contains(function.body, StmtKind::kBlock);
    for (const Param& param : function.params) AddMemory(param.buffer, param.kind != ParamKind::kOutput);
    Statement(function.body);
    Emit({.code = Code::kEnd});
    if (!status_.ok()) return status_;
    return std::move(program_);
  }

 private:
  // Keeps the first error; compiling goes on with register, memory or list 0, and the program is never run.
  int Fail(const std::string& what) {
    if (status_.ok()) {
      const std::string where = site_ < 0 ? "" : absl::StrCat(" in ", StmtName(program_.sites[site_].stmt));
      status_ = absl::FailedPreconditionError(absl::StrCat("interpreter: ", what, where));
    }
    return 0;
  }

  int64_t Here() const { return static_cast<int64_t>(program_.code.size()); }
  int64_t Emit(const Instr& instr) {
    program_.code.push_back(instr);
    program_.site_of.push_back(site_);
    return Here() - 1;
  }
  // Makes a forward jump end here.
  void Land(int64_t jump) { program_.code[jump].imm = Here(); }
  void Land(const std::vector<int64_t>& jumps) {
    for (const int64_t jump : jumps) Land(jump);
  }

  int NewRegister(Scalar initial = {}) {
    program_.registers.push_back(initial);
    return static_cast<int>(program_.registers.size()) - 1;
  }
  int ConstantRegister(int64_t value) {
    Scalar scalar;
    scalar.i = value;
    return NewRegister(scalar);
  }
  int List(const std::vector<int>& registers) {
    const int first = static_cast<int>(program_.operands.size());
    program_.operands.insert(program_.operands.end(), registers.begin(), registers.end());
    return first;
  }

  int AddMemory(const Buffer& buffer, bool read_only) {
    const bool is_outside = loops_in_scope_.empty() && !group_;
    const bool is_shared = is_outside || buffer->scope == Scope::kShared;
    program_.memories.push_back(MemorySlot{buffer, read_only, is_shared, !is_shared && !in_nest_});
    return memories_[buffer.get()] = static_cast<int>(program_.memories.size()) - 1;
  }
  int MemoryOf(const Buffer& buffer, bool write) {
    const auto it = memories_.find(buffer.get());
    if (it == memories_.end())
      return Fail(absl::StrCat("buffer ", buffer->name, " is used outside its scope"));
    if (write && program_.memories[it->second].read_only)
      return Fail(absl::StrCat("input ", buffer->name, " is written"));
    return it->second;
  }

  // Each returns the register that will hold the value.
  int Expression(const ExprNode& expr) {
    switch (expr.op) {
      case Op::kConst: return NewRegister(expr.value);
      case Op::kVar: {
        const auto it = variables_.find(expr.var.get());
        if (it != variables_.end()) return it->second;
        return Fail(absl::StrCat("variable ", expr.var->name, " is used outside its loop"));
      }
      case Op::kLoad: {
        const int indices = List(Expressions(expr.args));
        const int dst = NewRegister();
        Emit({.code = Code::kLoad,
              .dst = dst,
              .a = MemoryOf(expr.buffer, /*write=*/false),
              .b = indices,
              .c = in_shared_store_ ? 1 : 0});
        return dst;
      }
      case Op::kSelect: return Select(expr);
      default: return Operation(expr);
    }
  }
  std::vector<int> Expressions(const std::vector<Expr>& exprs) {
    std::vector<int> registers;
    registers.reserve(exprs.size());
    for (const Expr& expr : exprs) registers.push_back(Expression(*expr));
    return registers;
  }

  // The arm not taken is jumped over, reads and all.
  int Select(const ExprNode& expr) {
    const int dst = NewRegister();
    const int64_t to_else = Emit({.code = Code::kJumpIfZero, .a = Expression(*expr.args[0])});
    Emit({.code = Code::kMove, .dst = dst, .a = Expression(*expr.args[1])});
    const int64_t to_end = Emit({.code = Code::kJump});
    Land(to_else);
    Emit({.code = Code::kMove, .dst = dst, .a = Expression(*expr.args[2])});
    Land(to_end);
    return dst;
  }

  static Code CodeOf(const ExprNode& expr) {
    if (expr.args[0]->dtype == DType::kI64) {
      switch (expr.op) {
        case Op::kAdd: return Code::kAddIndex;
        case Op::kSub: return Code::kSubIndex;
        case Op::kMul: return Code::kMulIndex;
        case Op::kLt: return Code::kLessIndex;
        case Op::kLe: return Code::kLessEqualIndex;
        default: return Code::kEvaluate;
      }
    }
    if (expr.dtype == DType::kF32 && expr.op == Op::kAdd) return Code::kAddF32;
    if (expr.dtype == DType::kF32 && expr.op == Op::kMul) return Code::kMulF32;
    return Code::kEvaluate;
  }

  int Operation(const ExprNode& expr) {
    const int a = Expression(*expr.args[0]);
    const int b = expr.args.size() > 1 ? Expression(*expr.args[1]) : a;
    const int dst = NewRegister();
    Emit({.code = CodeOf(expr),
          .op = expr.op,
          .dtype = expr.dtype,
          .operand = expr.args[0]->dtype,
          .dst = dst,
          .a = a,
          .b = b});
    return dst;
  }

  void Statement(const Stmt& stmt) {
    const int outer_site = site_;
    program_.sites.push_back(Site{stmt, loops_in_scope_});
    site_ = static_cast<int>(program_.sites.size()) - 1;
    if (IsLaunch(stmt)) {
      const int64_t warps = (ThreadsUnder(stmt) + kWarp - 1) / kWarp;
      Emit({.code = Code::kLaunch, .imm = warps * kWarp});
      in_launch_ = true;
      LaunchedStatement(stmt);
      in_launch_ = false;
    } else {
      LaunchedStatement(stmt);
    }
    site_ = outer_site;
  }

  // Each statement at the root that is not only there to hold others.
  bool IsLaunch(const Stmt& stmt) const {
    return program_.has_threads && meets_where_said_ && !in_launch_ && stmt->kind != StmtKind::kSeq &&
           stmt->kind != StmtKind::kAlloc;
  }

  void LaunchedStatement(const Stmt& stmt) {
    switch (stmt->kind) {
      case StmtKind::kSeq:
        for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
        break;
      case StmtKind::kFor: ForStatement(As<For>(stmt)); break;
      case StmtKind::kIf: IfStatement(As<If>(stmt)); break;
      case StmtKind::kLet: LetStatement(As<Let>(stmt)); break;
      case StmtKind::kAlloc: AllocStatement(As<Alloc>(stmt)); break;
      case StmtKind::kBlock: BlockStatement(As<Block>(stmt)); break;
      case StmtKind::kStore: StoreStatement(As<Store>(stmt)); break;
      case StmtKind::kCombine: CombineStatement(As<Combine>(stmt)); break;
      case StmtKind::kMma: MmaStatement(As<Mma>(stmt)); break;
      case StmtKind::kCopy: CopyStatement(As<Copy>(stmt)); break;
      case StmtKind::kRoles: RolesStatement(As<Roles>(stmt)); break;
      case StmtKind::kArrive: {
        const int group = GroupOf("arrive");
        if (!role_multiplies_) EmitMeet();
        Emit({.code = Code::kArrive, .a = Expression(*As<Arrive>(stmt).barrier), .imm = group});
        break;
      }
      case StmtKind::kWait: {
        const int group = GroupOf("wait"), barrier = Expression(*As<Wait>(stmt).barrier);
        Emit({.code = Code::kWait, .a = barrier, .b = Expression(*As<Wait>(stmt).phase), .imm = group});
        break;
      }
      case StmtKind::kCommitGroup: Emit({.code = Code::kCommitGroup}); break;
      case StmtKind::kWaitGroup:
        Emit({.code = Code::kWaitGroup, .imm = As<WaitGroup>(stmt).pending});
        EmitMeet();
        break;
      case StmtKind::kFence: Emit({.code = Code::kFence}); break;
      case StmtKind::kMeet: EmitMeet(); break;
      case StmtKind::kSignal:
      case StmtKind::kAwait: Fail("a flag between thread blocks that do not run side by side"); break;
    }
  }

  void EmitMeet() {
    if (meets_where_said_) Emit({.code = Code::kMeet});
  }

  int GroupOf(const char* what) {
    return group_ ? *group_ : Fail(absl::StrCat(what, " of a barrier outside roles"));
  }

  // A block's first instance initialises: then iterations run in order.
  static bool CarriesReduction(const For& loop) {
    bool carries = false;
    VisitStmts(loop.body, [&](const Stmt& stmt) {
      const Block* block = DynAs<Block>(stmt);
      if (block == nullptr) return !carries;
      for (const IterVar& iter : block->iters)
        carries |= iter.reduce && UsesVar(iter.binding, loop.var.get());
      return !carries;
    });
    return carries;
  }

  void ForStatement(const For& loop) {
    const int extent = Expression(*loop.extent), variable = NewRegister();
    const int index = static_cast<int>(program_.loops.size());
    program_.loops.push_back(
        Loop{loop.var->name, variable, extent, loop.var->extent,
             loop.loop_kind == LoopKind::kParallel || loop.loop_kind == LoopKind::kBlock,
             loop.loop_kind == LoopKind::kParallel || loop.loop_kind == LoopKind::kBlock ||
                 (loop.loop_kind == LoopKind::kThread && !CarriesReduction(loop)),
             loops_in_scope_.empty() && !group_ &&
                 (loop.loop_kind == LoopKind::kBlock || loop.loop_kind == LoopKind::kThread),
             loop.loop_kind == LoopKind::kBlock});
    const bool of_threads = loop.loop_kind == LoopKind::kThread, is_nest = of_threads && !in_nest_;
    if (of_threads) program_.loops.back().threads = ThreadsUnder(loop.body);
    program_.loops.back().is_nest = is_nest;
    in_nest_ = in_nest_ || of_threads;
    if (program_.loops.back().parallel) {
      program_.loops.back().is_direct = direct_ == &loop;
      direct_ = loop.body.get();
    }
    if (group_ && loop.loop_kind == LoopKind::kParallel) Fail("a parallel loop inside roles");
    const int64_t enter = Emit({.code = Code::kLoopEnter, .a = index});
    const int64_t body = Here();
    if (!variables_.emplace(loop.var.get(), variable).second)
      Fail(absl::StrCat("loop ", loop.var->name, " is inside itself"));
    loops_in_scope_.emplace_back(loop.var->name, variable);
    Statement(loop.body);
    loops_in_scope_.pop_back();
    variables_.erase(loop.var.get());
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
    if (!variables_.emplace(let.var.get(), variable).second)
      Fail(absl::StrCat("variable ", let.var->name, " is inside itself"));
    loops_in_scope_.emplace_back(let.var->name, variable);
    Statement(let.body);
    loops_in_scope_.pop_back();
    variables_.erase(let.var.get());
  }

  void AllocStatement(const Alloc& alloc) {
    if (memories_.contains(alloc.buffer.get()))
      Fail(absl::StrCat("buffer ", alloc.buffer->name, " is allocated inside itself"));
    if (direct_ == &alloc) direct_ = alloc.body.get();
    Emit({.code = Code::kAlloc, .a = AddMemory(alloc.buffer, /*read_only=*/false)});
    Statement(alloc.body);
    memories_.erase(alloc.buffer.get());
  }

  void StoreStatement(const Store& store) {
    const int memory = MemoryOf(store.buffer, /*write=*/true);
    in_shared_store_ = program_.memories[memory].is_shared;
    const int indices = List(Expressions(store.indices));
    if (copy_) {
      Emit({.code = Code::kCopyStore,
            .a = memory,
            .b = indices,
            .c = CopiedValue(store.value),
            .imm = *copy_});
    } else {
      Emit({.code = Code::kStore, .a = memory, .b = indices, .c = Expression(*store.value)});
    }
    in_shared_store_ = false;
  }

  void CombineStatement(const Combine& combine) {
    const int memory = MemoryOf(combine.buffer, /*write=*/true);
    const int indices = List(Expressions(combine.indices));
    const int value = Expression(*combine.value);
    Emit({.code = Code::kReduce,
          .dtype = combine.buffer->dtype,
          .a = memory,
          .b = indices,
          .c = value,
          .imm = static_cast<int64_t>(combine.reduce)});
  }

  // Jumps taken when those bindings of the block that keep terms out of its sum, or the others, are outside
  // their domains.
  std::vector<int64_t> UnlessInside(const Block& block, const std::vector<int>& bindings, bool of_terms) {
    std::vector<int64_t> jumps;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const IterVar& iter = block.iters[i];
      if (GuardsTerms(block, iter) != of_terms) continue;
      if (iter.binding->op == Op::kVar && iter.binding->var->extent <= iter.var->extent) continue;
      const int extent = ConstantRegister(iter.var->extent);
      jumps.push_back(Emit({.code = Code::kJumpIfOutside, .a = bindings[i], .b = extent}));
    }
    return jumps;
  }

  // The bindings, then the instance, which is jumped over where a binding is outside its domain.
  void BlockStatement(const Block& block) {
    std::vector<int> bindings, reduce;
    for (const IterVar& iter : block.iters) {
      bindings.push_back(Expression(*iter.binding));
      if (iter.reduce) reduce.push_back(bindings.back());
    }
    const std::vector<int64_t> exits = UnlessInside(block, bindings, /*of_terms=*/false);
    for (size_t i = 0; i < bindings.size(); ++i) variables_[block.iters[i].var.get()] = bindings[i];
    std::vector<int64_t> skips;
    if (block.reduce == ReduceOp::kArgMax || block.reduce == ReduceOp::kArgMin) {
      skips = UnlessInside(block, bindings, /*of_terms=*/true);
      ArgReduction(block, reduce);
    } else {
      const bool initialises = block.reduce != ReduceOp::kNone && block.init;
      const std::vector<int> loops = initialises ? LoopsOfReduction(block) : std::vector<int>();
      if (!loops.empty()) Initialisation(block, loops);
      skips = UnlessInside(block, bindings, /*of_terms=*/true);
      if (initialises && loops.empty()) Initialisation(block, reduce);
      PlainInstance(block);
    }
    for (const IterVar& iter : block.iters) variables_.erase(iter.var.get());
    Land(skips);
    Land(exits);
  }

  // Jumps taken when any of the registers is not zero.
  std::vector<int64_t> UnlessFirst(const std::vector<int>& reduce) {
    std::vector<int64_t> jumps;
    jumps.reserve(reduce.size());
    for (const int reg : reduce) jumps.push_back(Emit({.code = Code::kJumpIfNonZero, .a = reg}));
    return jumps;
  }

  // The loops that carry the reduction; they all start together, whatever terms are left out. None where one
  // of them carries an axis too.
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

  void Initialisation(const Block& block, const std::vector<int>& zeros) {
    const std::vector<int64_t> later = UnlessFirst(zeros);
    const int identity = NewRegister(ReduceIdentity(block.reduce, block.out->dtype)->value);
    const int memory = MemoryOf(block.out, /*write=*/true);
    Emit({.code = Code::kStore, .a = memory, .b = List(Expressions(block.indices)), .c = identity});
    Land(later);
  }

  void PlainInstance(const Block& block) {
    const int memory = MemoryOf(block.out, /*write=*/true);
    const int indices = List(Expressions(block.indices));
    if (block.reduce == ReduceOp::kNone) {
      Emit({.code = Code::kStore, .a = memory, .b = indices, .c = Expression(*block.value)});
      return;
    }
    const int value = Expression(*block.value);
    Emit({.code = Code::kReduce,
          .dtype = block.out->dtype,
          .a = memory,
          .b = indices,
          .c = value,
          .imm = static_cast<int64_t>(block.reduce)});
  }

  void ArgReduction(const Block& block, const std::vector<int>& reduce) {
    if (reduce.size() != 1 || !block.arg_value) {
      Fail("argmax and argmin need one reduction variable and a buffer of running best values");
      return;
    }
    const int out = MemoryOf(block.out, /*write=*/true), best = MemoryOf(block.arg_value, /*write=*/true);
    std::vector<int> list = Expressions(block.indices);
    list.push_back(reduce[0]);
    const int indices = List(list), value = Expression(*block.value);
    std::vector<int64_t> done;
    if (block.init) {
      const std::vector<int64_t> later = UnlessFirst(reduce);
      Emit({.code = Code::kStore, .a = out, .b = indices, .c = reduce[0]});
      Emit({.code = Code::kStore, .a = best, .b = indices, .c = value});
      done.push_back(Emit({.code = Code::kJump}));
      Land(later);
    }
    Emit({.code = Code::kArgReduce,
          .dtype = block.arg_value->dtype,
          .dst = best,
          .a = out,
          .b = indices,
          .c = value,
          .imm = static_cast<int64_t>(block.reduce)});
    Land(done);
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
                                  .tf32 = mma.rounds_to_tf32()});
    Emit({.code = Code::kMma, .a = static_cast<int32_t>(program_.tiles.size()) - 1});
  }

  // The stores of the body become pairs of a copy's two ends.
  void CopyStatement(const Copy& copy) {
    if (copy_) Fail("a copy inside a copy");
    CopySignal signal;
    if (copy.barrier) {
      signal.group = GroupOf("signal");
      signal.barrier = Expression(*copy.barrier);
    }
    signal.by_threads = copy.engine == CopyEngine::kThreads;
    program_.concurrent = true;
    program_.copies.push_back(signal);
    // One thread issues it, for all that have filled the tile.
    if (copy.engine == CopyEngine::kBulk && !copy.barrier) EmitMeet();
    copy_ = static_cast<int>(program_.copies.size()) - 1;
    Statement(copy.body);
    copy_.reset();
  }

  // The element that a copy stores: loaded by the copy itself, or zero where the condition does not hold.
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
    Emit({.code = Code::kCopyLoad,
          .dst = dst,
          .a = MemoryOf((*load)->buffer, /*write=*/false),
          .b = indices,
          .imm = *copy_});
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
      const int64_t threads = IsForOneThread(role.body) ? 1 : RoleThreads(role.body);
      program_.groups[*group_].roles.push_back(RoleGroup::Role{role.name, Here(), threads});
      role_multiplies_ = Contains(role.body, StmtKind::kMma);
      Statement(role.body);
      Emit({.code = Code::kEnd});
    }
    Land(past_roles);
    group_.reset();
  }

  absl::Status status_;
  Program program_;
  std::unordered_map<const VarNode*, int> variables_;    // in scope, and their registers
  std::unordered_map<const BufferNode*, int> memories_;  // in scope, and their slots
  std::vector<std::pair<std::string, int>> loops_in_scope_;
  std::optional<int> group_;  // of the roles around
  std::optional<int> copy_;   // the copy around
  int site_ = -1;
  const bool meets_where_said_;
  bool in_launch_ = false, in_nest_ = false;
  const StmtNode* direct_ = nullptr;  // what stands right inside a parallel loop, but for allocations
  bool in_shared_store_ = false;      // one thread of those that do the same carries it out, loads and all
  bool role_multiplies_ = false;      // on tensor cores: its warpgroups arrive each for itself
};

}  // namespace

absl::StatusOr<Program> Compile(const Function& function, Meetings meetings) {
  return Compiler(meetings).Run(function);
}

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
